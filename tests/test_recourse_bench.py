"""The adapter for RecourseBench, against that package's interface as it is documented."""

import sys
from types import SimpleNamespace

import for_recourse_bench as adapter
import numpy as np
import pandas as pd
import pytest
import torch
from for_recourse_bench import TableRecourse
from sklearn.linear_model import LogisticRegression

from lib.method.problem import Recommendation

FEATURES = ["age", "income", "savings", "member"]
EDGES = [("age", "income"), ("income", "savings")]


def table(n_people: int, seed: int = 0) -> pd.DataFrame:
    """Savings are twice the income; age is a count, member is 0 or 1, as floats."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n_people).astype(float)
    income = 0.05 * age + rng.normal(0, 1, n_people)
    savings = 2 * income + rng.normal(0, 1, n_people)
    member = rng.integers(0, 2, n_people).astype(float)
    paid = (income + savings + member > 8).astype(int)
    columns = (age, income, savings, member)
    return pd.DataFrame(dict(zip(FEATURES, columns, strict=True)) | {"paid": paid})


class Linear(torch.nn.Module):
    """Log-odds of being paid back, written out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1] + x[:, 2] + x[:, 3] - 8


def linear_accepts(frame: pd.DataFrame) -> np.ndarray:
    return (frame.income + frame.savings + frame.member >= 8).to_numpy()


def fitted(edges=(), immutable=("age",), model=None, **settings) -> TableRecourse:
    model = Linear() if model is None else model
    recourse = TableRecourse(model, immutable, edges, **settings)
    return recourse.fit(table(400), "paid")


@pytest.fixture(scope="module", params=[(), EDGES], ids=["no graph", "graph"])
def recourse(request) -> TableRecourse:
    return fitted(request.param)


@pytest.fixture(scope="module")
def with_graph() -> TableRecourse:
    return fitted(EDGES)


@pytest.fixture
def factuals() -> pd.DataFrame:
    people = table(60, seed=1)[FEATURES]
    people.index = pd.Index([f"person {i % 50}" for i in range(60)], name="who")
    return people[["savings", "member", "age", "income"]]  # in an order of their own


def test_what_comes_back(recourse, factuals):
    """The rows and columns that came: as before, accepted now, or NaN as a whole."""
    before = factuals.copy()
    after = recourse.get_counterfactuals(factuals)
    pd.testing.assert_index_equal(after.index, factuals.index)
    assert list(after.columns) == list(factuals.columns)
    pd.testing.assert_frame_equal(factuals, before)
    accepted, there = linear_accepts(factuals), after.notna().all(axis=1).to_numpy()
    pd.testing.assert_frame_equal(after[accepted], factuals[accepted])
    assert (after.notna().any(axis=1) == there).all()
    assert (~accepted & there).sum() > 0.5 * (~accepted).sum() > 5
    assert linear_accepts(after[there]).all()
    assert (after.age[there].to_numpy() == factuals.age[there].to_numpy()).all()
    assert set(after.member[there]) == {0.0, 1.0}


def test_rows_are_nan_exactly_where_nothing_is_found(with_graph, factuals, monkeypatch):
    """Of the refused, nothing is recommended to one, and too little to another."""
    normally = with_graph.get_counterfactuals(factuals).notna().all(axis=1).to_numpy()
    helped = np.flatnonzero(normally[~linear_accepts(factuals)])
    recommend = with_graph.solver.recommend

    def recommend_less(x, preferences):
        recommendation = recommend(x, preferences)
        recommendation.is_acted[helped[0]] = False
        for values in (recommendation.values, recommendation.x_cf):
            values[helped[:2]] = x[helped[:2]]
        return recommendation

    monkeypatch.setattr(with_graph.solver, "recommend", recommend_less)
    after = with_graph.get_counterfactuals(factuals)
    expected = normally.copy()
    expected[np.flatnonzero(~linear_accepts(factuals))[helped[:2]]] = False
    assert after.notna().all(axis=1).tolist() == expected.tolist()
    assert after.isna().all(axis=1).tolist() == (~expected).tolist()


def test_what_does_not_move_stays_to_the_bit():
    factuals = table(400, seed=1)[FEATURES]
    recourse = fitted(immutable=["age", "savings"], n_epochs=100)
    after = recourse.get_counterfactuals(factuals)
    moves = after.notna().all(axis=1) & (after.income != factuals.income)
    assert moves.sum() > 5
    assert (after.savings == factuals.savings)[moves].all()


def test_consequences_appear_with_a_graph_and_only_there(recourse, factuals, monkeypatch):
    """Who earns more saves twice as much more, or as much as before."""
    people = factuals[~linear_accepts(factuals)]

    def earn_more(x, preferences):
        is_acted = torch.zeros_like(x, dtype=torch.bool)
        is_acted[:, FEATURES.index("income")] = True
        values = torch.where(is_acted, x + 2, x)
        x_cf = recourse.problem.flow.counterfactual(x, is_acted, values)
        return Recommendation(is_acted, values, x_cf)

    monkeypatch.setattr(recourse.solver, "recommend", earn_more)
    change = (recourse.get_counterfactuals(people) - people).dropna()
    assert len(change) > 5
    slope = change.savings / change.income
    np.testing.assert_allclose(slope, 2 if recourse.edges else 0, atol=0.5)


def test_the_same_seed_gives_the_same_rows(with_graph, factuals):
    again = fitted(EDGES).get_counterfactuals(factuals)
    pd.testing.assert_frame_equal(again, with_graph.get_counterfactuals(factuals))
    other = fitted(EDGES, seed=1).get_counterfactuals(factuals)
    assert not other.equals(again)


def test_batches_do_not_matter(with_graph, factuals):
    """The benchmark asks 20 people at a time."""
    whole = with_graph.get_counterfactuals(factuals)
    batches = [with_graph.get_counterfactuals(factuals[i : i + 20]) for i in (0, 20, 40)]
    pd.testing.assert_frame_equal(pd.concat(batches), whole, rtol=1e-5)


def test_nobody_and_only_accepted_people(with_graph, factuals):
    assert with_graph.get_counterfactuals(factuals[:0]).shape == (0, 4)
    accepted = factuals[linear_accepts(factuals)]
    pd.testing.assert_frame_equal(with_graph.get_counterfactuals(accepted), accepted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="income"), r"income is missing: the table has"),
        (lambda f: f.assign(paid=1), r"Unknown feature 'paid': expected one of age"),
        (lambda f: f.assign(age=np.nan), r"'age' has 60 gaps .* Drop or fill"),
    ],
)
def test_factuals_of_no_use(with_graph, factuals, change, message):
    with pytest.raises(ValueError, match=message):
        with_graph.get_counterfactuals(change(factuals))


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({}, lambda f: f.assign(age=np.nan), r"'age' has 400 gaps"),
        ({}, lambda f: f.assign(paid=2), r"holds \[2\], and 1 is desired: expected two"),
        ({}, lambda f: f.drop(columns="paid"), r"Unknown column of the table: 'paid'"),
        ({"immutable": ["agee"]}, None, r"immutable feature 'agee'.* mean 'age'"),
        ({"immutable": ["savings"], "edges": EDGES}, None, r"age, income would move it"),
        ({"solver": "oracle"}, None, r"expected one of icarma, propose"),
        ({"model": "a path"}, None, r"model is str: expected a torch module"),
        ({"model": torch.nn.Linear(4, 3)}, None, r"outputs with shape \(\d+, 3\)"),
    ],
)
def test_tables_and_settings_of_no_use(settings, change, message):
    frame = table(400) if change is None else change(table(400))
    with pytest.raises(ValueError, match=message):
        TableRecourse(**{"model": Linear()} | settings, n_epochs=1).fit(frame, "paid")


def test_fit_comes_first(factuals):
    with pytest.raises(ValueError, match=r"call fit\(frame, label\) first"):
        TableRecourse(Linear()).get_counterfactuals(factuals)


class Detached(Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).detach()


def test_a_module_without_a_gradient_is_refused_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr(adapter.flow, "fit", None)
    with pytest.raises(ValueError, match="does it leave torch on the way"):
        TableRecourse(Detached()).fit(table(400), "paid")


@pytest.mark.parametrize("solver", adapter.SOLVERS)
def test_of_another_librarys_model_a_network_learns_the_decisions(factuals, solver):
    frame = table(400)
    model = LogisticRegression().fit(frame[FEATURES], frame.paid)
    recourse = TableRecourse(model, ["age"], EDGES, solver=solver, n_epochs=60)
    after = recourse.fit(frame, "paid").get_counterfactuals(factuals).dropna()
    assert len(after) > 10
    assert model.predict(after[FEATURES]).all()


class TwoOutputs(Linear):
    """An output for each of two labels, whose difference is the log-odds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([-super().forward(x) / 2, super().forward(x) / 2], -1)


def test_one_output_or_two(with_graph):
    two = fitted(EDGES, model=TwoOutputs(), n_epochs=1)
    x = with_graph.population.x["recourse/test"]
    logits = [r.problem.classifier.logit(x) for r in (with_graph, two)]
    torch.testing.assert_close(*logits)


def test_the_smaller_label_may_be_the_desired_one(factuals):
    after = fitted(EDGES, desired=0).get_counterfactuals(factuals).dropna()
    assert len(after) > 40
    assert not linear_accepts(after).any()


# The package itself, as far as its documentation says what it does.


class TrainSet:
    """What a method sees of a data set: a table, its label, and metadata."""

    target_column = "paid"

    def __init__(self, frame: pd.DataFrame, **attributes: object) -> None:
        self.frame = frame
        self.__dict__ |= attributes

    def get(self, target: bool) -> pd.DataFrame:
        return self.frame[["paid"]] if target else self.frame.drop(columns="paid")


class MethodObject:
    """The base class of a method, which asks it in batches of 20."""

    def predict(self, people: TrainSet) -> pd.DataFrame:
        assert self._is_trained
        factuals = people.get(target=False)
        starts = range(0, len(factuals), 20)
        batches = [self.get_counterfactuals(factuals[i : i + 20]) for i in starts]
        return pd.concat(batches)


class TrainedModel:
    """A trained model: an output for each label, and rows of -1 for rows with NaN."""

    _need_grad = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        helps = x[:, 3:4] + x[:, 4:5] - 1  # to be a member, to be blue
        return TwoOutputs()(x[:, :4]) + torch.tensor([0.0, 4.0]) * helps

    def get_prediction(self, frame: pd.DataFrame, proba: bool) -> torch.Tensor:
        outputs = self.forward(torch.tensor(frame.to_numpy(dtype="float32")))
        shares = outputs.softmax(1)
        return shares if proba else torch.eye(2)[shares.argmax(1)]

    def get_class_to_index(self) -> dict[int, int]:
        return {0: 0, 1: 1}


@pytest.fixture
def bench(monkeypatch) -> dict[str, type]:
    """Put a package of that name in place; return what is registered in it."""
    registered: dict[str, type] = {}
    package = SimpleNamespace(
        MethodObject=MethodObject,
        register=lambda name: lambda method: registered.setdefault(name, method),
        resolve_feature_metadata=lambda people: people.metadata,
    )
    monkeypatch.setitem(sys.modules, "recourse_bench", package)
    return registered


def train_set() -> TrainSet:
    """Two more columns that are one category, and a direction nobody can go."""
    frame = table(400)
    blue = np.random.default_rng(3).integers(0, 2, 400).astype(float)
    frame.insert(4, "colour_cat_blue", blue)
    frame.insert(5, "colour_cat_red", 1 - blue)
    features = [name for name in frame if name != "paid"]
    kinds = dict.fromkeys(features, "numerical") | dict.fromkeys(features[3:], "binary")
    is_mutable = {name: name != "age" for name in features}
    direction = dict.fromkeys(features, "any") | {"member": "none"}
    metadata, encoding = (kinds, is_mutable, direction), {"colour": features[4:]}
    return TrainSet(frame, metadata=metadata, encoding=encoding)


def test_a_registered_method_keeps_the_interface(bench):
    assert adapter.register() == tuple(bench) == ("icarma", "propose")
    assert issubclass(bench["icarma"], MethodObject)
    people = train_set()
    model = TrainedModel()
    method = bench["icarma"](
        target_model=model, seed=7, device="cpu", desired_class=1, edges=[list(EDGES[1])]
    )
    assert (method._need_grad, method._desired_class, method._seed) == (True, 1, 7)
    method.fit(people)
    factuals = people.get(target=False)
    after = method.predict(people)
    pd.testing.assert_index_equal(after.index, factuals.index)
    assert list(after.columns) == list(factuals.columns)
    there = after.dropna()
    fixed = ["age", "member", "colour_cat_blue", "colour_cat_red"]
    pd.testing.assert_frame_equal(there[fixed], factuals.loc[there.index, fixed])
    assert (model.get_prediction(there, proba=False).argmax(1) == 1).all()
    assert (there.income != factuals.income[there.index]).sum() > 50


@pytest.mark.parametrize("wrong", [{"desired_class": None}, {"device": "cuda"}])
def test_a_registered_method_says_what_it_needs(bench, wrong):
    adapter.register()
    with pytest.raises(ValueError, match=r'label that people hope for, and "cpu"'):
        bench["icarma"](TrainedModel(), **{"desired_class": 1} | wrong)

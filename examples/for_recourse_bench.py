"""This project's solvers as methods of RecourseBench, a benchmark of recourse on tables.

    python examples/for_recourse_bench.py

It recommends to the people of a small table, without a causal graph and with one.
In the benchmark, where that package is installed and this folder is on the path
(PYTHONPATH=examples; under the package's own name this file would hide it):

    import for_recourse_bench
    import recourse_bench

    for_recourse_bench.register()
    method = {"name": "icarma", "desired_class": 1, "edges": [["income", "savings"]]}
    recourse_bench.run({"method": method, ...})  # the rest as for any other method

What is taken to hold of RecourseBench 0.2.0 (github.com/charmlab/recourse_bench,
commit 44922e9); the package itself was never run with this file:

- `get_counterfactuals` gets features without the label, encoded and scaled as the
  model takes them, in batches of 20. It returns the same rows and columns.
- A row of NaN says that there is no recommendation. Validity is the share of rows
  without NaN, and the model is not asked again. Here it is asked, before a row is
  returned.
- With a `desired_class`, people who have that class already do not count. They are
  returned unchanged, as the benchmark's own example of a method does. Without one,
  they would have to be moved to the other class; that is a ValueError here.
- Its distances (l0, l1, l2, linf) compare all features before and after. Downstream
  effects of an action are charged as effort there; in this project they cost nothing.
- It has no preferences: here everyone can act on all that is actionable, equally
  easily. Directions ("same-or-increase") are not known to the solvers; the benchmark
  counts who breaks them.
- Features are numbers. A column of whole numbers stays whole, 0 and 1 among them, and
  where there is one, values that change stay in the range that was seen. That several
  columns are one category, or codes of one, is not known to the solvers, so that
  `register` holds such columns fixed; hold yours fixed, too.
"""

import lib.reproducible

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from own_problem import EDGES, past_applicants
from torch import Tensor

from lib import checks
from lib.beyond.propose import propose, training
from lib.method import classifier, data, flow, icarma
from lib.method.classifier import Classifier
from lib.method.data import Edges, Population
from lib.method.graph import Graph
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Solver
from lib.method.samplers import TableSampler

SOLVERS = ("icarma", "propose")


class TableRecourse:
    """Recommend to the people of a table under a model that is there already.

    Arguments:
        model: Takes the features in the units of the table, in its
            order: a torch module in float32, with log-odds of the
            larger label (N,) or (N, 1) or an output for each label
            (N, 2); or an object whose `predict` takes a table and
            returns labels. A module that has `predict`, too, decides
            by that.
        immutable: Features that nobody can change, and that nothing
            changes.
        edges: The causal graph, as for `Population.from_frame`; left
            out: every feature stands alone, and plausible means
            likely feature by feature.
        solver: "icarma" or "propose". Of a model that is no torch
            module a network learns the decisions on the table, and
            the solver asks that; a row is returned only if the model
            itself accepts it.
        desired: The label of a positive decision.
        n_epochs: Of the flow and of the solver.
        seed: Of everything.
    Raises: ValueError: there is no such solver, or the model is
        neither.
    Example:
        >>> frame = past_applicants(200)
        >>> recourse = TableRecourse(a_banks_model(), ["age"], EDGES, n_epochs=2)
        >>> fitted = recourse.fit(frame, "repaid")
        >>> fitted.get_counterfactuals(frame[:3].drop(columns="repaid")).shape
        (3, 4)
    """

    def __init__(
        self,
        model: Any,
        immutable: Sequence[str] = (),
        edges: Edges = (),
        solver: str = "icarma",
        desired: int | str = 1,
        n_epochs: int = 300,
        seed: int = 0,
    ) -> None:
        checks.one_of("solver", [solver], SOLVERS)
        if not isinstance(model, torch.nn.Module) and not hasattr(model, "predict"):
            raise ValueError(
                f"The model is {type(model).__name__}: expected a torch module, or an "
                "object whose predict takes a table and returns labels."
            )
        self.model: Any = model.eval() if isinstance(model, torch.nn.Module) else model
        self.immutable, self.edges = tuple(immutable), edges
        self.solver_name, self.desired = solver, desired
        self.n_epochs, self.seed = n_epochs, seed

    def fit(self, frame: pd.DataFrame, label: str) -> "TableRecourse":
        """Fit flow and solver to a table of past applicants; return this object.

        Arguments:
            frame: Numbers without gaps, and the label; a row a
                person. Columns of whole numbers are counts.
            label: Its column with two labels, one of them desired.
        Raises: ValueError: a column is missing, holds text or gaps,
            or is the same for everyone; an unknown feature is called
            immutable, or actions would change one that is; the
            solver needs a gradient that the model lacks.
        """
        self._check_label(frame, label)
        features = self.features = [name for name in frame.columns if name != label]
        numbers = data.values(frame, features)
        whole = np.array(features)[(numbers % 1 == 0).all(0)].tolist()
        checks.one_of("immutable feature", self.immutable, features)
        kinds = {f: "immutable" if f in self.immutable else "actionable" for f in features}
        graph = data.to_graph(features, self.edges)
        _check_nothing_moves(graph, self.immutable)
        is_module = isinstance(self.model, torch.nn.Module)
        decisions = self._accepts(numbers)  # a model of something else says so here
        people = frame[features].assign(**{label: decisions})
        self.population = Population.from_frame(
            people, label, kinds, graph, whole=whole, seed=self.seed
        )
        h = Classifier(features, self._log_odds)
        if not is_module:  # the solvers need a gradient: a network learns the decisions
            h, _ = classifier.fit(self.population, self.n_epochs, seed=self.seed)
        elif not h.has_gradient:
            raise ValueError(
                "The solvers need the gradient of the module, and this one has none: does "
                "it leave torch on the way?"
            )
        x = self.population.x
        density, _ = flow.fit(
            graph,
            x["flow/train"],
            x["flow/validation"],
            n_epochs=self.n_epochs,
            seed=self.seed,
        )
        self.problem = Problem(self.population, h, density)
        self.solver = self._fit_solver()
        return self

    def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame:
        """Return everyone's features after the recommended actions, as float64.

        Rows and columns are those of the table that came. A row is
        NaN where nothing is recommended, or where the model refuses
        the person still. People who are accepted already stay as
        they are.

        Arguments:
            factuals: The features of the table that was learned
                from, in any order, without gaps.
        Raises: ValueError: columns differ, or hold text or gaps;
            nothing was fitted.
        """
        if not hasattr(self, "solver"):
            raise ValueError("Nothing was fitted: call fit(frame, label) first.")
        features = list(self.population.features)
        before = data.values(factuals, features)
        checks.one_of("feature", factuals.columns, features)
        # whoever lies beyond the range that was seen is taken for somebody at its end
        x = self.population.transform(torch.from_numpy(before))
        is_accepted = self._accepts(before)
        after = np.where(is_accepted[:, None], before, np.nan)
        # the problem accepts those whose nearest values in the range are accepted
        is_refused = ~is_accepted & ~self.problem.accepts(x).numpy()
        if is_refused.any():
            after[is_refused] = self._after_actions(x[is_refused], before[is_refused])
        frame = pd.DataFrame(after, index=factuals.index, columns=features)
        return frame[list(factuals.columns)]

    def _after_actions(self, x: Tensor, before: np.ndarray) -> np.ndarray:
        """Return refused people's features after their actions, NaN without recourse."""
        recommendation = self.solver.recommend(x, self._all_easy(len(x)))
        x_cf = self.problem.discretise(x, recommendation).x_cf
        records = self.population.to_records(x_cf).numpy()
        after = np.where((x_cf != x).numpy(), records, before)
        after[~self._accepts(after)] = np.nan  # those who stay as they are among them
        return after

    def _fit_solver(self) -> Solver:
        """Return the solver, trained for people who can act on everything."""
        if self.solver_name == "propose":
            settings = propose.Settings(n_epochs=self.n_epochs)
            return training.fit(self.problem, settings, self.seed)[0]
        sampler = TableSampler(self._all_easy(1))
        networks = icarma.Settings(n_epochs=self.n_epochs)
        return icarma.fit(self.problem, sampler, networks, [self.seed])[0]

    def _all_easy(self, n_people: int) -> Preferences:
        """Return preferences of people who can act on everything, equally easily."""
        n_features = len(self.population.actionable)
        return Preferences.from_mask(torch.ones(n_people, n_features, dtype=torch.bool))

    def _check_label(self, frame: pd.DataFrame, label: str) -> None:
        """Keep the two labels; raise ValueError unless one of them is the desired one."""
        checks.one_of("column of the table:", [label], tuple(frame.columns))
        self.labels = frame[label].drop_duplicates().sort_values().tolist()
        if len(self.labels) != 2 or self.desired not in self.labels:
            raise ValueError(
                f"The label {label!r} holds {self.labels[:5]}, and {self.desired!r} is "
                "desired: expected two labels, without gaps, one of them desired."
            )

    def _accepts(self, numbers: np.ndarray) -> np.ndarray:
        """Return the model's own decisions for features in the table's units (N, D)."""
        if len(numbers) == 0:
            return np.zeros(0, dtype=bool)
        if hasattr(self.model, "predict"):
            frame = pd.DataFrame(numbers, columns=self.features)
            return np.asarray(self.model.predict(frame)).reshape(-1) == self.desired
        with torch.no_grad():
            return (self._of_module(torch.from_numpy(numbers).float()) >= 0).numpy()

    def _log_odds(self, x: Tensor) -> Tensor:
        """Return a module's log-odds of the desired label for standardised people."""
        return self._of_module(self.population.inverse_transform(x))

    def _of_module(self, x: Tensor) -> Tensor:
        """Return a module's log-odds of the desired label, with shape (N,)."""
        outputs = self.model(x)
        if outputs.shape == (len(x), 2):
            outputs = outputs[:, 1] - outputs[:, 0]
        elif outputs.shape not in {(len(x),), (len(x), 1)}:
            raise ValueError(
                f"The module gave outputs with shape {tuple(outputs.shape)} for {len(x)} "
                "people: expected (N,) or (N, 1), log-odds of the larger label, or (N, 2)."
            )
        sign = 1 if self.desired == self.labels[1] else -1
        return sign * outputs.reshape(len(x))


def _check_nothing_moves(graph: Graph, immutable: Sequence[str]) -> None:
    """Raise ValueError if an action on another feature would move an immutable one."""
    for effect in immutable:
        column = graph.index(effect)
        movable = [
            name
            for j, name in enumerate(graph.features)
            if name not in immutable and column in graph.descendants_of([j])
        ]
        if movable:
            raise ValueError(
                f"{effect} is immutable, but by the edges {', '.join(movable)} would move "
                "it. Leave those edges out, or make the causes immutable, too."
            )


class BenchModel:
    """Hold a trained model of RecourseBench as one that takes tables and returns labels.

    Arguments:
        model: With `get_prediction` and `get_class_to_index`.
    """

    def __init__(self, model: Any) -> None:
        self.trained = model
        self.labels = sorted(model.get_class_to_index())

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the label of each person, with shape (N,)."""
        index = self.trained.get_prediction(frame, proba=False).argmax(1)
        return np.array(self.labels)[index.numpy()]

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the probability of each label, with shape (N, 2)."""
        return self.trained.get_prediction(frame, proba=True).double().numpy()


class DifferentiableBenchModel(BenchModel, torch.nn.Module):
    """Hold a trained model of RecourseBench that has a gradient."""

    def __init__(self, model: Any) -> None:
        torch.nn.Module.__init__(self)
        BenchModel.__init__(self, model)

    def forward(self, x: Tensor) -> Tensor:
        """Return an output for each label, with shape (N, 2)."""
        return self.trained.forward(x)


def register() -> tuple[str, ...]:
    """Register the solvers as methods of RecourseBench; return their names there.

    A config's method may then say `edges` (pairs of cause and effect)
    and `n_epochs`, beside the `seed` and `desired_class` of any method.

    Raises: ImportError: RecourseBench is not installed.
    """
    bench = importlib.import_module("recourse_bench")
    for solver in SOLVERS:
        bench.register(solver)(_method(bench, bench.MethodObject, solver))
    return SOLVERS


def _method(bench: Any, base: Any, solver: str) -> type:
    """Return the class of a method, as the benchmark's registry takes it."""

    class Method(base):
        def __init__(
            self,
            target_model: Any,
            seed: int | None = None,
            device: str = "cpu",
            desired_class: int | str | None = None,
            edges: Edges = (),
            n_epochs: int = 300,
        ) -> None:
            if desired_class is None or device.lower() != "cpu":
                raise ValueError(
                    f"desired_class is {desired_class!r}, device is {device!r}: expected "
                    'the label that people hope for, and "cpu".'
                )
            self._target_model, self._device, self._seed = target_model, "cpu", seed
            self._desired_class, self._need_grad = desired_class, solver == "icarma"
            self._edges, self._n_epochs = edges, n_epochs

        def fit(self, train_set: Any) -> None:
            has_gradient = self._target_model._need_grad
            kind = DifferentiableBenchModel if has_gradient else BenchModel
            self._recourse = TableRecourse(
                kind(self._target_model),
                _held_fixed(bench, train_set),
                self._edges,
                solver,
                self._desired_class,
                self._n_epochs,
                self._seed or 0,
            )
            label = train_set.target_column
            labels = train_set.get(target=True)[label]
            frame = train_set.get(target=False).assign(**{label: labels.to_numpy()})
            self._recourse.fit(frame, label)
            self._is_trained = True

        def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame:
            return self._recourse.get_counterfactuals(factuals)

    return Method


def _held_fixed(bench: Any, train_set: Any) -> list[str]:
    """Return the features nobody can act on, and those that stand for a category."""
    kinds, is_mutable, direction = bench.resolve_feature_metadata(train_set)
    groups = getattr(train_set, "encoding", {}).values()
    grouped = {name for group in groups if len(group) > 1 for name in group}
    return [
        name
        for name in train_set.get(target=False).columns
        if not is_mutable[name]
        or direction[name].lower() in ("none", "same")
        or kinds[name].lower() == "categorical"
        or name in grouped
    ]


def a_banks_model() -> torch.nn.Module:
    """Return a model to play with, of the people in own_problem.py.

    Example:
        >>> applicant = torch.tensor([[30.0, 3_000.0, 2.0, 1_000.0]])
        >>> a_banks_model()(applicant).round().item()
        1.0
    """
    linear = torch.nn.Linear(4, 1).requires_grad_(False)
    linear.weight[:] = torch.tensor([[0.0, 0.002, 0.0, -0.003]])  # of income and debt
    linear.bias[:] = -2.5
    return linear


if __name__ == "__main__":
    applicants = past_applicants().astype(float)
    someone = applicants.drop(columns="repaid")[:8]
    print(someone.round(0).to_string(), end="\n\n")
    for which, edges in {"without a graph": (), "with a graph": EDGES}.items():
        recourse = TableRecourse(a_banks_model(), ["age"], edges).fit(applicants, "repaid")
        after = recourse.get_counterfactuals(someone)
        print(which, after.round(0).to_string(), sep="\n", end="\n\n")

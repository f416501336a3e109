"""Give Me Some Credit: found, read and cleaned as it should be, and never taken for something else."""

import zipfile
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from lib.base import files
from lib.base.files import PARAMS
from lib.causal import flow
from lib.preferences.samplers import RankingSampler
from lib.problem import classifier, gmsc
from lib.problem.recourse import Problem, Recommendation
from lib.solvers import grid, icarma

DATA = gmsc.find(download=False)
needs_data = pytest.mark.skipif(
    DATA is None, reason=f"the data is not here: {gmsc.VARIABLE} names it"
)


@pytest.fixture
def raw() -> pd.DataFrame:
    """Four hundred invented people with the csv's columns, called as ours."""
    rng = np.random.default_rng(0)
    n_people = 400
    people = pd.DataFrame({name: rng.poisson(1.0, n_people) for name in gmsc.COLUMNS})
    people["age"], people["income"] = (
        rng.integers(20, 90, n_people),
        rng.integers(0, 30_000, n_people).astype(float),
    )
    people["utilization"], people["debt_ratio"] = (
        1.2 * rng.random(n_people),
        rng.exponential(0.5, n_people),
    )
    people.loc[:9, "income"] = np.nan
    people.loc[10:12, list(gmsc.LATENESS)] = 98
    people[gmsc.LABEL] = (rng.random(n_people) < 0.1).astype(int)
    return people


@needs_data
def test_the_real_data_is_cleaned_as_published():
    people, steps = gmsc.clean(gmsc.read(DATA))
    assert (
        steps["rows"] == 150_000
        and steps["without missing values"] == len(people) == 120_269
    )
    assert steps["lateness codes made 18"] == 148 and people[
        list(gmsc.LATENESS)
    ].max().tolist() == [18, 18, 18]
    assert (
        people.income.max() == 17_000
        and people.utilization.max() == people.debt_ratio.max() == 1
    )
    assert people.paid_back.mean() == pytest.approx(1 - 8_357 / 120_269)
    assert all(people[name].max() == most for name, most in gmsc.MOST.items())


def test_cleaning_drops_caps_and_decodes(raw):
    people, steps = gmsc.clean(raw)
    assert steps["rows"] == 400 and steps["without missing values"] == len(people) == 390
    assert (
        steps["income capped at 17,000"] == (raw.income > 17_000).sum()
        and people.income.max() == 17_000
    )
    assert steps["utilization capped at 1"] == (raw.utilization.dropna()[10:] > 1).sum()
    assert (people.loc[:2, list(gmsc.LATENESS)] == 18).all(axis=None) and steps[
        "lateness codes made 18"
    ] == 3
    assert (people.paid_back.to_numpy() == (raw[gmsc.LABEL][10:] == 0).to_numpy()).all()
    assert raw.income.max() > 17_000  # what was handed over is as it was


def test_the_graph_has_nineteen_edges_in_causal_order():
    causes = gmsc.graph().parents
    assert sum(map(len, causes.values())) == 19 and list(causes) == list(gmsc.COLUMNS)
    assert causes["utilization"] == ("income",)
    assert causes["debt_ratio"] == ("age", "credit_lines", "real_estate_loans")


def test_spreading_is_undone_by_making_whole(raw):
    people, _ = gmsc.clean(raw)
    spread = gmsc.dequantised(people, np.random.default_rng(1))
    assert np.allclose(
        gmsc.whole(torch.from_numpy(spread)), people[list(gmsc.COLUMNS)], atol=1e-12
    )
    counts = [list(gmsc.COLUMNS).index(name) for name in gmsc.COUNTS]
    off = spread[:, counts] - people[list(gmsc.COUNTS)].to_numpy()
    assert -0.5 <= off.min() < -0.45 and 0.45 < off.max() < 0.5
    income = spread[:, list(gmsc.COLUMNS).index("income")]
    at_cap = (people.income == 17_000).to_numpy()  # an atom before, and none after
    assert (
        at_cap.sum() > 10
        and len(np.unique(income[at_cap])) == at_cap.sum()
        and income[at_cap].max() < 17_000 * 1.05
    )
    assert (income[~at_cap] == people.income[~at_cap]).all()


def test_population_has_the_kinds_and_splits_of_the_paper(raw):
    people, _ = gmsc.clean(raw)
    drawn = gmsc.population(people, seed=3)
    assert drawn.actionable == (
        "income",
        "credit_lines",
        "real_estate_loans",
        "utilization",
    )
    assert [name for name, kind in drawn.kinds.items() if kind == "immutable"] == [
        "age",
        "dependents",
    ]
    assert [
        len(drawn.x[f"recourse/{part}"]) for part in ("train", "validation", "test")
    ] == [195, 97, 98]
    assert (
        torch.equal(drawn.x["flow/train"], drawn.x["recourse/train"])
        and drawn.truth is None
    )
    x = drawn.x["recourse/train"]
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    # people keep their labels: nobody's features are dealt to somebody else
    back = np.concatenate(
        [
            drawn.in_units(drawn.possible(drawn.x[f"recourse/{part}"].double())).numpy()
            for part in ("train", "validation", "test")
        ]
    )
    paid = np.concatenate(
        [drawn.y[f"recourse/{part}"].numpy() for part in ("train", "validation", "test")]
    )
    there = np.column_stack([back.round(4), paid])
    given = np.column_stack([people[list(gmsc.COLUMNS)].round(4), people.paid_back])
    assert np.allclose(
        there[np.lexsort(there.T[::-1])], given[np.lexsort(given.T[::-1])], atol=2e-2
    )


def test_possible_features_are_whole_and_within_range(raw):
    people, _ = gmsc.clean(raw)
    drawn = gmsc.population(people)
    x = 3 * torch.randn(
        500, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    whole = drawn.in_units(drawn.possible(x))
    counts = [drawn.features.index(name) for name in gmsc.COUNTS]
    assert (
        whole[:, counts] - whole[:, counts].round()
    ).abs().max() < 1e-9 and whole.min() > -1e-9
    assert (
        whole.amax(0)
        <= torch.tensor([(gmsc.CAPS | gmsc.MOST)[name] for name in gmsc.COLUMNS]) + 1e-9
    ).all()
    assert torch.allclose(drawn.possible(drawn.possible(x)), drawn.possible(x), atol=1e-9)


def csv(folder, people) -> None:
    path = folder / "cs-training.csv"
    people.rename(columns=gmsc.COLUMNS).to_csv(path)
    return path


def test_another_file_is_not_taken_for_the_data(tmp_path, raw):
    with pytest.raises(
        ValueError, match="is not the data: it has 400 rows, expected 150,000.*SHA-256"
    ):
        gmsc.read(csv(tmp_path, raw))
    with pytest.raises(ValueError, match=r"no column income \(MonthlyIncome\)"):
        gmsc.read(csv(tmp_path, raw.drop(columns="income")))
    with pytest.raises(
        ValueError, match="income has the median .*expected dollars a month.*another unit"
    ):
        gmsc.read(csv(tmp_path, raw.assign(income=raw.income / 1_000)))
    with pytest.raises(
        ValueError, match="holds 'No': expected 1 for a serious delinquency"
    ):
        gmsc.clean(raw.assign(**{gmsc.LABEL: raw[gmsc.LABEL].map({0: "No", 1: "Yes"})}))
    with pytest.raises(ValueError, match="debt_ratio has the median .*a share of income"):
        gmsc.clean(raw.assign(debt_ratio=100 * raw.debt_ratio))
    with pytest.raises(
        ValueError, match="utilization has the median .*a share of the credit limit"
    ):
        gmsc.read(csv(tmp_path, raw.assign(utilization=100 * raw.utilization)))
    with pytest.raises(ValueError, match="late_90 has values below zero"):
        gmsc.clean(raw.assign(late_90=-1))
    with pytest.raises(ValueError, match="All 10 rows miss a value"):
        gmsc.clean(raw[:10])


@needs_data
def test_half_a_download_is_not_taken_for_the_data(tmp_path):
    content = DATA.read_bytes()
    half = tmp_path / f"half{DATA.suffix}"
    half.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="half a download|is not the data"):
        gmsc.read(half)


def test_a_zip_of_something_else_is_named(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "no data")
    with pytest.raises(ValueError, match="it holds readme.txt"):
        gmsc.read(path)


def test_where_the_data_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path / "cache")
    assert gmsc.find(download=False) is None
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "cs-training.csv.zip").write_bytes(b"")
    assert gmsc.find() == tmp_path / "cache" / "cs-training.csv.zip"
    monkeypatch.setenv(gmsc.VARIABLE, str(tmp_path / "nowhere.csv"))
    with pytest.raises(
        ValueError,
        match=f"{gmsc.VARIABLE} names .*nowhere.csv, and there is no such file. Download",
    ):
        gmsc.find()
    (tmp_path / "mine.csv").write_text("")
    assert gmsc.find(tmp_path / "mine.csv") == tmp_path / "mine.csv"


def test_without_a_network_there_is_no_data_and_nothing_half(tmp_path, monkeypatch):
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path / "cache")

    def breaks_off(url, output_file, pooch):
        output_file.write(b"half") if hasattr(output_file, "write") else open(
            output_file, "wb"
        ).write(b"half")
        raise OSError("connection lost")

    monkeypatch.setattr(gmsc.pooch, "HTTPDownloader", lambda **options: breaks_off)
    assert gmsc.find() is None and gmsc.find(download=False) is None


def test_edges_are_removed_and_turned_round():
    changed = gmsc.graph(remove=[["age", "income"]], reverse=[["income", "utilization"]])
    causes = changed.parents
    assert causes["income"] == ("utilization",) and causes["utilization"] == ()
    assert changed.adjacency().sum() == 18 and gmsc.graph().adjacency().sum() == 19
    with pytest.raises(ValueError, match="no edge from utilization to income"):
        gmsc.graph(remove=[["utilization", "income"]])
    with pytest.raises(ValueError, match="Did you mean 'income'"):
        gmsc.graph(reverse=[["incme", "utilization"]])


def test_the_other_graphs_are_graphs():
    graphs = yaml.safe_load((PARAMS / "gmsc_graphs.yaml").read_text())
    worlds = {name: gmsc.graph(**change) for name, change in graphs.items()}
    assert [int(world.adjacency().sum()) for world in worlds.values()] == [
        19,
        19,
        18,
        19,
        10,
    ]
    past = worlds["lateness is past"]
    assert not past.reaches[
        [
            past.index(name)
            for name in ("income", "credit_lines", "real_estate_loans", "utilization")
        ]
    ][:, -3:].any()


def test_what_changes_is_told_in_units():
    before = torch.tensor([40.0, 2, 4_000, 7, 1, 0.9, 0.35, 2, 0, 0])
    after = before.clone()
    after[2], after[5] = 5_250, 0.25
    assert gmsc.in_words(before, after, [2, 5, 7]) == (
        "income 4,000 -> 5,250 dollars a month, 90% -> 25% of the credit limit in use, 2 times 30 to 59 days late"
    )


def test_real_applicants_are_drawn_without_replacement(raw, monkeypatch):
    monkeypatch.setattr(gmsc, "find", lambda path: path)
    monkeypatch.setattr(gmsc, "read", lambda path: raw)
    people, steps = gmsc.applicants("there", 100, seed=1)
    assert len(people) == people.index.nunique() == 100 and steps["rows"] == 400
    assert len(gmsc.applicants("there", 10_000, seed=1)[0]) == 390


def test_without_data_there_is_a_stand_in(small, tmp_path, monkeypatch):
    """Whole and possible features, the real people's spread, and labels whose rate is not that of the weighted loss."""
    population = small.population
    scaler = {"mean": population.mean, "std": population.std, "weight": torch.tensor(1.5)}
    files.save(tmp_path, "gmsc_scaler", scaler, {"people": "real"}, {})
    small.classifier.save(tmp_path, "gmsc_classifier", {})
    small.flow.save(tmp_path, "gmsc_flow", {})
    monkeypatch.setattr(gmsc, "find", lambda path: None)
    drawn, steps = gmsc.applicants("", 3_000, seed=0, models=tmp_path)
    assert (
        steps == {}
        and list(drawn) == ["paid_back", *gmsc.COLUMNS]
        and drawn.paid_back.dtype == bool
        and len(drawn) == 3_000
    )
    assert (
        (drawn[list(gmsc.COUNTS)] % 1 == 0).all(axis=None)
        and (drawn >= 0).all(axis=None)
        and drawn.utilization.max() <= 1
    )
    assert abs(drawn.age.mean() - float(population.mean[0])) < 0.25 * float(
        population.std[0]
    )
    paid = population.y["classifier/train"].float().mean().item()
    assert abs(drawn.paid_back.mean() - paid) < 0.1
    assert gmsc.applicants("", 50, seed=0, models=tmp_path)[0].equals(
        gmsc.applicants("", 50, seed=0, models=tmp_path)[0]
    )
    assert len(gmsc.population(drawn).x["recourse/test"]) == 750


@pytest.fixture(scope="module")
def small() -> Problem:
    """A problem of invented people whose debts follow from their credit lines."""
    rng = np.random.default_rng(2)
    people = pd.DataFrame({name: rng.poisson(1.5, 900) for name in gmsc.COLUMNS}).assign(
        age=rng.integers(20, 80, 900),
        income=rng.uniform(500, 9_000, 900),
        utilization=rng.random(900),
        debt_ratio=rng.random(900),
    )
    people["late_90"] = rng.poisson(0.2 + people.credit_lines / 3)
    people.insert(
        0,
        "paid_back",
        people.utilization + 0.3 * people.late_90 + 0.3 * rng.normal(size=900) < 1,
    )
    drawn = gmsc.population(people)
    drawn = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    h, _ = classifier.fit(
        drawn,
        n_epochs=40,
        weight_of_refusable=1.5,
    )
    density, _ = flow.fit(
        drawn.graph,
        drawn.x["flow/train"],
        drawn.x["flow/validation"],
        hidden=(16,),
        n_bins=6,
        n_epochs=10,
        batch_size=100,
    )
    return Problem(drawn, h, density)


def test_advice_is_carried_out_in_whole_numbers(small):
    population, x = small.population, small.refused("test")
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[
        :,
        [
            population.features.index("credit_lines"),
            population.features.index("utilization"),
        ],
    ] = True
    advice = Recommendation(acts, x + 0.3, small.flow.counterfactual(x, acts, x + 0.3))
    done = small.carried_out(x, advice)
    moved = done.x_cf != x
    in_units = population.in_units(done.x_cf)
    for name in ("credit_lines", "late_90"):
        own = in_units[:, population.features.index(name)][
            moved[:, population.features.index(name)]
        ]
        assert len(own) and (own - own.round()).abs().max() < 1e-9 and own.min() > -1e-9
    for name in ("age", "dependents", "income", "real_estate_loans"):
        assert not moved[
            :, population.features.index(name)
        ].any()  # not made whole: nothing has moved them
    # what follows is that of the whole numbers, and not of the numbers that were recommended
    again = small.flow.counterfactual(x, acts, done.values)
    assert torch.equal(population.possible(again)[moved], done.x_cf[moved])
    nothing = small.carried_out(x, Recommendation(torch.zeros_like(acts), x, x))
    assert torch.equal(nothing.x_cf, x)


def test_networks_of_a_flow_with_splines_are_trained(small):
    sampler = RankingSampler(small.population.actionable)
    settings = icarma.Settings(
        n_epochs=40, batch_size=32, hidden=16, learning_rate=2e-2, plausibility=0.0
    )
    stack, history = icarma.fit(small, [sampler], [settings], [1])
    assert history["hinge"][-1, 0] < 0.8 * history["hinge"][0, 0]
    x = small.refused("test")
    wishes = sampler.draw(range(len(x)), np.random.default_rng(0))
    advice = stack.recommend(x, wishes)
    assert not (
        advice.is_acted[0][:, small.population.actionable_index] & ~wishes.is_actionable
    ).any()
    assert small.classifier.accepts(advice.x_cf[0]).double().mean() > 0.2


def test_grid_holds_possible_values_that_people_have(small):
    population = small.population
    for name in population.actionable:
        at = population.grid(name, 6)
        column = population.features.index(name)
        people = population.possible(population.x["recourse/train"])[:, column]
        assert 2 <= len(at) <= 6 and (at.diff() > 0).all()
        assert at[0] == people.min() and at[-1] == people.max()
        values = at * population.std[column] + population.mean[column]
        if name in gmsc.COUNTS:
            assert (values - values.round()).abs().max() < 1e-9


def test_exact_search_through_the_flow_equals_brute_force(small):
    """Every action on the grid, one by one, for a few people: the cheapest valid and plausible one."""
    x = small.refused("test")[:6]
    population, columns = small.population, small.population.actionable_index
    wishes = RankingSampler(population.actionable, n_actionable=2).draw(
        range(len(x)), np.random.default_rng(0)
    )
    found = grid.search(small, small.flow, x, wishes, n_values=4)
    grids = [[None, *population.grid(name, 4)] for name in population.actionable]
    for i, person in enumerate(x):
        best = np.inf
        for action in product(*grids):
            acts = torch.tensor([value is not None for value in action])
            if not acts.any() or (acts & ~wishes.is_actionable[i]).any():
                continue
            is_acted, values = torch.zeros(10, dtype=torch.bool), person.clone()
            is_acted[columns] = acts
            values[is_acted] = torch.stack([value for value in action if value is not None])
            x_cf = population.settled(
                person[None],
                small.flow.counterfactual(person[None], is_acted[None], values[None]),
            )
            if small.accepts(x_cf) and small.flow.log_prob(x_cf) >= small.flow.log_prob(
                person[None]
            ):
                best = min(
                    best, small.action_cost(person[columns], acts, values[columns]).item()
                )
        cost = small.action_cost(
            x[i, columns], found.is_acted[i, columns], found.values[i, columns]
        ).item()
        late = population.in_units(found.x_cf[i])[-3:][
            found.x_cf[i, -3:] != person[-3:]
        ]  # what has changed is whole
        assert torch.allclose(late, late.round(), atol=1e-9)
        assert found.has_recourse[i] == np.isfinite(best) and (
            not np.isfinite(best) or cost == pytest.approx(best)
        )


def test_training_shows_the_classifier_whole_numbers(small):
    """The hinge is that of the carried-out counterfactual, and its gradient passes as if nothing were rounded."""
    sampler = RankingSampler(small.population.actionable, n_actionable=4)
    stack, _ = icarma.fit(
        small,
        [sampler],
        [icarma.Settings(n_epochs=1, batch_size=32, hidden=8, margin=0.0)],
        [1],
    )
    x = small.refused("train")[:20]
    wishes = sampler.draw(range(20), np.random.default_rng(0))
    factual = small.flow.factual(x, small.population.actionable_index)
    for weight in stack.weights.values():
        weight.requires_grad_()
    terms = stack.loss_terms(
        stack.batch(factual, wishes, noise=torch.full((1, 20, 4), 50.0, dtype=x.dtype))
    )  # acts on all
    context = stack.context(factual["z"], wishes)
    everything = torch.ones(1, 20, 4, dtype=x.dtype)
    values = stack.action_values(x[None], context, everything)
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, small.population.actionable_index] = True
    spread = x.clone()
    spread[:, small.population.actionable_index] = values[0].detach()
    x_cf = small.flow.counterfactual(x, is_acted, spread)
    h = small.classifier.probability(small.population.possible(x_cf))
    assert not torch.allclose(h, small.classifier.probability(x_cf), atol=1e-3)
    assert torch.allclose(terms["hinge"][0], (1 - 2 * h).relu().mean(), atol=1e-9)
    terms["hinge"].sum().backward()
    assert stack.weights["action_weight_2"].grad.abs().sum() > 0


def test_an_action_that_changes_nothing_helps_nobody(small):
    """The decision is about whole numbers, so that no noise is taken off somebody by telling them what they do already."""
    x, population = small.refused("train"), small.population
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, population.actionable_index] = True
    nothing = small.carried_out(x, Recommendation(acts, x, x))
    assert not small.accepts(nothing.x_cf).any()
    assert torch.equal(
        population.possible(nothing.x_cf)[:, population.actionable_index],
        population.possible(x)[:, population.actionable_index],
    )
    within = population.possible(x) + 0.2 / population.std.to(x) * torch.tensor(
        [name in gmsc.COUNTS for name in population.features]
    )
    assert (
        torch.equal(small.accepts(x), small.accepts(population.possible(x)))
        and not small.accepts(within).any()
    )

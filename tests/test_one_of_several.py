"""Categories: one column of words is one feature, and a person always has exactly one."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method import frames, words
from lib.method.grid import Grid
from lib.method.icarma import Settings
from lib.method.limits import Limits
from lib.method.population import Population
from lib.method.preferences import Preferences, from_words
from lib.method.problem import CHANGE, Problem, Recommendation, is_plausible, is_valid
from lib.method.pruned import Pruned
from lib.method.samplers import RankingSampler
from lib.method.training import fit
from lib.search.continuous import Refined, Search

JOBS = ("none", "cook", "clerk", "doctor")


def table(n=1_600, seed=0):
    """People whose income follows from their job, and what they owe from both."""
    rng = np.random.default_rng(seed)
    job = rng.choice(4, n, p=[0.2, 0.35, 0.3, 0.15])
    income = 15 + 8 * job + rng.normal(0, 4, n)
    home = np.where(rng.random(n) < 0.2 + 0.15 * job, "own", "rent")
    debt = 30 - 4 * job + rng.normal(0, 5, n)
    frame = pd.DataFrame({"job": np.array(JOBS)[job], "income": income, "home": home})
    frame["debt"] = debt
    frame["paid"] = income - debt + 4 * (home == "own") + rng.normal(0, 4, n) > 4
    return frame


KINDS = {
    "job": "actionable",
    "income": "actionable",
    "home": "mutable",
    "debt": "actionable",
}
EDGES = {"income": ["job"], "home": ["job"], "debt": ["job"]}


@pytest.fixture(scope="module")
def problem():
    return Problem.from_frame(table(), "paid", KINDS, EDGES, n_epochs=60)


def test_codes_follow_the_label_and_neighbours_are_alike(problem):
    assert problem.population.categories == {"job": JOBS, "home": ("rent", "own")}


def test_an_ordered_type_keeps_its_order():
    frame = table()
    order = pd.CategoricalDtype(["doctor", "clerk", "cook", "none"], ordered=True)
    found = Population.from_frame(frame.astype({"job": order}), "paid", KINDS, EDGES)
    assert found.categories["job"] == ("doctor", "clerk", "cook", "none")


def test_a_feature_may_be_called_as_python_calls_things():
    frame = table().rename(columns={"job": "self", "income": "class"})
    kinds = {"self": "actionable", "class": "mutable"}
    found = Population.from_frame(frame, "paid", kinds, {"class": ["self"]})
    assert found.categories == {"self": JOBS}


def test_people_are_read_and_told_in_words(problem):
    frame = table().head(5)
    x = problem.population.standardised(frame)
    jobs = problem.population.as_recorded(x)[:, 0].long()
    assert [JOBS[j] for j in jobs] == frame.job.tolist()
    with pytest.raises(ValueError, match="Unknown category of job: 'baker'"):
        problem.population.standardised(frame.assign(job="baker"))
    x_cf = x.clone()
    x_cf[:, 0] = problem.population.counts(0)[3]
    told = words.moves(problem.population, x, x_cf)
    expected = [{"job": f"{j} -> doctor"} if j != "doctor" else {} for j in frame.job]
    assert told == expected
    assert words.standing(problem.population, x[0]).loc["job", "value"] == frame.job[0]


def test_the_flow_knows_how_often_each_category_is(problem):
    """Its density, summed over the cells of the codes, is close to the shares."""
    population = problem.population
    x = population.x["flow/train"]
    cells = torch.linspace(-0.5, 3.5, 801).double()
    middle = (cells[:-1] + cells[1:]) / 2
    column = ((middle - population.mean[0]) / population.std[0]).float()
    people = x[:1].expand(len(column), -1).clone()
    people[:, 0] = column
    density = problem.flow.log_prob_terms(people, [0])[:, 0].exp() / population.std[0]
    share = (density * (cells[1] - cells[0])).view(4, 200).sum(-1)
    seen = population.as_recorded(x)[:, 0].long().bincount() / len(x)
    assert torch.allclose(share.double(), seen.double(), atol=0.06)
    # what follows from a job: who owns their home
    owns = problem.flow.sample(4_000, np.random.default_rng(0))
    owns = population.as_recorded(population.possible(owns))
    rates = [owns[owns[:, 0] == j][:, 2].mean().item() for j in range(4)]
    assert np.allclose(rates, [0.2, 0.35, 0.5, 0.65], atol=0.12) and rates[3] > rates[0]


def test_another_category_costs_the_same_whichever_it_is(problem):
    x, m = torch.zeros(3, 3), torch.tensor([True, False, False])
    codes = problem.population.counts(0)
    x[:, 0] = codes[0]
    a = x.clone()
    a[:, 0] = codes[[0, 1, 3]]
    cost = problem.action_cost(x, m, a)
    assert cost.tolist() == pytest.approx([0, CHANGE / 3, CHANGE / 3])


@pytest.fixture(scope="module")
def solvers(problem):
    sampler = RankingSampler(problem.population.actionable)
    stack, _ = fit(problem, sampler, Settings(n_epochs=20, hidden=32), seeds=[0])
    network = stack.member(0)
    return {
        "grid": Grid(problem, n_values=9),
        "search": Search(problem, n_scouts=32, n_starts=2, n_steps=5),
        "network": network,
        "refined": Refined(network, problem, n_scouts=32),
        "pruned": Pruned(network, problem),
    }


def test_everybody_has_exactly_one_category_after_any_action(problem, solvers):
    x = problem.refused("test")[:100]
    scores = RankingSampler(problem.population.actionable).draw(
        range(len(x)), np.random.default_rng(1)
    )
    changed = 0
    for name, solver in solvers.items():
        found = problem.carried_out(x, solver.recommend(x, scores))
        told = problem.population.as_recorded(found.x_cf)
        for j, n in ((0, 4), (2, 2)):
            units = problem.population.in_units(found.x_cf.double())[:, j]
            is_moved = found.x_cf[:, j] != x[:, j]
            assert torch.allclose(units[is_moved], units[is_moved].round(), atol=1e-4), name
            assert ((told[:, j] >= 0) & (told[:, j] < n)).all(), name
        changed += int((told[:, 0] != problem.population.as_recorded(x)[:, 0]).sum())
        frame = words.table(problem, x, found)
        assert set(frame.job) <= set(JOBS) and set(frame.home) <= {"rent", "own"}
    assert changed > 20


def test_the_search_misses_no_category_that_the_grid_finds(problem):
    """On the category alone both are exact; on all features the search is not dearer."""
    x = problem.refused("test")[:60]
    only = from_words("job: 1; income: can't; debt: can't", problem.population.actionable)
    alone = Preferences(only.scores.expand(len(x), -1))
    everything = Preferences(torch.ones_like(alone.scores))
    grid, search = Grid(problem, n_values=15), Search(problem, n_scouts=64)
    one, other = (own.recommend(x, alone) for own in (grid, search))
    # the search is wary of consequences on an edge, by 1e-5
    assert (one.has_recourse == other.has_recourse).float().mean() > 0.95
    one, other = (own.recommend(x, everything) for own in (grid, search))
    both = one.has_recourse & other.has_recourse
    cost = [problem.cost_of(x, own)[both] for own in (one, other)]
    assert both.float().mean() > 0.8 and (other.has_recourse >= one.has_recourse).all()
    assert (cost[1] <= cost[0] + 1e-4).float().mean() > 0.97


def test_dummies_that_can_be_acted_on_are_refused_with_the_way_out():
    frame = table()
    wide = pd.get_dummies(frame, columns=["job", "home"], dtype=int)
    names = [name for name in wide if name.startswith("job_")]
    kinds = dict.fromkeys(names, "actionable") | {"income": "mutable"}
    with pytest.raises(ValueError, match="one column of words"):
        Population.from_frame(wide, "paid", kinds, {})
    fixed = dict.fromkeys(names, "immutable") | {"income": "actionable"}
    assert Population.from_frame(wide, "paid", fixed, {}).categories == {}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f.assign(job=f.job.where(f.index > 3)), "has 4 gaps"),
        (lambda f: f.assign(job=[f"job {i}" for i in f.index]), "1600 categories"),
        (lambda f: f.assign(income=f.income.astype(str)), "expected numbers"),
    ],
)
def test_columns_that_are_neither_are_refused(spoil, message):
    with pytest.raises(ValueError, match=message):
        Population.from_frame(spoil(table()), "paid", KINDS, EDGES)


def test_a_category_has_no_direction(problem):
    own = from_words("job: 1, only up; income: 2; debt: 3", problem.population.actionable)
    with pytest.raises(ValueError, match="job: a category has no direction"):
        Grid(problem).recommend(problem.refused("test")[:1], own)


def test_a_job_comes_from_those_a_person_would_take(problem, solvers):
    """Whatever the solver. Who names all of them gets what they would get without.

    A descent from a network's job starts from a whole code then, so few answers differ.
    """
    x, rng = problem.refused("test")[:100], np.random.default_rng(2)
    scores = RankingSampler(problem.population.actionable).draw(range(len(x)), rng).scores
    among = rng.integers(1, 16, len(x))
    limits = Limits.nothing(*scores.shape)
    limits.among[:, 0] = torch.from_numpy(among)
    anything = Limits.nothing(*scores.shape)
    anything.among[:, 0] = 15
    n_beyond = 0
    for name, solver in solvers.items():
        free = solver.recommend(x, Preferences(scores))
        for said, is_some in ((limits, True), (anything, False)):
            found = solver.recommend(x, Preferences(scores, limits=said))
            acts = found.is_acted[:, 0]
            job = problem.population.as_recorded(found.values)[:, 0].long().numpy()
            is_beyond = acts.numpy() & ((among >> job) & 1 == 0)
            n_beyond += int(is_beyond.sum() if not is_some else 0)
            assert not is_some or not is_beyond.any(), name
            same = (found.is_acted == free.is_acted).all(-1).float().mean()
            assert is_some or same > 0.95, name
            assert acts.any(), name
    assert n_beyond > 20


def test_the_grid_finds_the_cheapest_of_those_jobs(problem):
    """As a search that knows no limits would with the others taken out of its answers."""
    x = problem.refused("test")[:40]
    answers = "job: 1, one of cook or Clerk; income: can't; debt: can't"
    categories = problem.population.categories
    one = from_words(answers, problem.population.actionable, categories=categories)
    assert one.limits.among[0, 0] == 6
    own = Preferences(one.scores.expand(40, -1), limits=one.limits[[0] * 40])
    found = Grid(problem).recommend(x, own)
    helped = torch.zeros(40, dtype=torch.bool)
    for code in (1, 2):
        acts = torch.zeros_like(x, dtype=torch.bool)
        acts[:, 0] = True
        values = x.clone()
        values[:, 0] = problem.population.counts(0)[code]
        done = problem.carried_out(x, Recommendation(acts, values, x))
        log_odds, gain = problem.outcome(x, done.x_cf)
        is_moved = (done.x_cf != x).any(-1)
        helped |= is_moved & is_valid(log_odds) & is_plausible(gain)
    assert torch.equal(found.has_recourse, helped) and helped.any() and not helped.all()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("job: 1, one of baker or cook; income: 1; debt: 1", "Unknown category of job"),
        ("job: 1; income: 1, one of cook; debt: 1", "income has no categories"),
    ],
)
def test_only_categories_that_there_are_may_be_chosen(problem, said, message):
    population = problem.population
    with pytest.raises(ValueError, match=message):
        from_words(said, population.actionable, categories=population.categories)


def test_order_by_the_label_looks_at_some_people_only():
    frame = pd.DataFrame({"a": list("xxyy")})
    labels = np.array([True, False, False, True])
    found = frames.categories(frame, ["a"], labels, np.array([0, 2]))
    assert found == {"a": ("y", "x")}

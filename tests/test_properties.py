"""What each solver is and does, cell by cell, and the laws behind the cells.

The table is `benchmarks/properties.csv`; the reference shows a part. A cell names what
backs it: tests, the function that it is about, a number that was measured, or, of a package
of others, a word of the version that was asked, as `package==version::word`.
"""

import ast
import html
import json
import re
from dataclasses import fields, replace
from functools import cache

import pandas as pd
import pytest
import torch

from lib.beyond.hare.draws import streams
from lib.beyond.hare.hare import Dialogue, Simulated, remembered
from lib.beyond.hare.spaces import Actions, Features
from lib.beyond.propose.propose import Proposer
from lib.io import MODELS, ROOT
from lib.method import icarma, loan, metrics
from lib.method.classifier import Classifier
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.limits import Limits
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import Recommendation
from lib.method.samplers import RankingSampler
from lib.paper import designs
from lib.search.continuous import Search

TABLE = pd.read_csv(ROOT / "benchmarks" / "properties.csv", keep_default_na=False)
SOLVERS = TABLE.solver.unique()
PINS = "\n".join(p.read_text() for p in (ROOT / "benchmarks" / "rivals").glob("*.txt"))
CELLS = {(row.property, row.solver): row for row in TABLE.itertuples()}
UNBACKED = "not measured"


# --- the table: every cell is backed, and the reference shows cells as they are


@cache
def names_in(path: str) -> set[str]:
    """Return the functions of a file; those of a class as Class.function."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            names |= {f"{node.name}.{name}" for name in methods}
    return names


def measured(path: str, *keys: str) -> float:
    """Return a cell of a file: keys are how its row begins, and then its column."""
    *labels, column = keys
    rows = pd.read_csv(ROOT / path, dtype=str, keep_default_na=False)
    for name, label in zip(rows.columns, labels, strict=False):
        rows = rows[rows[name] == label]
    assert len(rows) == 1, (path, keys)
    return float(rows[column].item())


def has_number(text: str, value: float) -> bool:
    """Return whether one of a text's numbers is this value, rounded to as many digits."""
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)
    return any(float(n) == round(value, len(n.partition(".")[2])) for n in numbers)


def test_every_property_of_every_solver_is_there():
    assert len(CELLS) == len(TABLE) == len(SOLVERS) * TABLE.property.nunique()
    assert TABLE.says.all()


@pytest.mark.parametrize("cell", CELLS, ids=": ".join)
def test_a_cell_is_backed(cell):
    text, backed_by = CELLS[cell].says, CELLS[cell].backed_by
    assert bool(backed_by) != (text == UNBACKED)
    for backing in filter(None, backed_by.split("; ")):
        if " | " in backing:
            assert has_number(text, measured(*backing.split(" | "))), backing
        else:
            path, name = backing.split("::")
            if "==" in path:  # look at the cell again when the version is another
                assert f"{path}\n" in PINS, backing
                continue
            kind = "lib/" if cell[0] == "function" else "tests/"
            assert path.startswith(kind) and name in names_in(path), backing
            assert name.startswith("test_") or kind == "lib/", backing


def test_a_number_is_compared_to_the_digits_that_are_shown():
    assert has_number("13 s, for every set", 12.77) and has_number("0.90 (0.23)", 0.899)
    assert not has_number("13 s", 12.4) and not has_number("0.91", 0.899)
    assert not has_number("x13 is no number", 13)


def test_the_reference_shows_cells_as_they_are():
    path = ROOT / "notebooks" / "reference.ipynb"
    shown = [
        "".join(output["data"]["text/html"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "properties" in cell.get("metadata", {}).get("tags", ())
        for output in cell["outputs"]
    ]
    assert shown
    for table in shown:
        head, body = html.unescape(table).split("<tbody>")
        properties = re.findall(r"<th>(.+?)</th>", head)
        rows = body.split("<tr>")[1:]
        assert properties and rows
        for row in rows:
            (solver,) = re.findall(r"<th>(.*?)</th>", row)
            texts = re.findall(r"<td>(.*?)</td>", row)
            assert texts == [CELLS[name, solver].says for name in properties], solver


# --- the laws: what all solvers do, and what none of them does


@pytest.fixture(scope="module")
def asked():
    """Loan's problem and committed networks, sixty people, and what each of them can do."""
    problem = loan.problem()
    x = problem.refused("test")[:60]
    networks = {
        "iCARMA": ICarma.load(MODELS, "loan_icarma_hard", problem)[0],
        "CARMA": icarma.load_by_profile(MODELS, "loan_carma", problem)["constant"][0],
    }
    return problem, networks, x, designs.hard_preferences(problem, len(x), 1)["random"]


def all_easy(x) -> Preferences:
    """Return the preferences of people who can do anything, all equally easy."""
    return Preferences(torch.ones(len(x), 4, dtype=torch.long), profile=CONSTANT)


@cache
def committed() -> Proposer:
    """Return the committed proposer for Loan."""
    return Proposer.load(MODELS, "loan_propose", loan.problem())


def with_problem(network: ICarma, problem) -> ICarma:
    """Return the same network for another problem."""
    moved = ICarma(problem, network.settings, network.seeds, network.profile)
    moved.load_state_dict(network.state_dict())
    return moved.requires_grad_(False)


def dialogue_end(problem, x, preferences, start, n_guesses=200) -> Recommendation:
    """Return what six questions lead to for people who want more of everything."""
    space, rngs = Actions(problem, x, preferences), streams(len(x), 0)
    with torch.no_grad():
        dialogue = Dialogue(space, start, Simulated(x + 1), rngs)
        return remembered(dialogue, 6, n_guesses=n_guesses, eps=1e-3).incumbent


def answers(problem, networks, x, preferences, model=None):
    """Return recommendations by solver; actions take effect in `model`, or in the truth."""
    start = networks["iCARMA"].recommend(x, preferences)
    everyone = all_easy(x)  # CARMA knows nobody
    proposer = Proposer(problem, committed().settings)
    proposer.load_state_dict(committed().state_dict())
    return {
        "grid": Grid(problem, model, n_values=9).recommend(x, preferences),
        "search over all values": Search(
            problem, model, n_samples=64, n_starts=2
        ).recommend(x, preferences),
        "CARMA": networks["CARMA"].recommend(x, everyone),
        "iCARMA": start,
        "proposals": proposer.recommend(x, preferences),
        "dialogue": dialogue_end(problem, x, preferences, start),
    }


@pytest.fixture(scope="module")
def masked(asked):
    """What each solver recommends to people who cannot do everything."""
    return answers(*asked)


@pytest.fixture(scope="module")
def free(asked):
    """What each solver recommends to people who can do anything."""
    problem, networks, x, _ = asked
    return answers(problem, networks, x, all_easy(x))


@pytest.mark.parametrize("through_flow", [False, True])
def test_what_follows_is_what_the_action_does(asked, masked, through_flow):
    """Problem "cheapest": a profile is not chosen, it follows."""
    problem, _, x, _ = asked
    results = answers(*asked, problem.flow) if through_flow else masked
    only_flow = ("CARMA", "iCARMA", "proposals", "dialogue")
    for name, result in results.items():
        is_flow = through_flow or name in only_flow
        model = problem.flow if is_flow else problem.population.truth
        x_cf = model.counterfactual(x, result.is_acted, result.values)
        torch.testing.assert_close(result.x_cf, x_cf, rtol=0, atol=1e-5, msg=name)
        assert ((result.x_cf != x) & ~result.is_acted).any(), name


def test_in_features_nothing_follows_and_only_the_decision_counts(asked):
    """Problem "nearest": any profile will do that is accepted, likely or not."""
    problem, _, x, _ = asked
    population = problem.population
    is_free = torch.tensor([kind == "actionable" for kind in population.kinds.values()])
    space = Features(problem.classifier, x, is_free)
    space.low, space.high = space.low - 99, space.high + 99  # x is standardised
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, population.features.index("income")] = True
    alone = space.outcome(is_acted, x + 1.23)
    assert alone.x_cf[~is_acted].equal(x[~is_acted])
    assert alone.x_cf[is_acted].equal(x[is_acted] + 1.23)
    far = 9 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    options = space.outcome(is_free.expand_as(x), x + far)
    is_lost = problem.flow.log_prob(options.x_cf) < problem.flow.log_prob(x)
    assert space.accepts(options).equal(problem.accepts(options.x_cf))
    assert (space.accepts(options) & is_lost).any()
    in_actions = Actions(problem, x, all_easy(x)).outcome(is_acted, x + 1.23)
    assert (in_actions.x_cf[~is_acted] != x[~is_acted]).any()


def test_nobody_is_asked_for_what_they_cannot_do(asked, masked):
    """But by CARMA, which knows one set of features for all."""
    problem, _, x, preferences = asked
    columns = problem.population.actionable_index
    others = [j for j in range(x.shape[-1]) if j not in columns]
    for name, result in masked.items():
        forbidden = result.is_acted[:, columns] & ~preferences.is_actionable
        assert forbidden.any() == (name == "CARMA"), name
        assert result.is_acted.any() and not result.is_acted[:, others].any(), name


def test_no_solver_knows_other_conditions(asked, free):
    """A mask, directions, limits and categories are all that can be stated.

    "Only if ..." can't be. Without them each solver raises a feature for some people and
    lowers it for others.
    """
    names = [field.name for field in fields(Preferences)]
    assert names == ["scores", "n_categories", "limits", "profile"]
    ends = ["low", "high", "max_decrease", "max_increase", "step", "allowed_categories"]
    ends += ["max_percent_decrease", "max_percent_increase"]
    assert [field.name for field in fields(Limits)] == ends
    problem, _, x, _ = asked
    everyone = problem.refused("test")
    carma = icarma.load_by_profile(MODELS, "loan_carma", problem)["constant"]
    steps = {
        name: (result.values - x).masked_fill(~result.is_acted, 0)
        for name, result in free.items()
    }
    # nearly everybody gets the same directions from CARMA: all ask all of its networks
    of_carma = carma.recommend_each(everyone, all_easy(everyone))
    each_step = (of_carma.values - everyone).masked_fill(~of_carma.is_acted, 0)
    steps["CARMA"] = each_step.flatten(0, 1)
    for name, step in steps.items():
        assert ((step > 0).any(0) & (step < 0).any(0)).any(), name


def test_options_of_a_dialogue_keep_within_limits(asked):
    problem, _, x, _ = asked
    now = problem.population.to_records(x)[:, problem.population.actionable_index]
    limits = replace(Limits.unlimited(*now.shape), max_increase=torch.full_like(now, 0.5))
    space = Actions(problem, x, replace(all_easy(x), limits=limits))
    anywhere = space.outcome(torch.ones_like(x, dtype=torch.bool), x + 2)
    then = problem.population.to_records(anywhere.values)
    increase = then[:, problem.population.actionable_index] - now
    assert 0.4 < increase.max() < 0.501


def test_no_answer_depends_on_other_people(asked, free):
    """Nobody looks whether people like that exist: only the ends of the range are asked."""
    problem, networks, x, _ = asked
    population = problem.population
    split = "recourse/train"
    ends = torch.stack([population.low, population.high])
    ends = ends.repeat(len(population.x[split]) // 2, 1)
    alone = replace(population, x=population.x | {split: ends}, y={})
    other = replace(problem, population=alone)
    networks = {name: with_problem(one, other) for name, one in networks.items()}
    for name, result in answers(other, networks, x, all_easy(x)).items():
        if name == "dialogue":  # its ends are those of 99 of 100 people
            continue
        assert result.x_cf.equal(free[name].x_cf), name
    space, other_space = (Actions(one, x, all_easy(x)) for one in (problem, other))
    other_space.low, other_space.high = space.low, space.high
    options = space.outcome(space.free, x + 1)
    is_accepted = space.accepts(options)
    assert is_accepted.equal(other_space.accepts(options)) and is_accepted.any()


def test_one_answer_a_person(asked, free):
    problem, _, x, _ = asked
    assert all(result.x_cf.shape == x.shape for result in free.values())
    ensemble = ICarma.load(MODELS, "loan_icarma_hard", problem)
    every = ensemble.recommend_each(x, all_easy(x))
    assert every.x_cf.shape == (len(ensemble), *x.shape)


def test_values_that_are_set_are_within_the_range(asked, free):
    """What follows may leave it: only the density bounds it."""
    problem, _, x, _ = asked
    low, high = problem.population.low, problem.population.high
    for name, result in free.items():
        is_within = (low <= result.values) & (result.values <= high)
        assert is_within[result.is_acted].all(), name
    everything = torch.ones_like(x, dtype=torch.bool)
    held = Actions(problem, x, all_easy(x)).outcome(everything, x + 99)
    assert (held.values <= high.maximum(x)).all()
    only_amount = Preferences(torch.tensor([[1, 5, 5, 5]] * len(x)))
    result = Grid(problem, slack=torch.inf, margin=4.0).recommend(x, only_amount)
    is_outside = (result.x_cf < low) | (result.x_cf > high)
    assert (is_outside & (result.x_cf != x)).any()


def test_who_needs_a_gradient(asked):
    """All but the grid and the dialogue; of steps, networks are not trained."""
    problem, networks, _, _ = asked
    step = Classifier(problem.population.features, lambda x: problem.accepts(x).to(x) - 0.5)
    without = replace(problem, classifier=step)
    sampler = RankingSampler(problem.population.actionable)
    for call in (
        lambda: Search(without),
        lambda: icarma.fit(without, sampler),
        lambda: with_problem(networks["CARMA"], without),
        lambda: Proposer(without, committed().settings),
    ):
        with pytest.raises(ValueError, match="needs the gradient"):
            call()


# --- the laws of single solvers


def test_to_answer_networks_do_not_ask_what_comes_of_it(asked):
    """They ask the classifier once, whether people are refused."""
    problem, networks, x, preferences = asked
    seen = []

    def logit(people):
        seen.append(people)
        return problem.classifier.logit(people)

    spied = replace(problem, classifier=Classifier(problem.population.features, logit))
    for name, network in networks.items():
        other = with_problem(network, spied)
        seen.clear()
        result = other.recommend(x, preferences)
        assert seen and all(people.equal(x) for people in seen), name
        assert result.x_cf.equal(network.recommend(x, preferences).x_cf), name


def test_carma_has_networks_as_large(asked):
    one, other = (network.state_dict() for network in asked[1].values())
    assert {n: w.shape for n, w in one.items()} == {n: w.shape for n, w in other.items()}


def test_networks_are_dearer_than_the_search(asked, free):
    problem, _, x, _ = asked
    evaluated = {
        name: metrics.per_person(problem, x, all_easy(x), result)
        for name, result in free.items()
    }
    search = evaluated["search over all values"]
    for name in ("CARMA", "iCARMA"):
        both = search.joint & evaluated[name].joint
        assert both.sum() > 10, name
        assert evaluated[name].cost[both].mean() > 1.2 * search.cost[both].mean(), name


def test_proposals_beside_the_search():
    """Through the same flow as many are helped, to two digits, for little more."""
    problem = loan.problem()
    x = problem.refused("test")[:500]
    search = Search(problem, problem.flow)
    table = search.table(x)
    (coverage,) = (name for name in TABLE.property.unique() if "coverage" in name)
    by_setting = designs.hard_preferences(problem, len(x), 1)
    for name in ("all (4)", "1"):
        preferences = by_setting[name]
        searched, proposed = (
            metrics.per_person(problem, x, preferences, result)
            for result in (
                search.recommend(x, preferences, table),
                committed().recommend(x, preferences),
            )
        )
        for people in (searched, proposed):
            text = CELLS[coverage, "proposals"].says
            assert has_number(text, people.joint.mean()), name
        both = searched.joint & proposed.joint
        assert proposed.cost[both].mean() <= 1.05 * searched.cost[both].mean(), name


def test_a_dialogue_needs_decisions_only(asked):
    """A classifier of steps, which says yes or no: the same options are shown."""
    problem, networks, x, preferences = asked
    step = Classifier(problem.population.features, lambda x: problem.accepts(x).to(x) - 0.5)
    assert not step.has_gradient
    start = networks["iCARMA"].recommend(x, preferences)
    ends = [
        dialogue_end(one, x, preferences, start, n_guesses=100).x_cf
        for one in (problem, replace(problem, classifier=step))
    ]
    assert (ends[0] != start.x_cf).any(-1).double().mean() > 0.3
    near = (ends[0] - ends[1]).abs().amax(-1) < 0.01
    assert near.double().mean() > 0.9


def test_who_may_act_on_everything(free):
    assert free["proposals"].is_acted.sum(-1).max() == 4

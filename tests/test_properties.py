"""What each solver is said to be and do, cell by cell, and the laws behind the cells.

The table is `benchmarks/properties.csv`; the reference shows it. A cell names what backs
it: tests, the function that it is about, a number that was measured, or, of a package of
others, a word of the version that was asked, as `package==version::word`.
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

from lib.base.files import ROOT, inside
from lib.beyond.hare.draws import streams
from lib.beyond.hare.hare import Dialogue, remembered
from lib.beyond.hare.spaces import Actions, Features
from lib.beyond.hare.users import Simulated, refine
from lib.beyond.propose.propose import Proposer
from lib.method import grid, icarma, loan, metrics
from lib.method.classifier import Classifier
from lib.method.limits import Limits
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.problem import Known, Recommendation
from lib.paper import designs, stacks
from lib.search import continuous

TABLE = pd.read_csv(ROOT / "benchmarks" / "properties.csv", keep_default_na=False)
SOLVERS = (
    "grid",
    "search over all values",
    "refinement",
    "CARMA",
    "iCARMA",
    "proposals",
    "dialogue",
    "DiCE",
    "ElliCE",
    "CFRL",
    "PPCEF",
)
PINS = "\n".join(p.read_text() for p in (ROOT / "benchmarks" / "rivals").glob("*.txt"))
CELLS = {(row.property, row.solver): row for row in TABLE.itertuples()}
UNBACKED = "not measured"


# --- the table: every cell is backed, and the reference shows it as it is


@cache
def names_in(path: str) -> set[str]:
    """Return the functions of a file; those of a class as Class.function."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            own = (part for part in node.body if isinstance(part, ast.FunctionDef))
            found |= {f"{node.name}.{part.name}" for part in own}
    return found


def measured(path: str, *keys: str) -> float:
    """Return a cell of a file: keys are how its row begins, and then its column."""
    *labels, column = keys
    rows = pd.read_csv(ROOT / path)
    for name, label in zip(rows.columns, labels, strict=False):
        rows = rows[rows[name] == label]
    assert len(rows) == 1, (path, keys)
    return rows[column].item()


def has_number(text: str, value: float) -> bool:
    """Return whether one of a text's numbers is this value, rounded to as many digits."""
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)
    return any(float(n) == round(value, len(n.partition(".")[2])) for n in numbers)


def test_every_property_is_said_of_every_solver():
    assert len(CELLS) == len(TABLE) == len(SOLVERS) * TABLE.property.nunique()
    assert tuple(TABLE.solver.unique()) == SOLVERS and TABLE.says.all()


@pytest.mark.parametrize("cell", CELLS, ids=": ".join)
def test_a_cell_is_backed(cell):
    says, backed_by = CELLS[cell].says, CELLS[cell].backed_by
    assert bool(backed_by) != (says == UNBACKED)
    for backing in filter(None, backed_by.split("; ")):
        if " | " in backing:
            assert has_number(says, measured(*backing.split(" | "))), backing
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
    assert measured("tables/08_solvers.csv", "1", "grid", "helped") == 0.196


def test_the_reference_shows_the_table():
    path = ROOT / "notebooks" / "reference.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [
        "".join(output["data"]["text/html"])
        for cell in cells
        if "properties" in cell.get("metadata", {}).get("tags", ())
        for output in cell["outputs"]
    ]
    found = {}
    for part in shown:
        heads = re.findall(r"<th>(.*?)</th>", part)
        solvers = [html.unescape(head) for head in heads if html.unescape(head) in SOLVERS]
        rows = re.findall(r"<tr>\s*<th>(.*?)</th>\s*((?:<td>.*?</td>\s*)+)</tr>", part)
        for name, own in rows:
            says = map(html.unescape, re.findall(r"<td>(.*?)</td>", own))
            pairs = zip(solvers, says, strict=True)
            found |= {(html.unescape(name), solver): text for solver, text in pairs}
    assert found == {cell: row.says for cell, row in CELLS.items()}


# --- the laws: what all solvers do, and what none of them does


@pytest.fixture(scope="module")
def asked():
    """Loan's problem and committed networks, sixty people, and what each of them can do."""
    problem = loan.problem()
    x = problem.refused("test")[:60]
    networks = {
        name: icarma.ICarma.load(inside("models"), stack, problem).select([0])
        for name, stack in (("iCARMA", "loan_icarma_hard"), ("CARMA", "loan_carma"))
    }
    return problem, networks, x, designs.hard_preferences(problem, len(x), 1)["random"]


def everything(x) -> Preferences:
    """Return the preferences of people who can do everything, all equally easy."""
    return Preferences(torch.ones(len(x), 4, dtype=torch.long))


@cache
def committed() -> Proposer:
    """Return the committed proposer for Loan."""
    return Proposer.load(inside("models"), "loan_propose", loan.problem())


def answers(problem, networks, x, preferences, through_flow=False):
    """Return each solver's recommendation; those that can do so look in the true world."""
    world = problem.flow if through_flow else problem.population.truth
    start = networks["iCARMA"].recommend(x, preferences)[0]
    table = continuous.Search(problem, world, n_scouts=64, n_starts=2).table(x)
    told = stacks.everyone("uniform", len(x))  # CARMA knows nobody
    own = committed()
    proposer = Proposer(problem, own.settings, own.sets, own.weights)
    with torch.no_grad():
        space = Actions(problem, x, preferences)
        questions = remembered(space, start, 6, streams(len(x), 0), n_guesses=200, eps=1e-3)
        end = refine(Dialogue(questions), Simulated(x + 1))
    return {
        "grid": grid.Grid(problem, world, n_values=9).recommend(x, preferences),
        "search over all values": continuous.Search(problem, world).recommend(
            x, preferences, table
        ),
        "refinement": continuous.Refined(Known(start), problem, world).recommend(
            x, preferences
        ),
        "CARMA": networks["CARMA"].recommend(x, told)[0],
        "iCARMA": start,
        "proposals": proposer.recommend(x, preferences),
        "dialogue": end,
    }


@pytest.fixture(scope="module")
def free(asked):
    """What each solver recommends to people who can do everything."""
    problem, networks, x, _ = asked
    return answers(problem, networks, x, everything(x))


@pytest.mark.parametrize("through_flow", [False, True])
def test_what_follows_is_what_the_action_does(asked, through_flow):
    """Problem (2): a profile is not chosen, it follows."""
    problem, _, x, _ = asked
    for name, found in answers(*asked, through_flow).items():
        only_flow = name in ("CARMA", "iCARMA", "proposals", "dialogue")
        is_flow = through_flow or only_flow
        world = problem.flow if is_flow else problem.population.truth
        x_cf = world.counterfactual(x, found.is_acted, found.values)
        torch.testing.assert_close(found.x_cf, x_cf, rtol=0, atol=1e-5, msg=name)
        assert ((found.x_cf != x) & ~found.is_acted).any(), name


def test_in_features_nothing_follows_and_only_the_decision_counts(asked):
    """Problem (1): any profile will do that is accepted, whole or not, likely or not."""
    problem, _, x, _ = asked
    population = problem.population
    is_free = torch.tensor([kind == "actionable" for kind in population.kinds.values()])
    space = Features(problem.classifier, x, is_free, within=None)
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, population.features.index("income")] = True
    alone = space.outcome(acts, x + 1.23)
    assert alone.x_cf[~acts].equal(x[~acts]) and alone.x_cf[acts].equal(x[acts] + 1.23)
    far = 9 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    options = space.outcome(is_free.expand_as(x), x + far)
    is_lost = problem.flow.log_prob(options.x_cf) < problem.flow.log_prob(x)
    assert space.accepts(options).equal(problem.accepts(options.x_cf))
    assert (space.accepts(options) & is_lost).any()
    in_actions = Actions(problem, x, everything(x)).outcome(acts, x + 1.23)
    assert (in_actions.x_cf[~acts] != x[~acts]).any()


def test_nobody_is_asked_for_what_they_cannot_do(asked):
    """But by CARMA, which knows one set of features for all."""
    problem, _, x, preferences = asked
    columns = problem.population.actionable_index
    for name, found in answers(*asked).items():
        forbidden = found.is_acted[:, columns] & ~preferences.is_actionable
        assert forbidden.any() == (name == "CARMA"), name
        others = [j for j in range(x.shape[-1]) if j not in columns]
        assert found.is_acted.any() and not found.is_acted[:, others].any(), name


def test_no_solver_knows_other_conditions(asked, free):
    """A mask, directions, limits and categories are all that can be said.

    "Only if ..." can't be. Without them each solver raises a feature for some people and
    lowers it for others, but CARMA, which has one direction a feature for these.
    """
    names = [field.name for field in fields(Preferences)]
    assert names == ["scores", "n_categories", "limits"]
    said = ["low", "high", "fall", "rise", "step", "among"]
    assert [field.name for field in fields(Limits)] == said
    x = asked[2]
    for name, found in free.items():
        rises = (found.is_acted & (found.values > x)).any(0)
        falls = (found.is_acted & (found.values < x)).any(0)
        assert (rises & falls).any() == (name != "CARMA"), name


def test_no_answer_depends_on_other_people(asked, free):
    """Nobody looks whether people like that exist: only the ends of the range are asked."""
    problem, networks, x, _ = asked
    population = problem.population
    split = "recourse/train"
    ends = torch.stack([population.low, population.high])
    ends = ends.repeat(len(population.x[split]) // 2, 1)
    alone = replace(population, x=population.x | {split: ends})
    problem = replace(problem, population=alone)
    networks = {
        name: icarma.ICarma(problem, own.settings, own.seeds, own.weights)
        for name, own in networks.items()
    }
    for name, found in answers(problem, networks, x, everything(x)).items():
        if name == "dialogue":  # its ends are those of 99 of 100 people
            continue
        assert found.x_cf.equal(free[name].x_cf), name
    one, other = (Actions(own, x, everything(x)) for own in (asked[0], problem))
    other.low, other.high = one.low, one.high
    options = one.outcome(one.free, x + 1)
    assert one.accepts(options).equal(other.accepts(options)) and one.accepts(options).any()


def test_one_answer_a_person(asked, free):
    x = asked[2]
    assert all(found.x_cf.shape == x.shape for found in free.values())
    several = icarma.ICarma.load(inside("models"), "loan_icarma_hard", asked[0])
    assert several.recommend(x, everything(x)).x_cf.shape == (several.n_members, *x.shape)


def test_values_that_are_set_are_within_the_range(asked, free):
    """What follows may leave it: it is held by the density alone."""
    problem, _, x, _ = asked
    low, high = problem.population.low, problem.population.high
    for name, found in free.items():
        is_within = (low <= found.values) & (found.values <= high)
        assert is_within[found.is_acted].all(), name
    far = Recommendation(torch.ones_like(x, dtype=torch.bool), x + 99, x)
    space = Actions(problem, x, everything(x))
    held = space.outcome(far.is_acted, far.values)
    assert (held.values <= high.maximum(x)).all()
    only_amount = Preferences(torch.tensor([[1, 5, 5, 5]] * len(x)))
    truth = problem.population.truth
    found = grid.Grid(problem, truth, slack=torch.inf, margin=4.0).recommend(x, only_amount)
    is_outside = (found.x_cf < low) | (found.x_cf > high)
    assert (is_outside & (found.x_cf != x)).any()


# --- the laws of single solvers


def test_to_answer_networks_do_not_ask_what_comes_of_it(asked):
    """They ask the classifier once, whether people are refused."""
    problem, networks, x, preferences = asked
    seen = []

    def logit(people):
        seen.append(people)
        return problem.classifier.logit(people)

    spied = replace(problem, classifier=Classifier(problem.population.features, logit))
    for name, own in networks.items():
        network = icarma.ICarma(spied, own.settings, own.seeds, own.weights)
        seen.clear()
        found = network.recommend(x, preferences)[0]
        assert seen and all(people.equal(x) for people in seen), name
        assert found.x_cf.equal(own.recommend(x, preferences)[0].x_cf), name


def test_carma_has_networks_as_large(asked):
    one, other = asked[1].values()
    assert {n: w.shape for n, w in one.weights.items()} == {
        n: w.shape for n, w in other.weights.items()
    }


def test_networks_are_dearer_than_the_search(asked, free):
    problem, _, x, _ = asked
    judged = {
        name: metrics.per_person(problem, x, everything(x), found)
        for name, found in free.items()
    }
    search = judged["search over all values"]
    for name in ("CARMA", "iCARMA"):
        both = search.joint & judged[name].joint
        assert both.sum() > 10, name
        assert judged[name].cost[both].mean() > 1.2 * search.cost[both].mean(), name


def test_walked_proposals_beside_the_search():
    """Through the same flow as many are helped, to two digits, for little more."""
    problem = loan.problem()
    x = problem.refused("test")[:500]
    table = continuous.Search(problem, problem.flow).table(x)
    (coverage,) = (name for name in TABLE.property.unique() if "coverage" in name)
    preferences_of = designs.hard_preferences(problem, len(x), 1)
    for name in ("all (4)", "1"):
        own = preferences_of[name]
        search, walked = (
            metrics.per_person(problem, x, own, found)
            for found in (
                continuous.Search(problem, problem.flow).recommend(x, own, table),
                committed().recommend(x, own),
            )
        )
        for rows in (search, walked):
            assert has_number(CELLS[coverage, "proposals"].says, rows.joint.mean()), name
        both = search.joint & walked.joint
        assert walked.cost[both].mean() <= 1.05 * search.cost[both].mean(), name


def test_a_dialogue_needs_decisions_only(asked):
    """A classifier of steps, which says yes or no: the same options are shown."""
    problem, networks, x, preferences = asked
    step = Classifier(problem.population.features, lambda x: problem.accepts(x).to(x) - 0.5)
    assert not step.has_gradient
    start = networks["iCARMA"].recommend(x, preferences)[0]
    ends = []
    for own in (problem, replace(problem, classifier=step)):
        space = Actions(own, x, preferences)
        questions = remembered(space, start, 6, streams(len(x), 0), n_guesses=100, eps=1e-3)
        ends.append(refine(Dialogue(questions), Simulated(x + 1)))
    moved = (ends[0].x_cf != start.x_cf).any(-1)
    assert moved.double().mean() > 0.3
    near = (ends[0].x_cf - ends[1].x_cf).abs().amax(-1) < 0.01
    assert near.double().mean() > 0.9


def refined(problem, x, start, profile=None, preferences=None):
    truth = problem.population.truth
    profile = Profile() if profile is None else profile
    preferences = everything(x) if preferences is None else preferences
    return continuous.Refined(Known(start), problem, truth, profile=profile).recommend(
        x, preferences
    )


def test_refinement_keeps_what_it_cannot_better(asked):
    """What it finds is valid, plausible and within the range; a start may be none of it."""
    problem, _, x, _ = asked
    truth, population = problem.population.truth, problem.population
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, population.actionable_index] = True
    wild = torch.where(acts, population.high + 5, x)
    start = Recommendation(acts, wild, truth.counterfactual(x, acts, wild))
    found = refined(problem, x, start)
    is_kept = (found.values == wild).all(-1)
    judged = metrics.per_person(problem, x, everything(x), found)
    assert 0 < is_kept.sum() < len(x) and judged.joint[~is_kept.numpy()].all()
    within = (population.low <= found.values) & (found.values <= population.high)
    assert within[acts & ~is_kept[:, None]].all()
    assert not judged.plausible[is_kept.numpy()].any()


def test_refinement_spares_what_is_hard(asked):
    """Where the amount weighs seven times as much, it is changed less."""
    problem, networks, x, _ = asked
    scores = torch.tensor([[4, 1, 1, 1]] * len(x))
    hard_amount = Preferences(scores)
    start = networks["iCARMA"].recommend(x, hard_amount)[0]
    linear = Profile(GAMMA["linear"], w_max=7.0)
    amount = problem.population.features.index("loan_amount")
    moved = [
        (refined(problem, x, start, own, hard_amount).values - x)[:, amount].abs().mean()
        for own in (Profile(), linear)
    ]
    assert moved[1] < 0.8 * moved[0]


def test_refinement_may_act_on_everything(free):
    assert free["refinement"].is_acted.sum(-1).max() == 4

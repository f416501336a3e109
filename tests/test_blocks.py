"""Answers in blocks: what the library says of the same people; a word for each fault."""

import lib.pinned

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from lib.base.files import MODELS
from lib.beyond.millions import blocks
from lib.beyond.propose.propose import Proposer
from lib.method import classifier, flow, icarma, loan, metrics, training
from lib.method.icarma import ICarma
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler

FEATURES = list(loan.KINDS)
ACTIONABLE = FEATURES[3:]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return loan.problem()


@pytest.fixture(scope="module")
def stack(problem) -> ICarma:
    return ICarma.load(MODELS, "loan_icarma_hard", problem)


@pytest.fixture(scope="module")
def proposer(problem) -> Proposer:
    return Proposer.load(MODELS, "loan_propose", problem)


def applicants(n_people: int, seed: int = 0) -> np.ndarray:
    """Loan applicants and what they find hard, as a data set holds them."""
    rng = np.random.default_rng(seed)
    x = loan.scm().sample(n_people, rng).numpy()
    scores = RankingSampler(ACTIONABLE).draw(range(n_people), rng).scores.numpy()
    return np.concatenate([x, scores], 1)


def refused(problem: Problem, block: np.ndarray) -> torch.Tensor:
    """Which applicants of a block are refused."""
    frame = pd.DataFrame(block[:, :7], columns=FEATURES)
    return ~problem.accepts(problem.population.standardised(frame))


def directly(solver, block: np.ndarray):
    """People who are refused, and what the library itself recommends to them."""
    population = solver.problem.population
    is_refused = refused(solver.problem, block).numpy()
    frame = pd.DataFrame(block[is_refused, :7], columns=FEATURES)
    x = population.standardised(frame)
    preferences = Preferences(torch.from_numpy(block[is_refused, 7:]).long())
    found = solver.recommend(x, preferences)
    return is_refused, x, preferences, found if found.values.ndim == 3 else found[None]


@pytest.mark.parametrize("who", ["one", "ten", "proposer"])
def test_a_block_is_what_the_library_recommends(who, stack, proposer):
    solver = {"one": stack.select([3]), "ten": stack, "proposer": proposer}[who]
    block = applicants(300 if who == "proposer" else 2_000)
    found = blocks.answers(solver, block, first_row=5_000).to_pandas()
    is_refused, x, preferences, expected = directly(solver, block)
    population = solver.problem.population
    others = found[found.valid.isna()]
    assert (others.row - 5_000).tolist() == np.flatnonzero(~is_refused).tolist()
    assert not others.refused.any() and found.why.isna().all()
    told = found[found.valid.notna()]
    assert told.refused.all() and found.row.is_monotonic_increasing
    for i in range(len(expected.values)):
        own = told if who == "proposer" else told[told.member == solver.ids[i]]
        assert (own.row - 5_000).tolist() == np.flatnonzero(is_refused).tolist()
        worth = metrics.per_person(solver.problem, x, preferences, expected[i])
        for name in ("valid", "plausible", "cost"):
            np.testing.assert_array_equal(
                own[name].to_numpy(worth[name].dtype), worth[name]
            )
        before, after = block[is_refused], population.as_recorded(expected[i].x_cf).numpy()
        values = population.as_recorded(expected[i].values).numpy()
        for j, name in enumerate(FEATURES):
            if name not in ACTIONABLE:  # no action reaches it
                assert f"after_{name}" not in own
                continue
            acts = expected[i].is_acted[:, j].numpy()
            np.testing.assert_array_equal(own[f"acts_{name}"].to_numpy(bool), acts)
            is_moved = (expected[i].x_cf != x)[:, j].numpy()
            to = np.where(is_moved, after[:, j], before[:, j])
            np.testing.assert_array_equal(own[f"after_{name}"], to)
            np.testing.assert_array_equal(to[acts & is_moved], values[acts & is_moved, j])
    assert (told[[f"acts_{name}" for name in ACTIONABLE]].any(axis=1)).mean() > 0.5


def test_nothing_forbidden_is_recommended(stack):
    block = applicants(2_000)
    found = blocks.answers(stack, block, first_row=0).to_pandas().dropna(subset="valid")
    for k, name in enumerate(ACTIONABLE):
        acts = found[f"acts_{name}"].to_numpy(bool)
        assert acts.any() and (block[found.row[acts], 7 + k] <= 4).all()


def test_a_member_says_the_same_alone(stack):
    block = applicants(3_000)
    together = blocks.answers(stack, block, first_row=0).to_pandas()
    alone = blocks.answers(stack.select([4]), block, first_row=0).to_pandas()
    own = together[together.member == 4].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone[alone.member == 4].reset_index(drop=True))


# --- what is wrong with a row

FAULTS = [
    ("age", np.nan, "age is missing"),
    ("income", -np.inf, "income is infinite"),
    ("income", 1e300, "income is 10,000 standard deviations from the mean or more"),
    ("savings", -1e6, "savings is 10,000 standard deviations from the mean or more"),
    ("score_income", np.nan, "score_income is missing"),
    ("score_income", 0, "score_income is no whole number from 1 to 5"),
    ("score_income", 6, "score_income is no whole number from 1 to 5"),
    ("score_income", 2.5, "score_income is no whole number from 1 to 5"),
    ("score_income", np.inf, "score_income is no whole number from 1 to 5"),
]


@pytest.mark.parametrize(("column", "value", "why"), FAULTS)
def test_a_fault_gets_a_word_and_disturbs_nobody(stack, problem, column, value, why):
    block = applicants(500)
    is_refused = refused(problem, block).numpy()
    names = blocks.columns(problem.population)
    of_score = column.startswith("score_")
    # whoever is left out is not among those who are answered together
    bad = int(np.flatnonzero(is_refused if of_score else ~is_refused)[10])
    spoilt, without = block.copy(), block.copy()
    spoilt[bad, names.index(column)] = value
    without[bad, :7] = block[np.flatnonzero(~is_refused)[0], :7]
    one = stack.select([0])
    found, expected = (blocks.answers(one, own, 0) for own in (spoilt, without))
    own = found.to_pylist()[bad]
    assert (own.pop("row"), own.pop("why")) == (bad, why)
    assert own.pop("refused") is (True if of_score else None)
    assert set(own.values()) == {None} and found["why"].null_count == 499
    others = np.delete(np.arange(500), bad)
    assert found.take(others).equals(expected.take(others))


def test_the_first_fault_is_named(stack):
    block = applicants(3)
    block[:, :7] = applicants(400)[refused(stack.problem, applicants(400)).numpy()][:3, :7]
    block[0, 1], block[0, 3], block[0, 7] = np.nan, np.inf, 9
    block[1, 7], block[1, 8] = 7, np.nan
    block[2, 7:] = 5
    found = blocks.answers(stack.select([0]), block, 0).to_pandas()
    score = "score_loan_amount is no whole number from 1 to 5"
    assert found.why.tolist() == ["age is missing", score, "nothing can be acted on"]
    assert found.valid.isna().all()


def test_what_accepted_people_can_do_does_not_matter(stack):
    block = applicants(400)
    block = block[~refused(stack.problem, block).numpy()]
    block[:, 7:] = np.nan
    found = blocks.answers(stack, block, 0).to_pandas()
    assert len(found) == len(block) and found.why.isna().all()
    assert not found.refused.any() and found.valid.isna().all()


def test_nobody_can_be_read(stack):
    block = np.full((3, 11), np.nan)
    found = blocks.answers(stack, block, 0)
    assert found["why"].to_pylist() == ["gender is missing"] * 3
    assert found["refused"].to_pylist() == [None] * 3 and found.schema == blocks.schema(
        stack
    )


@pytest.mark.parametrize("size", [1e-300, 10.0, 1e3, 9_990.0])
def test_odd_but_finite_people_are_answered(stack, proposer, size):
    """Nothing overflows on the way to an answer."""
    rng = np.random.default_rng(0)
    population = stack.problem.population
    x = rng.uniform(-size, size, (200, 7)) * population.std.numpy()
    block = np.concatenate([x + population.mean.numpy(), applicants(200)[:, 7:]], 1)
    for solver in (stack, proposer):
        found = blocks.answers(solver, block, 0).to_pandas()
        assert found.why.isna().all()
        assert found.refused.any() or size < 1  # the mean applicant is accepted
        told = found.dropna(subset="valid")
        after = told[[f"after_{name}" for name in ACTIONABLE]]
        assert np.isfinite(after.to_numpy(float)).all() and told.cost.notna().all()


@pytest.mark.parametrize("shape", [(3, 10), (0, 11), (blocks.SIZE + 1, 11), (11,)])
def test_other_shapes_are_refused(stack, shape):
    with pytest.raises(
        ValueError, match=r"expected 1 to 16,384 applicants with 11 columns"
    ):
        blocks.answers(stack, np.zeros(shape), 0)


# --- whole numbers

KINDS = {"age": "immutable", "income": "actionable", "cards": "actionable"}


@pytest.fixture(scope="module")
def counting() -> ICarma:
    """A network for people whose age and cards are whole; cards follow from income."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(21, 70, 800), rng.gamma(4, 500, 800)
    cards = rng.poisson(income / 800)
    frame = pd.DataFrame({"age": age, "income": income, "cards": cards})
    frame["repaid"] = income - 200 * cards + rng.normal(0, 100, 800) > 1_300
    edges = {"income": ["age"], "cards": ["income"]}
    population = Population.from_frame(frame, "repaid", KINDS, edges)
    h, _ = classifier.fit(population, n_epochs=30)
    x = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *x, n_epochs=10)
    own = Problem(population, h, density)
    sampler = RankingSampler(population.actionable)
    found, _ = training.fit(own, sampler, icarma.Settings(n_epochs=60), [0, 1])
    return found


def test_whole_numbers_stay_whole(counting):
    rng = np.random.default_rng(1)
    n = 400
    block = np.stack(
        [
            rng.integers(25, 60, n),
            rng.uniform(600, 4_000, n),
            rng.integers(0, 6, n),
            np.ones(n),
            rng.integers(1, 4, n),
        ],
        -1,
    )
    block[0, 2], block[1, 2], block[2, 0], block[3, 1] = 2.5, 400, 200, 1e5
    found = blocks.answers(counting, block, 0).to_pandas()
    not_one = "{} is not a value that people can have"
    named = found.drop_duplicates("row").why[:4].tolist()
    assert named == [not_one.format(own) for own in ("cards", "cards", "age", "income")]
    told = found.dropna(subset="valid")
    cards = told.after_cards.to_numpy(float)
    assert (cards % 1 == 0).all() and (cards != block[told.row, 2]).any()
    assert "after_age" not in told  # no action reaches it
    still = told.after_income.to_numpy(float) == block[told.row, 1]
    assert still[~told.acts_income.to_numpy(bool)].all()
    assert not still[told.acts_income.to_numpy(bool)].all()


# --- what blocks add up to


def test_a_summary_counts_people(stack):
    block = applicants(3_000)
    block[:50, 1] = np.nan
    block[50:60, 7:] = 5
    parts = [
        blocks.answers(stack, block[first : first + 1_000], first)
        for first in (0, 1_000, 2_000)
    ]
    table, totals = blocks.summary(map(blocks.counted, parts))
    frame = pa.Table.from_batches(parts).to_pandas()
    everyone = frame.drop_duplicates("row")
    assert totals["applicants"] == 3_000 and (table.applicants == 3_000).all()
    assert totals["left_out"]["age is missing"] == 50
    assert sum(totals["left_out"].values()) == everyone.why.notna().sum() > 50
    n_accepted = int((everyone.refused == False).sum())  # noqa: E712
    assert totals["accepted"] == n_accepted
    assert table.member.tolist() == stack.ids
    for own in table.itertuples():
        told = frame[frame.member == own.member]
        valid, plausible = told.valid.astype(bool), told.plausible.astype(bool)
        acting = told[[f"acts_{name}" for name in ACTIONABLE]].any(axis=1)
        counts = [len(told), *(int(x.sum()) for x in (acting, valid, plausible))]
        assert [own.asked, own.acting, own.valid, own.plausible] == counts
        assert own.joint == (valid & plausible).sum()
        assert own.cost == pytest.approx(told.cost[valid].mean(), rel=1e-12)
        assert own.asked + own.accepted + own.left_out == own.applicants


def test_a_summary_of_nobody_told(proposer):
    found = blocks.answers(proposer, np.full((2, 11), np.nan), 0)
    table, totals = blocks.summary([blocks.counted(found)])
    assert table.empty and totals["left_out"] == {"gender is missing": 2}


def test_a_digest_sees_every_bit(stack):
    one, block = stack.select([0]), applicants(200)
    found = blocks.answers(one, block, 0)
    digest = blocks.counted(found)["digest"]
    assert blocks.counted(blocks.answers(one, block.copy(), 0))["digest"] == digest
    weights = {name: part.clone() for name, part in one.weights.items()}
    weights["action_bias_2"] += 1e-6
    other = ICarma(one.problem, one.settings, one.seeds, weights, one.ids)
    assert blocks.counted(blocks.answers(other, block, 0))["digest"] != digest


def test_people_at_the_threshold_do_not_stop_a_block():
    """Whether they are refused hangs on who is asked about beside them."""
    problem = loan.problem()
    population, stack = problem.population, ICarma.load(MODELS, "loan_icarma_hard", problem)
    people = loan.scm().sample(4_000, np.random.default_rng(0)).numpy()

    def accepted(x: np.ndarray) -> np.ndarray:
        frame = pd.DataFrame(x, columns=population.features)
        return problem.accepts(population.standardised(frame)).numpy()

    is_accepted = accepted(people)
    n = min(is_accepted.sum(), (~is_accepted).sum())
    low, high = people[~is_accepted][:n].copy(), people[is_accepted][:n].copy()
    low[:, :3] = high[:, :3]  # values that people can have
    low, high = low[~accepted(low)], high[~accepted(low)]
    for _ in range(60):
        middle = (low + high) / 2
        is_high = accepted(middle)
        low[~is_high], high[is_high] = middle[~is_high], middle[is_high]
    block = np.concatenate([high, low, people[:500]])
    block = np.hstack([block, np.ones((len(block), 4))])
    refused = ~accepted(block[:, :7])
    x = population.standardised(pd.DataFrame(block[:, :7], columns=population.features))
    assert problem.accepts(x[refused]).any(), "nobody here is near enough"
    found = blocks.answers(stack.select([0]), block, 0).to_pandas()
    assert 0 < (refused & ~found.refused.to_numpy(bool)).sum() < len(low)
    assert found.valid.notna().equals(found.refused.astype(bool))


def test_limits_of_a_data_set_are_kept(stack):
    """They change answers; who contradicts themselves is told so."""
    block = applicants(2_000)
    names = ("low_income", "high_loan_duration")
    most = block[:, FEATURES.index("loan_duration")] - 1.0
    least = np.full(len(block), np.nan)
    least[::2] = block[::2, FEATURES.index("income")]
    with_limits = np.concatenate([block, least[:, None], most[:, None]], 1)
    solver = stack.select([0])
    found, free = (
        blocks.answers(solver, own, 0, columns).to_pandas()
        for own, columns in ((with_limits, names), (block, ()))
    )
    assert found.valid.notna().equals(free.valid.notna())
    acts = found.acts_income.fillna(False).astype(bool) & ~np.isnan(least)
    assert acts.any() and (found.after_income[acts] >= least[acts] - 1e-4).all()
    assert (free.after_income[acts] < least[acts] - 0.1).any()
    acts = found.acts_loan_duration.fillna(False).astype(bool)
    assert (found.after_loan_duration[acts] <= most[acts] + 1e-4).all()


def test_contrary_limits_are_named(stack):
    block = np.concatenate([applicants(50), np.ones((50, 1)), np.zeros((50, 1))], 1)
    found = blocks.answers(stack, block, 0, ("low_income", "high_income")).to_pandas()
    assert set(found.why[found.refused.astype(bool)]) == {"low_income is above high_income"}


def test_limits_of_what_nobody_may_change_are_refused(problem):
    with pytest.raises(ValueError, match="limits: 'low_age'"):
        blocks.columns(problem.population, ["age", "low_age"])
    assert "high_school" not in blocks.columns(problem.population, ["high_school"])

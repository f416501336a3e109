"""The short way: what it takes, what it refuses before any work, and what comes back."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from own_problem import EDGES, KINDS, past_applicants
from sklearn.linear_model import LogisticRegression

from lib import Population, Problem, Search, from_words, recommend
from lib.method import icarma, report
from lib.method.classifier import Classifier
from lib.method.grid import Grid
from lib.method.preferences import for_people
from lib.method.problem import is_plausible, is_valid
from lib.method.samplers import RankingSampler

ANA = {"age": 27, "income": 2100, "cards": 2, "debt": 1300}
APPLICANTS = pd.DataFrame(
    [ANA, {"age": 35, "income": 2500, "cards": 3, "debt": 1700}], ["Ana", "Ben"]
)
TEXTS = ["income: hard; cards: easy; debt: can't", "income: can't; cards: 1; debt: 2"]


@pytest.fixture(scope="module")
def problem():
    return Problem.from_frame(past_applicants(800), "repaid", KINDS, EDGES, n_epochs=40)


@pytest.fixture(scope="module")
def quick(problem):
    return Grid(problem, n_values=4)


@pytest.fixture(scope="module")
def search(problem):
    return Search(problem, n_samples=32, n_starts=2, n_steps=5)


def test_it_is_the_search_and_its_report(problem):
    """Step by step, with the public parts, the same numbers."""
    frame = recommend(problem, APPLICANTS, TEXTS)
    population = problem.population
    x = population.standardise(APPLICANTS)
    preferences = for_people(TEXTS, APPLICANTS.index, population.actionable)
    recommendation = Search(problem).recommend(x, preferences)
    expected = report.table(problem, x, recommendation, APPLICANTS.index)
    shared = list(expected)
    pd.testing.assert_frame_equal(frame[shared], expected, check_names=False)
    log_odds, gain = problem.outcome(x, recommendation.x_cf)
    assert frame.accepted.tolist() == is_valid(log_odds).tolist()
    has = recommendation.has_recourse
    assert frame.plausible.notna().tolist() == has.tolist()
    assert frame.plausible[has.tolist()].tolist() == is_plausible(gain)[has].tolist()


def test_answers_in_every_form_are_the_same(problem, quick):
    expected = recommend(problem, APPLICANTS, TEXTS, quick)
    by_name = dict(zip(APPLICANTS.index, TEXTS, strict=True))
    frame = pd.DataFrame(
        {"debt": [2, "can't"], "income": ["can't", "hard"], "cards": [1, "easy"]},
        ["Ben", "Ana"],
    )
    reversed_ = pd.Series(by_name)[::-1]
    for answers in (by_name, pd.Series(by_name), reversed_, frame, tuple(TEXTS)):
        pd.testing.assert_frame_equal(
            recommend(problem, APPLICANTS, answers, quick), expected
        )
    one = {"income": "hard", "cards": "easy", "debt": "can't"}
    for person in (ANA, pd.Series(ANA, name="Ana"), APPLICANTS.head(1)):
        for answers in (TEXTS[0], one, pd.Series(one), [one], [TEXTS[0]]):
            frame = recommend(problem, person, answers, quick)
            assert frame.sentence.tolist() == expected.sentence.tolist()[:1]
    same_person = recommend(problem, pd.DataFrame([ANA, ANA]), TEXTS, quick)
    assert same_person.change[0] != same_person.change[1]
    everything = recommend(problem, APPLICANTS, None, quick)
    easy = recommend(problem, APPLICANTS, ["income: 1; cards: 1; debt: 1"] * 2, quick)
    pd.testing.assert_frame_equal(everything, easy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "serach"}, "Unknown solver 'serach'.*Did you mean 'search'"),
        ({"n_plans": 0}, "n_plans must be a whole number above zero"),
        ({"n_plans": 2, "solver": "grid"}, 'only the search .* solver="search"'),
        ({"answers": TEXTS[0]}, "answers of 2 people.*Give a list of texts"),
        ({"answers": TEXTS[:1]}, "answers of 2 people, got '1 answers'"),
        ({"answers": {"Ana": TEXTS[0]}}, "there is no answer of 'Ben'"),
        ({"answers": {"Ana": TEXTS[0], "Bob": TEXTS[1]}}, "no applicant is called 'Bob'"),
        ({"answers": pd.Series(TEXTS, ["Ana", "Ana"])}, "Two answers are called 'Ana'"),
        ({"answers": [TEXTS[0], None]}, "row Ben: got None. For each feature say"),
        ({"applicants": APPLICANTS.head(0)}, "The table of applicants is empty"),
        (
            {"applicants": APPLICANTS.assign(age=[95, 35])},
            "age of 'Ana' is 95 .seen: 21 to",
        ),
    ],
)
def test_what_is_wrong_is_said_before_any_work(problem, monkeypatch, change, message):
    for solver in (Search, Grid):
        monkeypatch.setattr(solver, "recommend", None)
        monkeypatch.setattr(solver, "plans", None, raising=False)
    how = {"applicants": APPLICANTS, "answers": TEXTS} | change
    with pytest.raises(ValueError, match=message):
        recommend(problem, **how)


def test_several_plans_are_those_of_the_table(problem):
    x = problem.population.standardise(APPLICANTS)
    search = Search(problem, max_combinations=100_000)
    costs, _ = search.table(x).plans(torch.ones(2, 3, dtype=torch.bool), 9)
    plans = recommend(problem, APPLICANTS, n_plans=9)
    pd.testing.assert_frame_equal(plans.xs(1, level="plan"), recommend(problem, APPLICANTS))
    for person, cost in zip(APPLICANTS.index, costs, strict=True):
        expected = cost[cost.isfinite()].tolist()
        assert plans.cost[person].tolist() == pytest.approx(expected, rel=1e-4)
        assert plans.loc[person].index.tolist() == [*range(1, len(expected) + 1)]
        assert len(expected) >= 2


def test_equal_applicants_get_equal_rows(problem, search):
    """In whatever order, and in other batches of the search."""
    people = past_applicants(800).drop(columns="repaid").head(250)
    x = problem.population.standardise(people)
    people = people[~problem.accepts(x).numpy()].head(70)
    twice = pd.concat([people, people.iloc[::-1]] * 2, ignore_index=True)
    assert len(twice) > 256
    frame = recommend(problem, twice, None, search)
    n = len(people)
    for start in (n, 2 * n, 3 * n):
        other = frame.iloc[start : start + n]
        other = other if start == 2 * n else other[::-1]
        pd.testing.assert_frame_equal(
            other.reset_index(drop=True), frame.head(n).reset_index(drop=True)
        )


def test_who_is_accepted_is_told_so_and_asks_no_solver(problem, monkeypatch):
    rich = {"age": 60, "income": 5000, "cards": 1, "debt": 900}
    both = pd.DataFrame([rich, ANA], ["Rita", "Ana"])
    frame = recommend(problem, both, None, Search(problem, n_samples=16, n_starts=1))
    assert frame.accepted["Rita"] and frame.plausible.isna()["Rita"]
    assert frame.sentence["Rita"] == "Accepted already." and frame.cost.isna()["Rita"]
    monkeypatch.setattr(Search, "plans", None)
    assert recommend(problem, rich, n_plans=3).sentence.tolist() == ["Accepted already."]


def test_a_no_says_who_looked_and_how(problem):
    """Cents of one feature help nobody."""
    answers = "income: easy, at most 1 more; cards: can't; debt: can't"
    for solver, text in (
        ("search", r"10 starts on each of 1 sets of features.*no proof"),
        ("grid", r"The grid tried 25 values of a feature, none between them"),
    ):
        frame = recommend(problem, ANA, answers, solver)
        assert not frame.accepted.any() and frame.plausible.isna().all()
        assert frame.sentence.str.fullmatch(rf"No recourse found: .* {text}\.").all()


def test_networks_are_trained_on_the_spot(problem):
    epochs = []

    def count(steps):
        for step in steps:
            epochs.append(step)
            yield step

    frame = recommend(problem, APPLICANTS, TEXTS, "icarma", progress=count)
    assert len(epochs) == icarma.Settings().n_epochs and len(frame) == 2
    is_no = frame.outcome != report.OUTCOMES["joint"]
    assert frame.sentence[is_no].str.contains("iCARMA gave its one answer").all()


def test_a_classifier_of_scikit_learn_is_taken_as_it_is():
    """Other order of columns; fewer; one that is no feature; none by name."""
    frame = past_applicants(600).assign(noise=0.5)
    names = ["debt", "income", "cards"]
    model = LogisticRegression(max_iter=5_000).fit(frame[names], frame.repaid)
    how = {"n_epochs": 5, "classifier_model": model}
    problem = Problem.from_frame(frame, "repaid", KINDS, EDGES, **how)
    x = problem.population.x["recourse/test"]
    units = problem.population.to_frame(x)
    expected = model.decision_function(units[names])
    assert problem.log_odds(x).numpy() == pytest.approx(expected, rel=1e-3, abs=1e-3)
    with pytest.raises(ValueError, match=r'gradient.*solver="grid" of recommend'):
        recommend(problem, ANA)
    (row,) = recommend(problem, ANA, solver="grid").itertuples()
    after = pd.DataFrame([[row.debt, row.income, row.cards]], columns=names)
    assert row.accepted and model.predict_proba(after)[0, 1] >= 0.5 - 1e-6
    others = LogisticRegression(max_iter=5_000).fit(frame[[*names, "noise"]], frame.repaid)
    unnamed = LogisticRegression(max_iter=5_000).fit(frame[names].to_numpy(), frame.repaid)
    for wrong, message in (
        (others, "4 columns, among them noise; .* immutable"),
        (unnamed, "fitted to 3 columns; the population's are age, income"),
    ):
        with pytest.raises(ValueError, match=message):
            Classifier.of(wrong, problem.population)


# -- ordered categories, and other values of categories -----------------------------------

LEVELS = ["school", "college", "master"]


@pytest.fixture(scope="module")
def with_levels():
    """Who has a master pays back more often, and "school" comes first by the type."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 900)
    debt = rng.normal(10, 3, 900)
    frame = pd.DataFrame(
        {"debt": debt, "paid": 3 * level - debt + rng.normal(8, 2, 900) > 0}
    )
    order = pd.CategoricalDtype(LEVELS, ordered=True)
    frame["level"] = pd.Series(np.array(LEVELS)[level]).astype(order)
    return frame


@pytest.mark.parametrize("solver", ["search", "grid", "icarma"])
def test_ordered_categories_have_a_direction(with_levels, solver):
    kinds = {"level": "actionable", "debt": "actionable"}
    problem = Problem.from_frame(with_levels, "paid", kinds, {}, n_epochs=30)
    if solver == "icarma":
        settings = icarma.Settings(n_epochs=30)
        solver, _ = icarma.fit(problem, RankingSampler(("level", "debt")), settings)
    people = with_levels[["level", "debt"]].head(300)
    people = people[~problem.accepts(problem.population.standardise(people)).numpy()]
    now = people.level.astype(str).map(LEVELS.index)
    for answer, is_right in (
        ("only up", lambda after: after >= now),
        ("only down", lambda after: after <= now),
        ("only up, one of college or master", lambda after: after >= now),
    ):
        answers = [f"level: easy, {answer}; debt: hard"] * len(people)
        after = recommend(problem, people, answers, solver).dropna(subset="cost")
        codes = after.level.astype(str).map(LEVELS.index)
        assert is_right(codes.reindex(now.index).fillna(now)).all()
        if answer == "only up" and isinstance(solver, str):  # networks of 30 epochs may not
            assert (codes > now[after.index]).any()
        if "of" in answer:
            moved = codes[codes != now[after.index]]
            assert set(moved) <= {1, 2}


def test_other_limits_of_categories_are_refused(with_levels):
    kinds = {"level": "actionable", "debt": "actionable"}
    problem = Problem.from_frame(with_levels, "paid", kinds, {}, n_epochs=2)
    with pytest.raises(ValueError, match="level: Ordered categories have a direction"):
        problem.with_limits({"level": "at most 1 more"})


@pytest.mark.parametrize(
    "seen", [[0.5, 3.5, 4.0], ["007", "7", "12"], [True, False], ["1", "2"], [2, 7, 9]]
)
def test_categories_come_back_as_the_table_has_them(seen):
    rng = np.random.default_rng(0)
    cells = [seen[i] for i in rng.integers(0, len(seen), 100)]
    frame = pd.DataFrame({"code": pd.Series(cells).astype("category")})
    frame["income"] = rng.normal(0, 1, 100)
    frame["paid"] = frame.income > 0
    kinds = {"code": "actionable", "income": "actionable"}
    population = Population.from_frame(frame, "paid", kinds, {})
    again = population.to_frame(population.standardise(frame))
    assert again.code.tolist() == cells
    assert {*map(type, again.code.tolist())} == {*map(type, cells)}


# -- what a stranger met ------------------------------------------------------------------


def test_a_table_of_fractions_warns_of_people_it_has_not_seen():
    frame = past_applicants(300).astype({"age": float}) + 0.25
    frame["repaid"] = frame.repaid > 1
    kinds = {"age": "immutable", "income": "actionable", "debt": "actionable"}
    problem = Problem.from_frame(frame, "repaid", kinds, {}, n_epochs=5)
    problem.population.check_range(frame)  # all were seen
    with pytest.warns(UserWarning, match=r"age of 0 is 150 \(seen: 21.25 to 69.25\)"):
        problem.population.check_range({"age": 150, "income": 2000, "debt": 900})


def test_nobody_is_taken_for_somebody_at_the_end_of_the_range(problem, search):
    """Every way in refuses a value that nobody had, in the same words."""
    nobody = pd.DataFrame([{"age": 35, "income": 10**7, "cards": 2, "debt": 900}])
    population = problem.population
    for ask in (
        population.standardise,
        population.check_range,
        partial(report.recommend_frame, problem, search),
        partial(recommend, problem),
    ):
        with pytest.raises(ValueError, match=r"of 0 is 10,000,000 \(seen: .*another unit"):
            ask(nobody)
    everybody = population.standardise(past_applicants(800))  # who was seen is as they are
    assert torch.equal(population.to_feasible(everybody), everybody)


def test_edges_left_out_say_what_is_assumed():
    with pytest.warns(
        UserWarning, match="assumes that no feature causes another.*edges={}"
    ):
        problem = Problem.from_frame(past_applicants(100), "repaid", KINDS, n_epochs=1)
    assert not any(problem.population.graph.parents.values())


EIGHT = tuple("abcdefgh")


def test_a_likert_answer_is_no_rank_of_eight():
    scores = dict(zip(EIGHT, [1, 2, 3, 4, 5, 1, 2, 3], strict=True))
    with pytest.raises(ValueError, match=r"no ranks of 8 features.*5 of 5.*n_categories=5"):
        from_words(scores, EIGHT)
    of_five = from_words(scores, EIGHT, n_categories=5).weight
    stated = from_words({name: f"{n} of 5" for name, n in scores.items()}, EIGHT)
    assert stated.scores.tolist() == [[1, 3, 5, 6, 8, 1, 3, 5]]
    assert (stated.weight - of_five).abs().max() < 6 / 7 / 2 + 1e-6  # half a rank
    ranks = from_words(dict(zip(EIGHT, range(1, 9), strict=True)), EIGHT)
    assert ranks.scores.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8]]

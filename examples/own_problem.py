"""Recourse for your own data: from a table of past applicants to recommendations.

    python examples/own_problem.py

`from_a_table` is the whole way, with three solvers. The other two functions begin with a
classifier of another library, and with equations of your own.
"""

import lib.reproducible

import numpy as np
import pandas as pd
import torch
from scipy import stats
from sklearn.ensemble import GradientBoostingClassifier

from lib.beyond.propose import propose, training
from lib.method import classifier, flow, icarma, report
from lib.method.data import Population
from lib.method.grid import Grid
from lib.method.preferences import Preferences, from_frame
from lib.method.problem import Problem, Solver
from lib.method.samplers import RankingSampler
from lib.method.scm import SCM, additive
from lib.search.continuous import Search


def past_applicants(n_people: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """Return a table to play with; yours comes from pandas.read_csv or read_parquet.

    Example:
        >>> list(past_applicants(100))
        ['age', 'income', 'cards', 'debt', 'repaid']
    """
    rng = np.random.default_rng(seed)
    age = rng.integers(21, 70, n_people)
    income = 900 + 40 * age + rng.gamma(2, 400, n_people)
    cards = rng.poisson(income / 1_200)
    debt = 0.3 * income + 150 * cards + rng.normal(0, 200, n_people)
    score = 0.002 * income - 0.003 * debt + rng.normal(0, 0.7, n_people)
    repaid = score > np.quantile(score, 0.4)
    columns = {"age": age, "income": income, "cards": cards, "debt": debt}
    return pd.DataFrame(columns | {"repaid": repaid})


KINDS = {"age": "immutable"} | dict.fromkeys(("income", "cards", "debt"), "actionable")
EDGES = {"income": ["age"], "cards": ["income"], "debt": ["income", "cards"]}
APPLICANTS = pd.DataFrame(
    {"age": [27, 35, 52], "income": [2100, 2500, 3000], "cards": [2, 3, 1]},
    index=["Ana", "Ben", "Cem"],
).assign(debt=[1300, 1700, 1800])
ANSWERS = pd.DataFrame(
    {
        "income": ["hard", "can't", "can't"],
        "cards": ["easy", "easy", "can't"],
        "debt": ["manageable", "easy", "very hard"],
    },
    index=APPLICANTS.index,
)


def from_a_table(frame: pd.DataFrame, n_epochs: int = 100) -> pd.DataFrame:
    """Return what three solvers recommend to refused people.

    The search is the cheapest and the slowest. The proposer verifies
    its answers, too, in a fraction of the time. iCARMA answers by its
    networks alone, in microseconds a person, and verifies nothing.

    Example:
        >>> answers = from_a_table(past_applicants(400), n_epochs=2)
        >>> answers.columns[:4].tolist()
        ['outcome', 'why', 'change', 'follows']
        >>> verified = report.OUTCOMES["joint"], report.OUTCOMES["nothing"]
        >>> answers.loc[["search", "proposer"]].outcome.isin(verified).all()
        np.True_
    """
    problem = Problem.from_frame(frame, "repaid", KINDS, EDGES, n_epochs=n_epochs)
    population = problem.population
    x = population.standardise(APPLICANTS)
    preferences = from_frame(ANSWERS, population.actionable)

    sampler = RankingSampler(population.actionable)  # any ranking, any number of "can't"
    networks, _ = icarma.fit(problem, sampler, icarma.Settings(n_epochs=n_epochs))
    # margins in proportion to log-odds of a few units; the defaults are Loan's
    settings = propose.Settings(n_epochs=n_epochs, max_margin=1.0, extra_margin=0.1)
    proposer, _ = training.fit(problem, settings)
    solvers: dict[str, Solver] = {"search": Search(problem)}
    solvers |= {"proposer": proposer, "iCARMA": networks}
    return pd.concat(
        {
            name: report.table(problem, x, solver.recommend(x, preferences), ANSWERS.index)
            for name, solver in solvers.items()
        }
    )


def with_another_librarys_classifier(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what a search on a grid recommends under a classifier without gradients.

    Example:
        >>> len(with_another_librarys_classifier(past_applicants(400)))
        5
    """
    model = GradientBoostingClassifier(random_state=0)
    model.fit(frame[list(KINDS)], frame.repaid)
    problem = Problem.from_frame(
        frame, "repaid", KINDS, EDGES, n_epochs=50, classifier_model=model
    )
    x = problem.refused("test")[:5]
    can_do_anything = Preferences.from_mask(torch.ones(5, 3, dtype=torch.bool))
    grid = Grid(problem, n_values=8)
    return report.table(problem, x, grid.recommend(x, can_do_anything))


def from_equations() -> pd.DataFrame:
    """Return what the grid recommends where the equations are known.

    Example:
        >>> from_equations().outcome.isin(report.OUTCOMES.values()).all()
        np.True_
    """
    noise = stats.norm(0, 1)
    model = SCM(
        {
            "income": additive((), lambda pa: 3.0, noise),
            "savings": additive(("income",), lambda pa: 2 * pa["income"], noise),
        }
    )
    kinds = dict.fromkeys(model.features, "actionable")
    population = Population.from_scm(
        model, kinds, lambda x: x.sum(-1) > 9, "equations", 2_000, 2_000, 400
    )
    h, _ = classifier.fit(population, n_epochs=20)
    splits = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *splits, n_epochs=50)
    problem = Problem(population, h, density)
    x = problem.refused("test")[:5]
    income_only = Preferences.from_mask(torch.tensor([[True, False]] * 5))
    return report.table(problem, x, Grid(problem).recommend(x, income_only))


if __name__ == "__main__":
    with pd.option_context("display.max_colwidth", None, "display.width", 200):
        for table in (
            from_a_table(past_applicants()),
            with_another_librarys_classifier(past_applicants()),
            from_equations(),
        ):
            print(table[["outcome", "why", "change", "follows"]].to_string(), end="\n\n")

"""Recourse for your own data: from a table of applicants to a table of recommendations.

    python examples/own_problem.py

The first part is the whole way in about 25 lines, with two solvers that answer at once:
iCARMA, and a proposer. The second has another library's classifier, the third people drawn
from equations of your own.
"""

import lib.reproducible

import numpy as np
import pandas as pd
import torch
from scipy import stats
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lib.beyond.propose import propose, teaching
from lib.method import classifier, flow, grid, icarma, training, words
from lib.method.population import Population
from lib.method.preferences import Preferences, from_frame
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.method.scm import SCM, additive


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


def from_a_table(frame: pd.DataFrame, n_epochs: int = 100) -> pd.DataFrame:
    """Return what two solvers recommend to refused people who said what they can do.

    Take the proposer where the classifier and the flow can be asked while somebody waits:
    what it recommends has been verified, and costs less; take iCARMA where a network's
    weights are all that is at hand, or a microsecond a person.

    Example:
        >>> found = from_a_table(past_applicants(400), n_epochs=2)
        >>> found.columns[:4].tolist()
        ['outcome', 'why', 'change', 'follows']
        >>> verified = words.OUTCOMES["joint"], words.OUTCOMES["nothing"]
        >>> found.loc["proposals"].outcome.isin(verified).all()
        np.True_
    """
    problem = Problem.from_frame(frame, "repaid", KINDS, EDGES, n_epochs=n_epochs)
    population = problem.population
    sampler = RankingSampler(population.actionable)  # any ranking, any number of "can't"
    stack, _ = training.fit(problem, sampler, icarma.Settings(n_epochs=n_epochs))
    # Log-odds are a few units here: margins of up to 8 and 0.5 to spare, as for Loan, would
    # make people do far more than they need to.
    careful = propose.Settings(n_epochs=n_epochs, most_log_odds=1.0, spare_log_odds=0.1)
    proposer, _ = teaching.fit(problem, careful)

    applicants = pd.DataFrame(
        {"age": [27, 35, 52], "income": [2100, 2500, 3000], "cards": [2, 3, 1]},
        index=["Ana", "Ben", "Cem"],
    ).assign(debt=[1300, 1700, 1800])
    refused = population.standardised(applicants)
    answers = pd.DataFrame(
        {
            "income": ["hard", "can't", "can't"],
            "cards": ["easy", "easy", "can't"],
            "debt": ["manageable", "easy", "very hard"],
        }
    )
    preferences = from_frame(answers, population.actionable)
    found = {
        "iCARMA": stack.recommend(refused, preferences)[0],
        "proposals": proposer.recommend(refused, preferences),
    }
    people = list(applicants.index)
    return pd.concat(
        {k: words.table(problem, refused, r, people) for k, r in found.items()}
    )


def with_another_librarys_classifier(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what a search on a grid recommends under a classifier without gradients.

    Example:
        >>> len(with_another_librarys_classifier(past_applicants(400)))
        5
    """
    model = make_pipeline(StandardScaler(), GradientBoostingClassifier(random_state=0))
    model.fit(frame[list(KINDS)].to_numpy(), frame.repaid)
    population = Population.from_frame(frame, label="repaid", kinds=KINDS, edges=EDGES)

    def logit(x: torch.Tensor) -> torch.Tensor:  # the adapter
        return torch.from_numpy(model.decision_function(population.as_recorded(x).numpy()))

    h = classifier.Classifier(population.features, logit)
    for_flow = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *for_flow, n_epochs=50)
    problem = Problem(population, h, density)
    refused = problem.refused("test")[:5]
    anything = torch.ones(len(refused), len(population.actionable), dtype=torch.bool)
    preferences = Preferences.from_mask(anything)
    found = grid.Grid(problem, problem.flow, n_values=8).recommend(refused, preferences)
    return words.table(problem, refused, found)


def from_equations() -> pd.DataFrame:
    """Return what the exact search recommends where the equations are known.

    Example:
        >>> from_equations().outcome.isin(words.OUTCOMES.values()).all()
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
        model,
        kinds,
        label=lambda x: x.sum(-1) > 9,
        n_classifier=2_000,
        n_flow=2_000,
        n_recourse=400,
    )
    h, _ = classifier.fit(population, n_epochs=20)
    for_flow = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *for_flow, n_epochs=50)
    problem = Problem(population, h, density)
    refused = problem.refused("test")[:5]
    income_only = torch.tensor([[True, False]]).expand(len(refused), -1)
    preferences = Preferences.from_mask(income_only)
    found = grid.Grid(problem, problem.world).recommend(refused, preferences)
    return words.table(problem, refused, found)


if __name__ == "__main__":
    with pd.option_context("display.max_colwidth", None, "display.width", 200):
        for rows in (
            from_a_table(past_applicants()),
            with_another_librarys_classifier(past_applicants()),
            from_equations(),
        ):
            print(rows[["outcome", "why", "change", "follows"]].to_string(), end="\n\n")

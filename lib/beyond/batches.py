"""Recommendations for many applicants: Parquet in, Parquet out, by Dask.

Each partition of the applicants is answered by itself, with
`report.recommend_frame`, on this machine's cores or by the workers of
a Dask scheduler that runs elsewhere. A worker that is lost is replaced
by others, which answer its partitions again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

from lib import checks, io
from lib.method import loan, report
from lib.method.grid import Grid
from lib.method.icarma import ICarma, load_by_profile
from lib.method.preferences import Preferences, from_frame
from lib.method.problem import Problem, Solver
from lib.paper import gmsc, readings

N_APPLICANTS = 120_269  # of Give Me Some Credit
TEXTS = ("outcome", "why", "change", "follows")
ANSWER = "answer_"  # before the names of columns with answers
PARTITION = "16MiB"  # of Parquet, at most; a row group is not divided


def _credit(models: Path) -> Problem:
    """Return the problem of Give Me Some Credit, without its data of a stand-in."""
    people = gmsc.applicants("", N_APPLICANTS, 0, or_stand_in=True, models=models)
    return gmsc.problem(people, models)


# who applies: a function that takes the folder of models and returns the problem
POPULATIONS: dict[str, Callable[[Path], Problem]] = {"loan": loan.problem, "gmsc": _credit}


@dataclass(frozen=True)
class Adviser:
    """Name who recommends; its models are loaded once in each process.

    Arguments:
        population: Of `POPULATIONS`: "loan", or "gmsc" (Give Me Some
            Credit; without its data, of a synthetic stand-in).
        solver: "grid", or the name of a file of networks.
        profile: From scores to difficulty.
        models: Folder of the fitted models.
    Raises: ValueError: the population or the profile is unknown.
    """

    population: str = "loan"
    solver: str = "loan_icarma_ranking"
    profile: str = "linear"
    models: Path = io.MODELS

    def __post_init__(self) -> None:
        checks.one_of("population", [self.population], tuple(POPULATIONS))
        readings.profile(self.profile)

    def recommend_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return recommendations for a table of applicants; see `report.recommend_frame`.

        Columns answer_<feature> hold what people say, with cells as
        for `preferences.from_words`. Without them everybody can do
        anything, and nothing is hard.
        """
        problem, solver = load(self)
        features = problem.population.actionable
        answers = frame.filter(regex=f"^{ANSWER}").rename(
            columns=lambda name: name.removeprefix(ANSWER)
        )
        preferences: Preferences | None = None
        if len(answers.columns):
            categories = problem.population.categories
            profile = readings.profile(self.profile)
            preferences = from_frame(
                answers, features, categories=categories, profile=profile
            )
        return report.recommend_frame(problem, solver, frame, preferences)


@cache
def load(adviser: Adviser) -> tuple[Problem, Solver]:
    """Return the problem of an adviser, and its solver: the grid or the best network."""
    models, name = adviser.models, adviser.solver
    problem = POPULATIONS[adviser.population](models)
    if name == "grid":
        return problem, Grid(problem)
    _, settings = io.load(models, name)
    if adviser.profile in settings:
        return problem, load_by_profile(models, name, problem)[adviser.profile].best
    return problem, ICarma.load(models, name, problem).best


def recommend(
    adviser: Adviser, source: Path, target: Path, scheduler: str = "", n_workers: int = 2
) -> int:
    """Write what applicants are recommended as Parquet, and return how many they are.

    Arguments:
        adviser: Who recommends.
        source: A Parquet file, or a folder of them; a row an
            applicant, in the units of the data.
        target: A folder of Parquet files, one a partition; rows are
            in the order of the applicants.
        scheduler: Address of a running Dask scheduler, whose workers
            see the same folders; "": processes of this machine.
        n_workers: How many processes, on this machine.
    Raises: ValueError: there are no applicants.
    """
    applicants = dd.read_parquet(source, split_row_groups="adaptive", blocksize=PARTITION)
    some = applicants.head(2, npartitions=-1)
    if len(some) == 0:
        raise ValueError(f"There are no applicants in {source}.")
    meta = typed(adviser, some).iloc[:0]
    cluster = scheduler or LocalCluster(n_workers=n_workers, threads_per_worker=1)
    with Client(cluster) as client:
        answers = applicants.map_partitions(partial(typed, adviser), meta=meta)
        answers.to_parquet(target, write_index=False, overwrite=True)
        n_people = len(dd.read_parquet(target))
        if not scheduler:
            client.shutdown()
    return n_people


def typed(adviser: Adviser, frame: pd.DataFrame) -> pd.DataFrame:
    """Return recommendations with the same types in every partition: text or float."""
    problem, _ = load(adviser)
    texts = {*TEXTS, *problem.population.categories}
    answers = adviser.recommend_frame(frame)
    return answers.astype(
        {name: "string" if name in texts else "float64" for name in answers}
    )

"""Recommend for a Parquet file of applicants, batch by batch: it may be larger than memory.

`python workflow/recommend.py params/recommend.yaml`

The file names the population, the solver, and where applicants and
recommendations lie. Applicants have a column for each feature, in the
data's units. Their answers are columns answer_<feature>, with cells as
for `preferences.from_words`; without such columns everybody can do
anything, and nothing is hard.
"""

import lib.reproducible

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from parameters import MODEL_SIZE, check_parameters, read_shared

from lib import checks, io
from lib.method import loan, report
from lib.method.data import Population
from lib.method.grid import Grid
from lib.method.icarma import ICarma, load_by_profile
from lib.method.preferences import Preferences, Profile, from_frame
from lib.method.problem import Problem, Solver
from lib.paper import gmsc, readings


def loan_problem(models: Path) -> Problem:
    """Return the Loan problem with the models of a folder."""
    sizes = ("n_classifier", "n_flow", "n_recourse", "seed")
    shared = read_shared(MODEL_SIZE)
    return loan.problem(models, **{name: shared[name] for name in sizes})


def gmsc_problem(models: Path) -> Problem:
    """Return the problem of Give Me Some Credit; without its data, of a stand-in."""
    n_people, seed = (read_shared(MODEL_SIZE)[name] for name in ("n_applicants", "seed"))
    people = gmsc.applicants("", n_people, seed, or_stand_in=True, models=models)
    return gmsc.problem(people, models, seed)


PROBLEMS: dict[str, Callable[[Path], Problem]] = {
    "loan": loan_problem,
    "gmsc": gmsc_problem,
}


def solver_of(name: str, profile: str, models: Path, problem: Problem) -> Solver:
    """Return the exact search on a grid ("grid"), or the best of fitted networks.

    Arguments:
        name: "grid", or of a file of networks.
        profile: Of the networks, where the file has several.
    """
    if name == "grid":
        return Grid(problem)
    _, settings = io.load(models, name)
    if profile in settings:
        return load_by_profile(models, name, problem)[profile].best
    return ICarma.load(models, name, problem).best


def preferences_of(
    frame: pd.DataFrame, population: Population, profile: Profile
) -> Preferences:
    """Return the answers in the columns answer_<feature>; without any, all is easy."""
    features = population.actionable
    columns = {f"answer_{name}": name for name in features}
    if frame.columns.isin(list(columns)).any():
        answers = frame.filter(regex="^answer_").rename(columns=columns)
        categories = population.categories
        return from_frame(answers, features, categories=categories, profile=profile)
    scores = torch.ones(len(frame), len(features), dtype=torch.long)
    return Preferences(scores, profile=profile)


def batches(path: Path, size: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of a Parquet file, or of all files of a folder, in order."""
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=size):
            yield batch.to_pandas()


def recommend(
    recommend_frame: Callable[[pd.DataFrame], pd.DataFrame],
    source: Path,
    target: Path,
    batch_size: int,
) -> int:
    """Write what people are recommended as Parquet, and return how many they are.

    Arguments:
        recommend_frame: From people to a row for each of them.
        source: A Parquet file, or a folder of them.
        target: A Parquet file; it is there when all is done.
        batch_size: People in memory at once.
    Raises: ValueError: there are no applicants.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    writer, n_people = None, 0
    for frame in batches(source, batch_size):
        answers = recommend_frame(frame)
        schema = None if writer is None else writer.schema
        table = pa.Table.from_pandas(answers, schema, preserve_index=False)
        if writer is None:
            writer = pq.ParquetWriter(partial, table.schema)
        writer.write_table(table)
        n_people += len(frame)
    if writer is None:
        raise ValueError(f"There are no applicants in {source}.")
    writer.close()
    partial.replace(target)
    return n_people


def main(path: Path) -> None:
    """Recommend as a parameter file says."""
    given = io.load_yaml(path)
    defaults = io.load_yaml(io.PARAMS / "recommend.yaml")
    check_parameters(given, defaults, str(path), "params/recommend.yaml")
    given = defaults | given
    checks.one_of("population", [given["population"]], tuple(PROBLEMS))
    source, target, models = (io.inside(given[n]) for n in ("input", "output", "models"))
    problem = PROBLEMS[given["population"]](models)
    solver = solver_of(given["solver"], given["profile"], models, problem)
    profile = readings.profile(given["profile"])

    def recommend_frame(frame: pd.DataFrame) -> pd.DataFrame:
        preferences = preferences_of(frame, problem.population, profile)
        return report.recommend_frame(problem, solver, frame, preferences)

    n_people = recommend(recommend_frame, source, target, given["batch_size"])
    print(f"Recommendations for {n_people:,} applicants: {target}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parameters", type=Path)
    main(parser.parse_args().parameters)

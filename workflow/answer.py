"""Recommend for a data set of applicants, range by range; called by recommend.py.

`python workflow/answer.py OUTPUTS plan PARAMETERS`
`python workflow/answer.py OUTPUTS FIRST LAST`
`python workflow/answer.py OUTPUTS summary`

The first checks everything and leaves plan.json in OUTPUTS, or refuses
a folder whose plan is another. The second answers the applicants of
blocks FIRST to LAST, both included, into one Parquet file. It is
written elsewhere and moved when it is whole, so that a killed job
leaves nothing among the recommendations and is begun again. The third
adds up what all jobs found.
"""

import lib.pinned

import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import plans
import pyarrow as pa
import pyarrow.parquet as pq
from jobs import noted
from lifeline import end_with_batch
from only import only_job
from parameters import MODEL_SIZE, ROOT, check_parameters, read_run_parameters

from lib.base import checks, files
from lib.base.files import PARAMS, inside
from lib.beyond.millions import blocks, parquet_blocks
from lib.beyond.propose.propose import Proposer
from lib.method import loan
from lib.method.icarma import ICarma
from lib.method.problem import Problem
from lib.paper import gmsc

PROGRAM = "workflow/answer.py"
SIZES = PARAMS / MODEL_SIZE / "run.yaml"  # of the populations that models were fitted to
BLOCKS_AT_ONCE = 8  # that are written together
UNREADABLE = (  # what pyarrow and a header raise of a damaged part
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
)


def of_loan(models: Path) -> Problem:
    """Return the Loan problem with the models of a folder.

    Example:
        >>> of_loan(files.MODELS).population.name
        'Loan'
    """
    shared = files.entries(SIZES)
    sizes = {name: shared[name] for name in ("n_classifier", "n_flow", "n_recourse")}
    return loan.problem(models, **sizes, seed=shared["seed"])


def of_gmsc(models: Path) -> Problem:
    """Return the problem of Give Me Some Credit; without its data, of a stand-in."""
    shared = files.entries(SIZES)
    n_people, seed = shared["n_applicants"], shared["seed"]
    people = gmsc.applicants("", n_people, seed, or_stand_in=True, models=models)
    return gmsc.problem(people, models, seed)


# by name: what makes the problem, and the models that it reads
PROBLEMS: dict[str, tuple[Callable[[Path], Problem], list[str]]] = {
    "loan": (of_loan, ["loan_classifier", "loan_flow"]),
    "gmsc": (of_gmsc, ["gmsc_classifier", "gmsc_flow", "gmsc_scaler"]),
}
SOLVERS = ("icarma", "proposer")


def solver_of(given: Mapping[str, Any]) -> blocks.Solver:
    """Return who answers: members of an iCARMA, or a proposer.

    Arguments:
        given: As `read_run_parameters` returns it.
    Raises: ValueError: there is no such problem, solver, model or
        member.
    Example:
        >>> given = {"problem": "loan", "models": "models", "solver": "icarma"}
        >>> stack = solver_of(given | {"model": "loan_icarma_hard", "members": [2, 0]})
        >>> stack.ids
        [2, 0]
    """
    checks.known("problem", [given["problem"]], tuple(PROBLEMS))
    checks.known("solver", [given["solver"]], SOLVERS)
    models = inside(given["models"])
    problem = PROBLEMS[given["problem"]][0](models)
    members = given["members"]
    if given["solver"] == "icarma":
        with _of_kind("icarma"):
            stack = ICarma.load(models, given["model"], problem)
        if len(set(members)) < len(members):
            raise ValueError(f"members names one of {members} twice. Name each once.")
        return stack.select([stack.position(one) for one in members or stack.ids])
    if members:
        raise ValueError(f"A proposer has no members, got {members}: say members: [].")
    with _of_kind("proposer"):
        return Proposer.load(models, given["model"], problem)


@contextmanager
def _of_kind(solver: str) -> Iterator[None]:
    """Say in the error of a model that can't be loaded as what it was taken."""
    try:
        yield
    except ValueError as error:
        hint = f"It was taken for one of solver: {solver}, as the parameters say."
        raise ValueError(f"{error} {hint}") from error


def planned(
    given: Mapping[str, Any], solver: blocks.Solver, rows: parquet_blocks.Rows
) -> dict[str, Any]:
    """Return what will be answered by what, and the parts it is shared out to.

    Arguments:
        given: As `read_run_parameters` returns it.
        solver: Who answers.
        rows: Where the applicants are.
    """
    names = [*PROBLEMS[given["problem"]][1], given["model"]]
    models = [inside(given["models"]) / f"{name}{files.ENDING}" for name in names]
    population = solver.problem.population
    n_blocks = math.ceil(rows.total / blocks.SIZE)
    per_job = math.ceil(given["n_per_job"] / blocks.SIZE)
    firsts = range(0, n_blocks, per_job)
    return {
        "parameters": dict(given),
        "data": [
            {
                "file": path.name,
                "rows": n_rows,
                "bytes": path.stat().st_size,
                "modified": path.stat().st_mtime_ns,
            }
            for path, n_rows in zip(rows.paths, rows.n_rows, strict=True)
        ],
        "population": {"name": population.name, "fingerprint": population.fingerprint},
        "n_members": len(solver.ids) if isinstance(solver, ICarma) else 1,
        **plans.made_with(PROGRAM, models),
        "parts": [part(first, min(first + per_job, n_blocks) - 1) for first in firsts],
    }


def part(first: int, last: int) -> str:
    """Return where the answers of a range of blocks lie, below the outputs.

    Example:
        >>> part(0, 122)
        'recommendations/blocks_000000_000122.parquet'
    """
    return f"recommendations/blocks_{first:06d}_{last:06d}{parquet_blocks.ENDING}"


def plan(outputs: Path, parameters: Path) -> None:
    """Check everything, and leave the plan; one that is there already must be the same.

    Raises: ValueError: something is wrong with parameters, models or
        data; or the folder has the plan of something else.
    """
    given = read_run_parameters(parameters, "recommend")
    with files.in_file(parameters):
        solver = solver_of(given)
        rows = rows_of(given, solver)
    plans.leave(planned(given, solver, rows), outputs, "recommendations")


def answer(outputs: Path, first: int, last: int) -> None:
    """Save what the applicants of blocks are told, the last block included.

    Raises: ValueError: parameters, models, data or code are others
        than planned; or the plan is damaged.
    """
    given = parameters_of(outputs)
    solver = solver_of(given)
    rows = rows_of(given, solver)
    plans.check_same(planned(given, solver, rows), outputs)
    path = outputs / part(first, last)
    # of its own name, so that a job whose Snakemake was killed writes into no other's
    half_done = outputs / "partial" / f"{path.stem}_{secrets.token_hex(4)}"
    for folder in (path.parent, half_done.parent):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        own = rows.blocks(blocks.SIZE, first, last + 1)
        digest = plans.digest([outputs / "plan.json"])
        _write(half_done, solver, own, first, digest, rows.columns)
        found = rows_of(given, solver)
        plans.check_same(planned(given, solver, found), outputs)  # it may change meanwhile
        os.replace(half_done, path)
    finally:
        half_done.unlink(missing_ok=True)


def rows_of(given: Mapping[str, Any], solver: blocks.Solver) -> parquet_blocks.Rows:
    """Return the rows of the applicants, with the limits that their data set has.

    Raises: ValueError: as `blocks.columns` and `parquet_blocks.find`.
    """
    path = inside(given["data"])
    names = parquet_blocks.names(path)
    return parquet_blocks.find(path, blocks.columns(solver.problem.population, names))


def parameters_of(outputs: Path) -> dict[str, Any]:
    """Return the parameters that the plan of a folder holds.

    Raises: ValueError: the plan is damaged; a parameter is missing or
        unknown, or has a value of another type.
    """
    given = plans.read(outputs).get("parameters")
    model = files.entries(PARAMS / "recommend.yaml")
    with files.in_file(outputs / "plan.json", plans.WAY_OUT):
        if not isinstance(given, dict):
            raise ValueError(f"It should hold parameters by name, it holds {given!r}.")
        check_parameters(given, model, "parameters", "params/recommend.yaml")
        if missing := [name for name in model if name not in given]:
            raise ValueError(f"It says nothing about {', '.join(missing)}.")
    return given


def _write(
    path: Path,
    solver: blocks.Solver,
    own: Iterable[np.ndarray],
    first: int,
    plan: str,
    names: Sequence[str],
) -> None:
    """Write what blocks of applicants are told, and what each block adds to the summary.

    Arguments:
        path: Of a Parquet file.
        solver: Who answers.
        own: The blocks.
        first: Number of the first of them.
        plan: Digest of the plan that they belong to.
        names: Of the columns of the blocks.
    """
    counts, waiting = [], []
    how = {"compression": "zstd", "use_dictionary": ["why"]}
    with pq.ParquetWriter(path, blocks.schema(solver), **how) as file:
        for number, block in enumerate(own, start=first):
            waiting.append(blocks.answers(solver, block, number * blocks.SIZE, names))
            counts.append(blocks.counted(waiting[-1]))
            if len(waiting) == BLOCKS_AT_ONCE:
                file.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            file.write_table(pa.Table.from_batches(waiting))
        file.add_key_value_metadata({"blocks": json.dumps(counts), "plan": plan})


def summarise(outputs: Path) -> None:
    """Save summary.csv, a row a member, and manifest.json: the plan, and what came of it.

    Raises: ValueError: a part is missing or damaged, or there is one
        that is not of the plan.
    """
    before = plans.read(outputs)
    parts = before["parts"]
    found = sorted(
        f"recommendations/{own.name}" for own in (outputs / "recommendations").iterdir()
    )
    if found != sorted(parts):
        odd = sorted(set(found) ^ set(parts))
        raise ValueError(f"Expected the plan's parts and no others: see {', '.join(odd)}.")
    counts, written, plan = [], {}, plans.digest([outputs / "plan.json"])
    for name in parts:
        n_rows, made_by, own = _read_part(outputs / name)
        if made_by != plan:
            raise ValueError(f"{name} was made by another plan. Delete it, and go on.")
        counts += own
        n_bytes = (outputs / name).stat().st_size
        written[name] = {"rows": n_rows, "bytes": n_bytes}
    table, totals = blocks.summary(counts)
    as_csv = table.to_csv(index=False, float_format="%.9g")
    files.write(outputs / "summary.csv", as_csv)
    files.write(
        outputs / "manifest.json",
        json.dumps(before | {"parts": written, "found": totals}, indent=1),
    )


def _read_part(path: Path) -> tuple[int, str, list[dict[str, Any]]]:
    """Return of a part its rows, the digest of its plan, and what its blocks add up to.

    Raises: ValueError: it is damaged.
    """
    with files.in_file(path, "Remove it, and run the same command again."):
        try:
            footer = pq.read_metadata(path)
            counts = files.parsed(footer.metadata[b"blocks"].decode())
            if not isinstance(counts, list) or not counts:
                raise ValueError(f"It counts no blocks, but holds {counts!r}"[:100])
            blocks.summary(counts)  # each of them can be added up
            return footer.num_rows, footer.metadata[b"plan"].decode(), counts
        except UNREADABLE as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"It is damaged: expected recommendations, with what they add to the "
                f"summary ({why.rstrip('.')})."
            ) from error


def main() -> None:
    """Do what the command line says."""
    outputs = ROOT / sys.argv[1]
    match sys.argv[2:]:
        case ["plan", parameters]:
            try:
                plan(outputs, Path(parameters))
            except (ValueError, OSError) as error:
                sys.exit(str(error))
        case ["summary"]:
            end_with_batch()
            with noted(outputs, "summary"):
                summarise(outputs)
        case [first, last]:
            end_with_batch()
            own = int(first), int(last)
            name = Path(part(*own)).stem
            with noted(outputs, name), only_job(outputs, name):
                answer(outputs, *own)


if __name__ == "__main__":
    main()

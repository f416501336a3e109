"""The search for the settings of all networks: `make tune`, about an hour on two cores.

    python workflow/tune.py ranking
    python workflow/tune.py score --storage postgresql+psycopg://user@host/tuning
    python workflow/tune.py transfer      Give Me Some Credit, half an hour; needs its data

Start it several times, on one machine, or on many with a database
that all can reach: the workers share one search. A stopped search goes
on where it was; the proposals of a worker that was killed are failed
after two minutes, and tried again. When enough trials are finished,
the best of each profile are trained again with other seeds (after a
kill from how far they were), and the rule of `lib/paper/selection.py`
chooses among those.

What Optuna proposes depends on which trials are finished when it is
asked. So another search finds other points, and the committed files
are the record of one. Each worker saves tuned_<search>.yaml and
trials_<search>.csv, in params (commit them, and make reproduce) or in
the folder that is named.
"""

import lib.pinned

import argparse
import contextlib
import signal
import sys
from pathlib import Path

import pandas as pd
import yaml
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError
from torch import Tensor

from lib.base import files, fits, progress
from lib.base.files import inside
from lib.method import loan
from lib.method.problem import Problem
from lib.paper import gmsc, stacks, tuning, workers

N_APPLICANTS = 120_269  # all of the cleaned data of Give Me Some Credit
# a spline flow takes its time, and a quarter of the effort finds the same people
EFFORT = {"transfer": {"n_scouts": 64, "n_starts": 3}}
FINALIST_SEEDS = (100_001, 100_002, 100_003)  # no trial has such a number


def main() -> None:
    """Run the search that the command line names, until enough trials are finished."""
    args = read_arguments()
    # a worker that is stopped gives up its trials; otherwise they would stay open
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(args)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except (StorageInternalError, SQLAlchemyError) as error:
        sys.exit(f"The database failed ({_why(error)}). The same command goes on later.")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: the same command goes on from here.")


def run(args: argparse.Namespace) -> None:
    """Run a search, and save what it finds.

    Arguments:
        args: As `read_arguments` returns them.
    Raises: ValueError: the folder or the storage cannot be used, or
        the data is missing.
    """
    results, kept = (inside(args.folder or name) for name in ("params", "runs"))
    for folder in (results, kept):
        folder.mkdir(parents=True, exist_ok=True)
    own_file = f"sqlite:///{kept}/tuning_{args.search}.db"
    storage = workers.database(args.storage or own_file)
    problem, shared = loan.problem(), {}
    if args.search == "transfer":
        # the models are the committed ones, and so are the people
        people = gmsc.applicants("", N_APPLICANTS, seed=0)
        problem, shared = gmsc.problem(people), stacks.GMSC
    cheapest = cheapest_known(problem, args.search, kept)
    studies_of = tuning.open_studies(args.search, storage)
    search = tuning.Search(problem, args.search, studies_of, cheapest, shared, storage)
    while search.n_finished < args.trials:
        done = f"{search.n_finished} of {args.trials} trials a profile"
        search.run_batch(args.batch, progress.bar(f"{args.search}, {done}"))
        save_trials(results, args.search, search.trials_table())
    bar, partial = progress.bar(f"{args.search}, finalists"), f"finalists_{args.search}"
    search.run_finalists(args.finalists, FINALIST_SEEDS, bar, kept / partial)
    with contextlib.suppress(OSError):  # there may be other finalists in it
        (kept / partial).rmdir()
    save_trials(results, args.search, search.trials_table())


def _why(error: Exception) -> str:
    """Return in a line what a database said."""
    driver = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None)
    lines = str(driver or error).strip().splitlines()
    return lines[0] if lines else type(driver or error).__name__


def read_arguments() -> argparse.Namespace:
    """Return what the command line says."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("search", choices=tuple(stacks.SEARCHES))
    arguments.add_argument(
        "--storage", help="database URL (default: sqlite:///runs/tuning_<search>.db)"
    )
    arguments.add_argument(
        "--folder", help="for all files (default: params for results, runs for the rest)"
    )
    for name, default, meaning in (
        ("--trials", 30, "trials a profile"),
        ("--batch", 8, "trials a profile begun at once"),
        ("--finalists", 3, "best trials a profile, trained again with other seeds"),
    ):
        arguments.add_argument(
            name, type=int, default=default, help=f"{meaning} (default: %(default)s)"
        )
    return arguments.parse_args()


def cheapest_known(problem: Problem, search: str, folder: Path) -> dict[str, Tensor]:
    """Return `tuning.cheapest_known`, kept in a folder for the next worker.

    What was found with other models, other code or another effort is
    found anew.
    """
    bar = progress.bar(f"{search}, cheapest known")
    effort = EFFORT.get(search, {})
    try:
        return tuning.cheapest_known(problem, search, bar, folder, **effort)
    except fits.OtherInputs as error:
        print(f"The cheapest known are searched anew. {error}", flush=True)
        (folder / f"cheapest_{search}{files.ENDING}").unlink(missing_ok=True)
        return tuning.cheapest_known(problem, search, bar, folder, **effort)


def save_trials(folder: Path, search: str, trials: pd.DataFrame) -> None:
    """Save all trials so far, and the chosen settings of each profile."""
    files.write(folder / f"trials_{search}.csv", trials.round(6).to_csv(index=False))
    chosen = trials[trials.chosen].set_index("profile")[list(tuning.SPACE)]
    settings = {
        profile: {
            name: int(value) if name == "n_epochs" else float(f"{value:.3g}")
            for name, value in row.items()
        }
        for profile, row in chosen.iterrows()
    }
    title = (
        f"# {search}: the chosen trial of each profile, judged on validation people; "
        f"trials_{search}.csv has all trials\n"
    )
    text = title + yaml.safe_dump(settings, sort_keys=False)
    files.write(folder / f"tuned_{search}.yaml", text)


if __name__ == "__main__":
    main()

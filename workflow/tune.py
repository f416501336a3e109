"""The search for the settings of notebook 05: `make tune`, about an hour on two cores.

    python workflow/tune.py ranking
    python workflow/tune.py score --storage postgresql://user@host/tuning

Start it several times, on one machine, or on many with a database
that all can reach (and a driver of that database installed): the
workers share one search. A stopped search goes on where it was. When
enough trials are finished, the best of them are trained once more at
full length. A proposal of your own is added with Optuna's
`study.enqueue_trial(values, user_attrs={"by_hand": True})`.

What Optuna proposes depends on which trials are finished when it is
asked. So another search finds other points, and the committed files
are the record of one. Each worker saves params/tuned_<search>.yaml
and params/trials_<search>.csv; commit them, and make reproduce.
"""

import lib.pinned

import argparse
import signal

import pandas as pd
import yaml
from parameters import read_network_parameters

from lib.base import progress
from lib.base.files import PARAMS, inside
from lib.problem import loan
from lib.studies import stacks, tuning


def main() -> None:
    """Run the search that the command line names, until enough trials are finished."""
    args = read_arguments()
    # a worker that is stopped gives up its trials; otherwise they would stay open
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    inside("runs").mkdir(exist_ok=True)
    own_file = f"sqlite:///{inside('runs')}/tuning_{args.search}.db"
    studies_of = tuning.open_studies(args.search, args.storage or own_file)
    search = tuning.Search(loan.problem(), args.search, studies_of)
    while search.n_finished < args.trials:
        done = f"{search.n_finished} of {args.trials} trials a profile"
        search.run_batch(args.batch, args.epochs, progress.bar(f"{args.search}, {done}"))
        save_trials(args.search, search.trials_table())
    full_length = read_network_parameters("paper")["n_epochs"][f"loan_icarma_{args.search}"]
    bar = progress.bar(f"{args.search}, finalists")
    search.run_finalists(args.finalists, full_length, bar)
    save_trials(args.search, search.trials_table())


def read_arguments() -> argparse.Namespace:
    """Return what the command line says."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("search", choices=stacks.ELICITATIONS)
    arguments.add_argument(
        "--storage", help="database URL (default: sqlite:///runs/tuning_<search>.db)"
    )
    for name, default, meaning in (
        ("--trials", 100, "trials a profile"),
        ("--batch", 13, "trials a profile trained at once"),
        ("--epochs", 200, "epochs a trial"),
        ("--finalists", 8, "best trials a profile, trained once more at full length"),
    ):
        arguments.add_argument(
            name, type=int, default=default, help=f"{meaning} (default: %(default)s)"
        )
    return arguments.parse_args()


def save_trials(search: str, trials: pd.DataFrame) -> None:
    """Save all trials so far, and the chosen settings of each profile, in params."""
    trials.round(6).to_csv(PARAMS / f"trials_{search}.csv", index=False)
    chosen = trials[trials.chosen].set_index("profile")[list(tuning.SPACE)]
    settings = {
        profile: {name: float(f"{value:.3g}") for name, value in row.items()}
        for profile, row in chosen.iterrows()
    }
    title = (
        f"# {search}: the chosen trial of each profile, judged on validation people; "
        f"trials_{search}.csv has all trials\n"
    )
    text = title + yaml.safe_dump(settings, sort_keys=False)
    (PARAMS / f"tuned_{search}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

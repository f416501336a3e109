"""The search for the settings of notebook 05: `make tune`, about an hour on two cores.

    python workflow/tune.py ranking
    python workflow/tune.py score --storage postgresql://user@host/tuning        (with a driver of that database installed)

Start it several times, on one machine or (with a database that all can reach) on many: the workers share one search. A
stopped search goes on where it was. When enough trials are finished, the best of them are trained once more at full
length. A proposal of your own is added with Optuna's `study.enqueue_trial(values, user_attrs={"by_hand": True})`. What
Optuna proposes depends on which trials are finished when it is asked, so another search finds other points, and the
committed files are the record of one. Each worker leaves params/tuned_<search>.yaml and params/trials_<search>.csv;
commit them, and make reproduce.
"""

import lib.pinned

import argparse
import signal

import yaml
from parameters import read_network_parameters

from lib.base import progress
from lib.base.files import ROOT, inside
from lib.problem import loan
from lib.studies import stacks, tuning


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("search", choices=stacks.ELICITATIONS)
    arguments.add_argument(
        "--storage", help="database URL (default: sqlite:///runs/tuning_<search>.db)"
    )
    arguments.add_argument(
        "--trials", type=int, default=100, help="trials a profile (default: %(default)s)"
    )
    arguments.add_argument(
        "--batch",
        type=int,
        default=13,
        help="trials a profile trained at once (default: %(default)s)",
    )
    arguments.add_argument(
        "--epochs", type=int, default=200, help="epochs a trial (default: %(default)s)"
    )
    arguments.add_argument(
        "--finalists",
        type=int,
        default=8,
        help="best trials a profile, trained once more at full length",
    )
    args = arguments.parse_args()
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # stopped: the trials under way are given up, not left open
    inside("runs").mkdir(exist_ok=True)
    problem = loan.problem()
    studies_of = tuning.open_studies(
        args.search, args.storage or f"sqlite:///{inside('runs')}/tuning_{args.search}.db"
    )
    while (
        done := min(len(tuning.finished(study)) for study in studies_of.values())
    ) < args.trials:
        bar = progress.bar(f"{args.search}, {done} of {args.trials} trials a profile")
        tuning.run_batch(problem, args.search, studies_of, args.batch, args.epochs, bar)
        leave(args.search, studies_of)
    bar = progress.bar(f"{args.search}, finalists")
    full_length = read_network_parameters("paper")["n_epochs"][f"loan_icarma_{args.search}"]
    tuning.run_finalists(problem, args.search, studies_of, args.finalists, full_length, bar)
    leave(args.search, studies_of)


def leave(search: str, studies_of: dict) -> None:
    """Nothing; writes all trials so far, and the chosen settings of each profile, to params/."""
    trials = tuning.trials_table(search, studies_of)
    trials.round(6).to_csv(ROOT / "params" / f"trials_{search}.csv", index=False)
    chosen = trials[trials.chosen].set_index("profile")[list(tuning.SPACE)]
    settings = {
        profile: {name: float(f"{value:.3g}") for name, value in row.items()}
        for profile, row in chosen.iterrows()
    }
    lines = f"# {search}: the chosen trial of each profile, judged on validation people; trials_{search}.csv has all trials\n"
    path = ROOT / "params" / f"tuned_{search}.yaml"
    path.write_text(lines + yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()

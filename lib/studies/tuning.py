"""The search for settings: Optuna proposes, a stack trains all proposals at once, and
validation people judge.

There is one search for rankings and one for scores, as in the
paper. Each has a study for every profile that is not constant: what
suits one profile doesn't suit another. The storage may be a file or
a database that several workers share.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
import pandas as pd
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from lib.base import checks
from lib.problem.recourse import Problem
from lib.solvers import metrics, training
from lib.studies import claims, stacks, tables
from lib.studies.designs import soft_preferences

PROFILES = stacks.TUNED

# lowest and highest value of what is searched; all on a logarithmic scale
SPACE = {
    "p_max": (0.5, 0.95),
    "p_min": (1e-5, 0.02),
    "mask": (0.3, 3.0),
    "plausibility": (3.0, 15.0),
    "hinge": (30.0, 100.0),
    "cap": (1.0, 4.0),
    "tau": (0.3, 0.9),
}
TABLE = {"ranking": 2, "score": 3}  # of the paper
JUDGED = ("validity", "plausibility", "hap")
LOWEST_VALIDITY = 0.95  # a proposal below is no solution, however plausible

Proposal = tuple[str, dict[str, float], int]  # profile, values, seed
Progress = Callable[[range], Iterable[int]]


@dataclass(frozen=True)
class Search:
    """Hold a search: whom it is for, how they are asked, and a study for each profile.

    Arguments:
        problem: Of the people.
        elicitation: "ranking" or "score".
        studies: By profile, as `open_studies` gives them.
    Raises: ValueError: the elicitation is unknown, the studies are
        not of the profiles, or nobody is refused in the validation
        split.
    Example:
        >>> from optuna.storages import InMemoryStorage
        >>> from lib.problem import loan
        >>> studies = open_studies("ranking", InMemoryStorage())
        >>> search = Search(loan.problem(), "ranking", studies)
        >>> search.n_finished
        0
    """

    problem: Problem
    elicitation: str
    studies: dict[str, optuna.Study]

    def __post_init__(self) -> None:
        checks.known("elicitation", [self.elicitation], stacks.ELICITATIONS)
        if set(self.studies) != set(PROFILES):
            raise ValueError(
                f"Expected a study for each of {', '.join(PROFILES)}, got "
                f"{', '.join(self.studies) or 'none'}. tuning.open_studies makes them."
            )
        if not len(self.problem.refused("validation")):
            raise ValueError(
                "Nobody in the validation split is refused, so no proposal could be judged."
                " Draw more people."
            )

    @property
    def n_finished(self) -> int:
        """Return how many trials the profile with the fewest has finished.

        Example:
            >>> from optuna.storages import InMemoryStorage
            >>> from lib.problem import loan
            >>> studies = open_studies("score", InMemoryStorage())
            >>> search = Search(loan.problem(), "score", studies)
            >>> for study in studies.values():
            ...     _ = study.tell(study.ask(), [0.5, 0.1])
            >>> search.n_finished
            1
        """
        return min(len(finished(study)) for study in self.studies.values())

    def run_batch(self, n_each: int, n_epochs: int, progress: Progress = iter) -> None:
        """Try n_each proposals of each profile's study, trained as one stack.

        What validation people show of each is put into its study. A
        proposal fails if it recommends nothing to anybody. If the
        batch is interrupted, all its proposals are put there as
        failed, so that nobody waits for them.

        Arguments:
            n_each: Proposals a profile, at least one.
            n_epochs: Of training.
            progress: Wraps the range of epochs, for instance
                `tqdm`.
        Raises: ValueError: a number is not above zero.
        Example:
            >>> from optuna.storages import InMemoryStorage
            >>> from lib.problem import loan
            >>> studies = open_studies("score", InMemoryStorage())
            >>> search = Search(loan.problem(), "score", studies)
            >>> for profile, study in studies.items():  # what to try first
            ...     study.enqueue_trial(stacks.tuned("score")[profile])
            >>> search.run_batch(n_each=1, n_epochs=1)
            >>> [trial.state.name for trial in studies["linear"].trials]
            ['COMPLETE']
        """
        checks.positive(n_each=n_each, n_epochs=n_epochs)
        asked = [
            (profile, study.ask())
            for profile, study in self.studies.items()
            for _ in range(n_each)
        ]
        try:
            proposals = [
                (profile, _suggest(trial), trial.number) for profile, trial in asked
            ]
            outcomes = self._judge(proposals, n_epochs, progress)
        except BaseException:  # interrupted: these proposals are not waited for
            for profile, trial in asked:
                self.studies[profile].tell(trial, state=TrialState.FAIL)
            raise
        for (profile, trial), outcome in zip(asked, outcomes, strict=True):
            for name, value in outcome["user_attrs"].items():
                trial.set_user_attr(name, value)
            trial.set_constraint("validity", outcome["constraints"]["validity"])
            self.studies[profile].tell(trial, outcome["values"], outcome["state"])

    def run_finalists(self, n_each: int, n_epochs: int, progress: Progress = iter) -> None:
        """Train each profile's best n_each trials once more, at full length.

        They become trials of their own. What was done before is not
        done again.

        Arguments:
            n_each: Finalists a profile, at least one.
            n_epochs: Of training.
            progress: Wraps the range of epochs, for instance
                `tqdm`.
        Raises: ValueError: a number is not above zero, or no trial
            is finished.
        Example:
            >>> from optuna.storages import InMemoryStorage
            >>> from lib.problem import loan
            >>> studies = open_studies("score", InMemoryStorage())
            >>> search = Search(loan.problem(), "score", studies)
            >>> for profile, study in studies.items():  # what to try first
            ...     study.enqueue_trial(stacks.tuned("score")[profile])
            >>> search.run_batch(n_each=1, n_epochs=1)
            >>> search.run_finalists(n_each=1, n_epochs=2)
            >>> search.trials_table()[["profile", "n_epochs", "chosen"]].head(2)
               profile  n_epochs  chosen
            0  concave         1   False
            1  concave         2    True
        """
        checks.positive(n_each=n_each, n_epochs=n_epochs)
        finalists = self._finalists(n_each, n_epochs)
        if not len(finalists):
            return
        proposals = [
            (row.profile, {name: row[name] for name in SPACE}, int(row.trial))
            for _, row in finalists.iterrows()
        ]
        ranges: dict[str, BaseDistribution] = {
            name: FloatDistribution(*ends, log=True) for name, ends in SPACE.items()
        }
        outcomes = self._judge(proposals, n_epochs, progress)
        for (profile, params, _), by_hand, outcome in zip(
            proposals, finalists.by_hand, outcomes, strict=True
        ):
            outcome["user_attrs"]["by_hand"] = bool(by_hand)
            self.studies[profile].add_trial(
                optuna.trial.create_trial(params=params, distributions=ranges, **outcome)
            )

    def _finalists(self, n_each: int, n_epochs: int) -> pd.DataFrame:
        """Return the trials, rows of `trials_table`, to be trained at full length."""
        table = self.trials_table().sort_values(["unreached", "shortfall"], kind="stable")
        values = table[list(SPACE)].apply(tuple, axis=1)
        parts = []
        for profile in self.studies:
            is_own, is_full = table.profile == profile, table.n_epochs == n_epochs
            is_done = values.isin(values[is_own & is_full])
            n_wanted = max(0, n_each - (is_own & is_full).sum())
            parts.append(table[is_own & ~is_done].head(n_wanted))
        return pd.concat(parts)

    def _judge(
        self, proposals: Sequence[Proposal], n_epochs: int, progress: Progress
    ) -> list[dict[str, Any]]:
        """Return values, constraints and user attributes of each proposal, once trained."""
        members = [
            stacks.soft_settings(values, profile, n_epochs=n_epochs)
            for profile, values, _ in proposals
        ]
        features = self.problem.population.actionable
        sampler = stacks.soft_samplers(features, self.elicitation)[stacks.MIXED]
        trained, _ = training.fit(
            self.problem,
            [sampler] * len(members),
            members,
            [seed for *_, seed in proposals],
            progress,
        )
        x = self.problem.refused("validation")
        preferences = soft_preferences(self.problem, self.elicitation, len(x), seed=0)
        people = tables.recommend(self.problem, trained, x, preferences)
        by_member = metrics.summarise(people, ["member", "setting"])
        return [
            _outcome(by_member[by_member.member == member].set_index("setting"), n_epochs)
            for member in trained.ids
        ]

    def trials_table(self) -> pd.DataFrame:
        """Return every finished trial, with its shortfall from the paper's numbers.

        Returns: A row a trial, with the columns

            - elicitation, profile, trial (its number in its study);
            - the values of `SPACE` that were proposed;
            - the metrics of each setting, for instance "hap, soft",
              and n_epochs;
            - shortfall: by how much validity and plausibility lie
              below the paper's and hap above, summed over both
              settings. Where ours is better it counts nothing;
            - unreached: the part of the shortfall beyond
              `claims.tolerance`;
            - on_front: is the trial valid enough, and none such of
              this profile and length better in both objectives?
            - by_hand: was it our proposal, not Optuna's?
            - chosen: of the trials of the profile that were trained
              longest, the one that leaves the least unreached (of
              several, the one with the smallest shortfall).
        Raises: ValueError: no trial is finished.
        Example:
            >>> from optuna.storages import InMemoryStorage
            >>> from lib.problem import loan
            >>> studies = open_studies("ranking", InMemoryStorage())
            >>> search = Search(loan.problem(), "ranking", studies)
            >>> for profile, study in studies.items():  # what to try first
            ...     study.enqueue_trial(stacks.tuned("ranking")[profile])
            >>> search.run_batch(n_each=1, n_epochs=1)
            >>> search.trials_table()[["profile", "trial", "n_epochs", "chosen"]]
               profile  trial  n_epochs  chosen
            0  concave      0         1    True
            1   linear      0         1    True
            2   convex      0         1    True
        """
        number = TABLE[self.elicitation]
        paper = claims.published(number)
        paper = paper[paper.method == "iCARMA"]
        rows = []
        for profile, study in self.studies.items():
            theirs = paper[paper.cost_profile == profile].set_index("constraints")
            trials = finished(study)
            for trial, on_front in zip(trials, _is_on_front(trials), strict=True):
                rows.append(
                    {
                        "elicitation": self.elicitation,
                        "profile": profile,
                        "trial": trial.number,
                    }
                    | trial.params
                    | trial.user_attrs
                    | _shortfall(trial, theirs, number)
                    | {"on_front": on_front}
                )
        if not rows:
            raise ValueError("No trial of this search is finished. Run a batch first.")
        table = pd.DataFrame(rows)
        by_hand = table.by_hand.eq(True) if "by_hand" in table else False
        return _choose(table.assign(by_hand=by_hand))


def open_studies(elicitation: str, storage: str | BaseStorage) -> dict[str, optuna.Study]:
    """Return a study for each profile, made or continued.

    Two objectives are means over the two settings: plausibility
    goes up, hap down.

    Arguments:
        elicitation: "ranking" or "score".
        storage: A database URL, for instance sqlite:///tuning.db,
            or a storage of Optuna.
    Raises: ValueError: the elicitation is unknown.
    Example:
        >>> from optuna.storages import InMemoryStorage
        >>> list(open_studies("score", InMemoryStorage()))
        ['concave', 'linear', 'convex']
    """
    checks.known("elicitation", [elicitation], stacks.ELICITATIONS)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return {
        profile: optuna.create_study(
            study_name=f"{elicitation}, {profile}",
            storage=storage,
            sampler=optuna.samplers.TPESampler(n_startup_trials=13),
            directions=["maximize", "minimize"],
            load_if_exists=True,
        )
        for profile in PROFILES
    }


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials of a study that are finished.

    Example:
        >>> from optuna.storages import InMemoryStorage
        >>> study = open_studies("score", InMemoryStorage())["linear"]
        >>> trial = study.ask()
        >>> len(finished(study))
        0
        >>> _ = study.tell(trial, [0.5, 0.1])
        >>> len(finished(study))
        1
    """
    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])


def _suggest(trial: Trial) -> dict[str, float]:
    """Return what Optuna proposes for a trial."""
    for name, ends in SPACE.items():
        trial.suggest_float(name, *ends, log=True)
    return trial.params


def _outcome(by_setting: pd.DataFrame, n_epochs: int) -> dict[str, Any]:
    """Return what a study is given of one trial, of the metrics in each setting."""
    attributes = {
        f"{metric}, {setting}": float(by_setting[metric][setting])
        for setting in by_setting.index
        for metric in JUDGED
    }
    values = [float(by_setting.plausibility.mean()), float(by_setting.hap.mean())]
    is_complete = (by_setting.has_recourse > 0).all()  # else they are shares of no one
    return {
        "state": TrialState.COMPLETE if is_complete else TrialState.FAIL,
        "values": values if is_complete else None,
        "constraints": {"validity": LOWEST_VALIDITY - float(by_setting.validity.min())},
        "user_attrs": attributes | {"n_epochs": n_epochs},
    }


def _shortfall(trial: FrozenTrial, theirs: pd.DataFrame, number: int) -> dict[str, float]:
    """Return unreached and shortfall of a trial, as `Search.trials_table` says."""
    unreached, shortfall = 0.0, 0.0
    for setting in (stacks.SOFT, stacks.MIXED):
        for metric in JUDGED:
            sign = -1 if metric == "hap" else 1
            ours = trial.user_attrs[f"{metric}, {setting}"]
            short = sign * (theirs[metric][setting] - ours)
            allowed = claims.tolerance(number, "iCARMA", metric)
            unreached += max(0.0, short - allowed)
            shortfall += max(0.0, short)
    return {"unreached": unreached, "shortfall": shortfall}


def _choose(table: pd.DataFrame) -> pd.DataFrame:
    """Return the trials with the column chosen, as `Search.trials_table` says."""
    longest = table[table.n_epochs == table.n_epochs.max()]
    ordered = longest.sort_values(["unreached", "shortfall"], kind="stable")
    best = ordered.groupby("profile").head(1)
    return table.assign(chosen=table.index.isin(best.index))


def _is_on_front(trials: Sequence[FrozenTrial]) -> list[bool]:
    """Return whether each trial is valid enough and beaten by no other of its length.

    A trial beats another if it is as good in both objectives and
    better in one.
    """
    fine = [trial for trial in trials if trial.constraints["validity"] <= 0]

    def is_beaten(trial: FrozenTrial) -> bool:
        own = (-trial.values[0], trial.values[1])
        rivals = (
            (-other.values[0], other.values[1])
            for other in fine
            if other.user_attrs["n_epochs"] == trial.user_attrs["n_epochs"]
        )
        return any(
            rival != own and rival[0] <= own[0] and rival[1] <= own[1] for rival in rivals
        )

    return [trial in fine and not is_beaten(trial) for trial in trials]

"""The search for settings: Optuna proposes, networks are trained side by side, and
validation people judge.

There is one search for rankings and one for scores, as in the paper,
and one for Give Me Some Credit. Each has a study for every profile,
the constant one included, with the same space and budget: what suits
one profile doesn't suit another. `selection` holds the rule that
chooses. The storage may be a file or a database that several workers
share.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
)
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, Trial, TrialState
from torch import Tensor

from lib.base import checks, fits
from lib.method import metrics, training
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.problem import Problem, Recommendation
from lib.paper import selection, stacks, workers
from lib.paper.designs import soft_preferences
from lib.search import continuous

# what is searched, the same for every profile: from the lowest to the highest value on a
# logarithmic scale, and for the number of epochs a choice
SPACE: dict[str, BaseDistribution] = {
    "p_max": FloatDistribution(0.05, 0.9, log=True),
    "p_min": FloatDistribution(1e-4, 0.05, log=True),
    "mask": FloatDistribution(1e-4, 0.1, log=True),
    "hinge": FloatDistribution(0.02, 2.0, log=True),
    "plausibility": FloatDistribution(0.05, 3.0, log=True),
    "cap": FloatDistribution(1.0, 10.0, log=True),
    "tau": FloatDistribution(0.3, 1.5, log=True),
    "margin": FloatDistribution(0.01, 0.5, log=True),
    "n_epochs": CategoricalDistribution((100, 200, 300)),
}
# Refused people of Give Me Some Credit lack about a hundredth of the log-odds (in the
# median 0.8 for 92), and there are two and a half times as many to learn from.
SPACES: dict[str, dict[str, BaseDistribution]] = {
    "ranking": SPACE,
    "score": SPACE,
    "transfer": SPACE
    | {
        "hinge": FloatDistribution(2.0, 200.0, log=True),
        "n_epochs": CategoricalDistribution((25, 50, 100)),
    },
}
OBJECTIVES = ("joint", "efficiency")
SUMMARISED = ("has_recourse", "validity", "joint", "hap", "n_acted", "outside")
N_STARTUP = 16  # trials of a study that are drawn at random, before Optuna learns from them

Progress = Callable[[range], Iterable[int]]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Search:
    """Hold a search: whom it is for, how they are asked, and a study for each profile.

    Arguments:
        problem: Of the people.
        name: "ranking", "score", or "transfer".
        studies: By profile, as `open_studies` gives them.
        cheapest: By profile, the lowest cost known for each refused
            validation person, as `cheapest_known` gives it.
        shared: Settings that all members share, for instance
            {"hidden": 64}; n_epochs among them replaces that of the
            proposals.
        storage: Of the studies, where it is a database: workers see
            there who of them is alive.
    Raises: ValueError: the search is unknown, studies or costs
        are not of the profiles or people, trials are of another
        problem, or nobody is refused in the validation split.
    """

    problem: Problem
    name: str
    studies: Mapping[str, optuna.Study]
    cheapest: Mapping[str, Tensor]
    shared: Values | None = None
    storage: RDBStorage | None = None

    def __post_init__(self) -> None:
        checks.known("search", [self.name], tuple(stacks.SEARCHES))
        profiles = stacks.SEARCHES[self.name]
        for what, by_profile in (("study", self.studies), ("cost", self.cheapest)):
            if set(by_profile) != set(profiles):
                raise ValueError(
                    f"Expected a {what} for each of {', '.join(profiles)}, got "
                    f"{', '.join(by_profile) or 'none'}. tuning.open_studies makes "
                    "studies, tuning.cheapest_known the costs."
                )
        n_people = len(self.problem.refused("validation"))
        if not n_people:
            raise ValueError(
                "Nobody in the validation split is refused, so no proposal could be judged."
                " Draw more people."
            )
        for profile, cost in self.cheapest.items():
            checks.shape(f"cheapest, {profile}", cost, (n_people,))
        own = fits.digest(self.problem.described(self.problem.refused("validation")))
        for study in self.studies.values():
            made_for = study.user_attrs.get("problem", "" if finished(study) else own)
            if made_for != own:
                raise ValueError(
                    f"The study {study.study_name!r} was begun with another classifier, "
                    "flow or people, and its trials can't be compared with new ones. Name "
                    "another storage, or delete that one."
                )
            study.set_user_attr("problem", own)

    @property
    def n_finished(self) -> int:
        """Return how many trials the profile with the fewest has finished."""
        return min(len(finished(study)) for study in self.studies.values())

    def run_batch(self, n_each: int, progress: Progress = iter) -> None:
        """Try n_each proposals of each profile's study; those of equal length at once.

        What validation people show of each is put into its study. A
        proposal fails if it recommends nothing to anybody. If the
        batch is interrupted, all its proposals are put there as
        failed, so that nobody waits for them. Proposals whose worker
        was killed are failed first, and are the next to be tried. If
        others take this worker for dead meanwhile, it drops the
        batch: what they have failed is queued again, the rest only
        fails.

        Arguments:
            n_each: Proposals a profile, at least one.
            progress: Wraps the range of epochs, for instance
                `tqdm`.
        Raises: ValueError: a number is not above zero.
        """
        checks.counts(n_each=n_each)
        asked: list[tuple[str, Trial]] = []
        with workers.SignsOfLife(self.storage) as signs:
            signs.fail_abandoned(self.studies.values())
            try:
                for profile, study in self.studies.items():
                    for _ in range(n_each):
                        asked.append((profile, signs.ask(study)))
                proposals = [
                    (profile, _suggest(trial, SPACES[self.name]))
                    for profile, trial in asked
                ]
                numbers = [[trial.number] for _, trial in asked]
                outcomes = self._judge(proposals, numbers, progress)
            except BaseException as error:  # these proposals are not waited for
                for profile, trial in asked:
                    self.studies[profile].tell(
                        trial, state=TrialState.FAIL, skip_if_finished=True
                    )
                if isinstance(error, UpdateFinishedTrialError):  # it was taken for dead
                    return
                raise
        for (profile, trial), measured in zip(asked, outcomes, strict=True):
            # who was taken for dead meanwhile says nothing: it is tried again
            with contextlib.suppress(UpdateFinishedTrialError):
                self._tell(profile, trial, measured)

    def _tell(self, profile: str, trial: Trial, measured: Mapping[str, float]) -> None:
        """Put what was measured of a trial into its study."""
        for name, value in measured.items():
            trial.set_user_attr(name, value)
        if measured["has_recourse"] == 0:
            self.studies[profile].tell(trial, state=TrialState.FAIL)
        else:
            self.studies[profile].tell(trial, [measured[name] for name in OBJECTIVES])

    def run_finalists(
        self,
        n_each: int,
        seeds: Sequence[int],
        progress: Progress = iter,
        checkpoint: Path | None = None,
    ) -> None:
        """Train each profile's best n_each trials again, with other seeds.

        One lucky seed shall not decide. They become trials of their
        own, with the means over these seeds, and the choice is among
        them. What was done before is not done again.

        Arguments:
            n_each: Finalists a profile, at least one.
            seeds: Of the networks that each is trained with; numbers
                of trials are to be avoided, since these were seeds.
            progress: Wraps the range of epochs, for instance
                `tqdm`.
            checkpoint: Folder for how far their training is. After a
                kill it goes on from there, in this worker or another;
                other finalists, and those of other code, begin anew.
        Raises: ValueError: a number is not above zero, there are no
            seeds, no trial is finished, or what was kept is damaged.
            OSError: it can't be written.
        """
        checks.counts(n_each=n_each)
        checks.not_empty("seeds", seeds)
        table = self.trials_table()
        proposals = []
        for _, own in table.groupby("profile", sort=False):
            done = own[own.n_seeds > 1][list(SPACE)].apply(tuple, axis=1).tolist()
            for row in (
                selection.ranked(own[own.n_seeds == 1]).head(n_each).to_dict("records")
            ):
                values = {name: row[name] for name in SPACE}
                if tuple(values.values()) not in done:
                    proposals.append((row["profile"], values))
        if not proposals:
            return
        partial = None
        if checkpoint is not None:  # other workers may train others, or by other code

            def inputs() -> dict[str, Any]:
                these = {"proposals": proposals, "seeds": list(seeds)}
                return self.problem.described(self.problem.refused("validation")) | these

            partial = checkpoint / fits.digest(inputs() | fits.code(inputs))
        every = [seeds] * len(proposals)
        outcomes = self._judge(proposals, every, progress, partial)
        table = self.trials_table()  # another worker may have trained the same meanwhile
        known = table[table.n_seeds > 1][["profile", *SPACE]].apply(tuple, axis=1).tolist()
        for (profile, params), measured in zip(proposals, outcomes, strict=True):
            if (profile, *params.values()) in known:
                continue
            self.studies[profile].add_trial(
                optuna.trial.create_trial(
                    params=dict(params),
                    distributions=SPACES[self.name],
                    user_attrs=measured,
                    values=[measured[name] for name in OBJECTIVES],
                )
            )
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)

    def _judge(
        self,
        proposals: Sequence[tuple[str, Values]],
        seeds: Sequence[Sequence[int]],
        progress: Progress,
        checkpoint: Path | None = None,
    ) -> list[dict[str, float]]:
        """Return what validation people show of each proposal, as means over its seeds.

        Arguments:
            checkpoint: As for `training.fit`.
        """
        each = [p for p, own in zip(proposals, seeds, strict=True) for _ in own]
        profiles = [profile for profile, _ in each]
        settings = [
            stacks.soft_settings({**values, **(self.shared or {})}, profile)
            for profile, values in each
        ]
        elicitation = stacks.ASKED[self.name]
        features = self.problem.population.actionable
        sampler = stacks.soft_samplers(features, elicitation)[stacks.MIXED]
        every = [seed for own in seeds for seed in own]
        trained, _ = training.fit(
            self.problem, sampler, settings, every, progress, checkpoint=checkpoint
        )
        x = self.problem.refused("validation")
        preferences = judged_by(self.problem, elicitation)
        recommended = self.problem.carried_out(x, trained.recommend(x, preferences))
        rows = [
            measure(
                self.problem,
                x,
                preferences,
                recommended[i],
                own.profile,
                self.cheapest[name],
            )
            for i, (own, name) in enumerate(zip(settings, profiles, strict=True))
        ]
        outcomes, first = [], 0
        for own in seeds:
            mean = pd.DataFrame(rows[first : first + len(own)]).mean()
            outcomes.append(mean.to_dict() | {"n_seeds": len(own), "n_people": len(x)})
            first += len(own)
        return outcomes

    def trials_table(self) -> pd.DataFrame:
        """Return every finished trial; of each profile, one is chosen.

        Returns: A row a trial, with the columns

            - elicitation, profile, trial (its number in its study);
            - the values of `SPACE` that were proposed;
            - what `measure` measured; n_people (that is of so many),
              n_seeds (and of so many networks);
            - chosen: the first by `selection.ranked` of the profile's
              trials with several seeds, or of all if there are none.
        Raises: ValueError: no trial is finished.
        """
        elicitation = stacks.ASKED[self.name]
        rows = [
            {"elicitation": elicitation, "profile": profile, "trial": trial.number}
            | trial.params
            | trial.user_attrs
            for profile, study in self.studies.items()
            for trial in finished(study)
        ]
        if not rows:
            raise ValueError("No trial of this search is finished. Run a batch first.")
        table = pd.DataFrame(rows)
        table["chosen"] = False
        for _, own in table.groupby("profile", sort=False):
            finalists = own[own.n_seeds > 1]
            first = selection.ranked(finalists if len(finalists) else own).index[0]
            table.loc[first, "chosen"] = True
        return table


def judged_by(problem: Problem, elicitation: str) -> Preferences:
    """Draw preferences of the refused validation people, as they are drawn in training.

    Arguments:
        problem: Of the people.
        elicitation: "ranking" or "score".
    """
    n_people = len(problem.refused("validation"))
    return soft_preferences(problem, elicitation, n_people, seed=0)[stacks.MIXED]


def cheapest_known(
    problem: Problem,
    name: str,
    progress: Progress = iter,
    checkpoint: Path | None = None,
    **effort: Any,
) -> dict[str, Tensor]:
    """Return the lowest cost known for each refused validation person, by profile.

    It is what the continuous search finds through the flow, by the
    person's own weights, among the features open to them.

    Arguments:
        problem: Of the people.
        name: Of the search, as for `Search`.
        progress: Wraps the range of batches of people.
        checkpoint: Folder where the costs are kept, profile by
            profile, as cheapest_<name>.
        effort: As for `Search`.
    Returns: For each profile, costs with shape (V,), infinite where
        nothing was found.
    Raises: ValueError: the search is unknown, or as
        `fits.steps`.
    """
    checks.known("search", [name], tuple(stacks.SEARCHES))
    x = problem.refused("validation")
    preferences = judged_by(problem, stacks.ASKED[name])
    profiles = stacks.SEARCHES[name]
    found = {
        profile: torch.full((len(x),), torch.inf, dtype=x.dtype) for profile in profiles
    }

    def inputs() -> dict[str, Any]:
        own = {"profiles": list(profiles), "scores": preferences.scores, "effort": effort}
        return problem.described(x) | own

    live, file = fits.Live(found), f"cheapest_{name}"
    n_profiles = len(profiles)  # each takes minutes, and is kept at once
    for i in fits.steps(n_profiles, live, inputs, checkpoint, file, every=0.0):
        weights = Profile(GAMMA[profiles[i]], stacks.W_MAX).weight(preferences)
        search = continuous.Search(problem, problem.flow, progress=progress, **effort)
        table = search.table(x, weights)
        found[profiles[i]].copy_(table.cheapest(preferences.is_actionable)[0])
    return found


def measure(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    profile: Profile,
    cheapest: Tensor,
) -> dict[str, float]:
    """Return what some refused people show of one network.

    Arguments:
        problem: Of the people.
        x: People, with shape (N, D); of the validation split where
            something is chosen.
        preferences: Theirs.
        recommendation: Of the network.
        profile: Of the weights.
        cheapest: The lowest cost known for each person, by the same
            weights.
    Returns: As in `metrics.summarise`, has_recourse, validity, joint,
        hap, n_acted and outside; and efficiency; cost_ratio, the mean
        cost over the mean of the cheapest known, by the person's own
        weights, where both help; redundant, a share of those who are
        helped.
    """
    people = metrics.per_person(problem, x, preferences, recommendation)
    joint = torch.tensor(people.joint.to_numpy())
    cost = problem.cost_of(x, recommendation, profile.weight(preferences))
    both = joint & cheapest.isfinite()
    is_redundant = metrics.redundant(problem, x, recommendation)
    summary = metrics.summarise(people.assign(all="people"), ["all"]).iloc[0]
    return {name: float(summary[name]) for name in SUMMARISED} | {
        "efficiency": metrics.efficiency(joint, cost, cheapest).mean().item(),
        "cost_ratio": (cost[both].mean() / cheapest[both].mean()).item(),
        "redundant": (is_redundant.sum() / joint.sum()).item(),
    }


def open_studies(name: str, storage: str | BaseStorage) -> dict[str, optuna.Study]:
    """Return a study for each profile, made or continued, with the two `OBJECTIVES`.

    Arguments:
        name: Of the search, as for `Search`.
        storage: A database URL, for instance sqlite:///tuning.db,
            or a storage of Optuna.
    Raises: ValueError: the search is unknown.
    """
    checks.known("search", [name], tuple(stacks.SEARCHES))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return {
        profile: optuna.create_study(
            study_name=f"{name}, {profile}",
            storage=storage,
            sampler=optuna.samplers.TPESampler(n_startup_trials=N_STARTUP),
            directions=["maximize"] * len(OBJECTIVES),
            load_if_exists=True,
        )
        for profile in stacks.SEARCHES[name]
    }


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials of a study that are finished."""
    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])


def _suggest(trial: Trial, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return what Optuna proposes for a trial."""
    for name, distribution in space.items():
        if isinstance(distribution, FloatDistribution):
            trial.suggest_float(name, distribution.low, distribution.high, log=True)
        elif isinstance(distribution, CategoricalDistribution):
            trial.suggest_categorical(name, distribution.choices)
    return trial.params

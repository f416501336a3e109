"""The search for settings: Optuna proposes, a stack trains all proposals at once, validation people judge.

There is one search for rankings and one for scores, as in the paper, each with a study for every profile that is not
constant: what suits one profile doesn't suit another. The storage may be a file or a database that several workers share.
"""

from collections.abc import Callable, Mapping
from typing import Any

import optuna
import pandas as pd

from lib.problem.recourse import Problem
from lib.solvers import icarma, metrics
from lib.solvers.icarma import ICarma
from lib.studies import claims, stacks, tables

PROFILES = ("concave", "linear", "convex")

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
LOWEST_VALIDITY = 0.95  # a proposal below is no solution, however plausible its advice


def open_studies(elicitation: str, storage: str) -> dict[str, optuna.Study]:
    """A study for each profile, made or continued: the mean plausibility of the two settings up, their mean hap down.

    Arguments:
        storage: A database URL, for instance sqlite:///tuning.db.
    """
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


def run_batch(
    problem: Problem,
    elicitation: str,
    studies_of: Mapping[str, optuna.Study],
    n_each: int,
    n_epochs: int,
    progress: Callable[[range], range] = iter,
) -> None:
    """Ask each profile's study for n_each proposals, train them all as one stack, and tell how they did on validation people."""
    asked = [
        (profile, study.ask())
        for profile, study in studies_of.items()
        for _ in range(n_each)
    ]
    try:
        for _, trial in asked:
            for name, ends in SPACE.items():
                trial.suggest_float(name, *ends, log=True)
        proposals = [(profile, trial.params, trial.number) for profile, trial in asked]
        outcomes = _judge(problem, elicitation, proposals, n_epochs, progress)
    except BaseException:  # interrupted: these proposals are not waited for
        for profile, trial in asked:
            studies_of[profile].tell(trial, state=optuna.trial.TrialState.FAIL)
        raise
    for (profile, trial), outcome in zip(asked, outcomes, strict=True):
        for name, value in outcome["user_attrs"].items():
            trial.set_user_attr(name, value)
        trial.set_constraint("validity", outcome["constraints"]["validity"])
        studies_of[profile].tell(trial, outcome["values"])


def run_finalists(
    problem: Problem,
    elicitation: str,
    studies_of: Mapping[str, optuna.Study],
    n_each: int,
    n_epochs: int,
    progress: Callable[[range], range] = iter,
) -> None:
    """Train each profile's best n_each trials once more, at full length, as trials of their own; nothing if that was done."""
    table = trials_table(elicitation, studies_of).sort_values(
        ["unreached", "shortfall"], kind="stable"
    )
    proposals, by_hand = [], []
    for profile in studies_of:
        own = table[table.profile == profile]
        is_done = (
            own[list(SPACE)]
            .apply(tuple, axis=1)
            .isin(own[own.n_epochs == n_epochs][list(SPACE)].apply(tuple, axis=1))
        )
        wanted = max(0, n_each - (own.n_epochs == n_epochs).sum())
        for _, row in own[~is_done].head(wanted).iterrows():
            proposals.append((profile, {name: row[name] for name in SPACE}, int(row.trial)))
            by_hand.append(bool(row.by_hand))
    if not proposals:
        return
    ranges = {
        name: optuna.distributions.FloatDistribution(*ends, log=True)
        for name, ends in SPACE.items()
    }
    outcomes = _judge(problem, elicitation, proposals, n_epochs, progress)
    for (profile, params, _), hand, outcome in zip(
        proposals, by_hand, outcomes, strict=True
    ):
        outcome["user_attrs"]["by_hand"] = hand
        studies_of[profile].add_trial(
            optuna.trial.create_trial(params=params, distributions=ranges, **outcome)
        )


def _judge(
    problem: Problem,
    elicitation: str,
    proposals: list[tuple[str, dict, int]],
    n_epochs: int,
    progress,
) -> list[dict[str, Any]]:
    """What is told of each proposal (profile, values, seed), trained as one stack: values, constraints, user attributes."""
    members = [
        stacks.soft_settings(params, profile, n_epochs=n_epochs)
        for profile, params, _ in proposals
    ]
    sampler = stacks.soft_samplers(problem.population.actionable, elicitation)[stacks.MIXED]
    trained, _ = icarma.fit(
        problem,
        [sampler] * len(members),
        members,
        [seed for *_, seed in proposals],
        progress,
    )
    numbered = ICarma(problem, members, range(len(members)), trained.weights)
    x = problem.refused("validation")
    wishes = tables.soft_preferences(problem, elicitation, len(x), seed=0)
    rows = metrics.summarise(
        tables.recommend(problem, numbered, x, wishes), ["seed", "setting"]
    )
    outcomes = []
    for i in range(len(members)):
        own = rows[rows.seed == i].set_index("setting")
        attributes = {
            f"{m}, {s}": float(own[m][s])
            for s in own.index
            for m in ("validity", "plausibility", "hap")
        }
        outcomes.append(
            {
                "values": [float(own.plausibility.mean()), float(own.hap.mean())],
                "constraints": {"validity": LOWEST_VALIDITY - float(own.validity.min())},
                "user_attrs": attributes | {"n_epochs": n_epochs},
            }
        )
    return outcomes


def finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])


def trials_table(elicitation: str, studies_of: Mapping[str, optuna.Study]) -> pd.DataFrame:
    """Every finished trial: what was proposed, what came out, and its shortfall from the paper's numbers.

    shortfall is by how much validity and plausibility lie below the paper's and hap above, summed over both settings;
    where ours is better it counts nothing. unreached is the part of it beyond `tables.tolerance`. on_front says that the
    trial is valid enough and none such of this profile and length is better in both objectives; chosen, that of all
    trials of the profile that were trained longest it leaves the least unreached (of several, the one with the smallest
    shortfall). by_hand marks proposals that were ours, not Optuna's.
    """
    number = TABLE[elicitation]
    paper = claims.published(number)
    rows = []
    for profile, study in studies_of.items():
        theirs = paper[
            (paper.cost_profile == profile) & (paper.method == "iCARMA")
        ].set_index("constraints")
        trials = finished(study)
        for trial, on_front in zip(trials, _is_on_front(trials), strict=True):
            row = (
                {"elicitation": elicitation, "profile": profile, "trial": trial.number}
                | trial.params
                | trial.user_attrs
            )
            short = {
                (metric, setting): sign
                * (theirs[metric][setting] - trial.user_attrs[f"{metric}, {setting}"])
                for setting in (stacks.SOFT, stacks.MIXED)
                for metric, sign in (("validity", 1), ("plausibility", 1), ("hap", -1))
            }
            row["unreached"] = sum(
                max(0.0, by - tables.tolerance(number, "iCARMA", metric))
                for (metric, _), by in short.items()
            )
            row["shortfall"] = sum(max(0.0, by) for by in short.values())
            rows.append(row | {"on_front": on_front})
    table = pd.DataFrame(rows).assign(
        by_hand=lambda t: t.by_hand == True if "by_hand" in t else False
    )
    longest = table[table.n_epochs == table.n_epochs.max()]
    best = (
        longest.sort_values(["unreached", "shortfall"], kind="stable")
        .groupby("profile")
        .head(1)
    )
    return table.assign(chosen=table.index.isin(best.index))


def _is_on_front(trials: list[optuna.trial.FrozenTrial]) -> list[bool]:
    """Whether a trial is valid enough, and no other such trial of its length is as good in both objectives and better in one."""
    fine = [trial for trial in trials if trial.constraints["validity"] <= 0]

    def beaten(trial):
        rivals = (
            (-o.values[0], o.values[1])
            for o in fine
            if o.user_attrs["n_epochs"] == trial.user_attrs["n_epochs"]
        )
        own = (-trial.values[0], trial.values[1])
        return any(
            rival != own and rival[0] <= own[0] and rival[1] <= own[1] for rival in rivals
        )

    return [trial in fine and not beaten(trial) for trial in trials]

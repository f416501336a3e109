"""Recommendations for more people than fit into memory: a block of applicants at a time.

The last bits of a recommendation depend on who is answered beside a
person: in a product of matrices, a row's place decides in which order
its sum is taken. So applicants are answered in blocks of `SIZE` rows,
counted from the first row of their data set. The refused people of a
block are answered in one go. Who works on which blocks, and in which
order, then makes no difference to any bit.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor

from lib.base import checks
from lib.beyond.propose.propose import Proposer
from lib.method import metrics
from lib.method.icarma import ICarma
from lib.method.limits import Limits
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.problem import FAR, Problem, Recommendation

Solver: TypeAlias = ICarma | Proposer
Faults: TypeAlias = Iterator[tuple[str, np.ndarray]]

SIZE = 16_384  # applicants of a block; the last one may have fewer
SCORE = "score_"  # begins the name of a column with preferences
ENDS = ("low", "high")  # "low_income" begins with one of them: a limit
# what a summary adds up for each member
COUNTED = ("asked", "acting", "valid", "plausible", "joint", "cost")


def columns(population: Population, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns of a data set of applicants that are read, as `answers` does.

    They are the features, in the units of the population's data, then
    "score_..." for each of the K features that may be acted on: from
    1 (easiest) to K, and K + 1 for "can't". These it must have.
    "low_..." and "high_..." of such a feature say between what values
    a person may set it; where they are missing, or empty, the
    population's own limits hold.

    Arguments:
        names: Of the data set's columns; of "low_..." and "high_..."
            those among them are read.
    Raises: ValueError: one of these is of a feature that may not be
        acted on.
    """
    scores = [f"{SCORE}{name}" for name in population.actionable]
    known = [f"{end}_{name}" for end in ENDS for name in population.actionable]
    others = [f"{end}_{name}" for end in ENDS for name in population.features]
    checks.known("limits:", [name for name in names if name in others], known)
    limits = [name for name in known if name in names]
    return (*population.features, *scores, *limits)


def schema(solver: Solver) -> pa.Schema:
    """Return the columns of `answers`, and what they hold.

    - row: Number of the applicant's row in the data set, from 0,
      through all its files in the order of their names.
    - why: What is wrong with the row, in words, if something is.
    - refused: Whether the classifier refuses them; empty if it can't
      be asked.
    - member: Of a stack, the id of the member that answers.
    - acts_...: Whether the person is recommended to act on a feature.
    - after_...: A feature after the action, in the units of the data.
      What a person acts on is set to this value; what nothing moves
      keeps its own. Features that no action reaches are left out.
    - valid, plausible: Whether the classifier accepts them after the
      action, and whether they are then as likely as before, by the
      flow; see `metrics.per_person`.
    - cost: Of the action, not weighted by how hard it is.

    All but the first three are empty for applicants who are accepted,
    or of whom something is wrong. A refused person for whom nothing
    was found acts on nothing: each acts_... is False.
    """
    population = solver.problem.population
    names = population.features
    of_stack = [("member", pa.int64())] if isinstance(solver, ICarma) else []
    return pa.schema(
        [
            ("row", pa.int64()),
            ("why", pa.dictionary(pa.int16(), pa.string())),
            ("refused", pa.bool_()),
            *of_stack,
            *((f"acts_{name}", pa.bool_()) for name in population.actionable),
            *((f"after_{names[j]}", pa.float64()) for j in _moving(population)),
            ("valid", pa.bool_()),
            ("plausible", pa.bool_()),
            ("cost", pa.float64()),
        ]
    )


def answers(
    solver: Solver, block: np.ndarray, first_row: int, names: Sequence[str] = ()
) -> pa.RecordBatch:
    """Return what a block of applicants is told, a row a person; see `schema`.

    Of a stack of several members, refused people have a row for each
    member, one after the other.

    Arguments:
        solver: iCARMA or a proposer; it holds its problem.
        block: The applicants, in the order of `columns`, with shape
            (N, D + K) and a column more for each limit, NaN where
            something is missing.
        first_row: Number of the first of them in their data set.
        names: As for `columns`.
    Raises: ValueError: the block has another shape, or more than
        `SIZE` rows.
    """
    population = solver.problem.population
    expected = columns(population, names)
    if block.ndim != 2 or block.shape[1] != len(expected) or not 0 < len(block) <= SIZE:
        raise ValueError(
            f"The block has shape {block.shape}, expected 1 to {SIZE:,} applicants with "
            f"{len(expected)} columns: {', '.join(expected)}."
        )
    n, k = len(population.features), len(population.actionable)
    values, scores, limits = np.split(block, [n, n + k], 1)
    of_limits = expected[n + k :]
    words, why = _first(_faults(population, values))
    is_readable = why < 0
    known = np.where(is_readable[:, None], values, population.mean.numpy())
    x = population.standardised(pd.DataFrame(known, columns=population.features))
    refused = ~solver.problem.accepts(x).numpy() & is_readable
    # what people can do does not matter where they are accepted
    more, of_scores = _first(
        chain(_unanswered(population, scores), _contrary(limits, of_limits))
    )
    why = np.where(refused & (of_scores >= 0), len(words) + of_scores, why)
    asked = _still_refused(solver.problem, x, refused & (why < 0))
    refused &= asked | (why >= 0)
    told = {}
    if asked.any():
        of_asked = torch.from_numpy(scores[asked].astype(np.int64))
        own = Preferences(of_asked, limits=_limits(population, limits[asked], of_limits))
        told = _told(solver, x[asked], values[asked], own)
    n_rows = np.where(asked, len(told["valid"]) if told else 1, 1)
    person = np.repeat(np.arange(len(block)), n_rows)
    is_told = asked[person]
    codes = pa.array(why[person], pa.int16(), mask=why[person] < 0)
    made = {
        "row": pa.array(first_row + person),
        "why": pa.DictionaryArray.from_arrays(codes, [*words, *more]),
        "refused": pa.array(refused[person], mask=~is_readable[person]),
    }
    for field in schema(solver):
        if field.name not in made:
            spread = np.zeros(len(person), field.type.to_pandas_dtype())
            if told:  # (M, A): a person's members are to stand side by side
                spread[is_told] = told[field.name].T.ravel()
            made[field.name] = pa.array(spread, field.type, mask=~is_told)
    return pa.RecordBatch.from_pydict(made, schema(solver))


def counted(found: pa.RecordBatch) -> dict[str, Any]:
    """Return what a block adds to a summary, as JSON can hold it; see `summary`.

    Arguments:
        found: As `answers` gives it.
    Returns: How many "applicants" there are, how many are "accepted",
        and how many are "left_out" for each reason; for each of the
        "members", how many people were asked about, act, would be
        accepted, are as plausible as before, or both, and the sum of
        costs of those who would be accepted; and a "digest" of all.
    """
    rows, is_told = found["row"].to_numpy(), _filled(found["valid"].is_valid())
    refused, is_known = _filled(found["refused"]), _filled(found["refused"].is_valid())
    why = found["why"].drop_null().value_counts()
    acts = [_filled(found[n]) for n in found.schema.names if n.startswith("acts_")]
    valid, plausible = _filled(found["valid"]), _filled(found["plausible"])
    each = {
        "asked": is_told,
        "acting": np.any(acts, 0),
        "valid": valid,
        "plausible": plausible,
        "joint": valid & plausible,
    }
    has_members = "member" in found.schema.names
    member = _filled(found["member"]) if has_members else np.zeros(len(rows), dtype=int)
    cost = _filled(found["cost"])
    members = []
    for one in np.unique(member[is_told]).tolist():
        own = is_told & (member == one)
        sums: dict[str, Any] = {
            name: int((own & part).sum()) for name, part in each.items()
        }
        sums["cost"] = math.fsum(cost[own & valid].tolist())
        members.append({"member": one if has_members else None, **sums})
    return {
        "applicants": int(rows[-1] - rows[0] + 1),
        "accepted": int((is_known & ~refused).sum()),
        "left_out": {one["values"].as_py(): one["counts"].as_py() for one in why},
        "members": members,
        "digest": hashlib.sha256(found.serialize()).hexdigest(),
    }


def summary(counts: Iterable[dict[str, Any]]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what came of all blocks: a row a member, and totals.

    Sums are taken exactly, and so do not depend on how blocks were
    shared out.

    Arguments:
        counts: Of each block, as `counted` gives them, in their
            order.
    Returns: A table with the columns member (empty for a proposer),
        applicants, left_out, accepted, then of those asked about:
        asked, acting, valid, plausible, joint, and cost, the mean
        over those who would be accepted. And by name: "applicants",
        "accepted", "left_out" for each reason, and "digest", which is
        equal if all answers are equal to the bit.
    """
    counts = list(counts)
    left_out: dict[str, int] = {}
    for reason, n in chain.from_iterable(block["left_out"].items() for block in counts):
        left_out[reason] = left_out.get(reason, 0) + n
    totals: dict[str, Any] = {
        "applicants": sum(block["applicants"] for block in counts),
        "accepted": sum(block["accepted"] for block in counts),
        "left_out": dict(sorted(left_out.items())),
    }
    shared = totals | {"left_out": sum(left_out.values())}
    every = list(chain.from_iterable(block["members"] for block in counts))
    rows = []
    for one in dict.fromkeys(own["member"] for own in every):
        own = [block for block in every if block["member"] == one]
        sums = {name: sum(block[name] for block in own) for name in COUNTED[:-1]}
        cost = math.fsum(block["cost"] for block in own)
        mean = cost / sums["valid"] if sums["valid"] else math.nan
        rows.append({"member": one, **shared, **sums, "cost": mean})
    digests = "".join(block["digest"] for block in counts)
    totals["digest"] = hashlib.sha256(digests.encode()).hexdigest()
    return pd.DataFrame(rows, columns=["member", *shared, *COUNTED]), totals


def _still_refused(problem: Problem, x: Tensor, asked: np.ndarray) -> np.ndarray:
    """Return who of those asked about is refused among them, too.

    Some are so near to the threshold that the last bits, which depend
    on who is asked about beside them, decide. They count as accepted.

    Arguments:
        x: A block of people, standardised, with shape (N, D).
        asked: About whom, with shape (N,).
    """
    asked = asked.copy()
    while asked.any():
        refused = ~problem.accepts(x[asked]).numpy()
        if refused.all():
            break
        asked[asked] = refused
    return asked


def _filled(column: pa.Array) -> np.ndarray:
    """Return a column as numpy holds it, zero or False where it is empty."""
    zero = pa.scalar(0).cast(column.type)
    return column.fill_null(zero).to_numpy(zero_copy_only=False)


def _moving(population: Population) -> list[int]:
    """Return the columns of the features that an action may move."""
    return population.graph.moved_by(population.actionable_index)


def _first(faults: Faults) -> tuple[list[str], np.ndarray]:
    """Return the faults' names, and the number of each person's first, -1 for none."""
    words, who = zip(*faults, strict=True)
    has = np.stack(who)
    return list(words), np.where(has.any(0), has.argmax(0), -1)


def _faults(population: Population, values: np.ndarray) -> Faults:
    """Yield what can be wrong with features, and for whom it is."""
    in_units = torch.from_numpy(values)
    far = ((in_units - population.mean).abs() > FAR * population.std).numpy()
    possible = values if population.whole is None else population.whole(in_units).numpy()
    for j, name in enumerate(population.features):
        yield f"{name} is missing", np.isnan(values[:, j])
        yield f"{name} is infinite", np.isinf(values[:, j])
        yield f"{name} is not a value that people can have", possible[:, j] != values[:, j]
        yield f"{name} is {FAR:,} standard deviations from the mean or more", far[:, j]


def _unanswered(population: Population, scores: np.ndarray) -> Faults:
    """Yield what can be wrong with preferences, and for whom it is."""
    n_actionable = scores.shape[-1]
    for k, name in enumerate(population.actionable):
        own = scores[:, k]
        yield f"{SCORE}{name} is missing", np.isnan(own)
        is_one = np.isin(own, np.arange(1, n_actionable + 2))
        yield f"{SCORE}{name} is no whole number from 1 to {n_actionable + 1}", ~is_one
    yield "nothing can be acted on", (scores == n_actionable + 1).all(-1)


def _contrary(limits: np.ndarray, names: Sequence[str]) -> Faults:
    """Yield which limits leave nothing, and for whom; (N, L), called by these names."""
    at = {name: i for i, name in enumerate(names)}
    for low in (name for name in names if name.startswith("low_")):
        high = f"high_{low.removeprefix('low_')}"
        if high in at:
            yield f"{low} is above {high}", limits[:, at[low]] > limits[:, at[high]]


def _limits(
    population: Population, limits: np.ndarray, names: Sequence[str]
) -> Limits | None:
    """Return what columns (N, L), called by these names, say of people's limits."""
    if not names:
        return None
    said = Limits.nothing(len(limits), len(population.actionable))
    for name, column in zip(names, limits.T, strict=True):
        end, _, feature = name.partition("_")
        getattr(said, end)[:, population.actionable.index(feature)] = torch.tensor(column)
    return said


def _told(
    solver: Solver, x: Tensor, values: np.ndarray, preferences: Preferences
) -> dict[str, np.ndarray]:
    """Return the columns of `schema` for refused people, each with shape (M, N).

    Arguments:
        x, values: They, standardised and in units, with shape (N, D).
        preferences: Theirs.
    """
    problem = solver.problem
    found = solver.recommend(x, preferences)
    members = found if found.values.ndim == 3 else found[None]
    each = [
        _of_member(problem, x, values, preferences, members[i])
        for i in range(len(members.values))
    ]
    told = {name: np.stack([own[name] for own in each]) for name in each[0]}
    if isinstance(solver, ICarma):
        told["member"] = np.repeat(np.array(solver.ids)[:, None], len(x), 1)
    return told


def _of_member(
    problem: Problem,
    x: Tensor,
    values: np.ndarray,
    preferences: Preferences,
    recommendation: Recommendation,
) -> dict[str, np.ndarray]:
    """Return the columns of one member's recommendations, each with shape (N,).

    Arguments:
        x, values: People, standardised and in units, with shape (N,
            D).
    """
    population = problem.population
    if population.whole is not None:
        recommendation = problem.carried_out(x, recommendation)
    is_acted, x_cf = recommendation.is_acted.numpy(), recommendation.x_cf
    recorded = population.as_recorded(x_cf).numpy()
    after = np.where((x_cf == x).numpy(), values, recorded)
    worth = metrics.per_person(problem, x, preferences, recommendation)
    names = population.features
    return (
        {f"acts_{names[j]}": is_acted[:, j] for j in population.actionable_index}
        | {f"after_{names[j]}": after[:, j] for j in _moving(population)}
        | {name: worth[name].to_numpy() for name in ("valid", "plausible", "cost")}
    )

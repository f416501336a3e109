"""What a person can do and how hard they find it.

Scores are whole numbers with shape (*, N, K), one for each of the K
globally actionable features: of C categories 1 is easiest, C the
hardest that can still be done, and C + 1 means "I can't" (a hard
constraint). Ranks have as many categories as there are features.

Preferences carry a profile, which turns scores into the difficulty
h(s) that networks are conditioned on, and the weight w(s) in the
cost. Every solver asks the preferences for these, and for the mask of
what a person can act on.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, io
from lib.method.limits import Limits, stack_limits

# gamma of each cost profile of the paper; the numbers are reconstructed
GAMMA = {"constant": None, "concave": 1 / 1.5, "linear": 1.0, "convex": 1.5}

# how hard category i of 0 to n is, by gamma. slope: the first step is 1 / n for every
# gamma; normalised: from 0 to 1; mirrored: normalised, from the other end
CURVES: dict[str, Callable[[int, int, float], float]] = {
    "slope": lambda i, n, gamma: i**gamma / n,
    "normalised": lambda i, n, gamma: (i / n) ** gamma,
    "mirrored": lambda i, n, gamma: 1 - (1 - i / n) ** gamma,
}

# how hard a person may call a feature, from easiest to hardest; evenly spread over 1 to C
WORDS = ("easy", "manageable", "hard", "very hard")
IMPOSSIBLE = ("can't", "cannot", "impossible")


@dataclass(frozen=True)
class Profile:
    r"""Turn a score into a difficulty and into a weight in the cost.

    .. math:: w(s) = 1 + (w_{max} - 1)\, h(s)

    With C categories and t = (s - 1) / (C - 1), `CURVES` has

    .. math:: h = (s - 1)^\gamma / (C - 1), \qquad
              h = t^\gamma, \qquad
              h = 1 - (1 - t)^\gamma.

    Arguments:
        gamma: 1 linear, above 1 convex, below 1 concave; None:
            constant, h = 0.
        w_max: Weight of the hardest feature that can still be done,
            >= 1, where gamma is 1; on the curve "slope" it is more
            where gamma is more, and less where gamma is less.
        curve: Of h, a key of `CURVES`.
    Raises: ValueError: a number is out of its range, or the curve is
        unknown.
    Source: section 4.2 of arXiv:2604.08030; the formulas are
        reconstructed.
    """

    gamma: float | None = 1.0
    w_max: float = 7.0
    curve: str = "slope"

    def __post_init__(self) -> None:
        checks.one_of("curve", [self.curve], tuple(CURVES))
        if self.gamma is not None:
            checks.positive(gamma=self.gamma)
        checks.positive(w_max=self.w_max)
        if self.w_max < 1:
            raise ValueError(
                f"w_max must be at least 1, the weight of the easiest feature, got "
                f"{self.w_max!r}."
            )

    def difficulty(self, scores: Tensor, n_categories: int) -> Tensor:
        """Return h(s), 0 or more, with the shape of the scores.

        It is 0 for features that a person can't act on: nobody asks
        how hard these are.

        Example:
            >>> Profile(gamma=2.0).difficulty(torch.tensor([[1, 3, 4]]), n_categories=3)
            tensor([[0., 2., 0.]])
        """
        if self.gamma is None:
            return torch.zeros(scores.shape)
        steps = max(n_categories - 1, 1)
        curve = CURVES[self.curve]
        of_score = [curve(i, steps, self.gamma) for i in range(n_categories)]
        return torch.tensor([*of_score, 0.0])[scores.long() - 1]


LINEAR = Profile()
CONSTANT = Profile(gamma=None, w_max=1.0)  # every feature weighs the same
PROFILES = {
    name: CONSTANT if gamma is None else Profile(gamma) for name, gamma in GAMMA.items()
}


@dataclass(frozen=True)
class Preferences:
    """Hold the scores of N people, and derive what solvers ask: mask, difficulty, weight.

    Arguments:
        scores: Whole numbers from 1 to C + 1, with shape (*, N, K);
            see the top of this file.
        n_categories: C; 0: as many as features, K.
        limits: Between what values people may set features, with
            shape (*, N, K); None: not stated.
        profile: From scores to difficulty and weight.
    Raises: ValueError: a score is out of range, limits have another
        shape, or someone may act on nothing at all.
    Source: section 4 of arXiv:2604.08030.

    Example:
        >>> preferences = Preferences(torch.tensor([[1, 2, 3], [4, 1, 1]]))
        >>> preferences.is_actionable
        tensor([[ True,  True,  True],
                [False,  True,  True]])
        >>> preferences.weight
        tensor([[1., 4., 7.],
                [1., 1., 1.]])
    """

    scores: Tensor
    n_categories: int = 0
    limits: Limits | None = None
    profile: Profile = LINEAR

    def __post_init__(self) -> None:
        if not isinstance(self.scores, Tensor):
            raise ValueError(
                f"scores must be a tensor of whole numbers with shape (N, K), "
                f"got {type(self.scores).__name__}. Use torch.tensor(scores)."
            )
        if (
            self.scores.ndim < 2
            or self.scores.is_floating_point()
            or self.scores.dtype == torch.bool
        ):
            raise ValueError(
                f"scores must be whole numbers with shape (N, K), got {self.scores.dtype} "
                f"with shape {tuple(self.scores.shape)}. "
                "To give a mask, use Preferences.from_mask."
            )
        if self.n_categories == 0:
            object.__setattr__(self, "n_categories", self.scores.shape[-1])
        checks.positive_int(n_categories=self.n_categories)
        most = self.n_categories
        if ((self.scores < 1) | (self.scores > most + 1)).any():
            raise ValueError(
                f"scores must lie between 1 and {most} ({most + 1} for a "
                f"feature a person can't act on), got {int(self.scores.min())} to "
                f"{int(self.scores.max())}."
            )
        if self.limits is not None:
            checks.shape("limits", self.limits.low, self.scores.shape)
        stuck = ~self.is_actionable.any(-1)
        if stuck.any():
            first = tuple(stuck.nonzero()[0].tolist())
            raise ValueError(
                f"{int(stuck.sum())} people may act on nothing at all (the first is row "
                f"{first[-1]}), so nothing can be recommended to them. Give at least one "
                f"feature a score of {most} or less, or leave these people out."
            )

    def __len__(self) -> int:
        """Return the number of people N."""
        return self.scores.shape[-2]

    def __getitem__(
        self, rows: int | slice | Sequence[int] | np.ndarray | Tensor
    ) -> "Preferences":
        """Return the preferences of some people, in the order asked for.

        Arguments:
            rows: Row numbers, a slice, or a mask with shape (N,).
                One row number gives the preferences of one person,
                still with shape (*, 1, K).
        Raises: ValueError: rows are neither; a mask has another
            length. IndexError: there is no such row.
        """
        chosen = rows if isinstance(rows, slice) else self._row_numbers(rows)
        limits = None if self.limits is None else self.limits[..., chosen, :]
        return replace(self, scores=self.scores[..., chosen, :], limits=limits)

    def _row_numbers(self, rows: int | Sequence[int] | np.ndarray | Tensor) -> Tensor:
        """Return row numbers, or a mask over the rows, as a tensor; see `__getitem__`."""
        index = torch.atleast_1d(torch.as_tensor(np.asarray(rows)))
        if index.numel() == 0:
            index = index.long()
        is_mask = index.dtype == torch.bool
        if (
            index.ndim > 1
            or index.is_floating_point()
            or (is_mask and len(index) != len(self))
        ):
            raise ValueError(
                f"Expected row numbers of the {len(self)} people, a slice, or a mask with "
                f"shape ({len(self)},), got {index.dtype} with shape "
                f"{tuple(index.shape)}."
            )
        return index

    def members(self, index: Any) -> "Preferences":
        """Return those of some members, of preferences with scores (M, N, K).

        Arguments:
            index: What the leading axes are indexed with.
        """
        limits = None if self.limits is None else self.limits[index]
        return replace(self, scores=self.scores[index], limits=limits)

    def with_profile(self, profile: Profile) -> "Preferences":
        """Return the same scores and limits under another profile."""
        return replace(self, profile=profile)

    @classmethod
    def from_mask(cls, is_actionable: Tensor) -> "Preferences":
        """Return preferences of people who only state what they can do, all equally easy.

        Arguments:
            is_actionable: True where a person can act, with shape
                (*, N, K).
        Raises: ValueError: no mask, or someone may act on nothing
            at all.

        Example:
            >>> Preferences.from_mask(torch.tensor([[True, False, True]])).scores
            tensor([[1, 4, 1]])
        """
        if is_actionable.dtype != torch.bool or is_actionable.ndim < 2:
            raise ValueError(
                f"A mask must be of bool with shape (N, K), got {is_actionable.dtype} "
                f"with shape {tuple(is_actionable.shape)}."
            )
        n_features = is_actionable.shape[-1]
        return cls(torch.where(is_actionable, 1, n_features + 1))

    @property
    def is_actionable(self) -> Tensor:
        """Return A_u: which features each person may act on, with shape (*, N, K)."""
        return self.scores <= self.n_categories

    @property
    def difficulty(self) -> Tensor:
        """Return h(s), 0 where a person can't act, with shape (*, N, K)."""
        return self.profile.difficulty(self.scores, self.n_categories)

    @property
    def weight(self) -> Tensor:
        """Return the actionability weights w(s) >= 1, with shape (*, N, K)."""
        return 1 + (self.profile.w_max - 1) * self.difficulty


def stack(members: Sequence[Preferences]) -> Preferences:
    """Return several preferences of the same people as one, with scores (M, N, K).

    Raises: ValueError: they are of other people, features, numbers of
        categories or profiles.
    """
    kinds = {(p.n_categories, tuple(p.scores.shape), p.profile) for p in members}
    if len(kinds) > 1:
        listed = "; ".join(f"{n} categories, shape {shape}, {p}" for n, shape, p in kinds)
        raise ValueError(
            "Expected preferences of the same people, features, scale and profile, got "
            f"{listed}."
        )
    limits = None
    if any(p.limits for p in members):
        limits = stack_limits(
            [p.limits or Limits.unlimited(*p.scores.shape) for p in members]
        )
    scores = torch.stack([p.scores for p in members])
    return replace(members[0], scores=scores, limits=limits)


def from_words(
    answers: str | Mapping[str, str],
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
    profile: Profile = LINEAR,
) -> Preferences:
    """Return one person's answers as preferences, with scores of shape (1, K).

    Arguments:
        answers: "income: can't; savings: hard, only up; ..." or a
            mapping of that kind. Every feature is answered by one of
            `WORDS`, by a rank or score from 1 to C, or by "can't".
            Limits may follow, in the units of the data: "only up",
            "at most 60", "at most 5 less", "in steps of 500", "one of
            cook or clerk".
        features: Names of the K actionable features.
        n_categories: C; 0: as many as features.
        categories: Of features that have some
            (`Population.categories`); needed for "one of".
        profile: From scores to difficulty and weight.
    Raises: ValueError: a feature is unknown, left out or answered
        twice; a word is unknown; nothing is left to do.

    Example:
        >>> features = ("loan_amount", "loan_duration", "income", "savings")
        >>> answers = "loan amount: easy; loan_duration: 2; income: can't; savings: hard"
        >>> from_words(answers, features).scores
        tensor([[1, 2, 5, 3]])
    """
    names = _plain_names(features)
    if isinstance(answers, str):
        pairs: Iterable[tuple[str, str]] = _split_answers(answers)
    elif isinstance(answers, Mapping):
        pairs = answers.items()
    else:
        raise ValueError(
            'Expected answers as a text, "income: hard; savings: easy", or a mapping from '
            f"features to words, got {type(answers).__name__}."
        )
    most = n_categories or len(names)
    person = _read_person(pairs, names, most, categories or {})
    return _as_preferences([person], most, profile)


def from_frame(
    frame: pd.DataFrame,
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
    profile: Profile = LINEAR,
) -> Preferences:
    """Return the answers of many people as preferences, with scores of shape (N, K).

    Arguments:
        frame: A row for each person and a column for each
            actionable feature, in any order; cells as in
            `from_words`.
        features: Names of the K actionable features, in the order
            of the scores.
        n_categories, categories, profile: As for `from_words`.
    Raises: ValueError: the frame is empty; a column is missing,
        unknown or there twice; a cell is empty (NaN) or can't be
        read. The message names the row as its index does.
    """
    names = _plain_names(features)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"Expected a pandas frame with the columns {', '.join(features)}, "
            f"got {type(frame).__name__}."
        )
    _check_columns("The frame", list(frame.columns), features)
    checks.one_of("column", frame.columns, features)
    if len(frame) == 0:
        raise ValueError("The frame holds no answers: expected a row for each person.")
    row_name, most = frame.index.name or "row", n_categories or len(features)
    everyone = []
    for label, row in zip(frame.index, frame[list(features)].to_numpy(object), strict=True):
        try:
            empty = [
                name
                for name, cell in zip(features, row, strict=True)
                if pd.api.types.is_scalar(cell) and pd.isna(cell)
            ]
            if empty:
                raise ValueError(
                    f"{empty[0]} is not answered (the cell is NaN or None). {_how(most)}"
                )
            pairs = zip(features, row, strict=True)
            everyone.append(_read_person(pairs, names, most, categories or {}))
        except ValueError as error:
            raise ValueError(f"{row_name} {label}: {error}") from error
    return _as_preferences(everyone, most, profile)


def read_answers(
    path: Path,
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
    profile: Profile = LINEAR,
) -> Preferences:
    """Return the answers of many people in a CSV file, with scores of shape (N, K).

    Arguments:
        path: A file with a header, a column for each actionable
            feature and a row for each person; cells as in
            `from_words`. Other columns, such as names, are not
            read.
        features, n_categories, categories, profile: As for
            `from_words`.
    Raises: ValueError: the file is missing or empty, a column is
        missing, or an answer can't be read (the message names its
        line and its feature).
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"Expected a table of answers at {path}, found none. "
            f"It needs the columns {', '.join(features)}."
        )
    with io.in_file(path), path.open(newline="", encoding="utf-8-sig") as file:
        table = csv.DictReader(file)
        _check_columns("The table", list(table.fieldnames or ()), features)
        lines, rows = [], []
        for row in table:
            lines.append(table.line_num)
            rows.append([row[name] or "" for name in features])
        if not rows:
            raise ValueError("It holds no answers below its header.")
        frame = pd.DataFrame(rows, pd.Index(lines, name="line"), list(features))
        return from_frame(frame, features, n_categories, categories, profile)


def _check_columns(what: str, columns: Sequence[Any], features: Sequence[str]) -> None:
    """Raise ValueError unless every feature has exactly one column."""
    if missing := [name for name in features if name not in columns]:
        raise ValueError(
            f"{what} has no column {', '.join(missing)}; "
            f"found {', '.join(map(str, columns)) or 'nothing'}."
        )
    if twice := [name for name, n in Counter(columns).items() if n > 1 and name != ""]:
        raise ValueError(f"{what} has the column {twice[0]} twice. Keep one of them.")


def _plain_names(features: Sequence[str]) -> dict[str, str]:
    """Return the features by their plain names; raise ValueError if two read alike."""
    if isinstance(features, str) or len(features) == 0:
        raise ValueError(
            f"Expected the names of one feature or more, as a sequence, got {features!r}."
        )
    names = {_plain(name): name for name in features}
    if len(names) < len(features):
        raise ValueError(
            f"Two features read alike, once case and blanks are left out: "
            f"{', '.join(features)}. Rename one of them."
        )
    return names


def _plain(text: object) -> str:
    """Return a text in lower case, with single blanks and straight apostrophes."""
    return " ".join(str(text).lower().replace("\u2019", "'").replace("_", " ").split())


def _split_answers(text: str) -> list[tuple[str, str]]:
    """Return the pairs of feature and answer in "income: hard; savings: easy"."""
    answers = []
    for entry in filter(None, (entry.strip() for entry in re.split(r"[;\n]", text))):
        feature, colon, answer = entry.partition(":")
        if not colon:
            raise ValueError(
                f'Expected "feature: answer", divided by semicolons, got {entry!r}.'
            )
        answers.append((feature.strip(), answer))
    return answers


def _as_preferences(
    everyone: Sequence[tuple[list[int], list[Limits]]], most: int, profile: Profile
) -> Preferences:
    """Return the preferences of people whose answers were read, a pair a person."""
    scores = torch.tensor([person_scores for person_scores, _ in everyone])
    limits = stack_limits([stack_limits(person_limits) for _, person_limits in everyone])
    return Preferences(scores, most, limits if limits.is_stated.any() else None, profile)


def _read_person(
    pairs: Iterable[tuple[str, object]],
    names: Mapping[str, str],
    most: int,
    categories: Mapping[str, Sequence[str]],
) -> tuple[list[int], list[Limits]]:
    """Return one person's score and limits of each feature, from pairs with an answer.

    Arguments:
        names: The features by their plain names, as `_plain_names`
            gives them.
        most: The highest score of what can be done.
        categories: Of features that have some.
    """
    features = tuple(names.values())
    answers: dict[str, str] = {}
    for feature, answer in pairs:
        name = names.get(_plain(feature), feature)
        if name in answers:
            raise ValueError(f"{name} is answered twice. Keep one answer.")
        answers[name] = _plain(answer)
    checks.one_of("feature", answers, features)
    if missing := [name for name in features if name not in answers]:
        raise ValueError(f"There is no answer about {', '.join(missing)}. {_how(most)}")
    phrases = {name: answers[name].split(",") for name in features}
    scores = [_score(name, first.strip(), most) for name, (first, *_) in phrases.items()]
    if min(scores) > most:
        raise ValueError(
            "This person can't act on anything, so there is no action to recommend. "
            "Is there one feature, however hard, that they could change?"
        )
    limits = [
        Limits.parse(rest, name, [_plain(label) for label in categories.get(name, ())])
        for name, (_, *rest) in phrases.items()
    ]
    return scores, limits


def _how(most: int) -> str:
    """Return how to answer."""
    return (
        f"For each feature say {', '.join(WORDS)}, a number from 1 (easiest) "
        f"to {most}, or can't. Limits may follow: hard, only up, at most 60."
    )


def _score(feature: str, answer: str, most: int) -> int:
    """Return the score that a plain answer means."""
    if answer in IMPOSSIBLE:
        return most + 1
    if answer in WORDS:
        return 1 + round(WORDS.index(answer) * (most - 1) / (len(WORDS) - 1))
    number = answer.removesuffix(".0")  # pandas makes 1.0 of 1 beside a gap
    if re.fullmatch("[0-9]{1,9}", number) and 1 <= int(number) <= most:
        return int(number)
    raise ValueError(
        f"{feature}: can't read {answer!r}. Say {', '.join(WORDS)}, "
        f"a number from 1 (easiest) to {most}, or can't."
    )

"""What a person can do and how hard they find it.

Scores are whole numbers with shape (*, N, K), one for each of the K
globally actionable features: of C categories 1 is easiest, C the
hardest that can still be done, and C + 1 means "I can't" (a hard
constraint). Ranks have as many categories as there are features.
Masks, weights and priors are derived from them.
"""

import csv
import io
import math
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

from lib.base import checks, files
from lib.method.limits import Limits, stacked

# gamma of each cost profile of the paper; the numbers are reconstructed
GAMMA = {"constant": None, "concave": 1 / 1.5, "linear": 1.0, "convex": 1.5}

# how hard category i of 0 to n is, by gamma. slope: the first step is 1 / n for every
# gamma; normalised: from 0 to 1; mirrored: normalised, from the other end
SHAPES: dict[str, Callable[[int, int, float], float]] = {
    "slope": lambda i, n, gamma: i**gamma / n,
    "normalised": lambda i, n, gamma: (i / n) ** gamma,
    "mirrored": lambda i, n, gamma: 1 - (1 - i / n) ** gamma,
}

# how hard a person may call a feature, from easiest to hardest; evenly spread over 1 to C
WORDS = ("easy", "manageable", "hard", "very hard")
IMPOSSIBLE = ("can't", "cannot", "impossible")
MOST_BYTES = 50_000_000  # of a table of answers


@dataclass(frozen=True)
class Preferences:
    """Hold the scores of N people, and derive from them what each can act on.

    Arguments:
        scores: Whole numbers from 1 to C + 1, with shape (*, N, K);
            see the top of this file.
        n_categories: C; 0: as many as features, K.
        limits: Between what values people may set features, with
            shape (*, N, K); None: nobody says.
    Raises: ValueError: a score is out of range, limits have another
        shape, or someone may act on nothing at all.
    Source: section 4 of arXiv:2604.08030.

    Example:
        >>> preferences = Preferences(torch.tensor([[1, 2, 3], [4, 1, 1]]))
        >>> len(preferences)
        2
        >>> preferences[1].scores
        tensor([[4, 1, 1]])

        On a scale of five, 4 can be done, and 6 can't:
        >>> Preferences(torch.tensor([[1, 6, 4]]), n_categories=5).is_actionable
        tensor([[ True, False,  True]])
    """

    scores: Tensor
    n_categories: int = 0
    limits: Limits | None = None

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
        checks.counts(n_categories=self.n_categories)
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
        if isinstance(rows, slice):
            return self._at(rows)
        wanted = torch.atleast_1d(torch.as_tensor(np.asarray(rows)))
        if wanted.numel() == 0:
            wanted = wanted.long()
        fits = wanted.dtype != torch.bool or len(wanted) == len(self)
        if wanted.ndim > 1 or wanted.is_floating_point() or not fits:
            raise ValueError(
                f"Expected row numbers of the {len(self)} people, a slice, or a mask with "
                f"shape ({len(self)},), got {wanted.dtype} with shape "
                f"{tuple(wanted.shape)}."
            )
        return self._at(wanted)

    def _at(self, rows: slice | Tensor) -> "Preferences":
        """Return the preferences of the people in these rows."""
        limits = None if self.limits is None else self.limits[..., rows, :]
        return replace(self, scores=self.scores[..., rows, :], limits=limits)

    def member(self, at: Any) -> "Preferences":
        """Return a part of preferences of several kinds, with scores (M, N, K).

        Arguments:
            at: What the leading axes are indexed with.
        Example:
            >>> one = Preferences(torch.tensor([[1, 2]]))
            >>> side_by_side([one, one, one]).member([0, 2]).scores.shape
            torch.Size([2, 1, 2])
        """
        limits = None if self.limits is None else self.limits[at]
        return replace(self, scores=self.scores[at], limits=limits)

    @classmethod
    def from_mask(cls, is_actionable: Tensor) -> "Preferences":
        """Return preferences of people who only say what they can do, all equally easy.

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
        """Return A_u: which features each person may act on, with shape (*, N, K).

        Example:
            >>> Preferences(torch.tensor([[1, 4, 3]])).is_actionable
            tensor([[ True, False,  True]])
        """
        return self.scores <= self.n_categories


def side_by_side(each: Sequence[Preferences]) -> Preferences:
    """Return several preferences of the same people as one, with scores (M, N, K).

    Raises: ValueError: they are of other people, features or numbers
        of categories.
    Example:
        >>> one = Preferences(torch.tensor([[1, 2]]))
        >>> side_by_side([one, one]).scores.shape
        torch.Size([2, 1, 2])
    """
    kinds = {(own.n_categories, tuple(own.scores.shape)) for own in each}
    if len(kinds) > 1:
        told = "; ".join(f"{n} categories, shape {shape}" for n, shape in sorted(kinds))
        raise ValueError(
            f"Expected preferences of the same people, features and scale, got {told}."
        )
    said = [own.limits or Limits.nothing(*own.scores.shape) for own in each]
    limits = stacked(said) if any(own.limits for own in each) else None
    scores = torch.stack([own.scores for own in each])
    return replace(each[0], scores=scores, limits=limits)


@dataclass(frozen=True)
class Profile:
    r"""Turn a score into a weight in the cost and a prior of acting.

    .. math:: w(s) = 1 + (w_{max} - 1)\, h(s), \quad
              p(s) = \max(p_{min},\; p_{max} - (p_{max} - p_{min})\, h(s))

    With C categories and t = (s - 1) / (C - 1), `SHAPES` has

    .. math:: h = (s - 1)^\gamma / (C - 1), \qquad
              h = t^\gamma, \qquad
              h = 1 - (1 - t)^\gamma.

    Arguments:
        gamma: 1 linear, above 1 convex, below 1 concave; None:
            constant, h = 0.
        w_max: Weight of the hardest feature that can still be done,
            >= 1, where gamma is 1; in the shape "slope" it is more
            where gamma is more, and less where gamma is less.
        p_min, p_max: Prior probability of acting on the hardest and
            on the easiest feature.
        shape: Of h, a key of `SHAPES`.
        inverse: Whether the prior is p_max / w instead, and p_min at
            least, as in CARMA's code.
    Raises: ValueError: a number is out of its range, or the shape is
        unknown.
    Source: section 4.2 of arXiv:2604.08030; the formulas are
        reconstructed.

    Example:
        >>> Profile(GAMMA["linear"], w_max=7.0, p_min=0.1).p_max
        0.5
    """

    gamma: float | None = None
    w_max: float = 1.0
    p_min: float = 0.5
    p_max: float = 0.5
    shape: str = "slope"
    inverse: bool = False

    def __post_init__(self) -> None:
        checks.known("shape", [self.shape], tuple(SHAPES))
        if self.gamma is not None:
            checks.positive(gamma=self.gamma)
            if math.isinf(self.gamma):
                raise ValueError(
                    "gamma must be finite, got inf. Use None for the constant profile."
                )
        if not 1 <= self.w_max < math.inf:
            raise ValueError(
                f"w_max must be at least 1, the weight of the easiest feature, and finite, "
                f"got {self.w_max!r}."
            )
        if not 0 < self.p_min <= self.p_max < 1:
            raise ValueError(
                "Priors must satisfy 0 < p_min <= p_max < 1 (0 and 1 would make the "
                "mask's KL term infinite), "
                f"got p_min {self.p_min!r} and p_max {self.p_max!r}."
            )

    def hardness(self, preferences: Preferences) -> Tensor:
        """Return h(s), 0 or more, with shape (*, N, K).

        It is 0 for features that a person can't act on: nobody asks
        how hard these are.

        Example:
            >>> Profile(gamma=2.0).hardness(Preferences(torch.tensor([[1, 3, 4]])))
            tensor([[0., 2., 0.]])
        """
        scores, n = preferences.scores, preferences.n_categories
        if self.gamma is None:
            return torch.zeros(scores.shape)
        # by Python: torch's power of 0.5 depends on the processor
        of_score = [SHAPES[self.shape](i, max(n - 1, 1), self.gamma) for i in range(n)]
        return torch.tensor([*of_score, 0.0])[scores.long() - 1]

    def weight(self, preferences: Preferences) -> Tensor:
        """Return the actionability weights w(s) >= 1, with shape (*, N, K).

        Example:
            >>> profile = Profile(gamma=1.0, w_max=7.0)
            >>> profile.weight(Preferences(torch.tensor([[1, 2, 3]])))
            tensor([[1., 4., 7.]])
        """
        return 1 + (self.w_max - 1) * self.hardness(preferences)

    def prior(self, preferences: Preferences) -> Tensor:
        """Return the actionability priors p(s), with shape (*, N, K).

        Example:
            >>> profile = Profile(gamma=1.0, p_min=0.1)
            >>> profile.prior(Preferences(torch.tensor([[1, 2, 3]])))
            tensor([[0.5000, 0.3000, 0.1000]])
        """
        if self.inverse:
            return (self.p_max / self.weight(preferences)).clamp_min(self.p_min)
        hardness = self.hardness(preferences)
        prior = self.p_max * (1 - hardness) + self.p_min * hardness
        return prior.clamp_min(self.p_min)


# every feature weighs the same and is as likely to be acted on
CONSTANT = Profile()


def from_words(
    answers: str | Mapping[str, str],
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Preferences:
    """Return what one person says as preferences, with scores of shape (1, K).

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
    Raises: ValueError: a feature is unknown, left out or answered
        twice; a word is unknown; nothing is left to do.

    Example:
        >>> features = ("loan_amount", "loan_duration", "income", "savings")
        >>> answers = "loan amount: easy; loan_duration: 2; income: can't; savings: hard"
        >>> from_words(answers, features).scores
        tensor([[1, 2, 5, 3]])
        >>> from_words("visits: very hard", ["visits"]).scores
        tensor([[1]])
        >>> said = from_words("income: easy, only up; savings: 2", ("income", "savings"))
        >>> said.scores, said.limits.fall
        (tensor([[1, 2]]), tensor([[0., nan]], dtype=torch.float64))
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
    return _preferences([_answers(pairs, names, most, categories or {})], most)


def from_frame(
    frame: pd.DataFrame,
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Preferences:
    """Return the answers of many people as preferences, with scores of shape (N, K).

    Arguments:
        frame: A row for each person and a column for each
            actionable feature, in any order; cells as in
            `from_words`.
        features: Names of the K actionable features, in the order
            of the scores.
        n_categories, categories: As for `from_words`.
    Raises: ValueError: the frame is empty; a column is missing,
        unknown or there twice; a cell is empty (NaN) or can't be
        read. The message names the row as its index does.

    Example:
        >>> frame = pd.DataFrame({"savings": ["hard", 1], "income": ["can't", "easy"]})
        >>> from_frame(frame, ("income", "savings")).scores
        tensor([[3, 2],
                [1, 1]])
    """
    names = _plain_names(features)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"Expected a pandas frame with the columns {', '.join(features)}, "
            f"got {type(frame).__name__}."
        )
    _has_columns("The frame", list(frame.columns), features)
    checks.known("column", frame.columns, features)
    if len(frame) == 0:
        raise ValueError("The frame holds no answers: expected a row for each person.")
    row_is_called, most = frame.index.name or "row", n_categories or len(features)
    everyone = []
    answers = frame[list(features)].itertuples(index=False, name=None)
    for label, cells in zip(frame.index, answers, strict=True):
        try:
            empty = [
                name
                for name, cell in zip(features, cells, strict=True)
                if pd.api.types.is_scalar(cell) and pd.isna(cell)
            ]
            if empty:
                raise ValueError(
                    f"{empty[0]} is not answered (the cell is NaN or None). {_how(most)}"
                )
            pairs = zip(features, cells, strict=True)
            everyone.append(_answers(pairs, names, most, categories or {}))
        except ValueError as error:
            raise ValueError(f"{row_is_called} {label}: {error}") from error
    return _preferences(everyone, most)


def read_answers(
    path: Path,
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Preferences:
    """Return the answers of many people in a CSV file, with scores of shape (N, K).

    Arguments:
        path: A file with a header, a column for each actionable
            feature and a row for each person; cells as in
            `from_words`. Other columns, such as names, are not
            read.
        features: Names of the K actionable features.
        n_categories, categories: As for `from_words`.
    Raises: ValueError: the file is missing or empty, a column is
        missing or there twice, or an answer can't be read (the
        message names its line and its feature).

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
        >>> _ = path.write_text("name,income,savings\\nA,hard,1\\nB,easy,can't\\n")
        >>> read_answers(path, ("income", "savings")).scores
        tensor([[2, 1],
                [1, 3]])
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"Expected a table of answers at {path}, found none. "
            f"It needs the columns {', '.join(features)}."
        )
    table = csv.DictReader(io.StringIO(files.text(path, MOST_BYTES), ""), strict=True)
    lines: dict[int, list[str]] = {}
    try:
        _has_columns(str(path), list(table.fieldnames or ()), features)
        for row in table:
            if None in row:
                raise ValueError(
                    f"{path}, line {table.line_num}: more answers than columns. Expected "
                    "one for each column."
                )
            lines[table.line_num] = [row[name] or "" for name in features]
    except csv.Error as error:
        raise ValueError(
            f"{path}, after line {table.line_num}: {error}. Expected a csv file with a "
            "column for each feature."
        ) from error
    if not lines:
        raise ValueError(f"{path} holds no answers below its header.")
    frame = pd.DataFrame.from_dict(lines, orient="index", columns=list(features))
    try:
        return from_frame(frame.rename_axis("line"), features, n_categories, categories)
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from error


def _has_columns(what: str, found: Sequence[Any], features: Sequence[str]) -> None:
    """Raise ValueError unless every feature has exactly one column."""
    if missing := [name for name in features if name not in found]:
        raise ValueError(
            f"{what} has no column {', '.join(missing)}; "
            f"found {', '.join(map(str, found)) or 'nothing'}."
        )
    if twice := [name for name, n in Counter(found).items() if n > 1 and name != ""]:
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
            f"{', '.join(features)}. Give each a name of its own."
        )
    return names


def _plain(text: object) -> str:
    """Return a text in lower case, with single blanks and straight apostrophes."""
    return " ".join(str(text).lower().replace("\u2019", "'").replace("_", " ").split())


def _split_answers(text: str) -> list[tuple[str, str]]:
    """Return the pairs of feature and answer in "income: hard; savings: easy"."""
    answers = []
    for part in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        feature, colon, answer = part.partition(":")
        if not colon:
            raise ValueError(
                f'Expected "feature: answer", parts divided by semicolons, got {part!r}.'
            )
        answers.append((feature.strip(), answer))
    return answers


def _preferences(
    everyone: Sequence[tuple[list[int], list[Limits]]], most: int
) -> Preferences:
    """Return the preferences of people whose answers were read, a pair a person."""
    scores = torch.tensor([own for own, _ in everyone])
    limits = stacked([stacked(own) for _, own in everyone])
    is_said = any(not part.isnan().all() for part in vars(limits).values())
    return Preferences(scores, most, limits if is_said else None)


def _answers(
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
    answered: dict[str, str] = {}
    for feature, answer in pairs:
        name = names.get(_plain(feature), feature)
        if name in answered:
            raise ValueError(f"{name} is answered twice. Keep one answer.")
        answered[name] = _plain(answer)
    checks.known("feature", answered, features)
    if missing := [name for name in features if name not in answered]:
        raise ValueError(f"Nothing was said about {', '.join(missing)}. {_how(most)}")
    parts = {name: answered[name].split(",") for name in features}
    scores = [_score(name, how.strip(), most) for name, (how, *_) in parts.items()]
    if min(scores) > most:
        raise ValueError(
            "This person can't act on anything, so there is no action to recommend. "
            "Is there one feature, however hard, that they could change?"
        )
    limits = [
        Limits.read(said, name, [_plain(own) for own in categories.get(name, ())])
        for name, (_, *said) in parts.items()
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

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

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method.limits import Limits, plain, stack_limits

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
OF_SCALE = re.compile(r"(\d+) of (\d+)")  # on another scale than ranks: 4 of 5


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
        if not 1 <= self.w_max < math.inf:
            raise ValueError(
                f"w_max must be 1, the weight of the easiest feature, or more, got "
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


@dataclass(frozen=True, eq=False)
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
        scores = self.scores
        is_number = isinstance(scores, Tensor) and scores.dtype != torch.bool
        if not is_number or scores.is_floating_point() or scores.ndim < 2:
            raise ValueError(
                "scores must be a tensor of whole numbers with shape (N, K), got "
                f"{scores!r:.80}. To give a mask, use Preferences.from_mask."
            )
        most = self.n_categories or scores.shape[-1]
        object.__setattr__(self, "n_categories", most)
        if ((scores < 1) | (scores > most + 1)).any():
            raise ValueError(
                f"scores must lie between 1 and {most} ({most + 1} for a feature a person "
                f"can't act on), got {int(scores.min())} to {int(scores.max())}."
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
        Raises: IndexError: there is no such row, rows are neither, or
            a mask has another length.
        """
        index = torch.from_numpy(np.atleast_1d(np.arange(len(self))[rows]))
        limits = None if self.limits is None else self.limits[..., index, :]
        return replace(self, scores=self.scores[..., index, :], limits=limits)

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
        Raises: RuntimeError: no mask. ValueError: someone may act on
            nothing at all.

        Example:
            >>> Preferences.from_mask(torch.tensor([[True, False, True]])).scores
            tensor([[1, 4, 1]])
        """
        return cls(torch.where(is_actionable, 1, is_actionable.shape[-1] + 1))

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

    Raises: ValueError: they have other profiles or numbers of
        categories. RuntimeError: they are of other people or features.
    """
    scales = {(p.n_categories, p.profile) for p in members}
    if len(scales) > 1:
        raise ValueError(f"Expected preferences of one scale and profile, got {scales}.")
    limits = None
    if any(p.limits for p in members):
        limits = stack_limits(
            [p.limits or Limits.unlimited(*p.scores.shape) for p in members]
        )
    scores = torch.stack([p.scores for p in members])
    return replace(members[0], scores=scores, limits=limits)


def from_words(
    answers: str | Mapping[str, Any],
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
    profile: Profile = LINEAR,
) -> Preferences:
    """Return one person's answers as preferences, with scores of shape (1, K).

    Arguments:
        answers: "income: can't; savings: hard, only up; ..." or a
            mapping of that kind. Every feature is answered by one of
            `WORDS`, by a rank or score from 1 to C, by a score on a
            scale that is stated, "4 of 5", or by "can't". Limits may
            follow, in the units of the data: "only up", "at most 60",
            "at most 5 less", "in steps of 500", "one of cook or
            clerk".
        features: Names of the K actionable features.
        n_categories: C; 0: as many as features.
        categories: Of features that have some
            (`Population.categories`); needed for "one of".
        profile: From scores to difficulty and weight.
    Raises: ValueError: a feature is unknown, left out or answered
        twice; a word is unknown; numbers are no ranks, and no scale is
        stated; nothing is left to do.

    Example:
        >>> features = ("loan_amount", "loan_duration", "income", "savings")
        >>> answers = "loan amount: easy; loan_duration: 2; income: can't; savings: hard"
        >>> from_words(answers, features).scores
        tensor([[1, 2, 5, 3]])
    """
    if isinstance(answers, str):
        entries = [entry.partition(":") for entry in re.split("[;\n]", answers)]
        pairs = [(feature, answer) for feature, _, answer in entries if feature.strip()]
    else:
        pairs = list(answers.items())
    names = {plain(name): name for name in features}
    answer_of: dict[str, str] = {}
    for feature, answer in pairs:
        name = names.get(plain(feature), feature)
        if name in answer_of:
            raise ValueError(f"{name} is answered twice. Keep one answer.")
        answer_of[name] = str(answer)
    checks.one_of("feature", answer_of, features)
    most = n_categories or len(features)
    if missing := [name for name in features if name not in answer_of]:
        raise ValueError(f"There is no answer about {', '.join(missing)}. {_how(most)}")
    scores, phrases = [], {}
    for name in features:
        score, _, phrases[name] = answer_of[name].partition(",")
        answer_of[name] = plain(score)
        scores.append(_score(name, answer_of[name], most))
    if not n_categories:
        _check_ranks(answer_of, most)
    if min(scores) > most:
        raise ValueError(
            "This person can't act on anything, so there is no action to recommend. "
            "Is there one feature, however hard, that they could change?"
        )
    limits = Limits.from_words(phrases, features, categories)[None]
    stated = limits if limits.is_stated.any() else None
    return Preferences(torch.tensor([scores]), most, stated, profile)


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
        unknown or there twice; a cell can't be read, and the message
        names the row as the frame's index does.
    """
    if len(frame) == 0:
        raise ValueError("The frame holds no answers: expected a row for each person.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"The frame has the column {twice} twice. Keep one of them.")
    rows = pd.Series(frame.astype(str).to_dict("records"), frame.index)
    return _read_each(rows, features, n_categories, categories, profile)


def for_people(
    answers: Any,
    people: pd.Index,
    features: Sequence[str],
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Preferences:
    """Return the answers of people with names as preferences, with scores (N, K).

    Arguments:
        answers: A text or dict of one person, as for `from_words`; a
            list of these, in the order of the people; a dict or
            Series of these by name; or a frame with a row a person
            and a column a feature. None: everybody can do anything,
            all equally easy.
        people: The names of the N people.
        features, categories: As for `from_words`.
    Raises: ValueError: answers are of other people, or of another
        number of them; or as `from_words`.

    Example:
        >>> answers = {"Ben": "debt: 1; income: 2", "Ana": "debt: can't; income: hard"}
        >>> for_people(answers, pd.Index(["Ana", "Ben"]), ["income", "debt"]).scores
        tensor([[2, 3],
                [2, 1]])
    """
    if answers is None:
        return Preferences(torch.ones(len(people), len(features), dtype=torch.long))
    if isinstance(answers, pd.DataFrame):
        positions = _positions(answers.index, people)
        return from_frame(answers.iloc[positions], features, categories=categories)
    if isinstance(answers, Mapping | pd.Series):
        by_name = pd.Series(dict(answers) if isinstance(answers, Mapping) else answers)
        is_of_one = {plain(name) for name in by_name.index} & {plain(n) for n in features}
        if is_of_one and not by_name.index.isin(people).any():
            answers = by_name.to_dict()
        else:
            answers = by_name.iloc[_positions(by_name.index, people)].tolist()
    if isinstance(answers, str | Mapping):
        answers = [answers]
    if not isinstance(answers, list | tuple) or len(answers) != len(people):
        came = f"{len(answers)} answers" if isinstance(answers, list | tuple) else answers
        raise ValueError(
            f"Expected the answers of {len(people)} people, got {came!r:.80}. Give a list "
            "of texts in their order, a dict name -> text, or a frame with a row a person "
            "and a column a feature."
        )
    return _read_each(pd.Series([*answers], people, dtype=object), features, 0, categories)


def _positions(labels: pd.Index, people: pd.Index) -> np.ndarray:
    """Return where the answers with these labels stand, in the order of the people."""
    if labels.equals(people):
        return np.arange(len(people))
    for whose, index in (("applicants", people), ("answers", labels)):
        if not index.is_unique:
            raise ValueError(
                f"Two {whose} are called {index[index.duplicated()][0]!r}. Give the "
                "answers as a list in the order of the applicants, or rename one."
            )
    strangers, silent = labels.difference(people, False), people.difference(labels, False)
    if len(strangers) or len(silent):
        some = ", ".join(map(repr, [*strangers, *silent][:5]))
        what = "no applicant is called" if len(strangers) else "there is no answer of"
        raise ValueError(
            f"The answers are of other people than the applicants: {what} {some}. Answers "
            "are matched by the row labels of the table; a list is matched by its order."
        )
    return labels.get_indexer(people)


def _read_each(
    answers: pd.Series,
    features: Sequence[str],
    n_categories: int = 0,
    categories: Mapping[str, Sequence[str]] | None = None,
    profile: Profile = LINEAR,
) -> Preferences:
    """Return the answers of people, as for `from_words`, with scores (N, K)."""
    which, _ = pd.factorize(answers.map(str))  # what several people say is read once
    read = []
    for row in np.unique(which, return_index=True)[1]:
        answer = answers.iloc[row]
        try:
            if not isinstance(answer, str | Mapping):
                raise ValueError(f"got {answer!r}. {_how(n_categories or len(features))}")
            read.append(from_words(answer, features, n_categories, categories, profile))
        except ValueError as error:
            raise ValueError(f"row {answers.index[row]}: {error}") from error
    return stack(read).members((slice(None), 0))[which]


def _how(most: int) -> str:
    """Return how to answer."""
    return (
        f"For each feature say {', '.join(WORDS)}, a number from 1 (easiest) "
        f"to {most}, one like 4 of 5, or can't. Limits may follow: hard, only up, at most "
        "60."
    )


def _score(feature: str, answer: str, most: int) -> int:
    """Return the score that a plain answer means."""
    if answer in IMPOSSIBLE:
        return most + 1
    if answer in WORDS:
        return _rescale(WORDS.index(answer) + 1, len(WORDS), most)
    if (match := OF_SCALE.fullmatch(answer)) and 1 <= int(match[1]) <= int(match[2]) > 1:
        return _rescale(int(match[1]), int(match[2]), most)
    number = answer.removesuffix(".0")  # pandas makes 1.0 of 1 beside a gap
    if number.isdecimal() and 1 <= int(number) <= most:
        return int(number)
    raise ValueError(f"{feature}: can't read {answer!r}. {_how(most)}")


def _rescale(score: int, n_categories: int, most: int) -> int:
    """Return the score from 1 to most that stands where this one does on its scale."""
    return 1 + round((score - 1) * (most - 1) / (n_categories - 1))


def _check_ranks(answer_of: Mapping[str, str], most: int) -> None:
    """Raise ValueError if numbers may be meant on another scale than one rank a feature."""
    numbers = [answer.removesuffix(".0") for answer in answer_of.values()]
    numbers = [number for number in numbers if number.isdecimal()]
    highest = max(map(int, numbers), default=1)
    if len(set(numbers)) < len(numbers) and 1 < highest < most:
        raise ValueError(
            f"The answers {', '.join(numbers)} are no ranks of {most} features, since one "
            f"stands twice, and end below {most}. Say on which scale: {highest} of "
            f"{max(highest, 5)}, for instance, or n_categories={max(highest, 5)} in Python."
        )

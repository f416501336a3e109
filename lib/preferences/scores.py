"""What a person can do and how hard they find it: scores, and the masks, weights and priors derived from them.

Scores are whole numbers with shape (*, N, K), one for each of the K globally actionable features: 1 is easiest,
K the hardest that can still be done, K + 1 means "I can't" (a hard constraint).
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lib.base import checks

# shape of the hardness for each cost profile of the paper; the numbers are reconstructed
GAMMA = {"constant": None, "concave": 0.5, "linear": 1.0, "convex": 2.0}

# what a person may say of a feature, from the easiest to the hardest; evenly spread over the scores 1 to K
WORDS = ("easy", "manageable", "hard", "very hard")
IMPOSSIBLE = ("can't", "cannot", "impossible")


@dataclass(frozen=True)
class Preferences:
    """Scores of N people, and what follows from them.

    Arguments:
        scores: Whole numbers from 1 to K + 1, with shape (*, N, K); see the module.
    Raises: ValueError: a score is out of range, or someone may act on nothing at all.
    Source: section 4 of arXiv:2604.08030.
    """

    scores: Tensor

    def __post_init__(self) -> None:
        if (
            self.scores.ndim < 2
            or self.scores.is_floating_point()
            or self.scores.dtype == torch.bool
        ):
            raise ValueError(
                f"scores must be whole numbers with shape (N, K), got {self.scores.dtype} with shape "
                f"{tuple(self.scores.shape)}. To give a mask, use Preferences.from_mask."
            )
        n_features = self.scores.shape[-1]
        if ((self.scores < 1) | (self.scores > n_features + 1)).any():
            raise ValueError(
                f"scores must lie between 1 and {n_features} ({n_features + 1} for a feature a person can't act on), "
                f"got {int(self.scores.min())} to {int(self.scores.max())}."
            )
        stuck = ~self.is_actionable.any(-1)
        if stuck.any():
            first = tuple(stuck.nonzero()[0].tolist())
            raise ValueError(
                f"{int(stuck.sum())} people may act on nothing at all (the first is row {first[-1]}), so nothing can be "
                "recommended to them. Give at least one feature a score of K or less, or leave these people out."
            )

    @classmethod
    def from_mask(cls, is_actionable: Tensor) -> "Preferences":
        """Preferences of people who only say what they can do; all of that is equally easy. Mask: (N, K) of bool."""
        if is_actionable.dtype != torch.bool or is_actionable.ndim < 2:
            raise ValueError(
                f"A mask must be of bool with shape (N, K), got {is_actionable.dtype} with shape {tuple(is_actionable.shape)}."
            )
        n_features = is_actionable.shape[-1]
        return cls(torch.where(is_actionable, 1, n_features + 1))

    @property
    def is_actionable(self) -> Tensor:
        """A_u: which features each person may act on, with shape (*, N, K)."""
        return self.scores <= self.scores.shape[-1]


@dataclass(frozen=True)
class Profile:
    r"""How a score becomes a weight in the cost and a prior of acting.

    .. math:: h(s) = \Big(\frac{s - 1}{K - 1}\Big)^\gamma, \quad
              w(s) = 1 + (w_{max} - 1)\, h(s), \quad p(s) = p_{max} - (p_{max} - p_{min})\, h(s)

    Arguments:
        gamma: Shape of h: 1 linear, above 1 convex, below 1 concave; None is constant, h = 0.
        w_max: Weight of the hardest feature that can still be done, >= 1.
        p_min, p_max: Prior probability of acting on the hardest and on the easiest feature.
    Source: section 4.2 of arXiv:2604.08030; the formulas are reconstructed.
    """

    gamma: float | None = None
    w_max: float = 1.0
    p_min: float = 0.5
    p_max: float = 0.5

    def __post_init__(self) -> None:
        if self.gamma is not None:
            checks.positive(gamma=self.gamma)
        if not self.w_max >= 1:
            raise ValueError(
                f"w_max must be at least 1, the weight of the easiest feature, got {self.w_max!r}."
            )
        if not 0 < self.p_min <= self.p_max < 1:
            raise ValueError(
                f"Priors must satisfy 0 < p_min <= p_max < 1 (0 and 1 would make the mask's KL term infinite), "
                f"got p_min {self.p_min!r} and p_max {self.p_max!r}."
            )

    def hardness(self, preferences: Preferences) -> Tensor:
        """h(s) in [0, 1], with shape (*, N, K); 0 for features a person can't act on (no one asks how hard)."""
        scores = preferences.scores
        if self.gamma is None:
            return torch.zeros(scores.shape)
        share = (scores - 1).float() / max(scores.shape[-1] - 1, 1)
        return torch.where(preferences.is_actionable, share.pow(self.gamma), 0.0)

    def weight(self, preferences: Preferences) -> Tensor:
        """Actionability weights w(s) >= 1, with shape (*, N, K)."""
        return 1 + (self.w_max - 1) * self.hardness(preferences)

    def prior(self, preferences: Preferences) -> Tensor:
        """Actionability priors p(s), with shape (*, N, K)."""
        hardness = self.hardness(preferences)
        return self.p_max * (1 - hardness) + self.p_min * hardness


def from_words(answers: str | Mapping[str, str], features: Sequence[str]) -> Preferences:
    """What one person says, as preferences with scores of shape (1, K).

    Arguments:
        answers: "income: can't; savings: hard; ..." or a mapping of that kind. Every feature is answered by one of
            `WORDS`, by a rank or score from 1 to K, or by "can't".
        features: Names of the K actionable features.
    Raises: ValueError: a feature is unknown, left out or answered twice; a word is unknown; nothing is left to do.
    Example:
        >>> features = ("loan_amount", "loan_duration", "income", "savings")
        >>> from_words("loan amount: easy; loan duration: 2; income: can't; savings: very hard", features).scores
        tensor([[1, 2, 5, 4]])
    """
    pairs = _split_answers(answers) if isinstance(answers, str) else answers.items()
    names = {_plain(name): name for name in features}
    said: dict[str, str] = {}
    for feature, answer in pairs:
        name = names.get(_plain(feature), feature)
        if name in said:
            raise ValueError(f"{name} is answered twice. Keep one answer.")
        said[name] = _plain(answer)
    checks.known("feature", said, features)
    missing = [name for name in features if name not in said]
    if missing:
        raise ValueError(
            f"Nothing was said about {', '.join(missing)}. For each feature say {', '.join(WORDS)}, a number from 1 (easiest) "
            f"to {len(features)}, or can't."
        )
    scores = [_score(name, said[name], len(features)) for name in features]
    if min(scores) > len(features):
        raise ValueError(
            "This person can't act on anything, so there is no action to recommend. Is there one feature, however hard, "
            "that they could change?"
        )
    return Preferences(torch.tensor([scores]))


def read(path: Path, features: Sequence[str]) -> Preferences:
    """Answers of many people from a CSV file: a column for each actionable feature, a row a person, cells as `from_words`.

    Raises: ValueError: the file is missing or empty, a column is missing, or an answer is wrong (the message names its line).
    """
    if not path.is_file():
        raise ValueError(
            f"Expected a table of answers at {path}, found none. It needs the columns {', '.join(features)}."
        )
    with open(path, newline="", encoding="utf-8-sig") as file:
        table = csv.DictReader(file)
        missing = [name for name in features if name not in (table.fieldnames or ())]
        if missing:
            raise ValueError(
                f"{path} has no column {', '.join(missing)}; found {', '.join(table.fieldnames or ['nothing'])}."
            )
        scores = []
        for row in table:
            try:
                scores.append(
                    from_words(
                        {name: row[name] or "" for name in features}, features
                    ).scores
                )
            except ValueError as error:
                raise ValueError(f"{path}, line {table.line_num}: {error}") from error
    if not scores:
        raise ValueError(f"{path} holds no answers below its header.")
    return Preferences(torch.cat(scores))


def _plain(text: str) -> str:
    """Lower case, single blanks, straight apostrophes."""
    return " ".join(str(text).lower().replace("\u2019", "'").replace("_", " ").split())


def _split_answers(text: str) -> list[tuple[str, str]]:
    answers = []
    for part in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        feature, colon, answer = part.partition(":")
        if not colon:
            raise ValueError(
                f'Expected "feature: answer", parts divided by semicolons, got {part!r}.'
            )
        answers.append((feature.strip(), answer))
    return answers


def _score(feature: str, answer: str, n_features: int) -> int:
    if answer in IMPOSSIBLE:
        return n_features + 1
    if answer in WORDS:
        return 1 + round(WORDS.index(answer) * (n_features - 1) / (len(WORDS) - 1))
    if answer.isdecimal() and 1 <= int(answer) <= n_features:
        return int(answer)
    raise ValueError(
        f"{feature}: can't read {answer!r}. Say {', '.join(WORDS)}, a number from 1 (easiest) to {n_features}, or can't."
    )

"""To what values people may set features: directions, limits, steps, some categories.

A person who can change a feature may not be able to set it to any
value: "only up", "at most 60", "at most 500 more", "in steps of 500",
"one of cook or clerk". A limit binds the *action*. What follows from
other actions may move a feature beyond it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lib.base import checks

# ends of an interval that are as good as on a multiple of a step
CLOSE = 1e-6
BEND = 10.0  # how sharply values bend at the ends, a standard deviation

_NUMBER = r"(-?[0-9]+(?:[.][0-9]+)?(?:e-?[0-9]+)?)"
# what can be said, and which limits it sets, by name
_PHRASES: dict[str, dict[str, float | None]] = {
    r"only up": {"fall": 0.0},
    r"only down": {"rise": 0.0},
    r"up or down": {"fall": math.inf, "rise": math.inf},
    rf"at most {_NUMBER} more": {"rise": None},
    rf"at most {_NUMBER} less": {"fall": None},
    rf"at most {_NUMBER}": {"high": None},
    rf"at least {_NUMBER}": {"low": None},
    rf"in steps of {_NUMBER}": {"step": None},
}
HOW = (
    "Say only up, only down, up or down, at most 60, at least 10, at most 5 more, "
    "at most 5 less, in steps of 500, or of a category: one of cook or clerk."
)
ONE_OF, OR = "one of ", " or "


@dataclass(frozen=True)
class Limits:
    """Hold to what values each feature may be set, in the units of the data.

    NaN means that nothing is said: the population's own limit holds,
    if it has one. Infinity says that there is none.

    Arguments:
        low, high: The lowest and the highest value, with shape (*, K)
            for everybody alike or (*, N, K) for a person each.
        fall, rise: By how much it may be lowered and raised at most;
            0: that direction is closed.
        step: Values are multiples of it; 0: any.
        among: Of a feature with categories, the sum of 2**code over
            those that may be chosen.
    Raises: ValueError: shapes differ, low is above high, fall, rise or
        step are below zero, a step is infinite, or no category is
        left.
    Source: the survey of Karimi et al. (ACM Computing Surveys 55(5),
        2022), sections 3.3.2 and 3.5, of such constraints.
    Example:
        >>> features = ("loan_duration", "income")
        >>> limits = Limits.from_words({"loan_duration": "at most 60"}, features)
        >>> limits.high, limits.low
        (tensor([60., nan], dtype=torch.float64), tensor([nan, nan], dtype=torch.float64))
    """

    low: Tensor
    high: Tensor
    fall: Tensor
    rise: Tensor
    step: Tensor
    among: Tensor

    def __post_init__(self) -> None:
        for name, part in vars(self).items():
            if not isinstance(part, Tensor) or not part.is_floating_point():
                raise ValueError(f"{name} must be a tensor of fractions, got {part!r}.")
            checks.shape(name, part, self.low.shape)
        if (self.low > self.high).any():
            at = tuple((self.low > self.high).nonzero()[0].tolist())  # () for a scalar
            raise ValueError(
                f"The lowest value, {self.low[at].item():g}, is above the highest, "
                f"{self.high[at].item():g}: swap them, or leave one out."
            )
        for name in ("fall", "rise", "step"):
            if (getattr(self, name) < 0).any():
                raise ValueError(
                    f"{name} must not be below zero. It says by how much; the direction "
                    "is in its name."
                )
        if self.step.isinf().any():
            raise ValueError("step must be finite; 0: any value.")
        if (self.among < 1).any() or (self.among.nan_to_num() % 1 != 0).any():
            raise ValueError(
                "among must be a sum of 2**code over one category or more that may be "
                "chosen; NaN: any."
            )

    @classmethod
    def nothing(cls, *shape: int) -> "Limits":
        """Return limits of which none is said, with this shape.

        Example:
            >>> bool(Limits.nothing(3, 4).low.isnan().all())
            True
        """
        parts = (torch.full(shape, torch.nan, dtype=torch.float64) for _ in fields(cls))
        return cls(*parts)

    @classmethod
    def from_words(
        cls,
        said: Mapping[str, str],
        features: Sequence[str],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> "Limits":
        """Return what is said of some features as limits, with shape (K,).

        Arguments:
            said: From features to phrases, several divided by commas:
                {"income": "only up, at most 500 more"}.
            features: Names of the K features, in the order of the
                limits.
            categories: Of features that have some, in the order of
                their codes (`Population.categories`).
        Raises: ValueError: a feature or category is unknown, or a
            phrase can't be read or says again what another has said.
        Example:
            >>> Limits.from_words({"income": "only up"}, ("income", "savings")).fall
            tensor([0., nan], dtype=torch.float64)
        """
        checks.known("feature", said, tuple(features))
        own = {name: str(phrases).split(",") for name, phrases in said.items()}
        of = categories or {}
        return stacked(
            [cls.read(own.get(name, ()), name, of.get(name, ())) for name in features]
        )

    @classmethod
    def read(
        cls, phrases: Sequence[str], feature: str, categories: Sequence[str] = ()
    ) -> "Limits":
        """Return what phrases say of one feature as limits, without an axis.

        Raises: ValueError: as `from_words`.
        Example:
            >>> Limits.read(["only up", "at most 60"], "income").high
            tensor(60., dtype=torch.float64)
            >>> Limits.read(["one of a or b"], "job", ("none", "a", "b")).among
            tensor(6., dtype=torch.float64)
        """
        said: dict[str, float] = {}
        for phrase in phrases:
            for name, value in _read(phrase, feature, categories).items():
                if name in said:
                    raise ValueError(
                        f"{feature}: {phrase.strip()!r} says again what another part "
                        "says. Keep one of them."
                    )
                said[name] = value
        parts = (said.get(own.name, torch.nan) for own in fields(cls))
        try:
            return cls(*(torch.tensor(part, dtype=torch.float64) for part in parts))
        except ValueError as error:
            raise ValueError(f"{feature}: {error}") from error

    def check(
        self, features: Sequence[str], categories: Mapping[str, Sequence[str]]
    ) -> None:
        """Raise ValueError unless only categories are chosen among, and nothing else is.

        Arguments:
            features, categories: As for `from_words`.
        Example:
            >>> limits = Limits.from_words({"job": "only up"}, ("job",))
            >>> limits.check(("job",), {"job": ("cook", "clerk")})  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: job: a category has no direction and no limits: say how hard ...
        """
        for k, name in enumerate(features):
            n = len(categories.get(name, ()))
            said = {part: not own[..., k].isnan().all() for part, own in vars(self).items()}
            is_chosen = said.pop("among")
            if n and any(said.values()):
                raise ValueError(
                    f"{name}: a category has no direction and no limits: say how hard it "
                    "is to change, can't, or one of cook or clerk."
                )
            if is_chosen and (self.among[..., k] >= 2**n).any():
                raise ValueError(
                    f"{name} has {n} categories, and one beyond them may be chosen. Make "
                    "limits with categories=population.categories."
                )

    def or_else(self, others: "Limits | None") -> "Limits":
        """Return these limits, and others where nothing is said.

        Example:
            >>> one, other = Limits.nothing(1), Limits.nothing(1)
            >>> other.high[0] = 60.0
            >>> one.or_else(other).high
            tensor([60.], dtype=torch.float64)
        """
        if others is None:
            return self
        return Limits(
            *(
                torch.where(own.isnan(), other, own)
                for own, other in zip(
                    vars(self).values(), vars(others).values(), strict=True
                )
            )
        )

    def __getitem__(self, key: Any) -> "Limits":
        """Return the limits at these places; the leading axes are indexed as a tensor's.

        Example:
            >>> Limits.nothing(5, 2)[[0, 3]].low.shape
            torch.Size([2, 2])
        """
        return Limits(*(part[key] for part in vars(self).values()))


def stacked(each: Sequence[Limits]) -> Limits:
    """Return several limits as one, with a leading axis.

    Example:
        >>> stacked([Limits.nothing(4)] * 3).low.shape
        torch.Size([3, 4])
    """
    parts = ([getattr(own, part.name) for own in each] for part in fields(Limits))
    return Limits(*(torch.stack(part) for part in parts))


def _read(phrase: str, what: str, categories: Sequence[str]) -> dict[str, float]:
    """Return the limits that one phrase sets, by name."""
    plain = " ".join(phrase.lower().split())
    if plain.startswith(ONE_OF):
        if not categories:
            raise ValueError(f"{what} has no categories, and can't be {plain!r}. {HOW}")
        codes = {" ".join(own.lower().split()): i for i, own in enumerate(categories)}
        if len(codes) < len(categories):
            raise ValueError(
                f"Two categories of {what} read alike, once case and blanks are left out: "
                f"{', '.join(categories)}. Rename one in the table."
            )
        chosen = {own.strip() for own in plain.removeprefix(ONE_OF).split(OR)}
        checks.known(f"category of {what}:", chosen, tuple(codes))
        return {"among": float(sum(2 ** codes[own] for own in chosen))}
    for pattern, sets in _PHRASES.items():
        if found := re.fullmatch(pattern, plain):
            value = float(found[1]) if found.groups() else math.nan
            return {name: value if to is None else to for name, to in sets.items()}
    raise ValueError(f"{what}: can't read {phrase.strip()!r}. {HOW}")


@dataclass(frozen=True)
class Interval:
    """Hold to what values each person may set each actionable feature, standardised.

    `Problem.interval` makes it, and every solver asks it.

    Arguments:
        may: Whether they may set it at all, with shape (*, N, K).
        low, high: The ends, with shape (*, N, K).
        step: Values are so far from each other, with shape (*, N, K);
            0: any; None: nobody has a step.
        origin: A value that lies on every step, with shape (K,).
        codes: Of C numbers of steps from the origin the nearest that
            may be chosen, with shape (*, N, K, C); -1: any; None:
            nobody chooses among categories.
    Example:
        >>> ends = torch.tensor([[-1.0]]), torch.tensor([[1.0]])
        >>> interval = Interval(torch.tensor([[True]]), *ends)
        >>> interval.nearest(torch.tensor([[3.0]]))
        tensor([[1.]])
    """

    may: Tensor
    low: Tensor
    high: Tensor
    step: Tensor | None = None
    origin: Tensor | None = None
    codes: Tensor | None = None

    def nearest(self, values: Tensor) -> Tensor:
        """Return the nearest values that may be set, with shape (*, N, K).

        Example:
            >>> ends = torch.tensor([[-1.0]]), torch.tensor([[1.0]])
            >>> steps = torch.tensor([[0.5]]), torch.tensor([0.0])
            >>> interval = Interval(torch.tensor([[True]]), *ends, *steps)
            >>> interval.nearest(torch.tensor([[0.7]]))
            tensor([[0.5000]])
        """
        values = values.maximum(self.low).minimum(self.high)
        if self.step is None or self.origin is None:
            return values
        values = torch.where(self.step > 0, on_step(values, self.step, self.origin), values)
        if self.codes is None:
            return values
        steps = (values - self.origin) / self.step.clamp_min(CLOSE)
        code = steps.round().long().clamp(0, self.codes.shape[-1] - 1)
        nearest = self.codes.expand(*code.shape, -1)
        chosen = nearest.gather(-1, code[..., None]).squeeze(-1)
        return torch.where(chosen < 0, values, self.origin + chosen * self.step)

    def smoothly(self, values: Tensor) -> Tensor:
        """Return values bent into the interval, so that each has a gradient, (*, N, K).

        Well within the interval they hardly change; steps are not
        asked. It is what `nearest` does, for training.

        Example:
            >>> ends = torch.tensor([[-1.0]]), torch.tensor([[1.0]])
            >>> Interval(torch.tensor([[True]]), *ends).smoothly(torch.tensor([[0.5]]))
            tensor([[0.4993]])
        """
        over = (softplus(values - end, BEND) for end in (self.low, self.high))
        return self.low + next(over) - next(over)

    def room(self, now: Tensor, spread: Tensor) -> Tensor:
        """Return how far each feature may fall and rise, as shares of its range.

        Below zero: it must move at least so far.

        Arguments:
            now: Features today, with shape (*, N, K).
            spread: Of each feature, with shape (K,).
        Returns: Shares from -1 to 1, with shape (*, N, 2K); 0 where a
            feature may not be set.
        Example:
            >>> ends = torch.tensor([[-1.0]]), torch.tensor([[1.0]])
            >>> interval = Interval(torch.tensor([[True]]), *ends)
            >>> interval.room(torch.tensor([[0.0]]), torch.tensor([4.0]))
            tensor([[0.2500, 0.2500]])
        """
        ways = torch.cat([(now - self.low) / spread, (self.high - now) / spread], -1)
        return ways.clamp(-1, 1) * torch.cat([self.may, self.may], -1)

    def __getitem__(self, key: Any) -> "Interval":
        """Return the part at this place; the leading axes are indexed as a tensor's.

        Example:
            >>> may = torch.ones(5, 2, dtype=torch.bool)
            >>> Interval(may, may.float(), may.float())[[0, 3]].low.shape
            torch.Size([2, 2])
        """
        step, codes = (
            None if part is None else part[key] for part in (self.step, self.codes)
        )
        ends = self.low[key], self.high[key]
        return Interval(self.may[key], *ends, step, self.origin, codes)


def on_step(values: Tensor, step: Tensor, origin: Tensor) -> Tensor:
    """Return the nearest values that are whole steps from the origin.

    Example:
        >>> on_step(torch.tensor([0.7]), torch.tensor([0.5]), torch.tensor([0.1]))
        tensor([0.6000])
    """
    return origin + ((values - origin) / step.clamp_min(CLOSE)).round() * step


def narrowed(
    may: Tensor,
    now: Tensor,
    ends: Sequence[Tensor],
    limits: Limits,
    is_whole: Tensor,
    scale: Sequence[Tensor],
) -> Interval:
    """Return the interval that limits leave of a range.

    Where there are steps, its ends lie on one.

    Arguments:
        may: Whether features may be set at all, with shape (*, N, K).
        now: What they are, standardised, with shape (*, N, K).
        ends: Of the range, standardised, each with shape (K,).
        limits: In the units of the data, with shape (K,) or (*, N, K);
            those among categories are of whole numbers only.
        is_whole: Which features are whole numbers, with shape (K,).
        scale: Mean and standard deviation, each with shape (K,).
    Example:
        >>> now, one = torch.tensor([[0.5]]), torch.ones(1, dtype=torch.float64)
        >>> only_up = Limits.from_words({"income": "only up"}, ("income",))
        >>> ends = torch.tensor([-2.0]), torch.tensor([2.0])
        >>> narrowed(now > 0, now, ends, only_up, now[0] < 0, (0 * one, one)).low
        tensor([[0.5000]])
    """
    mean, std = scale
    origin = -mean / std
    of_low, of_high, fall, rise = (
        getattr(limits, name).nan_to_num(unsaid, math.inf, -math.inf)
        for name, unsaid in (
            ("low", -math.inf),
            ("high", math.inf),
            ("fall", math.inf),
            ("rise", math.inf),
        )
    )
    low, high = (end.double().expand(may.shape) for end in ends)
    low = low.maximum(origin + of_low / std).maximum(now.double() - fall / std)
    high = high.minimum(origin + of_high / std).minimum(now.double() + rise / std)
    step = limits.step.nan_to_num(0.0).expand(may.shape)
    step = torch.where(is_whole, step.clamp_min(1.0), step) / std
    size = step.clamp_min(CLOSE)
    codes = None
    if limits.among.isfinite().any():
        seen = [((end.double() - origin) * std).round() for end in ends]
        codes, is_any = _nearest_codes(limits.among, *seen)
        codes, may = codes.expand(*may.shape, -1), may & is_any
        is_said = limits.among.isfinite()
        least, most = (origin + step * end(-1) for end in (codes.amin, codes.amax))
        low = torch.where(is_said, low.maximum(least), low)
        high = torch.where(is_said, high.minimum(most), high)
    first = origin + ((low - origin) / size - CLOSE).ceil() * step
    last = origin + ((high - origin) / size + CLOSE).floor() * step
    low, high = torch.where(step > 0, first, low), torch.where(step > 0, last, high)
    may = may & (low <= high)
    low, high = _rounded(low, now.dtype, math.inf), _rounded(high, now.dtype, -math.inf)
    return Interval(may, low, high, step.to(now), origin.to(now), codes)


def _nearest_codes(among: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each code the nearest that may be chosen, and whether any may.

    Arguments:
        among: As in `Limits`, with shape (*, K).
        first, last: Codes that were seen, each with shape (K,).
    Returns: Codes, with shape (*, K, C), -1 where nothing is said;
        and (*, K).
    """
    is_said, numbers = among.isfinite(), among.nan_to_num().long()
    codes = torch.arange(int(numbers.max()).bit_length())
    may = ((numbers[..., None] >> codes) & 1 == 1) & (codes >= first[:, None])
    may &= codes <= last[:, None]
    far = (codes[:, None] - codes).abs().masked_fill(~may[..., None, :], len(codes))
    return far.argmin(-1).where(is_said[..., None], -1), may.any(-1) | ~is_said


def _rounded(end: Tensor, dtype: torch.dtype, inward: float) -> Tensor:
    """Return an end of an interval in another dtype, rounded inward."""
    near = end.to(dtype)
    is_out = (near.double() - end) * math.copysign(1.0, inward) < 0
    return torch.where(is_out, near.nextafter(near.new_tensor(inward)), near)

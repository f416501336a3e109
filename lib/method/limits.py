"""To what values people can set features: directions, bounds, steps, some categories.

A person who can change a feature may not be able to set it to any
value: "only up", "at most 60", "at most 500 more", "in steps of 500",
"one of cook or clerk". A limit binds the *action*. Effects of other
actions may move a feature beyond it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from lib import checks

# ends of an interval that are as good as on a multiple of a step
CLOSE = 1e-6
SHARPNESS = 10.0  # of the bend at the ends of an interval, a standard deviation

CHANGES = ("max_decrease", "max_increase", "max_percent_decrease", "max_percent_increase")
NUMBERS = ("low", "high", "step", *CHANGES)

_NUMBER = r"(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:[.][0-9]+)?(?:e[-+]?[0-9]+)?)"
_PERCENT = rf"{_NUMBER} ?(?:%|percent)"

# which limits a phrase sets, by name; None: to the phrase's next number
_PHRASES: dict[str, dict[str, float | None]] = {
    r"only up|up only": {"max_decrease": 0.0},
    r"only down|down only": {"max_increase": 0.0},
    r"up or down": dict.fromkeys(CHANGES, math.inf),
    rf"at most {_NUMBER} more": {"max_increase": None},
    rf"at most {_NUMBER} less": {"max_decrease": None},
    rf"at most {_PERCENT} more": {"max_percent_increase": None},
    rf"at most {_PERCENT} less": {"max_percent_decrease": None},
    rf"at most {_NUMBER}": {"high": None},
    rf"at least {_NUMBER}": {"low": None},
    rf"between {_NUMBER} and {_NUMBER}": {"low": None, "high": None},
    rf"in steps of {_NUMBER}": {"step": None},
}
HOW = (
    "Say only up, only down, up or down, at most 60, at least 10, between 10 and 60, "
    "at most 5 more, at most 5 less, at most 10 % more, in steps of 500, or of a "
    "category: one of cook or clerk."
)
ONE_OF, OR = "one of ", " or "
_BETWEEN_PHRASES = re.compile(r"(?<![0-9]),|,(?![0-9]{3}(?![0-9]))")  # not within 1,000


@dataclass(frozen=True)
class Limits:
    """Hold to what values features may be set, in the units of the data.

    NaN means "not stated": the population's limit holds, if it has
    one. Infinity means that there is none.

    Arguments:
        low, high: The lowest and the highest value, with shape (*, K):
            (K,) for everybody alike, (*, N, K) for one person a row.
        max_decrease, max_increase: By how much a value may be lowered
            and raised, with shape (*, K); 0: that direction is closed.
        step: Values are multiples of it, with shape (*, K); 0: any.
        allowed_categories: Which of at most C categories may be
            chosen, by their codes, with shape (*, K, C); none of a
            feature: not stated; None: of no feature stated.
        max_percent_decrease, max_percent_increase: By how many percent
            of today's value it may be lowered and raised, with shape
            (*, K); None: not stated.
    Raises: ValueError: shapes or types differ, low is above high, one
        of the others is below zero, or a step is infinite.
    Source: the survey of Karimi et al. (ACM Computing Surveys 55(5),
        2022), sections 3.3.2 and 3.5, of such constraints.
    Example:
        >>> Limits.from_words({"debt": "at most 60"}, ("debt", "income")).high
        tensor([60., nan], dtype=torch.float64)
    """

    low: Tensor
    high: Tensor
    max_decrease: Tensor
    max_increase: Tensor
    step: Tensor
    allowed_categories: Tensor | None = None
    max_percent_decrease: Tensor | None = None
    max_percent_increase: Tensor | None = None

    def __post_init__(self) -> None:
        for name, values in self.numbers.items():
            if not isinstance(values, Tensor) or not values.is_floating_point():
                raise ValueError(f"{name} must be a floating-point tensor, got {values!r}.")
            checks.shape(name, values, self.low.shape)
            if name not in ("low", "high") and (values < 0).any():
                raise ValueError(
                    f"{name} must not be below zero. It says by how much; the direction "
                    "is in its name."
                )
        is_crossed = self.low > self.high
        if is_crossed.any():
            low, high = self.low[is_crossed][0].item(), self.high[is_crossed][0].item()
            raise ValueError(
                f"The lowest value, {low:g}, is above the highest, {high:g}: swap them, or "
                "leave one out."
            )
        if self.step.isinf().any():
            raise ValueError("step must be finite; 0: any value.")
        (mask,) = _masks(self)
        if mask.dtype != torch.bool or mask.shape[:-1] != self.low.shape:
            raise ValueError(
                f"allowed_categories must be a mask with shape (*, K, C), got {mask.dtype} "
                f"with shape {tuple(mask.shape)}, and limits of {tuple(self.low.shape)}."
            )

    @classmethod
    def unlimited(cls, *shape: int) -> "Limits":
        """Return limits of which none is stated, with this shape."""
        return cls(*(torch.full(shape, torch.nan, dtype=torch.float64) for _ in range(5)))

    @classmethod
    def from_words(
        cls,
        phrases: Mapping[str, str],
        features: Sequence[str],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> "Limits":
        """Return limits in words as numbers, with shape (K,).

        Arguments:
            phrases: From some features to phrases, divided by commas:
                {"income": "only up, at most 1,000 more"}.
            features: Names of the K features, in the order of the
                limits.
            categories: Of features that have some, in the order of
                their codes (`Population.categories`).
        Raises: ValueError: a feature or category is unknown, or a
            phrase can't be read or states again what another does.
        """
        checks.one_of("feature", phrases, tuple(features))
        names = categories or {}
        return stack_limits(
            [
                cls.parse(phrases.get(name, ""), name, names.get(name, ()))
                for name in features
            ]
        )

    @classmethod
    def parse(
        cls, phrases: str | Sequence[str], feature: str, categories: Sequence[str] = ()
    ) -> "Limits":
        """Return limits of one feature from phrases, with shape ().

        Arguments:
            phrases: One text, divided by commas, or a list of texts.
        Raises: ValueError: as `from_words`.
        Example:
            >>> Limits.parse("only up, at most 1,000", "income").high
            tensor(1000., dtype=torch.float64)
        """
        text = ",".join(phrases) if isinstance(phrases, list | tuple) else str(phrases)
        values: dict[str, Any] = {}
        for phrase in _BETWEEN_PHRASES.split(text) if text else ():
            new = _read(phrase, feature, categories)
            if new.keys() & values.keys():
                raise ValueError(
                    f"{feature}: {phrase.strip()!r} says again what another phrase says. "
                    "Keep one of them."
                )
            values |= new
        tensors = {
            name: torch.tensor(values.get(name, torch.nan), dtype=torch.float64)
            for name in NUMBERS
        }
        try:
            return cls(**tensors, allowed_categories=values.get("allowed_categories"))
        except ValueError as error:
            raise ValueError(f"{feature}: {error}") from error

    @property
    def numbers(self) -> dict[str, Tensor]:
        """The limits that are numbers, by name, each with shape (*, K)."""
        values = {name: getattr(self, name) for name in NUMBERS}
        return {
            name: torch.full_like(self.low, torch.nan, dtype=torch.float64)
            if value is None
            else value
            for name, value in values.items()
        }

    @property
    def is_stated(self) -> Tensor:
        """Whether anything is stated of each feature, with shape (*, K)."""
        is_number = torch.stack([~n.isnan() for n in self.numbers.values()]).any(0)
        (mask,) = _masks(self)
        return is_number | mask.any(-1)

    def check(
        self, features: Sequence[str], categories: Mapping[str, Sequence[str]]
    ) -> None:
        """Raise ValueError where limits do not suit categories.

        Arguments:
            features, categories: As for `from_words`.
        """
        (mask,) = _masks(self)
        for k, name in enumerate(features):
            names = categories.get(name, ())
            has_numbers = any(
                not values[..., k].isnan().all() for values in self.numbers.values()
            )
            if names and has_numbers:
                raise ValueError(
                    f"{name}: a category has no direction and no limits: name those that "
                    f'may be chosen, for instance "{ONE_OF}{OR.join(names)}".'
                )
            if mask[..., k, len(names) :].any():
                raise ValueError(
                    f"{name} has {len(names)} categories, and one beyond them may be "
                    "chosen. Make limits with categories=population.categories."
                )

    def fill_from(self, others: "Limits | None") -> "Limits":
        """Return these limits, and others where none is stated.

        Both hold where one is in percent and the other is not.
        """
        if others is None:
            return self
        numbers = {
            name: torch.where(values.isnan(), others.numbers[name], values)
            for name, values in self.numbers.items()
        }
        mask, other_mask = _masks(self, others)
        mask = torch.where(mask.any(-1, keepdim=True), mask, other_mask)
        return Limits(**numbers, allowed_categories=mask if mask.any() else None)

    def __getitem__(self, key: Any) -> "Limits":
        """Return the limits at this place, indexed as tensors (*, K) are."""
        numbers = {name: values[key] for name, values in self.numbers.items()}
        return Limits(**numbers, allowed_categories=_at(self.allowed_categories, key))


def stack_limits(limits: Sequence[Limits]) -> Limits:
    """Return several limits as one, with a leading axis."""
    numbers = {name: torch.stack([one.numbers[name] for one in limits]) for name in NUMBERS}
    mask = torch.stack(_masks(*limits))
    return Limits(**numbers, allowed_categories=mask if mask.any() else None)


def _masks(*limits: Limits) -> list[Tensor]:
    """Return the allowed categories of several limits, with as many columns each."""
    masks = [
        torch.zeros(*one.low.shape, 0, dtype=torch.bool)
        if one.allowed_categories is None
        else one.allowed_categories
        for one in limits
    ]
    n_categories = max(mask.shape[-1] for mask in masks)
    return [pad(mask, (0, n_categories - mask.shape[-1])) for mask in masks]


def _at(mask: Tensor | None, key: Any) -> Tensor | None:
    """Return a mask of categories (*, K, C) at a place that is given for (*, K)."""
    if mask is None:
        return None
    axes = key if isinstance(key, tuple) else (key,)
    return mask[(*axes, slice(None))]


def _read(phrase: str, feature: str, categories: Sequence[str]) -> dict[str, Any]:
    """Return the limits that one phrase sets, by name."""
    plain = " ".join(phrase.lower().split())
    if plain.startswith(ONE_OF):
        return {"allowed_categories": _read_categories(plain, feature, categories)}
    for pattern, limits in _PHRASES.items():
        if match := re.fullmatch(pattern, plain):
            numbers = iter(match.groups())
            return {
                name: float(next(numbers).replace(",", "")) if value is None else value
                for name, value in limits.items()
            }
    raise ValueError(f"{feature}: can't read {phrase.strip()!r}. {HOW}")


def _read_categories(plain: str, feature: str, categories: Sequence[str]) -> Tensor:
    """Return which categories a phrase "one of cook or clerk" names, with shape (C,)."""
    if not categories:
        raise ValueError(f"{feature} has no categories, and can't be {plain!r}. {HOW}")
    names = [" ".join(category.lower().split()) for category in categories]
    chosen = {name.strip() for name in plain.removeprefix(ONE_OF).split(OR)}
    checks.one_of(f"category of {feature}:", chosen, tuple(names))
    return torch.tensor([name in chosen for name in names])


@dataclass(frozen=True)
class Interval:
    """Hold to what values each person may set each actionable feature, standardised.

    `Problem.interval` makes it, for every solver.

    Arguments:
        is_allowed: Whether they may set it at all, with shape
            (*, N, K).
        low, high: The ends, with shape (*, N, K).
        step: Distance between values, with shape (*, N, K); 0: any
            value; None: nobody has a step.
        origin: A value that lies on every step, with shape (K,).
        allowed_categories: Which numbers of steps from the origin, 0
            to C - 1, may be chosen, with shape (*, N, K, C); none of
            a feature: any; None: nobody chooses among categories.
    """

    is_allowed: Tensor
    low: Tensor
    high: Tensor
    step: Tensor | None = None
    origin: Tensor | None = None
    allowed_categories: Tensor | None = None

    def project(self, values: Tensor) -> Tensor:
        """Return the nearest values that may be set, with shape (*, N, K).

        Example:
            >>> ends = torch.tensor([[-1.0]]), torch.tensor([[1.0]])
            >>> Interval(torch.tensor([[True]]), *ends).project(torch.tensor([[3.0]]))
            tensor([[1.]])
        """
        values = values.maximum(self.low).minimum(self.high)
        if self.step is None or self.origin is None:
            return values
        n_steps = ((values - self.origin) / _size(self.step)).round()
        on_step = self.origin + n_steps * self.step
        values = torch.where(self.step > 0, on_step, values)
        if self.allowed_categories is None:
            return values
        codes = torch.arange(self.allowed_categories.shape[-1])
        distance = (n_steps[..., None] - codes).abs()
        nearest = distance.masked_fill(~self.allowed_categories, torch.inf).argmin(-1)
        is_stated = self.allowed_categories.any(-1)
        return torch.where(is_stated, self.origin + nearest * self.step, values)

    def soft_clamp(self, values: Tensor) -> Tensor:
        """Return values bent into the interval, with a gradient everywhere, (*, N, K).

        It replaces `project` in training: values well inside hardly
        change, and steps do not count.
        """
        above_low = softplus(values - self.low, SHARPNESS)
        above_high = softplus(values - self.high, SHARPNESS)
        return self.low + above_low - above_high

    def headroom(self, now: Tensor, spread: Tensor) -> Tensor:
        """Return how far each feature may fall and rise, as shares of its range.

        Below zero: it must move at least so far.

        Arguments:
            now: Features today, with shape (*, N, K).
            spread: Range of each feature, with shape (K,).
        Returns: Shares from -1 to 1, first of all falls, then of all
            rises, with shape (*, N, 2K); 0 where a feature may not be
            set.
        """
        shares = torch.cat([(now - self.low) / spread, (self.high - now) / spread], -1)
        return shares.clamp(-1, 1) * torch.cat([self.is_allowed, self.is_allowed], -1)

    def __getitem__(self, key: Any) -> "Interval":
        """Return the interval at this place, indexed as tensors (*, K) are."""
        return Interval(
            self.is_allowed[key],
            self.low[key],
            self.high[key],
            None if self.step is None else self.step[key],
            self.origin,
            _at(self.allowed_categories, key),
        )


def intersect(
    is_allowed: Tensor,
    now: Tensor,
    low: Tensor,
    high: Tensor,
    limits: Limits,
    is_whole: Tensor,
    mean: Tensor,
    std: Tensor,
) -> Interval:
    """Return the intersection of a range with limits, standardised.

    Where there are steps, its ends lie on one. A feature with no value
    left may not be set.

    Arguments:
        is_allowed: Whether features may be set at all, with shape
            (*, N, K).
        now: Features today, standardised, with shape (*, N, K).
        low, high: The range, standardised, each with shape (K,).
        limits: In the units of the data, with shape (K,) or (*, N, K);
            categories are of whole numbers only.
        is_whole: Which features are whole numbers, with shape (K,).
        mean, std: Of the standardisation, in float64, each with shape
            (K,).
    """
    origin = -mean / std
    today = now.double()
    magnitude = ((today - origin) * std).abs()  # of today's value, in units
    decrease, increase, percent_decrease, percent_increase = (
        limits.numbers[name] for name in CHANGES
    )
    # fmin and fmax pass over NaN: what is not stated limits nothing
    decrease = decrease.fmin(magnitude * percent_decrease / 100)
    increase = increase.fmin(magnitude * percent_increase / 100)
    low, high = (end.double().expand(is_allowed.shape) for end in (low, high))
    low = low.fmax(origin + limits.low / std).fmax(today - decrease / std)
    high = high.fmin(origin + limits.high / std).fmin(today + increase / std)

    step = limits.step.nan_to_num(0.0).expand(is_allowed.shape)
    step = torch.where(is_whole, step.clamp_min(1.0), step) / std
    size = _size(step)
    # in steps, by how much rounding can move an end off one: x has few digits
    digits = torch.finfo(now.dtype).eps * torch.maximum(low.abs(), high.abs()) / size
    near = (4 * digits).clamp(CLOSE, 0.49)
    first = ((low - origin) / size - near).ceil()
    last = ((high - origin) / size + near).floor()

    mask = None
    if limits.allowed_categories is not None and limits.allowed_categories.any():
        mask = limits.allowed_categories
        codes = torch.arange(mask.shape[-1])
        is_stated = mask.any(-1)
        mask = mask & (first[..., None] <= codes) & (codes <= last[..., None])
        least = torch.where(mask, codes, torch.inf).amin(-1)
        most = torch.where(mask, codes, -torch.inf).amax(-1)
        is_allowed = is_allowed & (mask.any(-1) | ~is_stated)
        first = torch.where(mask.any(-1), least, first)
        last = torch.where(mask.any(-1), most, last)

    low = torch.where(step > 0, origin + first * step, low)
    high = torch.where(step > 0, origin + last * step, high)
    is_allowed = is_allowed & (low <= high)
    low, high = _round_up(low, now.dtype), -_round_up(-high, now.dtype)
    return Interval(is_allowed, low, high, step.to(now), origin.to(now), mask)


def _size(step: Tensor) -> Tensor:
    """Return the steps to divide by: 1 where there is none."""
    return torch.where(step > 0, step, 1.0)


def _round_up(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return values in another dtype, rounded upwards."""
    near = values.to(dtype)
    return torch.where(near < values, near.nextafter(near.new_tensor(torch.inf)), near)

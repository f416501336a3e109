"""To what values people can set features: directions, bounds, steps, some categories.

A person who can change a feature may not be able to set it to any
value: "only up", "at most 60", "at most 500 more", "in steps of 500",
"one of cook or clerk". A limit binds the *action*. Effects of other
actions may move a feature beyond it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
_PHRASES: dict[str, dict[str, str | None]] = {
    r"only up|up only": {"max_decrease": "0"},
    r"only down|down only": {"max_increase": "0"},
    r"up or down": dict.fromkeys(CHANGES, "inf"),
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
    "at most 5 more, at most 5 less, at most 10 % more, in steps of 500, or, of a feature "
    "with categories, one of cook or clerk."
)
_AMBIGUOUS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}[.][0-9]{3}(?![0-9.,e])")
ONE_OF, OR = "one of ", " or "
_BETWEEN_PHRASES = re.compile(r"(?<![0-9]),|,(?![0-9]{3}(?![0-9]))")  # not within 1,000

NOT_STATED = torch.tensor(torch.nan, dtype=torch.float64)
NO_CATEGORIES = torch.zeros(0, dtype=torch.bool)


class Categories(tuple[str, ...]):
    """Name codes 0, 1, ... of a feature; keep their values in the table, and any order.

    Arguments:
        names: As people say them.
        values: As the table holds them: numbers, texts, dates, ...;
            left out: the names.
        is_ordered: Whether they have a direction, so that "only up"
            means something.
    """

    values: tuple[Any, ...]
    is_ordered: bool

    def __new__(
        cls,
        names: Iterable[str],
        values: Iterable[Any] | None = None,
        is_ordered: bool = False,
    ) -> "Categories":
        """Return the names, with what stands beside them."""
        self = super().__new__(cls, names)
        self.values = tuple(self if values is None else values)
        self.is_ordered = is_ordered
        return self


@dataclass(frozen=True)
class Limits:
    """Hold to what values features may be set, in the units of the data.

    NaN means "not stated": the population's limit holds, if it has
    one. Infinity means that there is none. `check` looks for limits
    that contradict each other.

    Arguments:
        low, high: The lowest and the highest value, with shape (*, K):
            (K,) for everybody alike, (*, N, K) for one person a row.
        max_decrease, max_increase: By how much a value may be lowered
            and raised, with shape (*, K); 0: that direction is closed.
        step: Values are multiples of it, with shape (*, K); 0: any.
        allowed_categories: Which of at most C categories may be
            chosen, by their codes, with shape (*, K, C); none of a
            feature: not stated.
        max_percent_decrease, max_percent_increase: By how many percent
            of today's value it may be lowered and raised, with shape
            (*, K).
    Raises: RuntimeError: a tensor does not have the shape of low.
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
    allowed_categories: Tensor = NO_CATEGORIES
    max_percent_decrease: Tensor = NOT_STATED
    max_percent_increase: Tensor = NOT_STATED

    def __post_init__(self) -> None:
        shape = self.low.shape
        for name, values in self.numbers.items():
            object.__setattr__(self, name, values.expand(shape))
        mask = self.allowed_categories
        mask = mask.expand(*shape, mask.shape[-1])
        object.__setattr__(self, "allowed_categories", mask)

    @classmethod
    def unlimited(cls, *shape: int) -> "Limits":
        """Return limits of which none is stated, with this shape."""
        return cls(**{name: NOT_STATED.expand(shape).clone() for name in NUMBERS})

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
        Raises: ValueError: a feature or category is unknown, a phrase
            can't be read or states again what another does, or as
            `check`.
        """
        checks.one_of("feature", phrases, tuple(features))
        names = categories or {}
        limits = stack_limits(
            [
                _read(phrases.get(feature, ""), feature, names.get(feature, ()))
                for feature in features
            ]
        )
        limits.check(features, names)
        return limits

    @property
    def numbers(self) -> dict[str, Tensor]:
        """The limits that are numbers, by name, each with shape (*, K)."""
        return {name: getattr(self, name) for name in NUMBERS}

    @property
    def is_stated(self) -> Tensor:
        """Whether anything is stated of each feature, with shape (*, K)."""
        numbers = torch.stack([*self.numbers.values()])
        return ~numbers.isnan().all(0) | self.allowed_categories.any(-1)

    def check(
        self, features: Sequence[str], categories: Mapping[str, Sequence[str]]
    ) -> None:
        """Raise ValueError where limits contradict each other, or do not suit categories.

        The message names the feature, and the row if there are some.

        Arguments:
            features, categories: As for `from_words`.
        """
        numbers = self.numbers
        is_number = torch.stack([~values.isnan() for values in numbers.values()]).any(0)
        is_negative = torch.stack([numbers[name] < 0 for name in ("step", *CHANGES)]).any(0)
        sizes = [
            values.isfinite() & ((values > 0) | (name not in CHANGES))
            for name, values in numbers.items()
        ]
        is_ordered = torch.tensor(
            [getattr(categories.get(name), "is_ordered", False) for name in features]
        )
        n_categories = torch.tensor([len(categories.get(name, ())) for name in features])
        codes = torch.arange(self.allowed_categories.shape[-1])
        is_unknown = self.allowed_categories & (codes >= n_categories[:, None])
        mistakes = {
            "The lowest value is above the highest, a person's or the population's. "
            "Leave one out, or swap them.": self.low > self.high,
            "A step or change is below zero: the direction is in its name.": is_negative,
            "Categories have no direction and no limits. Say one of cook or clerk; or only "
            "up, of a column of an ordered type, frame[column].astype("
            "pd.CategoricalDtype(lowest_first, ordered=True)).": (
                is_number & (n_categories > 0) & ~is_ordered
            ),
            "Ordered categories have a direction, only up or only down, and no other "
            "limits. Say which, with one of cook or clerk.": torch.stack(sizes).any(0)
            & is_ordered,
            "It has fewer categories. Read with population.categories.": is_unknown.any(-1),
        }
        for mistake, is_made in mistakes.items():
            if is_made.any():
                *rows, k = place = tuple(is_made.nonzero()[0].tolist())
                row = f" of row {rows[-1]}" if rows else ""
                stated = {name: values[place] for name, values in numbers.items()}
                listed = [f"{n} {value:g}" for n, value in stated.items() if value == value]
                came = f" Stated: {', '.join(listed)}." if listed else ""
                raise ValueError(f"{features[k]}{row}: {mistake}{came}")

    def fill_from(self, others: "Limits | None") -> "Limits":
        """Return these limits, and others where none is stated.

        Both hold where one is in percent and the other is not.
        """
        if others is None:
            return self
        both = stack_limits([self, others])
        numbers = {
            name: torch.where(first.isnan(), second, first)
            for name, (first, second) in both.numbers.items()
        }
        mask, other_mask = both.allowed_categories
        mask = torch.where(mask.any(-1, keepdim=True), mask, other_mask)
        return Limits(**numbers, allowed_categories=mask)

    def __getitem__(self, key: Any) -> "Limits":
        """Return the limits at this place, indexed as tensors (*, K) are."""
        numbers = {name: values[key] for name, values in self.numbers.items()}
        axes = key if isinstance(key, tuple) else (key,)
        mask = self.allowed_categories[(*axes, slice(None))]
        return Limits(**numbers, allowed_categories=mask)


def stack_limits(limits: Sequence[Limits]) -> Limits:
    """Return several limits as one, with a leading axis; shapes are broadcast."""
    numbers = {
        name: torch.stack(torch.broadcast_tensors(*[one.numbers[name] for one in limits]))
        for name in NUMBERS
    }
    masks = [one.allowed_categories for one in limits]
    n_categories = max(mask.shape[-1] for mask in masks)
    masks = [pad(mask, (0, n_categories - mask.shape[-1])) for mask in masks]
    mask = torch.stack(torch.broadcast_tensors(*masks))
    return Limits(**numbers, allowed_categories=mask)


def plain(text: object) -> str:
    """Return a text in lower case, with single blanks and straight apostrophes."""
    return " ".join(str(text).lower().replace("\u2019", "'").replace("_", " ").split())


def _read(text: str, feature: str, categories: Sequence[str]) -> Limits:
    """Return the limits of one feature that phrases state, with shape ()."""
    stated: dict[str, Tensor] = {}
    for phrase in filter(str.strip, _BETWEEN_PHRASES.split(text)):
        new = _read_phrase(phrase, feature, categories)
        if new.keys() & stated.keys():
            raise ValueError(
                f"{feature}: {plain(phrase)!r} says again what another phrase says. Keep "
                "one of them."
            )
        stated |= new
    if stated.get("max_decrease") == 0 and stated.get("max_increase") == 0:
        raise ValueError(f"{feature}: only up and only down leave no value. Say can't.")
    return replace(Limits.unlimited(), **stated)


def _read_phrase(phrase: str, feature: str, categories: Sequence[str]) -> dict[str, Tensor]:
    """Return the limits that one phrase sets, by name."""
    as_written, phrase = " ".join(phrase.split()), plain(phrase)
    if phrase.startswith(ONE_OF) and categories:
        names = re.split(OR, as_written[len(ONE_OF) :], flags=re.IGNORECASE)
        allowed = torch.zeros(len(categories), dtype=torch.bool)
        allowed[[_code(name, feature, categories) for name in names]] = True
        return {"allowed_categories": allowed}
    if match := _AMBIGUOUS.search(phrase):
        number = match.group()
        raise ValueError(
            f"{feature}: {number} may be {number.replace('.', '')} or {number}0. Write one "
            "of these."
        )
    for pattern, limits in _PHRASES.items():
        if match := re.fullmatch(pattern, phrase):
            numbers = iter(match.groups())
            return {
                name: _number(next(numbers) if value is None else value)
                for name, value in limits.items()
            }
    raise ValueError(f"{feature}: can't read {phrase!r}. {HOW}")


def _code(name: str, feature: str, categories: Sequence[str]) -> int:
    """Return the code of a category, as the table writes it or else in plain letters."""
    if name in categories:
        return list(categories).index(name)
    names = [plain(category) for category in categories]
    checks.one_of(f"category of {feature}:", [plain(name)], names)
    if names.count(plain(name)) > 1:
        raise ValueError(
            f"{feature}: {name!r} may be several of {', '.join(categories)}. Write it as "
            "the table does."
        )
    return names.index(plain(name))


def _number(text: str) -> Tensor:
    """Return a number, of which commas may divide the thousands, with shape ()."""
    return torch.tensor(float(text.replace(",", "")), dtype=torch.float64)


@dataclass(frozen=True)
class Interval:
    """Hold to what values each person may set each actionable feature, standardised.

    `Problem.interval` makes it. Without any limits it is the range of
    each feature, which iCARMA's answers may leave.

    Arguments:
        is_allowed: Whether they may set it at all, with shape
            (*, N, K).
        low, high: The ends, with shape (*, N, K).
        step: Distance between values, with shape (*, N, K); 0: any
            value; None: nobody has a step.
        origin: A value that lies on every step, with shape (*, N, K).
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
        """Return values bent into the interval, with shape (*, N, K).

        It replaces `project` in training, since it has a gradient
        near the ends, too: values well inside hardly change, and
        steps do not count.
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
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {name: one[key] for name, one in tensors.items() if one is not None}
        return replace(self, **chosen)


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
    # fmin and fmax pass over NaN: what is not stated limits nothing
    decrease = limits.max_decrease.fmin(magnitude * limits.max_percent_decrease / 100)
    increase = limits.max_increase.fmin(magnitude * limits.max_percent_increase / 100)
    low, high = (end.double().expand(is_allowed.shape) for end in (low, high))
    low = low.fmax(origin + limits.low / std).fmax(today - decrease / std)
    high = high.fmin(origin + limits.high / std).fmin(today + increase / std)

    step = limits.step.nan_to_num(0.0).expand(is_allowed.shape)
    step = torch.where(is_whole, step.clamp_min(1.0), step) / std
    size = _size(step)
    # in steps: x is in float32, so that an end may lie beside the step that it means
    digits = torch.finfo(now.dtype).eps * torch.maximum(low.abs(), high.abs()) / size
    near = (4 * digits).clamp(CLOSE, 0.49)
    first = ((low - origin) / size - near).ceil()
    last = ((high - origin) / size + near).floor()

    mask = None
    if limits.allowed_categories.any():
        mask = limits.allowed_categories
        is_stated = mask.any(-1)
        codes = torch.arange(mask.shape[-1])
        mask = mask & (first[..., None] <= codes) & (codes <= last[..., None])
        is_left = mask.any(-1)
        is_allowed = is_allowed & (is_left | ~is_stated)
        first = torch.where(is_left, torch.where(mask, codes, torch.inf).amin(-1), first)
        last = torch.where(is_left, torch.where(mask, codes, -torch.inf).amax(-1), last)

    low = torch.where(step > 0, origin + first * step, low)
    high = torch.where(step > 0, origin + last * step, high)
    is_allowed = is_allowed & (low <= high)
    low, high = _round_up(low, now.dtype), -_round_up(-high, now.dtype)
    origin = origin.to(now).expand(low.shape)
    return Interval(is_allowed, low, high, step.to(now), origin, mask)


def _size(step: Tensor) -> Tensor:
    """Return the steps to divide by: 1 where there is none."""
    return torch.where(step > 0, step, 1.0)


def _round_up(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return values in another dtype, rounded upwards."""
    near = values.to(dtype)
    return torch.where(near < values, near.nextafter(near.new_tensor(torch.inf)), near)

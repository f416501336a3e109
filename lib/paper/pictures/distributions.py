"""Pictures of distributions and of courses: histograms, bands, log-densities."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from lib import checks
from lib.paper.pictures.look import COLOURS, readable


def marginal(
    ax: Axes, samples: Mapping[str, np.ndarray], name: str, bins: int = 40
) -> Axes:
    """Draw one feature's histograms as densities, one for each sample; return the axes.

    Arguments:
        samples: Values (N,) under the keys "data" (filled), "flow",
            ...
        name: Of the feature.
        bins: How many, all equally wide.
    Raises: ValueError: a sample is empty or has no colour.
    """
    _check_samples(samples)
    low = min(values.min() for values in samples.values())
    high = max(values.max() for values in samples.values())
    edges = np.linspace(low, high, bins + 1).tolist()
    for key, values in samples.items():
        filled = key == "data"
        ax.hist(
            values,
            edges,
            density=True,
            label=key,
            color=COLOURS[key],
            lw=1.4,
            histtype="stepfilled" if filled else "step",
            alpha=0.35 if filled else 1,
        )
    ax.set(xlabel=f"{readable(name)} (model units)", ylabel="density")
    return ax


def band(ax: Axes, steps: np.ndarray, curves: np.ndarray, colour: str, label: str) -> Axes:
    """Draw the mean of curves, and a band from the lowest to the highest; return the axes.

    Arguments:
        steps: Where the curves are known, with shape (n_steps,).
        curves: Their values, with shape (n_steps, n_members).
    Raises: ValueError: there is no value for each step.
    """
    if curves.ndim != 2 or len(curves) != len(steps):
        raise ValueError(
            f"curves have shape {curves.shape}, expected ({len(steps)}, n_members): "
            "a row for each step."
        )
    ax.plot(steps, curves.mean(1), color=colour, label=label)
    ax.fill_between(steps, curves.min(1), curves.max(1), color=colour, alpha=0.2, lw=0)
    return ax


def errors_by_place(
    ax: Axes, place: np.ndarray, errors: np.ndarray, seen: np.ndarray
) -> Axes:
    """Draw errors, a dot a person, over a histogram of where people are; return the axes.

    The histogram has no scale: it takes up the lowest quarter.

    Arguments:
        place: The value at which each error was made, with shape (N,).
        errors: Flow minus truth, with shape (N,).
        seen: Values of people on the same axis, with shape (P,).
    Raises: ValueError: there is no error for each place, or nobody
        was seen.
    """
    if place.shape != errors.shape or place.ndim != 1 or len(seen) == 0:
        raise ValueError(
            f"Expected place and errors with shape (N,) and somebody in seen; got "
            f"{place.shape}, {errors.shape} and {seen.shape}."
        )
    ax.scatter(place, errors, s=3, color=COLOURS["flow"], alpha=0.4, rasterized=True)
    ax.axhline(0, color=COLOURS["truth"], ls="--")
    below = ax.twinx()
    heights, _, _ = below.hist(seen, 40, color=COLOURS["data"], alpha=0.3)
    below.set_ylim(0, 4 * np.max(heights))
    below.axis("off")
    return ax


def log_densities(
    ax: Axes, log_p: np.ndarray, log_p_cf: np.ndarray, valid: np.ndarray
) -> Axes:
    """Draw log-density after the action against before, a dot a person; return the axes.

    Below the diagonal a person is less plausible than before. People
    below -16 nats before or -25 nats after are drawn at that edge.

    Arguments:
        log_p, log_p_cf: Log-density before and after, in nats, with
            shape (N,).
        valid: Whether a person is accepted afterwards, with shape
            (N,), bool.
    Raises: ValueError: the shapes differ, or valid is not of bool.
    """
    if not log_p.shape == log_p_cf.shape == valid.shape or valid.dtype != bool:
        raise ValueError(
            f"Expected three arrays with shape (N,), the last of bool; got {log_p.shape}, "
            f"{log_p_cf.shape} and {valid.shape} of {valid.dtype}."
        )
    left, low = -16.0, -25.0
    for mask, colour, marker, alpha, label in (
        (valid, COLOURS["icarma"], "o", 0.3, "accepted"),
        (~valid, COLOURS["refused"], "x", 0.9, "still refused"),
    ):
        ax.scatter(
            np.maximum(log_p[mask], left),
            np.maximum(log_p_cf[mask], low),
            s=6,
            marker=marker,
            lw=0.6,
            color=colour,
            alpha=alpha,
            label=label,
            rasterized=True,
        )
    ax.plot([low, -4], [low, -4], color="#333333", lw=1)
    ax.set(xlim=(left - 0.3, -4), ylim=(low - 1, -3))
    ax.set(xlabel="log p(x) (nats)", ylabel="log p(x$^{CF}$) (nats)")
    return ax


def _check_samples(samples: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless there are samples, each with a colour and somebody in it."""
    if not samples:
        raise ValueError("There is no sample to draw.")
    checks.one_of("sample", samples, tuple(COLOURS))
    for key, values in samples.items():
        if len(values) == 0:
            raise ValueError(f"The sample {key!r} is empty.")

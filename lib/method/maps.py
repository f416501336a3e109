"""The map between one feature and its noise, given what networks make of its parents."""

import numpy as np
import torch
from torch import Tensor
from zuko.transforms import MonotonicRQSTransform

from lib.base.arithmetic import exact_root

# An affine map's slope stays within 1e-3 and 1e3, as in zuko's MonotonicAffineTransform.
LOG_LEAST = float(np.log(1e-3))


class Map:
    r"""An increasing map :math:`z = T(x)` from one feature to its noise.

    Subclasses give `forward` and `inverse`. All tensors have shape
    (*,), one entry a person.

    Arguments:
        raw: What the networks give for this feature.
    Example:
        Two people, the second with twice the slope of the first:

        >>> raw = torch.tensor([[0.5, 0.0], [0.5, 0.77035]])
        >>> z, log_slope = Affine(raw).forward(torch.tensor([1.0, 1.0]))
        >>> z.round(decimals=2), log_slope.exp().round(decimals=2)
        (tensor([1.5000, 2.5000]), tensor([1., 2.]))
    """

    slope_depends_on_x: bool

    def __init__(self, raw: Tensor) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the noise z and log dz/dx.

        Example:
            >>> z, log_slope = Affine(torch.tensor([2.0, 0.0])).forward(torch.tensor(1.0))
            >>> z.item(), log_slope.item()
            (3.0, 0.0)
        """
        raise NotImplementedError

    def inverse(self, z: Tensor) -> Tensor:
        """Return the feature x whose noise is z.

        Example:
            >>> Affine(torch.tensor([2.0, 0.0])).inverse(torch.tensor(3.0)).item()
            1.0
        """
        raise NotImplementedError

    def after_action(
        self, z: Tensor, before: Tensor | None, m: Tensor, rest: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Return the feature after an action, log dz/dx there, and the gain in log N(z).

        .. math:: x = m\,a + (1 - m)\,x_{\text{before}}, \quad
                  \text{gain} = \tfrac12 (z^2 - T(x)^2)

        Gradients reach m, rest and a; where the feature follows from
        its noise, they also reach the raw parameters.

        Arguments:
            z: Factual noise, without gradient.
            before: The feature where nobody acts on it, without
                gradient. None: it follows from the noise.
            m, rest: The mask (0 or 1 in value), and 1 - m.
            a: What the feature is set to where m is 1.
        Example:
            One person acts and one does not; z = x here, so x = 3
            costs 4.5 nats:

            >>> z, m = torch.zeros(2), torch.tensor([1.0, 0.0])
            >>> x, _, gain = Affine(torch.zeros(2, 2)).after_action(
            ...     z, None, m, 1 - m, torch.tensor([3.0, 3.0])
            ... )
            >>> x.tolist(), gain.tolist()
            ([3.0, 0.0], [-4.5, 0.0])
        """
        x = m * a + rest * (self.inverse(z) if before is None else before)
        z_cf, log_slope = self.forward(x)
        return x, log_slope, 0.5 * (z - z_cf) * (z + z_cf)


class Affine(Map):
    r"""A feature is scaled and shifted: :math:`z = e^s x + t`.

    Arguments:
        raw: What the networks give, with shape (*, 2). Its entries
            are t and, before it is bounded, s.
    Example:
        >>> slope = Affine(torch.tensor([0.0, 1e9])).scale  # stays below 1000
        >>> round(slope.item())
        1000
    """

    slope_depends_on_x = False

    def __init__(self, raw: Tensor) -> None:
        self.shift, raw_scale = raw.unbind(-1)
        self.log_scale = raw_scale / (1 + abs(raw_scale / LOG_LEAST))
        self.scale = self.log_scale.exp()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the noise z and log dz/dx; see `Map.forward`.

        Example:
            >>> z, log_slope = Affine(torch.tensor([2.0, 0.0])).forward(torch.tensor(1.0))
            >>> z.item(), log_slope.item()
            (3.0, 0.0)
        """
        return x * self.scale + self.shift, self.log_scale

    def inverse(self, z: Tensor) -> Tensor:
        """Return the feature x whose noise is z; see `Map.inverse`.

        Example:
            >>> Affine(torch.tensor([2.0, 0.0])).inverse(torch.tensor(3.0)).item()
            1.0
        """
        return (z - self.shift) / self.scale


class _ExactSpline(MonotonicRQSTransform):
    """zuko's rational-quadratic spline, whose inverse takes the exact root.

    Ends of bins are taken for as many values as there are splines:
    zuko's own `bin` works out a common shape, which takes a sixth of
    the time of a search.
    """

    def bin(self, k: Tensor) -> tuple[Tensor, ...]:
        """Return whether bins k (*,) are inside, their ends, and the slopes there."""
        is_inside = (k >= 0) & (k < self.bins)
        left = (k % self.bins)[..., None]
        ends = []
        for part in (self.horizontal, self.vertical, self.derivatives):
            own = part.expand(*k.shape, -1)
            ends += [own.gather(-1, at).squeeze(-1) for at in (left, left + 1)]
        x0, x1, y0, y1, _, _ = ends
        return is_inside, *ends, (y1 - y0) / (x1 - x0)  # last: the slope in between

    def _inverse(self, y: Tensor) -> Tensor:
        """Return the x whose image is y; the terms are those of zuko's own inverse."""
        k = self.searchsorted(self.vertical, y) - 1
        is_inside, x0, x1, y0, y1, d0, d1, s = self.bin(k)
        above = is_inside * (y - y0)
        bent = above * (d0 + d1 - 2 * s)
        a = (y1 - y0) * (s - d0) + bent
        b = (y1 - y0) * d0 - bent
        c = -s * above
        share = 2 * c / (-b - exact_root(b.square() - 4 * a * c))
        return torch.where(is_inside, x0 + share * (x1 - x0), y)


class Spline(Map):
    r"""A feature is bent, then follows a spline.

    .. math:: z = \mathrm{RQS}(\mathrm{arsinh}\,x)

    The spline is rational-quadratic. The bend is the same for
    everyone. It brings long tails (54 real-estate loans) into the
    spline's range, and does not change who causes whom.

    Arguments:
        raw: What the networks give, with shape (*, 3 B - 1): widths
            and heights of B bins, and the slopes between them.
    Source: neural spline flows, Durkan et al., 2019; the bend is
        ours.
    Example:
        All bins alike: only the bend is left.

        >>> z, _ = Spline(torch.zeros(14)).forward(torch.tensor(2.0))
        >>> round(z.item(), 4), round(float(np.arcsinh(2.0)), 4)
        (1.4436, 1.4436)
    """

    slope_depends_on_x = True

    def __init__(self, raw: Tensor) -> None:
        n_bins = (raw.shape[-1] + 1) // 3
        self.spline = _ExactSpline(*raw.split([n_bins, n_bins, n_bins - 1], -1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the noise z and log dz/dx; see `Map.forward`.

        Example:
            >>> Spline(torch.zeros(14)).forward(torch.tensor(0.0))[0].item()
            0.0
        """
        z, log_slope = self.spline.call_and_ladj(x.asinh())
        return z, log_slope - 0.5 * (1 + x.square()).log()

    def inverse(self, z: Tensor) -> Tensor:
        """Return the feature x whose noise is z; see `Map.inverse`.

        Example:
            >>> round(Spline(torch.zeros(14)).inverse(torch.tensor(1.4436)).item(), 3)
            2.0
        """
        return self.spline.inv(z).sinh()

"""The map between one feature and its noise, given the raw parameters that networks make of its parents."""

import numpy as np
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from zuko.transforms import MonotonicRQSTransform

LOG_LEAST = float(
    np.log(1e-3)
)  # an affine map's slope stays within 1e-3 and 1e3, as in zuko's MonotonicAffineTransform


class _AffineAction(Function):
    """`Affine.after_action` as one operation, its gradient written out: training asks for it four times a step."""

    @staticmethod
    def forward(
        ctx,
        shift: Tensor,
        log_scale: Tensor,
        z: Tensor,
        before: Tensor | None,
        m: Tensor,
        rest: Tensor,
        a: Tensor,
    ):
        down = centred = None
        if before is None:
            down, centred = (-log_scale).exp(), z - shift
            before = centred * down
        x, up = m * a + rest * before, log_scale.exp()
        z_cf = x * up + shift
        ctx.save_for_backward(before, m, rest, a, x, z_cf, up, down, centred)
        return x, log_scale.clone(), 0.5 * (z.square() - z_cf.square())

    @staticmethod
    @once_differentiable
    def backward(ctx, for_x: Tensor, for_slope: Tensor, for_gain: Tensor):
        before, m, rest, a, x, z_cf, up, down, centred = ctx.saved_tensors
        for_z = -for_gain * z_cf
        for_x = for_x + for_z * up
        for_shift = for_log_scale = None
        if down is not None:
            for_before = for_x * rest
            for_shift = for_z - for_before * down
            for_log_scale = (for_slope + for_z * x * up) - for_before * centred * down
        return for_shift, for_log_scale, None, None, for_x * a, for_x * before, for_x * m


class Affine:
    r"""A feature is scaled and shifted: :math:`z = e^s x + t`.

    Arguments:
        raw: What the networks give, with shape (*, 2); its entries are t and, before a bound, s.
    """

    slope_depends_on_x = False

    def __init__(self, raw: Tensor) -> None:
        self.shift, raw_scale = raw.unbind(-1)
        self.log_scale = raw_scale / (1 + abs(raw_scale / LOG_LEAST))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Z and log dz/dx, both with shape (*,)."""
        return x * self.log_scale.exp() + self.shift, self.log_scale

    def inverse(self, z: Tensor) -> Tensor:
        """x, with shape (*,)."""
        return (z - self.shift) * (-self.log_scale).exp()

    def after_action(
        self, z: Tensor, before: Tensor | None, m: Tensor, rest: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x, log dz/dx and the gain in log N(z), each with shape (*,), of a feature that is set to a where m is 1.

        Gradients reach m, rest and a, and the raw parameters where the feature follows from its noise.

        Arguments:
            z: Factual noise; carries no gradient.
            before: The feature where nobody acts on it, without gradient; None: it follows from the noise.
            m, rest: Mask, and what is missing to 1.
        """
        return _AffineAction.apply(self.shift, self.log_scale, z, before, m, rest, a)


class Spline:
    r"""A feature follows a rational-quadratic spline after a fixed bend: :math:`z = \mathrm{RQS}(\mathrm{arsinh}\,x)`.

    The bend brings long tails (54 real-estate loans) into the spline's range and changes nothing about who causes whom.

    Arguments:
        raw: What the networks give, with shape (*, 3 B - 1): widths and heights of B bins, and the slopes between them.
    Source: neural spline flows, Durkan et al., 2019; the bend is ours.
    """

    slope_depends_on_x = True

    def __init__(self, raw: Tensor) -> None:
        n_bins = (raw.shape[-1] + 1) // 3
        self.spline = MonotonicRQSTransform(*raw.split([n_bins, n_bins, n_bins - 1], -1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z, log_slope = self.spline.call_and_ladj(x.asinh())
        return z, log_slope - 0.5 * (1 + x.square()).log()

    def inverse(self, z: Tensor) -> Tensor:
        return self.spline.inv(z).sinh()

    def after_action(
        self, z: Tensor, before: Tensor | None, m: Tensor, rest: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = m * a + rest * (self.inverse(z) if before is None else before)
        z_cf, log_slope = self.forward(x)
        return x, log_slope, 0.5 * (z.square() - z_cf.square())

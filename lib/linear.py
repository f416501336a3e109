"""Stacked linear layers, through numpy's matrix product.

torch's products can be pinned to the same bits on every processor only by a path that is about 2.5 times slower
(MKL_CBWR=COMPATIBLE). numpy's OpenBLAS, pinned to its Haswell kernels (`lib/__init__.py`), is both fast and the same.
"""

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function


class _StackedLinear(Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.from_numpy(np.matmul(x.numpy(), weight.numpy())).add_(bias)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        x, weight = ctx.saved_tensors
        outer = gradient.contiguous().numpy()
        for_x = torch.from_numpy(np.matmul(outer, weight.numpy().swapaxes(-1, -2))) if ctx.needs_input_grad[0] else None
        for_weight = torch.from_numpy(np.matmul(x.numpy().swapaxes(-1, -2), outer))
        return for_x, for_weight, gradient.sum(-2, keepdim=True)


def stacked_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each member's own linear layer: x (M, N, in), weight (M, in, out) and bias (M, 1, out) give (M, N, out)."""
    return _StackedLinear.apply(x.contiguous(), weight, bias)

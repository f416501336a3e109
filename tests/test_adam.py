"""Our Adam against torch's optimiser and schedule, bit by bit."""

import lib.pinned

import subprocess
import sys

import pytest
import torch

from lib.base.arithmetic import Adam
from lib.base.files import ROOT


def test_same_bits_as_torch():
    start = [
        torch.linspace(-2, 3, 7),
        torch.linspace(1, 2, 6).view(2, 3),
        torch.ones(3, 4),
        torch.ones(3, 4),
    ]
    factors = torch.linspace(-1, 1, 12).view(4, 3)
    ours, theirs = ([part.clone().requires_grad_() for part in start] for _ in range(2))
    own = Adam(ours, 0.1, 30, lowest=0.004)
    optimiser = torch.optim.Adam(theirs, lr=0.1, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 30, eta_min=0.004)

    def loss(weights):
        one, two, expanded, transposed = (
            weights  # the gradients of the last two do not lie in memory as the weights do
        )
        return (
            (one.sin() * one).sum()
            + two.square().mean() * one[0]
            + expanded.sum()
            + (transposed.t() * factors).sum()
        )

    for step in range(30):
        own.step(torch.autograd.grad(loss(ours), ours))
        optimiser.zero_grad()
        loss(theirs).backward()
        optimiser.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)), step
        own.decay()
        schedule.step()
        assert own.learning_rate == schedule.get_last_lr()[0]
    assert not torch.equal(ours[0], start[0])


def test_gradients_of_another_shape_are_refused():
    for wrong in (torch.ones(1, 2), torch.ones(2, 2), torch.ones(2)):
        with pytest.raises(ValueError, match="must have the weights' shapes"):
            Adam([torch.zeros(3, 2)], 0.1).step([wrong])
    with pytest.raises(ValueError, match="must have the weights' shapes"):
        Adam([torch.zeros(2), torch.zeros(2)], 0.1).step([torch.ones(2)])


def test_training_does_not_import_the_compiler():
    """It is why there is an Adam of our own: seconds in every process."""
    code = (
        "import lib.pinned, sys, torch; from lib.solvers import icarma, continuous; from lib.base.arithmetic import Adam; "
        "w = torch.ones(2); Adam([w], 0.1).step([w.clone()]); print('torch._dynamo' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "False"

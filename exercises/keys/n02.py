"""A causal flow."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from exercises.checking import Key, applied, key, wrong_ways
from lib.method.scm import CausalModel

# four people of the toy chain education, income, savings; who acts on what, to what value
CHAIN_X = torch.tensor([[0, 0, 0], [1, 0, 2], [0.5, -1, 0], [0, 2, 1]])
CHAIN_ACTS = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 1]], dtype=torch.bool)
CHAIN_VALUES = torch.tensor([[1, 0, 1], [3, 0, 0], [0, 2, 0], [2, 0, -1.0]])
CHAIN = list(zip(CHAIN_X, CHAIN_ACTS, CHAIN_VALUES, strict=True))


@key("02.1")
def a_third_layer(layer: Tensor) -> Key:
    """What a stack of three layers makes of education, income held."""
    powers = [torch.linalg.matrix_power(layer, n) for n in (1, 2, 3)]
    entries = [power[2, 0].item() for power in powers]
    return Key(
        f"The entry is {', '.join(f'{e:.2f}' for e in entries)} with one, two and three "
        "layers. No layer has it, and the more of them, the worse.",
        [
            (entries[2], "Right in size. But z is held, so what makes up for it?"),
            (-entries[1], "That is what two layers do."),
            (entries[1], "That is two layers. And z is held: what makes up for it?"),
            (0.0, "No layer has this entry, but what of their product?"),
            (-(entries[1] ** 2), "Layers are multiplied as matrices, not entry by entry."),
            (-entries[1] / 2, "It does not shrink by half with each layer. Multiply."),
            (torch.linalg.inv(powers[2])[2, 0], "Here income is held: it does not follow."),
            (-2 * entries[1], "It does not grow by the same for each layer. Multiply."),
        ],
        within=0.001,
    )


@key("02.2")
def density_of_savings(
    log_p: Tensor, z: Tensor, x_savings: Tensor, alpha: Tensor, beta: Tensor
) -> Key:
    """The log-density of five people's savings, given their income."""
    constant = math.log(2 * math.pi) / 2
    return Key(
        f"The slope adds {beta.min():.2f} to {beta.max():.2f} nats here.",
        [
            *wrong_ways(
                lambda z, constant, stretch: -(z**2) / 2 - constant + stretch,
                z=[
                    z,
                    ((x_savings - alpha) / beta.exp(), "That is the map backwards."),
                    (beta * x_savings + alpha, "The slope is the exponential of beta."),
                ],
                constant=[
                    constant,
                    (0, "The standard normal density has a constant in front."),
                    (2 * constant, "The constant is the logarithm of a root."),
                ],
                stretch=[
                    beta,
                    (0, "That is the density of z. How much does the map stretch?"),
                    (-beta, "Stretched in z means denser in x: mind the sign."),
                    (beta.exp(), "A log-density needs the logarithm of the slope."),
                ],
            ),
            (log_p.exp(), "That is the density. Take its logarithm."),
            (z, "That is z. How dense is it, and how much does the map stretch?"),
        ],
        within=0.005,
    )


def chain(
    x: Tensor,
    acts: Tensor,
    values: Tensor,
    noise: Callable[[Tensor, int], Any],
    is_old_cause: bool,
    is_noise_set: bool,
) -> Tensor:
    """Return a person of the chain after an action, worked out as told."""
    after = torch.where(acts, values, x)
    written = after.clone()
    for j in (1, 2):
        from_cause = (written if is_old_cause else after)[j - 1] / 2
        if not acts[j]:
            after[j] = from_cause + noise(x, j)
        elif is_noise_set:
            after[j] = from_cause + values[j]
    return after


@key("02.3", cases=CHAIN)
def the_walk() -> Key:
    """Four people of the chain after their actions."""
    return Key(
        "What is set is as commanded, and what stands between follows.",
        [
            *wrong_ways(
                lambda **ways: applied(partial(chain, **ways), CHAIN),
                noise=[
                    lambda x, j: x[j] - x[j - 1] / 2,
                    (lambda x, j: x[j], "A feature is not its noise: take off its cause."),
                    (lambda x, j: 0.0, "Keep each person's own noise: none is average."),
                ],
                is_old_cause=[False, (True, "Savings follow income as it is by now.")],
                is_noise_set=[False, (True, "The feature is set, and not its noise.")],
            ),
            (
                torch.where(CHAIN_ACTS, CHAIN_VALUES, CHAIN_X),
                "What nobody sets stays where it was in yours. It should follow its cause, "
                "with the noise that it had beside the old one.",
            ),
        ],
        within=0.001,
        each="made-up person",
    )


@key("02.4")
def just_enough(
    x: Tensor,
    truth: CausalModel,
    share: Tensor,
    helped: Tensor,
    smallest: Tensor,
    accepted_after: Callable[[CausalModel, Tensor], Tensor],
) -> Key:
    """How many are accepted in truth if they do just what suffices by the flow."""
    in_truth = accepted_after(truth, smallest)[helped].sum().item()
    more = accepted_after(truth, smallest + 0.05)[helped].float().mean().item()
    return Key(
        f"With 0.05 more than needed it is {more:.3f}: leave a margin.",
        [
            (
                in_truth / len(x),
                "Of those who have such a step, not of all refused people.",
            ),
            (helped.float().mean(), "That is who has such a step. Who is accepted then?"),
            (more, "A little farther on nearly all are accepted. Take the smallest step."),
            (1.0, "By the flow all are accepted. And by the true equations?"),
            (in_truth, "That is how many people. Give a share."),
            (1 - share, "That is who is missed."),
        ],
        within=0.002,
        is_share=True,
    )

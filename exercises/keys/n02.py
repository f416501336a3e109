"""A causal flow."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exercises.checking import Key, key, wrong_functions, wrong_ways
from lib.method.scm import CausalModel

# four people of the toy chain education, income, savings; who acts on what, to what value
CHAIN_X = torch.tensor([[0, 0, 0], [1, 0, 2], [0.5, -1, 0], [0, 2, 1]])
CHAIN_ACTS = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 1]], dtype=torch.bool)
CHAIN_VALUES = torch.tensor([[1, 0, 1], [3, 0, 0], [0, 2, 0], [2, 0, -1.0]])
CHAIN = list(zip(CHAIN_X, CHAIN_ACTS, CHAIN_VALUES, strict=True))


@key("02.1")
def a_third_layer(layer: Tensor) -> Key:
    """What a stack of three layers makes of education, income held."""
    two, three = (torch.linalg.matrix_power(layer, n)[2, 0].item() for n in (2, 3))
    return Key(
        f"The entry is 0.00, {two:.2f}, {three:.2f} with one, two and three layers. "
        "No layer has it, and the more of them, the worse.",
        [
            (three, "Right in size. But z is held, so what makes up for it?"),
            (-two, "That is what two layers do."),
            (0.0, "No layer has this entry, but what of their product?"),
            (-2 * two, "It does not grow by the same for each layer. Multiply."),
        ],
        within=0.001,
    )


@key("02.2")
def density_of_savings(z: Tensor, x_savings: Tensor, alpha: Tensor, beta: Tensor) -> Key:
    """The log-density of five people's savings, given their income."""
    return Key(
        f"The slope adds {beta.min():.2f} to {beta.max():.2f} nats here.",
        wrong_ways(
            lambda z, constant, stretch: -(z**2) / 2 - constant + stretch,
            z=[z, ((x_savings - alpha) / beta.exp(), "That is the map backwards.")],
            constant=[
                math.log(2 * math.pi) / 2,
                (0, "The standard normal density has a constant in front."),
            ],
            stretch=[
                beta,
                (0, "That is the density of z. How much does the map stretch?"),
                (-beta, "Stretched in z means denser in x: mind the sign."),
                (beta.exp(), "A log-density needs the logarithm of the slope."),
            ],
        ),
        within=0.005,
    )


def chain(
    x: Tensor, acts: Tensor, values: Tensor, has_noise: bool, is_old_cause: bool
) -> Tensor:
    """Return a person of the chain after an action, worked out as told."""
    after = torch.where(acts, values, x)
    causes = after.clone() if is_old_cause else after
    for j in (1, 2):
        if not acts[j]:
            noise = x[j] - x[j - 1] / 2 if has_noise else 0
            after[j] = causes[j - 1] / 2 + noise
    return after


@key("02.3", cases=CHAIN)
def the_walk() -> Key:
    """Four people of the chain after their actions."""
    return Key(
        "What is set is as commanded, and what stands between follows.",
        wrong_functions(
            chain,
            (
                lambda x, acts, values: torch.where(acts, values, x),
                "What nobody sets stays where it was in yours. It should follow its cause, "
                "with the noise that it had beside the old one.",
            ),
            has_noise=[True, (False, "Keep each person's own noise.")],
            is_old_cause=[False, (True, "Savings follow income as it is by now.")],
        ),
        within=0.001,
        each="made-up person",
    )


@key("02.4")
def just_enough(
    truth: CausalModel,
    helped: Tensor,
    smallest: Tensor,
    accepted_after: Callable[[CausalModel, Tensor], Tensor],
) -> Key:
    """How many are accepted in truth if they do just what suffices by the flow."""
    is_both = helped & accepted_after(truth, smallest)
    more = accepted_after(truth, smallest + 0.05)[helped].float().mean().item()
    return Key(
        f"With 0.05 more than needed it is {more:.3f}: leave a margin.",
        [
            (is_both.float().mean(), "Of those who have such a step, not of all."),
            (helped.float().mean(), "That is who has such a step. Who is accepted then?"),
            (is_both.sum().item(), "That is how many people. Give a share."),
        ],
        within=0.002,
        is_share=True,
    )

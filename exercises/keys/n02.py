"""A causal flow."""

from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from zuko.transforms import MonotonicAffineTransform

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.method import flow, loan
from lib.method.graph import Graph
from lib.method.scm import SCM, CausalModel, additive

# four people of the toy chain education, income, savings; who acts on what, to what value
CHAIN_X = torch.tensor([[0, 0, 0], [1, 0, 2], [0.5, -1, 0], [0, 2, 1]])
CHAIN_ACTS = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 1]], dtype=torch.bool)
CHAIN_VALUES = torch.tensor([[1, 0, 1], [3, 0, 0], [0, 2, 0], [2, 0, -1.0]])


@key("02.1")
def what_can_be_wrong() -> Key:
    """What the flow may get wrong after an action on education and income."""
    graph = problem().flow.graph
    acted = [graph.index(name) for name in ("education", "income")]
    follows = set(graph.descendants_of(acted)) - set(acted)
    wrong = frozenset(graph.features[j] for j in follows)
    return Key(
        wrong,
        "Income follows from education, but not when it is set itself.",
        (
            (
                {"income", "savings"},
                "Income is set in this action. Does anything still decide it?",
            ),
            ({"income"}, "Income is set in this action. And what follows from it?"),
            (set(), "Nothing follows if everything downstream is set. Is it?"),
            *(
                (also, "Values that are set are taken as they are, to the bit.")
                for also in (
                    {"education", "income", "savings"},
                    {"education", "savings"},
                    {"education", "income"},
                )
            ),
            (
                {"loan_amount", "loan_duration", "savings"},
                "Look at the arrows that leave education and income once more.",
            ),
        ),
    )


@key("02.2")
def a_third_layer() -> Key:
    """What a stack of three layers makes of education, income held."""
    layer = torch.tensor([[1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [0.0, -0.5, 1.0]])
    entries = [torch.linalg.matrix_power(layer, n)[2, 0].item() for n in (1, 2, 3)]
    return Key(
        -entries[2],
        f"The entry is {', '.join(f'{e:.2f}' for e in entries)} with one, two and three "
        "layers. No layer has it, and the more of them, the worse.",
        (
            (entries[2], "Right in size. But z is held, so what makes up for it?"),
            (-entries[1], "That is what two layers do."),
            (0.0, "No layer has this entry, but what of their product?"),
            (-(entries[1] ** 2), "Layers are multiplied as matrices, not entry by entry."),
            (
                -entries[1] / 2,
                "It does not shrink by half with each layer. Multiply the matrices.",
            ),
            (
                torch.linalg.inv(torch.linalg.matrix_power(layer, 3))[2, 0].item(),
                "That is with income free to follow. Here it is held.",
            ),
            (-2 * entries[1], "It does not grow by the same for each layer. Multiply."),
        ),
        within=0.001,
    )


def standard_normal(z: Tensor) -> Tensor:
    """Return the log-density of a standard normal variable, in nats."""
    return -(z**2) / 2 - np.log(2 * np.pi) / 2


@key("02.3")
def density_of_savings() -> Key:
    """The log-density of five people's savings, given their income."""
    fitted, x = problem().flow, problem().refused("test")[:5]
    savings = fitted.index("savings")
    transform = fitted.transform_of(savings, x[:, [fitted.index("income")]])
    assert isinstance(transform, MonotonicAffineTransform)
    alpha, beta = transform.shift, transform.log_scale
    z = beta.exp() * x[:, savings] + alpha
    normal = standard_normal(z)
    truth = normal + beta
    return Key(
        truth,
        f"The slope adds {beta.min():.2f} to {beta.max():.2f} nats here.",
        (
            (normal, "That is the density of z. How much does the map stretch?"),
            (normal - beta, "Stretched in z means denser in x: mind the sign."),
            (
                truth + np.log(2 * np.pi) / 2,
                "The standard normal density has a constant in front.",
            ),
            (
                standard_normal((x[:, savings] - alpha) * (-beta).exp()) - beta,
                "That is the map backwards: z is slope times x, plus shift.",
            ),
            (
                standard_normal(beta * x[:, savings] + alpha) + beta,
                "The slope of the map is the exponential of beta, not beta.",
            ),
            (
                truth - np.log(2 * np.pi) / 2,
                "The constant of a normal density is the logarithm of a root.",
            ),
            (truth.exp(), "That is the density. Take its logarithm."),
            (
                normal + beta.exp(),
                "A logarithm of a density needs the logarithm of the slope.",
            ),
            (z, "That is z. How dense is it, and how much does the map stretch?"),
        ),
        within=0.005,
    )


def chain() -> SCM:
    """Return the toy chain, in which half of each cause is handed on."""

    def half_of(cause: str) -> Any:
        return additive((cause,), lambda pa: pa[cause] / 2, stats.norm())

    alone = additive((), lambda pa: 0.0, stats.norm())
    links = {"income": half_of("education"), "savings": half_of("income")}
    return SCM({"education": alone, **links})


@key("02.4")
def the_walk() -> Key:
    """Four people of the chain after their actions."""
    model = chain()
    written = torch.where(CHAIN_ACTS, CHAIN_VALUES, CHAIN_X)
    both = torch.where(CHAIN_ACTS, model.abduct(written), model.abduct(CHAIN_X))
    no_noise = written.clone()
    for j in (1, 2):
        follows = no_noise[:, j - 1] / 2
        no_noise[:, j] = torch.where(CHAIN_ACTS[:, j], CHAIN_VALUES[:, j], follows)
    no_abduction = torch.where(CHAIN_ACTS, CHAIN_VALUES, CHAIN_X)
    for j in (1, 2):
        follows = no_abduction[:, j - 1] / 2 + CHAIN_X[:, j]
        no_abduction[:, j] = torch.where(CHAIN_ACTS[:, j], CHAIN_VALUES[:, j], follows)
    as_noise = model.predict(torch.where(CHAIN_ACTS, CHAIN_VALUES, model.abduct(CHAIN_X)))
    old_causes = model.abduct(CHAIN_X)
    old_causes[:, 1:] += written[:, :-1] / 2
    return Key(
        model.counterfactual(CHAIN_X, CHAIN_ACTS, CHAIN_VALUES).numpy(),
        "What is set is as commanded, and what stands between follows.",
        (
            (
                written.numpy(),
                "What nobody sets stays where it was in yours. It should follow its cause, "
                "with the noise that it had beside the old one.",
            ),
            (
                no_abduction.numpy(),
                "A feature is not its own noise: take off what the old cause handed on.",
            ),
            (
                as_noise.numpy(),
                "What is set is the value of the feature, and not of its noise.",
            ),
            (
                model.predict(both).numpy(),
                "What is set misses its value: its noise was read beside the old causes.",
            ),
            (
                no_noise.numpy(),
                "In yours everybody is average: keep each person's own noise.",
            ),
            (
                torch.where(CHAIN_ACTS, CHAIN_VALUES, old_causes).numpy(),
                "Savings have to follow income as it is by now, not as it was.",
            ),
        ),
        within=0.001,
        of=applied(list(zip(CHAIN_X, CHAIN_ACTS, CHAIN_VALUES, strict=True))),
        each="made-up person",
    )


@key("02.5")
def one_arrow_off() -> Key:
    """What a flow loses with an arrow too few, and with one too many."""
    population, graph = problem().population, problem().flow.graph
    people, x_test = population.x["flow/train"][:10_000], population.x["flow/test"]
    validation = population.x["flow/validation"]
    log_p, rises = {}, {}
    for causes in ((), ("income",), ("age", "income")):
        tried = Graph({**graph.parents, "savings": causes})
        fitted, _ = flow.fit(tried, people, validation, n_epochs=20, learning_rate=0.02)
        log_p[causes] = fitted.log_prob(x_test).mean().item()
        x = loan.first_applicant(population, problem().classifier)
        x_cf = fitted.counterfactual(x, do={"income": x[:, 5] + 1.0})
        rises[causes] = (x_cf - x)[0, 6].item()
    few, right, many = log_p.values()
    missing, needless = (round(right - other, 2) + 0.0 for other in (few, many))
    because = (
        f"Without the arrow {missing:.2f} nats are lost, with the needless one "
        f"{needless:.2f}. If the first applicant earns 1 sd more, her savings rise by "
        f"{rises[()]:.2f} and {rises['age', 'income']:.2f} sd "
        f"({rises[('income',)]:.2f} with the right arrows)."
    )
    letter = "C" if abs(missing - needless) < 0.05 else "AB"[needless > missing]
    hints = {
        "A": "A network can learn to ignore a cause. Can it learn what it is not shown?",
        "B": "A network that is given too much can learn to ignore it. And too little?",
        "C": "One of the two can be made up for by learning. Which?",
    }
    return choice(letter, because, hints)


def lower_amount(model: CausalModel, x: Tensor, less: Tensor) -> Tensor:
    """Return who is accepted once the amount is lower by so many model units."""
    amount = model.index("loan_amount")
    value = x[:, amount] - less / problem().population.std[amount].float()
    return problem().accepts(model.counterfactual(x, do={"loan_amount": value}))


@key("02.6")
def just_enough() -> Key:
    """How many are accepted in truth if they do just what suffices by the flow."""
    truth, x = problem().population.truth, problem().refused("test")
    assert truth is not None
    steps = torch.arange(1, 101) / 10
    by_flow = torch.stack([lower_amount(problem().flow, x, less) for less in steps])
    helped, smallest = by_flow.any(0), steps[by_flow.int().argmax(0)]
    in_truth = lower_amount(truth, x, smallest)[helped]
    more = lower_amount(truth, x, smallest + 0.05)[helped].float().mean().item()
    share = in_truth.float().mean().item()
    return Key(
        share,
        f"With 0.05 more than needed it is {more:.3f}: leave a margin.",
        (
            (
                in_truth.float().sum().item() / len(x),
                "Of those who have such a step, and not of all refused people.",
            ),
            (
                helped.float().mean().item(),
                "That is who has such a step. Whom of these does the classifier accept?",
            ),
            (more, "A little farther on nearly all are accepted. Take the smallest step."),
            (1.0, "By the flow all are accepted. And by the true equations?"),
            (in_truth.sum().item(), "That is how many people. Give a share."),
            *as_percent(share, "Give a share between 0 and 1."),
            (1 - share, "That is who is missed."),
        ),
        within=0.002,
    )

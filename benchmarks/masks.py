"""Ways to learn a mask: six of them under one budget, judged by validation people.

    .venv/bin/python benchmarks/masks.py      about a quarter of an hour on one core

The paper learns its mask by the Gumbel trick with a straight-through gradient. Is that why
the masks act on nearly everything that is allowed? Each way trains the same members, which
differ in the weight of cost and in the price of a feature, with the same draws. The result
is benchmarks/masks.csv, which notebook 03b shows; a way that is there is not trained again.
"""

import lib.pinned

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import progress
from lib.base.arithmetic import Adam
from lib.method import loan, training
from lib.method.icarma import ICarma, Settings
from lib.method.preferences import Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.paper import designs, tuning
from lib.search import continuous
from lib.search.sets import Table, sets_of

PATH = Path(__file__).with_suffix(".csv")
SEED = 1000
N_STEPS = 7_400  # 200 epochs of Loan's refused training people in batches of 128
COSTS = (1.1, 3.3)  # weights of the cost; all others are fixed
# prior of acting and weight of the mask term: acting on a feature costs the weight times
# log((1 - prior) / prior)
PRICES = {"none": (0.5, 0.001), "low": (0.2, 0.004), "high": (0.05, 0.01)}
SHARED = Settings(hinge=0.2, plausibility=0.33, cap=4.0, margin=0.05, tau=0.5)

Batch = Mapping[str, Tensor]
Loss = Callable[[ICarma, Batch, int], Tensor]


def straight_through(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return the paper's loss of each member: a drawn mask, with the gradient of q."""
    return weighed(stack, stack.loss_terms(batch))


def annealed(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return the same, with a temperature that falls from 2 to 0.2 over the training."""
    tau = 2.0 * 0.1 ** (step / N_STEPS)
    soft = torch.sigmoid((stack.mask_logits(batch["context"]) + batch["noise"]) / tau)
    m = ((soft > 0.5).to(soft.dtype) + soft - soft.detach()) * batch["allowed"]
    return of_mask(stack, batch, m)


def hard_concrete(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return the loss with a gate stretched to (-0.1, 1.1) and cut to [0, 1]."""
    soft = torch.sigmoid((stack.mask_logits(batch["context"]) + batch["noise"]) / 0.66)
    stretched = (1.2 * soft - 0.1).clamp(0, 1)
    m = ((stretched > 0.5).to(soft.dtype) + stretched - stretched.detach()) * batch[
        "allowed"
    ]
    return of_mask(stack, batch, m)


def expectation(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return the loss expected over all masks; a tenth of the weight goes to all alike."""
    masks = torch.cat([torch.zeros(1, 4), sets_of(4).float()])
    allowed, logits = batch["allowed"], stack.mask_logits(batch["context"])
    log_p = (
        masks * F.logsigmoid(logits)[:, :, None]
        + (1 - masks) * F.logsigmoid(-logits)[:, :, None]
    )
    possible = (masks <= allowed[:, :, None]).all(-1).float()
    p = (log_p * allowed[:, :, None]).sum(-1).exp() * possible
    loss = of_each_mask(stack, batch, masks.expand(*p.shape, 4) * allowed[:, :, None])
    even = 0.9 * p.detach() + 0.1 * possible / possible.sum(-1, keepdim=True)
    both = (p * loss.detach() + even * loss).sum(-1)
    return both.mean(-1) + mask_term(stack, batch, logits)


def leave_one_out(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return a loss whose gradient is what each feature saves: with it and without it."""
    allowed, logits = batch["allowed"], stack.mask_logits(batch["context"])
    drawn = ((logits + batch["noise"]) > 0).float() * allowed
    flips = torch.eye(4)
    turned = (drawn[:, :, None] * (1 - flips) + (1 - drawn[:, :, None]) * flips) * allowed[
        :, :, None
    ]
    loss = of_each_mask(stack, batch, torch.cat([drawn[:, :, None], turned], 2))
    here, there = loss[:, :, :1].detach(), loss[:, :, 1:].detach()
    saved = torch.where(drawn > 0, here - there, there - here)  # with, less without
    signal = (torch.sigmoid(logits) * saved * allowed).sum(-1)
    both = signal + 0.9 * loss[:, :, 0] + 0.1 * loss[:, :, 1:].mean(-1)
    return both.mean(-1) + mask_term(stack, batch, logits)


def imitation(stack: ICarma, batch: Batch, step: int) -> Tensor:
    """Return the loss under the search's own set, and the cross-entropy to that set.

    Half of the people keep the network's own mask, so that actions are trained on it too.
    """
    allowed, logits = batch["allowed"], stack.mask_logits(batch["context"])
    best, is_known = batch["best"], batch["is_known"]
    own = (logits.detach() > 0).float() * allowed
    is_own = (batch["noise"][..., :1] > 0) | (is_known == 0)
    entropy = F.binary_cross_entropy_with_logits(logits, best, reduction="none")
    towards = ((entropy * allowed).sum(-1, keepdim=True) * is_known).mean((-1, -2))
    return of_mask(stack, batch, torch.where(is_own, own, best), mask=False) + towards


# the name of each way, and how many masks a person are looked at
WAYS: dict[str, tuple[Loss, int]] = {
    "straight-through": (straight_through, 1),
    "annealed temperature": (annealed, 1),
    "hard concrete gate": (hard_concrete, 1),
    "expectation over all masks": (expectation, 16),
    "leave-one-out saving": (leave_one_out, 5),
    "imitation of the search": (imitation, 1),
}


def weighed(stack: ICarma, terms: Mapping[str, Tensor]) -> Tensor:
    """Return the weighted sum of means over people, with shape (M,)."""
    total = torch.zeros(stack.n_members)
    for name, term in terms.items():
        weight = torch.tensor([getattr(own, name) for own in stack.settings])
        total = total + weight * (term if term.ndim == 1 else term.mean(-1))
    return total


def mask_term(stack: ICarma, batch: Batch, logits: Tensor) -> Tensor:
    """Return the weighted mask term of each member, with shape (M,)."""
    q = torch.sigmoid(logits)
    divergence = q * (F.logsigmoid(logits) - batch["log_prior"]) + (1 - q) * (
        F.logsigmoid(-logits) - batch["log_no_prior"]
    )
    return weighed(stack, {"mask": (batch["allowed"] * divergence).sum(-1)})


def of_mask(stack: ICarma, batch: Batch, m: Tensor, mask: bool = True) -> Tensor:
    """Return the loss of each member under given masks."""
    loss = weighed(stack, stack.terms_of_each(batch, m))
    return loss + mask_term(stack, batch, stack.mask_logits(batch["context"])) * mask


def of_each_mask(stack: ICarma, batch: Batch, masks: Tensor) -> Tensor:
    """Return the loss of each person under each of S masks (M, B, S, K), as (M, B, S)."""
    n_members, n_people, n_masks, _ = masks.shape
    repeated = {name: value.repeat_interleave(n_masks, 1) for name, value in batch.items()}
    terms = stack.terms_of_each(repeated, masks.flatten(1, 2))
    total = torch.zeros(n_members, n_people * n_masks)
    for name, term in terms.items():
        weight = torch.tensor([[getattr(own, name)] for own in stack.settings])
        total = total + weight * term
    return total.unflatten(1, (n_people, n_masks))


def members() -> tuple[list[Settings], list[dict[str, object]]]:
    """Return the settings of the members of each way, and what they are called."""
    settings, names = [], []
    for cost in COSTS:
        for price, (prior, mask) in PRICES.items():
            profile = Profile(p_min=prior, p_max=prior)
            settings.append(replace(SHARED, cost=cost, mask=mask, profile=profile))
            names.append({"cost weight": cost, "price": price})
    return settings, names


def train(problem: Problem, loss: Loss, n_masks: int, solved: Table) -> ICarma:
    """Return a stack trained in one of the ways.

    Who looks at more masks a person sees fewer people a step, at about the same effort.
    """
    settings, _ = members()
    rngs = [np.random.default_rng(SEED) for _ in settings]
    x = problem.refused("train")
    weights = training.initial_weights(problem, SHARED.hidden, rngs, x.dtype)
    stack = ICarma(problem, settings, [SEED] * len(settings), weights)
    optimiser = Adam(weights.values(), SHARED.learning_rate, N_STEPS)
    sampler = RankingSampler(problem.population.actionable)
    batch_size = max(128 // n_masks, 16)
    rng = np.random.default_rng(SEED)
    factual = problem.flow.factual(x, stack.columns)
    sets = solved.sets.float()
    for step in progress.bar(loss.__name__)(range(N_STEPS)):
        rows = rng.integers(len(x), size=batch_size)
        preferences = sampler.draw(rows, rng)
        noise = torch.from_numpy(rng.logistic(size=(1, batch_size, 4))).float()
        own = {name: value[rows] for name, value in factual.items()}
        noise = noise.expand(len(settings), -1, -1)
        batch = dict(stack.batch(own, preferences, noise))
        of_these = replace(solved, cost=solved.cost[rows])
        cost, which = of_these.cheapest(preferences.is_actionable)
        batch["best"] = sets[which].expand(len(settings), -1, -1)
        batch["is_known"] = cost.isfinite().float()[:, None].expand(len(settings), -1, -1)
        total = loss(stack, batch, step).sum()
        optimiser.step(torch.autograd.grad(total, optimiser.weights))
        optimiser.decay()
    fitted = {name: weight.detach() for name, weight in weights.items()}
    return ICarma(problem, settings, stack.seeds, fitted)


def judge(problem: Problem, stack: ICarma, table: Table) -> list[dict[str, float]]:
    """Return what validation people show of each member, where all four are open."""
    x = problem.refused("validation")
    everything = designs.hard_preferences(problem, len(x), seed=0)["all (4)"]
    mixed = tuning.judged_by(problem, "ranking")
    rows: list[dict[str, float]] = [{} for _ in stack.ids]
    amount = problem.population.features.index("loan_amount")
    for name, preferences in (("all", everything), ("random", mixed)):
        cheapest, _ = table.cheapest(preferences.is_actionable)
        found = stack.recommend(x, preferences)
        for i, row in enumerate(rows):
            measured = tuning.measure(
                problem, x, preferences, found[i], Profile(), cheapest
            )
            raised = found[i].is_acted[:, amount] & (
                found[i].values[:, amount] > x[:, amount]
            )
            measured["raises the amount"] = raised.float().mean().item()
            row |= {f"{metric}, {name}": value for metric, value in measured.items()}
    return rows


def main() -> None:
    """Train what is not in the table yet, judge it, and save the table."""
    problem = loan.problem()
    done = pd.read_csv(PATH) if PATH.is_file() else pd.DataFrame({"way": []})
    bar = progress.bar("search")
    solved, table = (
        continuous.Search(problem, problem.flow, progress=bar).table(problem.refused(split))
        for split in ("train", "validation")
    )
    _, names = members()
    for way, (loss, n_masks) in WAYS.items():
        if way in set(done.way):
            continue
        stack = train(problem, loss, n_masks, solved)
        rows: Sequence[Mapping[str, object]] = [
            {"way": way, **name, **measured}
            for name, measured in zip(names, judge(problem, stack, table), strict=True)
        ]
        done = pd.concat([done, pd.DataFrame(rows)], ignore_index=True)
        done.round(4).to_csv(PATH, index=False)


if __name__ == "__main__":
    main()

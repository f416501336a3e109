"""iCARMA on one page: recourse that knows what each person can do, in plain torch.

Read it from top to bottom: the true world, what is learned of it, what people can do, two
networks that recommend, and what their recommendations are worth, also in the true world.
x are people's features, u their true noise, z their noise in the flow, h(x) the bank's
log-odds of a yes. An action sets features to values a where its mask m is 1. lib holds the
same with checks, speed and equal bits; tests/test_one_page.py compares the two.

    python examples/one_page.py  # a minute; with 0.1 behind it, a tenth of the training
"""

import math
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Gamma, kl_divergence

K = 4  # features that can be acted on: the last four of seven


# 1. The true world: a feature follows from its causes and its noise, or is acted on.
def do(k: int, m: Tensor, a: Tensor, follows: Tensor) -> Tensor:
    """Return actionable feature k: what it is set to where m is 1, else what follows."""
    return m[:, k] * a[:, k] + (1 - m[:, k]) * follows


def true_world(u: Tensor, m: Tensor, a: Tensor) -> Tensor:
    """Return people (N, 7), given their noise (N, 7) and an action, m and a (N, K)."""
    gender, age = u[:, 0], u[:, 1] - 35
    education = torch.sigmoid(-1 + 0.5 * gender + torch.sigmoid(0.1 * age) + u[:, 2]) - 0.5
    amount = do(0, m, a, 1 - 0.01 * (age - 5) ** 2 + (1 - gender) + u[:, 3])
    duration = do(1, m, a, -1 + 0.1 * age + 2 * (1 - gender) + amount + u[:, 4])
    income = do(2, m, a, -4 + 0.1 * (age + 35) + (2 + education) * gender + u[:, 5])
    savings = do(3, m, a, -4 + 1.5 * income.clamp(min=0) + u[:, 6])
    return torch.stack([gender, age, education, amount, duration, income, savings], -1)


def draw_noise(n: int) -> Tensor:
    """Return the noise u of n people; all of it is normal but that of gender and age."""
    u = torch.randn(n, 7).double() * torch.tensor([1, 1, 0.5, 2, 3, 2, 5])
    u[:, 0] = torch.randint(2, (n,))
    u[:, 1] = Gamma(10.0, 1 / 3.5).sample((n,))
    return u


def repays(x: Tensor) -> Tensor:
    """Return who would pay the loan back. The bank has to learn this from examples."""
    amount, duration, income, savings = x[:, 3:].unbind(-1)
    both = torch.where((income >= 0) & (savings >= 0), 1, -1) * income * savings
    return income + savings + both - amount - duration >= 0


# 2. What is learned: the bank is a dense network, the flow has one for each feature.
def network(*widths: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return a dense network with an activation between its layers."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), act()]
    return nn.Sequential(*layers[:-1])


class Flow(nn.Module):
    """The world as it is learned: z_j = exp(s_j) x_j + t_j is standard normal.

    Networks read s_j and t_j off the direct causes of x_j. So the flow is a density, and it
    is causal: it says how likely people are, and what follows from an action.
    """

    causes = ((), (), (0, 1), (0, 1), (0, 1, 3), (0, 1, 2), (5,))

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        n_inputs = [max(len(own), 1) for own in self.causes]
        self.networks = nn.ModuleList(network(n, width, 2, act=nn.ELU) for n in n_inputs)

    def affine(self, j: int, x: Sequence[Tensor]) -> Tensor:
        """Return t_j and s_j; a feature without causes has the same for everybody."""
        seen = [x[i] for i in self.causes[j]] or [torch.zeros_like(x[j])]
        t, s = self.networks[j](torch.stack(seen, -1)).unbind(-1)
        return torch.stack([t, s / (1 + s.abs() / math.log(1000))])  # |s| < log(1000)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return people's noise z (N, 7), and their log-density (N,) in nats."""
        t, s = torch.stack([self.affine(j, x.unbind(-1)) for j in range(7)], -1)
        z = s.exp() * x + t
        return z, (s - 0.5 * z**2 - 0.5 * math.log(2 * math.pi)).sum(-1)

    def act(self, x: Tensor, m: Tensor, a: Tensor) -> Tensor:
        """Return x_cf, people x after an action: causes go first, and noise stays."""
        z, x_cf = self(x)[0], list(x.unbind(-1))
        for j in range(3, 7):
            t, s = self.affine(j, x_cf)
            x_cf[j] = do(j - 3, m, a, (z[:, j] - t) / s.exp())
        return torch.stack(x_cf, -1)


# 3. What people can do: each ranks the features, and can act on the first one to four.
def preferences(n: int) -> tuple[Tensor, Tensor]:
    """Return what each of n people can act on (0 or 1), and how hard that is (0 to 1)."""
    rank = torch.rand(n, K).argsort(-1)
    can = rank <= torch.randint(K, (n, 1))
    return can.float(), can * rank / (K - 1)


# 4. iCARMA: one network says what to act on, another to what values.
class ICarma(nn.Module):
    """Recommend actions to people x by what they can do, and by how hard it is for them."""

    # as the paper prints them: weights of cost, mask, plausibility and feasibility; what it
    # has lost was chosen in notebook 03b: w_max and the priors
    weights = (1.1, 1.5, 0.225, 0.1)
    tau, margin = 0.36, 0.013
    w_max, p_max, p_min = 7.0, 0.99, 0.01

    def __init__(self, h: nn.Module, flow: Flow, low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.h, self.flow, self.low, self.high = h, flow, low, high
        self.mask = network(7 + 2 * K, 64, 64, K)
        self.values = network(7 + 3 * K, 64, 64, K)
        self.multiplier = 0.0

    def forward(self, x: Tensor, can: Tensor, hard: Tensor, noise: Tensor) -> list[Tensor]:
        """Return the log-odds of acting, m and a. In training, noise makes m a draw."""
        known = torch.cat([self.flow(x)[0], can, hard], -1)
        logits = self.mask(known)
        soft = torch.sigmoid((logits + noise) / self.tau)
        m = can * ((soft > 0.5) + (soft - soft.detach()))  # 0 or 1, with soft's gradient
        a = x[:, 3:] + self.values(torch.cat([known, m], -1))
        return [logits, m, a]

    def loss(self, x: Tensor, can: Tensor, hard: Tensor, noise: Tensor) -> Tensor:
        """Return the five terms, weighted; training makes their sum small."""
        logits, m, a = self(x, can, hard, noise)
        x_cf, span = self.flow.act(x, m, a), self.high - self.low
        # Soft preferences: to go far costs more where it is hard ...
        cost = (1 + (self.w_max - 1) * hard) * m * (x[:, 3:] - a) ** 2 / span[3:]
        # ... and what is hard should be acted on less often.
        prior = Bernoulli(self.p_max + (self.p_min - self.p_max) * hard)
        mask = can * kl_divergence(Bernoulli(logits=logits), prior)
        # The bank should say yes, and people should end where others are.
        lacks = (self.margin - (2 * self.h(x_cf).sigmoid() - 1)).relu()
        unlikely = -self.flow(x_cf)[1]
        # Features that can change, from education on, should stay within what was seen.
        outside = ((x_cf - self.high).relu() + (self.low - x_cf).relu())[:, 2:] / span[2:]
        terms = [cost.mean(-1), mask.sum(-1), unlikely, outside.sum(-1), lacks]
        *others, hinge = torch.stack(terms, -1).mean(0)
        # A yes weighs more with every batch in which it is lacking, as in CARMA's code.
        self.multiplier += hinge.item()
        now = self.multiplier - 10 * hinge.item()
        return torch.stack([*others, hinge]) * torch.tensor([*self.weights, now])


def fit(part: nn.Module, loss: Callable[[Tensor], Tensor], n: int, epochs: float) -> None:
    """Make the loss of n rows small, 128 at a time, and fix the part that has learned."""
    n_epochs = max(1, round(epochs))
    adam = torch.optim.Adam(part.parameters(), lr=5e-3)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, n_epochs)
    for _ in range(n_epochs):
        for rows in torch.randperm(n).split(128):
            adam.zero_grad()
            loss(rows).backward()
            adam.step()
        decay.step()
    part.requires_grad_(False)


# 5. All of it: learn from 20,000 applicants, then recommend to the refused of 5,000 others.
def main(effort: float = 1.0) -> None:
    """Print what the parts have learned, and what recommendations are worth."""
    torch.manual_seed(0)
    n, u = 20_000, draw_noise(25_000)
    drawn = true_world(u, *torch.zeros(2, len(u), K))  # nobody acts yet
    mean, std = drawn[:n].mean(0), drawn[:n].std(0)
    x, y = ((drawn - mean) / std).float(), repays(drawn)

    h, flow = nn.Sequential(network(7, 32, 32, 1), nn.Flatten(0)), Flow()
    cross_entropy = nn.BCEWithLogitsLoss()
    # one epoch: a bank that is too sure leaves the networks no slope to follow
    fit(h, lambda rows: cross_entropy(h(x[rows]), y[rows].float()), n, 1)
    fit(flow, lambda rows: -flow(x[rows])[1].mean(), n, 15 * effort)

    refused = (h(x) < 0).nonzero().squeeze(-1)
    train, test = refused[refused < n], refused[refused >= n]
    icarma = ICarma(h, flow, x[:n].amin(0), x[:n].amax(0))

    def loss(rows: Tensor) -> Tensor:
        noise = torch.rand(len(rows), K).logit(eps=1e-9)
        return icarma.loss(x[train[rows]], *preferences(len(rows)), noise).sum()

    fit(icarma, loss, len(train), 100 * effort)

    asks, (can, hard) = x[test], preferences(len(test))
    _, m, a = icarma(asks, can, hard, torch.zeros(len(test), K))
    x_cf, far = flow.act(asks, m, a), m * (a - asks[:, 3:]).abs()
    in_truth = (true_world(u[test], m, a * std[3:] + mean[3:]) - mean) / std
    valid, plausible = h(x_cf) >= 0, flow(x_cf)[1] >= flow(asks)[1] - 1e-4  # for rounding
    is_free = can.sum(-1, keepdim=True) == K  # can act on everything
    report = {
        "accuracy of the bank": (h(x[n:]) >= 0) == y[n:],
        "log-likelihood of the flow, in nats": flow(x[n:])[1],
        "share of recommendations that are valid": valid,
        "... plausible": plausible,
        "... valid and plausible": valid & plausible,
        "... valid in the true world": h(in_truth.float()) >= 0,
        "features that a person can act on": can.sum(-1),
        "... acts on": m.sum(-1),
        "... acts on and can't": (m * (1 - can)).sum(-1),
        "sd that who is free moves the easiest": far[is_free & (hard == 0)],
        "... the hardest": far[is_free & (hard == 1)],
    }
    for name, of_each in report.items():
        print(f"{name:40}{of_each.double().mean():7.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small gain nothing from more
    main(*map(float, sys.argv[1:]))

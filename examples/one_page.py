"""iCARMA on one page: recourse that knows what each person can do, in torch and zuko.

Read it from top to bottom: the true model, what is learned of it, what people can do, two
networks that recommend, and what their recommendations are worth, also in the true model.
x are people's features, u their true noise, z their noise in the flow, h(x) the log-odds
of a positive decision. An action sets features to values a where its mask m is 1. lib
holds the same with checks; tests/test_one_page.py compares the two.

    python examples/one_page.py  # a minute; with 0.1 behind it, a tenth of the training
"""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Gamma, Normal, kl_divergence
from torch.nn import functional
from zuko.flows.autoregressive import MaskedAutoregressiveTransform

K = 4  # features that can be acted on: the last four of seven


# 1. The true model: a feature follows from its causes and its noise, or is acted on.
def do(k: int, m: Tensor, a: Tensor, follows: Tensor) -> Tensor:
    """Return actionable feature k: what it is set to where m is 1, else what follows."""
    return m[:, k] * a[:, k] + (1 - m[:, k]) * follows


def true_model(u: Tensor, m: Tensor, a: Tensor) -> Tensor:
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
    """Return who would pay the loan back. The classifier learns this from examples."""
    amount, duration, income, savings = x[:, 3:].unbind(-1)
    both = torch.where((income >= 0) & (savings >= 0), 1, -1) * income * savings
    return income + savings + both - amount - duration >= 0


# 2. What is learned: the classifier is a dense network, the flow a layer of zuko.
def network(n_in: int, width: int, n_out: int) -> nn.Sequential:
    """Return a dense network with two hidden layers and ReLU."""
    hidden = [nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(width, n_out))


class Flow(nn.Module):
    """The causal flow: z_j = exp(s_j) x_j + t_j is standard normal, in one layer of zuko.

    Its network is masked by the causal graph, so that s_j and t_j depend on the direct
    causes of x_j alone. So the flow is a density, and it is causal.
    """

    causes = ((), (), (0, 1), (0, 1), (0, 1, 3), (0, 1, 2), (5,))

    def __init__(self) -> None:
        super().__init__()
        adjacency = torch.eye(7, dtype=torch.bool)
        for effect, causes in enumerate(self.causes):
            adjacency[effect, list(causes)] = True
        self.layer = MaskedAutoregressiveTransform(
            7, adjacency=adjacency, hidden_features=[64], activation=nn.ELU
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return people's noise z (N, 7), and their log-density (N,) in nats."""
        z, log_slope = self.layer().call_and_ladj(x)
        return z, log_slope + Normal(0.0, 1.0).log_prob(z).sum(-1)

    def act(self, x: Tensor, m: Tensor, a: Tensor) -> Tensor:
        """Return x_cf, people x after an action: causes go first, and noise stays."""
        z, x_cf = self(x)[0], x
        m_all, a_all = (functional.pad(values, (3, 0)) for values in (m, a))
        for _ in range(self.layer.passes):  # the longest path of the graph
            follows = self.layer.meta(None, x_cf).inv(z)
            x_cf = m_all * a_all + (1 - m_all) * follows
        return x_cf


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
    # has lost was chosen (notebooks/appendix_settings.ipynb): w_max and the priors
    weights = (1.1, 1.5, 0.225, 0.1)
    tau, margin = 0.36, 0.013
    w_max, p_max, p_min = 7.0, 0.99, 0.01

    def __init__(self, h: nn.Module, flow: Flow, low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.h, self.flow, self.low, self.high = h, flow, low, high
        self.mask = network(7 + 2 * K, 64, K)
        self.values = network(7 + 3 * K, 64, K)
        self.multiplier = 0.0

    def forward(self, x: Tensor, can: Tensor, hard: Tensor, noise: Tensor) -> list[Tensor]:
        """Return the log-odds of acting, m and a. In training, noise makes m a draw."""
        context = torch.cat([self.flow(x)[0], can, hard], -1)
        logits = self.mask(context)
        soft = torch.sigmoid((logits + noise) / self.tau)
        m = can * ((soft > 0.5) + (soft - soft.detach()))  # 0 or 1, with soft's gradient
        a = x[:, 3:] + self.values(torch.cat([context, m], -1))
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
        # The decision should turn positive, and people should end where others are.
        lacks = (self.margin - (2 * self.h(x_cf).sigmoid() - 1)).relu()
        unlikely = -self.flow(x_cf)[1]
        # Features that can change, from education on, should stay within what was seen.
        outside = ((x_cf - self.high).relu() + (self.low - x_cf).relu())[:, 2:] / span[2:]
        terms = [cost.mean(-1), mask.sum(-1), unlikely, outside.sum(-1), lacks]
        *others, hinge = torch.stack(terms, -1).mean(0)
        # Lagrange multiplier: validity weighs more with every batch that lacks it [CARMA].
        self.multiplier += hinge.item()
        now = self.multiplier - 10 * hinge.item()
        return torch.stack([*others, hinge]) * torch.tensor([*self.weights, now])


def fit(module: nn.Module, loss: Callable[[Tensor], Tensor], n: int, epochs: float) -> None:
    """Make the loss of n rows small, 128 at a time, and freeze what was fitted."""
    n_epochs = max(1, round(epochs))
    adam = torch.optim.Adam(module.parameters(), lr=5e-3)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, n_epochs)
    for _ in range(n_epochs):
        for rows in torch.randperm(n).split(128):
            adam.zero_grad()
            loss(rows).backward()
            adam.step()
        decay.step()
    module.requires_grad_(False)


# 5. All of it: learn from 20,000 applicants, then recommend to the refused of 5,000 others.
def main(effort: float = 1.0) -> None:
    """Print how good the fits are, and what recommendations are worth."""
    torch.manual_seed(0)
    n, u = 20_000, draw_noise(25_000)
    drawn = true_model(u, *torch.zeros(2, len(u), K))  # nobody acts yet
    mean, std = drawn[:n].mean(0), drawn[:n].std(0)
    x, y = ((drawn - mean) / std).float(), repays(drawn)

    h, flow = nn.Sequential(network(7, 32, 1), nn.Flatten(0)), Flow()
    cross_entropy = nn.BCEWithLogitsLoss()
    # one epoch: a classifier that is too sure leaves the networks no slope to follow
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
    in_true_model = (true_model(u[test], m, a * std[3:] + mean[3:]) - mean) / std
    valid, plausible = h(x_cf) >= 0, flow(x_cf)[1] >= flow(asks)[1] - 1e-4  # for rounding
    is_free = can.sum(-1, keepdim=True) == K  # can act on everything
    report = {
        "accuracy of the classifier": (h(x[n:]) >= 0) == y[n:],
        "log-likelihood of the flow, in nats": flow(x[n:])[1],
        "share of recommendations that are valid": valid,
        "... plausible": plausible,
        "... valid and plausible": valid & plausible,
        "... valid in the true model": h(in_true_model.float()) >= 0,
        "features that a person can act on": can.sum(-1),
        "... acts on": m.sum(-1),
        "... acts on and can't": (m * (1 - can)).sum(-1),
        "sd that who is free moves the easiest": far[is_free & (hard == 0)],
        "... the hardest": far[is_free & (hard == 1)],
    }
    for name, values in report.items():
        print(f"{name:40}{values.double().mean():7.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small gain nothing from more
    main(*map(float, sys.argv[1:]))

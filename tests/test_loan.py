"""The Loan equations against numbers worked out on paper, and their densities."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method import loan


def test_loan_by_hand():
    u = torch.tensor([[1.0, 40.0, 0.2, -1.0, 2.0, 0.5, -1.0]], dtype=torch.float64)
    x = loan.scm().predict(u)[0].tolist()

    def sigma(t):
        return 1 / (1 + math.exp(-t))

    education = -0.5 + sigma(-1 + 0.5 + sigma(0.5) + 0.2)
    income = -4 + 4 + 2 + education + 0.5
    expected = [1, 5, education, 0, -1 + 0.5 + 0 + 2, income, -4 + 1.5 * income - 1]
    assert x == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("amount", "duration", "income", "savings", "paid"),
    [
        (0, 0, 1, 1, True),  # 0.3 (2 + 1) > 0
        (3, 0, 1, 1, True),  # 0.3 (-3 + 2 + 1) = 0, exactly one half
        (3.1, 0, 1, 1, False),
        (0, 0, 2, -1, True),  # k = -1: 1 + 2 > 0
        (0, 0, -1, -1, False),  # k = -1: -2 - 1 < 0
    ],
)
def test_label_by_hand(amount, duration, income, savings, paid):
    x = torch.tensor([0, 0, 0, amount, duration, income, savings], dtype=torch.float64)
    assert loan.label(x).item() is paid


def test_density_of_education_integrates_to_one():
    """The only equation that is not additive: its volume term counts."""
    model = loan.scm()
    grid = torch.linspace(-0.4999, 0.4999, 4001, dtype=torch.float64)
    x = torch.zeros(len(grid), 7, dtype=torch.float64)
    x[:, 2] = grid
    others = model.abduct(x)
    rest = sum(
        torch.from_numpy(np.asarray(e.noise.logpdf(others[:, j].numpy())))
        for j, (name, e) in enumerate(model.equations.items())
        if name not in ("gender", "education")
    )
    density = (model.log_prob(x) - rest - math.log(0.5)).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-3)


def test_standardised_model_is_the_same_model():
    model = loan.scm()
    x = model.sample(200, np.random.default_rng(1))
    mean, std = x.mean(0), torch.from_numpy(x.numpy().std(0))
    scaled = model.standardised(mean, std)
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, 3] = is_acted[:, 5] = True
    plain = model.counterfactual(x, is_acted, x + 1)
    assert torch.allclose(
        scaled.counterfactual((x - mean) / std, is_acted, (x + 1 - mean) / std) * std
        + mean,
        plain,
    )
    gap = std[1:].log().sum()  # gender is discrete and has no volume term
    assert torch.allclose(
        scaled.log_prob((x - mean) / std), model.log_prob(x) + gap, atol=1e-9
    )


def test_noise_has_the_stated_law():
    """Abducted noise of sampled people, by Kolmogorov-Smirnov (fixed seed)."""
    model = loan.scm()
    u = model.abduct(model.sample(4_000, np.random.default_rng(2)))
    for j, (name, equation) in enumerate(model.equations.items()):
        if name == "gender":
            assert abs(u[:, j].mean().item() - 0.5) < 0.03
        else:
            assert stats.kstest(u[:, j].numpy(), equation.noise.cdf).pvalue > 0.01, name


def test_graph_of_loan(problem):
    graph = problem.population.graph
    after = {
        name: {graph.features[i] for i in graph.descendants_of([j])}
        for j, name in enumerate(graph.features)
    }
    assert after["income"] == {"savings"} and after["savings"] == set()
    assert after["loan_amount"] == {"loan_duration"}
    assert after["age"] == set(graph.features) - {"gender", "age"}
    assert graph.adjacency().sum() == 11


def test_population_is_the_model_standardised():
    people = loan.population(400, 300, 1_000, seed=1)
    x = people.x["recourse/train"]
    sizes = [len(rows) for rows in people.x.values()]
    assert sizes == [320, 40, 40, 240, 30, 30, 500, 250, 250]
    assert torch.allclose(x.mean(0), torch.zeros(7), atol=1e-5)
    assert torch.allclose(x.std(0, correction=0), torch.ones(7), atol=1e-5)
    again = loan.population(400, 300, 1_000, seed=1)
    other = loan.population(400, 300, 1_000, seed=2)
    assert torch.equal(x, again.x["recourse/train"])
    assert not torch.equal(x, other.x["recourse/train"])
    gender = people.inverse_transform(x.double())[:, 0]
    assert set(gender.round(decimals=5).tolist()) == {0.0, 1.0}
    for split, rows in people.x.items():  # labels are those of the features, up to rounding
        same = loan.label(people.inverse_transform(rows.double())) == people.y[split]
        assert same.float().mean() > 0.995, split


@pytest.mark.parametrize("size", ["n_classifier", "n_flow", "n_recourse"])
def test_too_few_people_are_refused(size):
    with pytest.raises(ValueError, match="is empty"):
        loan.population(**{"n_classifier": 20, "n_flow": 20, "n_recourse": 20, size: 1})

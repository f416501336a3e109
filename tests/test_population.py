"""Splits, the scaler and the classifier's door."""

from dataclasses import replace

import pytest
import torch

from lib.method import loan


def test_sizes_and_scaler():
    drawn = loan.population(n_classifier=200, n_flow=1_000, n_recourse=400, seed=1)
    sizes = {split: len(x) for split, x in drawn.x.items()}
    assert sizes == {
        "classifier/train": 160,
        "classifier/validation": 20,
        "classifier/test": 20,
        "flow/train": 800,
        "flow/validation": 100,
        "flow/test": 100,
        "recourse/train": 200,
        "recourse/validation": 100,
        "recourse/test": 100,
    }
    x = drawn.x["recourse/train"]
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    assert torch.equal(drawn.low, x.amin(0)) and torch.equal(drawn.high, x.amax(0))
    assert drawn.actionable == ("loan_amount", "loan_duration", "income", "savings")
    assert drawn.actionable_index == [3, 4, 5, 6]
    assert set(drawn.in_units(x)[:, 0].round(decimals=4).tolist()) == {0.0, 1.0}


def test_draws_are_independent_and_repeatable():
    one, two, other = (loan.population(100, 100, 100, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.x["flow/train"], two.x["flow/train"])
    assert not torch.equal(one.x["flow/train"], other.x["flow/train"])
    assert not torch.equal(
        one.in_units(one.x["flow/train"])[:50], one.in_units(one.x["recourse/train"])
    )


def test_about_half_are_refused(problem):
    share = len(problem.refused("train")) / len(problem.population.x["recourse/train"])
    assert 0.40 < share < 0.56
    assert not problem.classifier.accepts(problem.refused("test")).any()


def test_classifier_learns_the_label_and_decides_at_one_half(problem):
    x, y = problem.population.x["classifier/test"], problem.population.y["classifier/test"]
    assert (problem.classifier.accepts(x) == y).double().mean() > 0.85
    assert torch.equal(
        problem.classifier.accepts(x), problem.classifier.probability(x) >= 0.5
    )


def test_classifier_agrees_with_a_plain_network(problem):
    h = problem.classifier
    network = torch.nn.Sequential(
        *[m for w in h.weights for m in (torch.nn.Linear(*w.shape), torch.nn.ReLU())][:-1]
    )
    for layer, weight, bias in zip(network[::2], h.weights, h.biases, strict=True):
        layer.weight.data, layer.bias.data = weight.T, bias
    x = problem.population.x["classifier/test"]
    assert torch.allclose(h.logit(x), network(x).squeeze(-1), atol=1e-12)


def test_bad_input_is_named(problem):
    with pytest.raises(ValueError, match="n_flow is 3"):
        loan.population(n_flow=3)
    with pytest.raises(ValueError, match="recourse split 'tset'"):
        problem.refused("tset")
    empty = problem.population.x | {"recourse/test": torch.zeros(0, 7)}
    with pytest.raises(ValueError, match="Split 'recourse/test' is empty"):
        replace(problem.population, x=empty)
    with pytest.raises(ValueError, match="same features in the same order"):
        replace(problem.population, kinds={"age": "immutable"})
    x = problem.population.x["classifier/train"]
    with pytest.raises(ValueError, match="label column"):
        problem.classifier.accepts(x[:, :5])

"""Classifiers of any kind decide alike; thresholds, fits, files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lib.method import classifier
from lib.method.classifier import Classifier, NetworkClassifier


def test_a_module_a_function_and_a_network_decide_alike(problem):
    h, x = problem.classifier, problem.population.x["recourse/test"]
    module = torch.nn.Linear(7, 1, dtype=torch.float64)
    by_module = Classifier(h.features, module)
    assert torch.equal(by_module.logit(x), module(x).squeeze(-1)) and by_module.has_gradient
    by_function = Classifier(h.features, h.logit)
    stacked = x[:12].reshape(3, 4, 7)
    assert torch.equal(by_function.logit(stacked), h.logit(x[:12]).reshape(3, 4))
    by_numpy = Classifier(h.features, lambda x: torch.from_numpy(x.numpy().sum(-1)))
    assert not by_numpy.has_gradient
    assert torch.allclose(by_numpy.logit(x.clone().requires_grad_()), x.sum(-1))


@pytest.mark.parametrize("has_names", [False, True])
def test_scikit_learn_is_taken_as_it_is(problem, has_names):
    """Fitted in the units of the data, to a table or its numbers, by hand or `fitted`."""
    population = problem.population
    rows, test = (
        population.inverse_transform(population.x[split]).numpy()
        for split in ("classifier/train", "recourse/test")
    )
    model = make_pipeline(StandardScaler(), LogisticRegression())
    if has_names:
        columns = list(population.features)
        rows, test = (pd.DataFrame(values, columns=columns) for values in (rows, test))
        model = RandomForestClassifier(20, random_state=0)
    model.fit(rows, population.y["classifier/train"].numpy())
    h = Classifier.of(model, population)
    expected = model.predict_proba(test)[:, 1].clip(1e-7, 1 - 1e-7)
    x = population.x["recourse/test"]
    assert h.probability(x).numpy() == pytest.approx(expected, abs=1e-6)
    assert 0 < len(replace(problem, classifier=h).refused("test")) < len(x)

    def fit(people, is_positive):
        return clone(model).fit(people if has_names else people.to_numpy(), is_positive)

    assert Classifier.fitted(fit, population).logit(x) == pytest.approx(h.logit(x))


def test_probabilities_of_one_class_and_of_three(problem):
    population = problem.population
    x = population.x["recourse/test"][:5]

    class Model:
        def __init__(self, *shape):
            self.shape = shape

        def predict_proba(self, rows):
            return np.full((len(rows), *self.shape), 0.25)

    assert Classifier.of(Model(), population).probability(x).tolist() == [0.25] * 5
    with pytest.raises(ValueError, match="tells 3 classes apart: expected two"):
        Classifier.of(Model(3), population).accepts(x)
    with pytest.raises(ValueError, match=r"got Model: Classifier.of\(model, population\)"):
        replace(problem, classifier=Model())


def test_what_else_is_no_classifier(problem):
    population = problem.population
    with pytest.raises(ValueError, match="must have one of predict_proba"):
        Classifier.of(object(), population)
    x = population.x["recourse/test"]
    broken = Classifier(population.features, lambda x: x.sum(-1) * torch.nan)
    with pytest.raises(ValueError, match="gave NaN or infinite log-odds"):
        broken.accepts(x)
    never_empty = Classifier(population.features, lambda x: x.sum(-1) - x.max())
    assert never_empty.logit(x[:0]).shape == (0,)


def test_a_module_answers_as_in_evaluation(problem):
    population = problem.population
    x = population.x["recourse/test"]
    for make in (
        lambda module: Classifier(population.features, module),
        lambda module: Classifier.of(module, population),
    ):
        module = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(7, 1)).double()
        h = make(module)
        assert torch.equal(h.logit(x), h.logit(x))


def test_probabilities_stay_and_decisions_move(problem):
    h, x = problem.classifier, problem.population.x["recourse/test"]
    for lenient in (h, Classifier(h.features, h.logit)):
        strict = lenient.with_threshold(0.8)
        assert torch.allclose(strict.probability(x), lenient.probability(x))
        assert torch.equal(strict.accepts(x), lenient.probability(x) >= 0.8)
        again = strict.with_threshold(0.3)
        assert torch.equal(again.accepts(x), lenient.probability(x) >= 0.3)
        assert lenient.threshold == 0.5 and strict.threshold == 0.8
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="threshold is"):
            h.with_threshold(wrong)


def test_probabilities_and_decisions_are_no_log_odds(problem):
    h = problem.classifier
    for wrong in (lambda p: p, lambda p: (p >= 0.5).double(), lambda p: 0.2 + 0.1 * p):
        h_wrong = Classifier(h.features, lambda x, f=wrong: f(torch.sigmoid(h.logit(x))))
        with pytest.raises(ValueError, match=r"probabilities or decisions. Expected log-"):
            replace(problem, classifier=h_wrong)
    signs = Classifier(h.features, lambda x: 2 * (h.logit(x) >= 0).double() - 1)
    replace(problem, classifier=signs)


def test_a_classifier_against_the_labels_is_noticed_and_a_blind_one_is_not(problem):
    h = problem.classifier
    turned = NetworkClassifier(h.features, torch.float64)
    turned.load_state_dict(h.state_dict())
    for last in (turned.network[-1].weight, turned.network[-1].bias):
        last.data.neg_()
    for against in (turned, Classifier(h.features, lambda x: -h.logit(x))):
        with pytest.raises(ValueError, match=r"negative in [0-9]% of cases"):
            replace(problem, classifier=against)
    for k in range(100, 150):  # as good as chance
        blind = Classifier(h.features, lambda x, k=k: torch.sin(1_000 * k * x[:, 5]))
        replace(problem, classifier=blind)


@torch.no_grad()
def test_a_network_fitted_to_a_weak_signal_is_not_accused(population):
    """Its log-odds may all lie between 0 and 1: they are log-odds all the same."""
    h = NetworkClassifier(population.features, dtype=torch.float64)
    h.network[-1].weight.mul_(1e-3)
    h.network[-1].bias.fill_(0.5)
    x = population.x["recourse/train"]
    h.check(x, x.new_zeros(0))
    h.network[-1].bias.fill_(torch.nan)
    with pytest.raises(ValueError, match="gives NaN"):
        h.check(x, x.new_zeros(0))


def test_the_label_is_learned_and_one_half_decides(problem):
    x, y = problem.population.x["classifier/test"], problem.population.y["classifier/test"]
    is_accepted = problem.classifier.accepts(x)
    assert (is_accepted == y).double().mean() > 0.85
    assert torch.equal(is_accepted, problem.classifier.probability(x) >= 0.5)


def test_fit_is_torch_by_hand(population):
    """Two epochs of plain descent, written out, give the same network."""
    fitted, history = classifier.fit(population, n_epochs=2, optimiser="sgd", seed=4)
    rng = np.random.default_rng(4)
    h = NetworkClassifier(population.features, dtype=torch.float64)
    classifier.draw_weights(h.network, rng)
    x, y = population.x["classifier/train"], population.y["classifier/train"].double()
    losses = []
    for _ in range(2):
        total = 0.0
        for rows in torch.from_numpy(rng.permutation(len(x))).split(256):
            p = torch.sigmoid(h(x[rows]))
            loss = -(y[rows] * p.log() + (1 - y[rows]) * (1 - p).log()).mean()
            slopes = torch.autograd.grad(loss, list(h.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(h.parameters(), slopes, strict=True):
                    parameter -= 1e-3 * slope
            total += loss.item() * len(rows)
        losses.append(total / len(x))
    assert history.loss.tolist() == pytest.approx(losses, rel=1e-9)
    test = population.x["recourse/test"]
    assert torch.allclose(fitted.logit(test), h.logit(test), atol=1e-12)


def test_saved_is_loaded(problem, tmp_path):
    x = problem.population.x["recourse/test"]
    strict = problem.classifier.with_threshold(0.8)
    strict.save(tmp_path, "h", {"seed": 0})
    again = NetworkClassifier.load(tmp_path, "h")
    assert again.threshold == 0.8
    assert torch.equal(again.probability(x), strict.probability(x))


def test_negative_labels_may_weigh_more(population):
    x = population.x["recourse/test"]
    even, _ = classifier.fit(population, n_epochs=20)
    careful, _ = classifier.fit(population, n_epochs=20, negative_class_weight=5.0)
    assert careful.accepts(x).sum() < even.accepts(x).sum()
    with pytest.raises(ValueError, match="negative_class_weight must be above zero"):
        classifier.fit(population, negative_class_weight=0)

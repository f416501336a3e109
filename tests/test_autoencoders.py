"""Autoencoders are fitted, kept and loaded; the generators that use them keep laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from lib import io
from lib.beyond.hare import autoencoders, fitted, generators, tabular
from lib.beyond.hare.draws import streams
from lib.method.classifier import Classifier

N = 8


@pytest.fixture(scope="module")
def table():
    """COMPAS under another name, so that its networks are the small ones."""
    return replace(tabular.compas(), name="mine")


@pytest.fixture(scope="module")
def models(table):
    return fitted.fit_all(table, seeds=(1,))


@pytest.fixture(scope="module")
def h(models):
    return models.classifier("ANN", 1)


@pytest.fixture(scope="module")
def x(table, h):
    return table.refused(h.accepts, N)


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch):
    """CRUDS finds the same laws in a tenth of its steps."""
    monkeypatch.setattr(generators, "N_CRUDS_STEPS", 200)


@pytest.mark.parametrize("kind", autoencoders.KINDS)
def test_a_fit_lowers_the_loss_and_depends_on_its_seed_alone(table, models, kind):
    one, losses = autoencoders.fit(table, kind, 3)
    if kind == "CCHVAE":  # the weight of the divergence, and so the loss, rises
        losses = losses[:2]
    assert losses[-1] < losses[0]
    same, other = autoencoders.fit(table, kind, 3)[0], models.autoencoders[kind]
    for weight, again, another in zip(
        one.parameters(), same.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(weight, again) and not torch.equal(weight, another)
        assert torch.equal(weight, weight.float().double()) and not weight.requires_grad


def test_what_is_decoded_resembles_who_was_encoded(table, models):
    """CCHVAE reconstructs mutable features better than their mean does."""
    model, x = models.autoencoders["CCHVAE"], table.x["test"]
    unseen = x[:, ~model.is_seen]
    decoded = model.decode(torch.cat([model.encode(x), unseen], -1), x)
    error = (decoded - x).square().mean(0)[model.is_seen]
    by_mean = (table.x["train"].mean(0) - x).square().mean(0)[model.is_seen]
    assert error.sum() < 0.5 * by_mean.sum()
    assert torch.equal(decoded[:, ~model.is_seen], x[:, ~model.is_seen])


def test_w_tells_labels_apart_and_z_does_not(table, models):
    """CRUDS: the prior of w differs by label; from z the adversary guesses at random."""
    model = models.autoencoders["CRUDS"]
    guess = model.label(model.encode(table.x["test"])[:, :-2])
    assert guess.sigmoid().std() < 0.1
    label = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    no, yes = model.prior(label)
    assert (no - yes).abs().max() > 0.1


def test_divergences_are_those_of_torch():
    rng = np.random.default_rng(0)
    out, other = (torch.from_numpy(rng.standard_normal((5, 4))) for _ in range(2))
    for others in (other, None):
        codes = (out, torch.zeros_like(out) if others is None else others)
        p, q = (Normal(code[:, :2], (code[:, 2:] / 2).exp()) for code in codes)
        expected = kl_divergence(p, q).sum(-1).mean().item()
        assert autoencoders.divergence(out, others).item() == pytest.approx(expected)


def found(table, h, models, x, rngs):
    """Yield what each generator finds, by its name."""
    by_kind = models.autoencoders
    yield "CLUE", generators.clue(table, h, x, by_kind["CLUE"])
    yield "CRUDS", generators.cruds(table, h, x, by_kind["CRUDS"])
    for as_published in (True, False):
        r = generators.cchvae(table, h, x, by_kind["CCHVAE"], rngs(), as_published)
        yield f"CCHVAE {as_published}", r


def test_recourse_is_accepted_and_moves_what_it_may(table, h, models, x):
    """CLUE moves everything; the others what is mutable, CCHVAE to a 0 or 1 if binary."""
    turned = dict(found(table, h, models, x.flip(0), lambda: streams(N, 0)[::-1]))
    for name, r in found(table, h, models, x, lambda: streams(N, 0)):
        helped = ~r.isnan().any(-1)
        assert helped.sum() >= (N // 2 if name == "CLUE" else N), name
        assert h.accepts(r[helped]).all(), name
        assert torch.allclose(turned[name], r.flip(0), rtol=0, atol=1e-9, equal_nan=True)
        moved, binary = (r != x)[helped], r[helped][:, ~table.is_continuous]
        assert moved[:, table.is_immutable].any() == (name == "CLUE"), name
        if name == "CCHVAE True":
            assert ((binary == 0) | (binary == 1)).all()
        elif name == "CCHVAE False":
            assert not moved[:, ~table.is_free].any()
        else:
            assert moved[:, ~table.is_continuous].any(), name


def test_nobody_finds_what_is_not_there(table, models, x):
    never = Classifier(table.features, lambda x: x.clamp(0, 1).sum(-1) - 20)
    for name, r in found(table, never, models, x[:2], lambda: streams(2, 0)):
        assert r.isnan().all(), name


@pytest.mark.parametrize(("kind", "n_layers"), [("ANN", 4), ("LR", 1)])
def test_a_classifier_of_two_outputs_folded_into_one(table, kind, n_layers):
    """Its loss is the cross-entropy of its log-odds; it beats the majority by far."""
    network, losses = fitted.fit_classifier(table, kind, seed=1)
    again, other = (
        fitted.fit_classifier(table, kind, seed=seed, n_epochs=1)[0] for seed in (1, 2)
    )
    assert not torch.equal(again[0].weight, other[0].weight)
    assert len(network) == 2 * n_layers - 1 and network[-1].out_features == 1
    h, y = Classifier(table.features, network), table.y["train"]
    now = F.binary_cross_entropy_with_logits(h.logit(table.x["train"]), y.double())
    assert now.item() == pytest.approx(losses[-1], rel=0.05)
    right = h.accepts(table.x["test"]) == table.y["test"]
    assert right.double().mean() > 0.82  # the majority is 0.819


def test_models_come_back_to_the_bit(tmp_path, table, models, x):
    fitted.save(tmp_path, "all", {"mine": models}, {"seeds": [1]})
    loaded = fitted.load(tmp_path, "all", {"mine": table})["mine"]
    for name in ("GS", "CCHVAE", "CLUE"):
        before, after = (
            fitted.base(name, table, kit.classifier("ANN", 1), kit, x[:3], 3)
            for kit in (models, loaded)
        )
        assert torch.equal(before.nan_to_num(-1), after.nan_to_num(-1)), name
    fitted.save(tmp_path / "again", "all", {"mine": loaded}, {})
    assert io.same("all", tmp_path, tmp_path / "again")
    adult = tabular.adult()
    for call, message in (
        (lambda: fitted.load(tmp_path, "all", {"adult": table}), "Unknown data set in it"),
        (lambda: fitted.load(tmp_path, "all", {"mine": adult}), "holds no fits for the"),
        (lambda: models.classifier("ANN", 9), "Unknown classifier 'ANN 9'"),
        (lambda: autoencoders.fit(table, "VAE"), "Unknown kind of autoencoder 'VAE'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

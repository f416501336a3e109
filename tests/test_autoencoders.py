"""Autoencoders are fitted, kept and loaded; the generators that use them keep laws."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

from lib import io
from lib.beyond.hare import autoencoders, fitted, generators, tabular
from lib.beyond.hare.draws import streams
from lib.method import classifier

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
    return models.classifiers["ANN", 1]


@pytest.fixture(scope="module")
def x(table, h):
    return table.refused(h.accepts, N)


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch):
    """CRUDS finds the same laws in a tenth of its steps."""
    monkeypatch.setattr(generators, "N_CRUDS_STEPS", 200)


@pytest.mark.parametrize("kind", autoencoders.KINDS)
def test_a_fit_lowers_the_loss_and_depends_on_its_seed_alone(table, models, kind):
    seen = []
    one, losses = autoencoders.fit(
        table, kind, 3, lambda r: [seen.append(i) or i for i in r]
    )
    assert seen == list(range(5)) and len(losses) == 5
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
    decoded = model.decode(model.encode(x), x)
    error = (decoded - x).square().mean(0)[model.is_seen]
    by_mean = (table.x["train"].mean(0) - x).square().mean(0)[model.is_seen]
    assert error.sum() < 0.5 * by_mean.sum()
    assert torch.equal(decoded[:, ~model.is_seen], x[:, ~model.is_seen])


def test_clue_decodes_hardly_anybody_but_the_mean_person(table, models):
    """Its noise of variance 1 is larger than what there is to tell within [0, 1]."""
    model, x = models.autoencoders["CLUE"], table.x["train"]
    z = torch.from_numpy(np.random.default_rng(0).standard_normal((500, 12)))
    decoded = model.decode(z, x[:500])
    assert (decoded.std(0) < 0.2 * x.std(0)).all()
    assert torch.allclose(decoded.mean(0), x.mean(0), atol=0.1)


def test_w_tells_labels_apart_and_z_does_not(table, models):
    """CRUDS: the prior of w differs by label; from z the adversary guesses at random."""
    model = models.autoencoders["CRUDS"]
    guess = model.label(model.encode(table.x["test"])[:, :-2])
    assert guess.sigmoid().std() < 0.1
    label = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    no, yes = model.prior(label)
    assert (no - yes).abs().max() > 0.1


def test_divergences_are_those_of_the_closed_form():
    """Against the integral of p log(p / q), in each dimension."""
    rng = np.random.default_rng(0)
    out, other = (torch.from_numpy(rng.standard_normal((1, 4))) for _ in range(2))
    grid = np.linspace(-30, 30, 200_001)

    def integral(codes, others):
        total = 0.0
        for j in range(2):
            p, q = (
                stats.norm(code[j].item(), np.exp(code[2 + j].item() / 2))
                for code in (codes, others)
            )
            total += np.trapezoid(p.pdf(grid) * (p.logpdf(grid) - q.logpdf(grid)), grid)
        return total

    for others in (other, None):
        divergence = autoencoders._divergence(out, others).item()
        expected = integral(out[0], torch.zeros(4) if others is None else others[0])
        assert divergence == pytest.approx(expected, abs=1e-6)


def through(table, h, models, as_published=False):
    """The three generators as functions of people and their streams."""
    by_kind = models.autoencoders
    return {
        "CCHVAE": lambda x, rngs: generators.cchvae(
            table, h, x, by_kind["CCHVAE"], rngs, as_published
        ),
        "CLUE": lambda x, _: generators.clue(table, h, x, by_kind["CLUE"], as_published),
        "CRUDS": lambda x, _: generators.cruds(table, h, x, by_kind["CRUDS"], as_published),
    }


@pytest.mark.parametrize("name", autoencoders.KINDS)
def test_recourse_is_accepted_possible_and_keeps_what_nobody_can_change(
    table, h, models, x, name
):
    given, generate = x.clone(), through(table, h, models)[name]
    r = generate(x, streams(N, 0))
    assert torch.equal(x, given)
    helped = ~r.isnan().any(-1)
    assert helped.sum() >= (
        N // 2 if name == "CLUE" else N
    )  # its mean person is not enough
    assert h.accepts(r[helped]).all()
    assert ((r >= 0) & (r <= 1))[helped].all()
    assert torch.equal(r[helped][:, ~table.is_free], x[helped][:, ~table.is_free])
    order = torch.arange(N).flip(0)
    moved = generate(x[order], streams(N, 0)[::-1])
    assert torch.allclose(moved, r[order], rtol=0, atol=1e-9, equal_nan=True)
    alone = generate(x[2:3], streams(N, 0)[2:3])
    assert torch.allclose(alone[0], r[2], rtol=0, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", autoencoders.KINDS)
def test_as_published_more_moves(table, h, models, x, name):
    """CLUE moves everything; the others what is mutable, CCHVAE to a 0 or 1 if binary."""
    r = through(table, h, models, as_published=True)[name](x, streams(N, 0, are_equal=True))
    helped = ~r.isnan().any(-1)
    assert helped.any() and h.accepts(r[helped]).all()
    moved = (r != x)[helped]
    assert moved[:, table.is_immutable].any() == (name == "CLUE")
    if name == "CCHVAE":
        binary = r[helped][:, ~table.is_continuous]
        assert ((binary == 0) | (binary == 1)).all()
    else:
        assert moved[:, ~table.is_continuous].any()


@pytest.mark.parametrize("name", autoencoders.KINDS)
def test_nobody_finds_what_is_not_there(table, models, x, name):
    """Log-odds below zero everywhere in [0, 1]."""
    never = classifier.Classifier(table.features, lambda x: x.clamp(0, 1).sum(-1) - 20)
    r = through(table, never, models)[name](x[:2], streams(2, 0))
    assert r.isnan().all()


def test_the_entropy_of_a_decision_is_the_closed_form():
    logit = torch.linspace(-5, 5, 11, dtype=torch.float64)
    p = logit.sigmoid().numpy()
    expected = stats.entropy(np.stack([p, 1 - p]))
    assert np.allclose(generators._entropy(logit).numpy(), expected, atol=1e-12)


def test_models_come_back_to_the_bit(tmp_path, table, h, models, x):
    tables, models_of = {"mine": table}, {"mine": models}
    path = fitted.save(tmp_path, "all", models_of, tables, {"seeds": [1]})
    assert path.stat().st_size < 200_000
    loaded = fitted.load(tmp_path, "all", tables)["mine"]
    assert loaded.classifiers.keys() == models.classifiers.keys()
    base = partial(fitted.base, table=table, x=x, seed=3)
    for name in (*autoencoders.KINDS, "GS", "FACE"):
        before = base(name, h=h, models=models)
        after = base(name, h=loaded.classifiers["ANN", 1], models=loaded)
        assert torch.equal(before.nan_to_num(-1), after.nan_to_num(-1)), name
    fitted.save(tmp_path / "again", "all", {"mine": loaded}, tables, {})
    assert io.same("all", tmp_path, tmp_path / "again")


def test_models_of_other_people_are_refused(tmp_path, table, models, h, x):
    fitted.save(tmp_path, "all", {"mine": models}, {"mine": table}, {})
    other = replace(table, low=table.low - 1)
    by_kind = models.autoencoders
    for call, message in (
        (lambda: fitted.load(tmp_path, "all", {"mine": other}), "fitted to another mine"),
        (lambda: fitted.load(tmp_path, "all", {"adult": table}), "Unknown data set in it"),
        (lambda: fitted.save(tmp_path, "a", {"b": models}, {}, {}), "Unknown data set 'b'"),
        (lambda: fitted.base("gs", table, h, models, x, 1), "Unknown generator 'gs'"),
        (lambda: fitted.fit_all(table, seeds=()), "seeds is empty"),
        (lambda: autoencoders.fit(table, "VAE"), "Unknown kind of autoencoder 'VAE'"),
        (
            lambda: generators.clue(table, h, x, by_kind["CRUDS"]),
            "Unknown kind of model 'CRUDS'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()

"""The classifiers of the HARE paper."""

import pytest
import torch
from torch.nn import functional as F

from lib.beyond.hare import fitted, tabular


def test_a_classifier_of_two_outputs_folded_into_one():
    """Its loss is the cross-entropy of its log-odds; it beats the majority by far."""
    table = tabular.compas()
    for kind, n_layers in (("ANN", 4), ("LR", 1)):
        h, losses = fitted.fit_classifier(table, kind, seed=1)
        assert len(h.network) == 2 * n_layers - 1 and h.network[-1].out_features == 1
        assert all(p.dtype == torch.float64 for p in h.network.parameters())
        assert losses[-1] < 0.8 * losses[0], kind
        y = table.y["train"]
        now = F.binary_cross_entropy_with_logits(h.logit(table.x["train"]), y.double())
        assert now.item() == pytest.approx(losses[-1], rel=0.05), kind
        right = h.accepts(table.x["test"]) == table.y["test"]
        assert right.double().mean() > 0.82, kind  # the majority is 0.819


def test_classifiers_depend_on_their_seed_alone():
    table = tabular.compas()
    one, same, other = (
        fitted.fit_classifier(table, n_epochs=1, seed=s)[0].network[0].weight
        for s in (1, 1, 2)
    )
    assert torch.equal(one, same) and not torch.equal(one, other)
    with pytest.raises(ValueError, match="Unknown kind of classifier 'linear'"):
        fitted.fit_classifier(table, "linear")


def test_a_file_without_some_weights_is_named(tmp_path):
    table = tabular.compas()
    h, _ = fitted.fit_classifier(table, "LR", n_epochs=1)
    h.network[0].register_parameter("bias", None)
    models = {"compas": fitted.Models({("LR", 0): h}, {})}
    fitted.save(tmp_path, "all", models, {"compas": table}, {})
    with pytest.raises(ValueError, match="holds no fits for the base generators"):
        fitted.load(tmp_path, "all", {"compas": table})

"""The classifiers of the HARE paper, and their draws against torch's own."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from lib.beyond.hare import fitted, tabular


def test_a_classifier_of_two_outputs_folded_into_one():
    """Its loss is the cross-entropy of its log-odds; it beats the majority by far."""
    table = tabular.compas()
    for kind, layers in (("ANN", 4), ("LR", 1)):
        h, losses = fitted.fit_classifier(table, kind, seed=1)
        assert len(h.weights) == layers and h.weights[-1].shape[-1] == 1
        assert h.weights[0].dtype == torch.float64
        assert losses[-1] < 0.8 * losses[0], kind
        y = table.y["train"]
        now = F.binary_cross_entropy_with_logits(h.logit(table.x["train"]), y.double())
        assert now.item() == pytest.approx(losses[-1], rel=0.05), kind
        right = h.accepts(table.x["test"]) == table.y["test"]
        assert right.double().mean() > 0.82, kind  # the majority is 0.819


def test_draws_are_those_of_torchs_own_layers_and_loader():
    layers, shuffled = fitted._as_torch_draws([7, 10, 2], seed=3)
    torch.manual_seed(3)
    theirs = [nn.Linear(7, 10), nn.Linear(10, 2)]
    for i, layer in enumerate(theirs):
        assert torch.equal(layers[2 * i], layer.weight.detach().T.double())
        assert torch.equal(layers[2 * i + 1], layer.bias.detach().double())
    loader = DataLoader(range(1_000), batch_size=64, shuffle=True)
    for _ in range(3):
        assert torch.equal(shuffled(1_000), torch.cat([*loader]))


def test_classifiers_depend_on_their_seed_alone():
    table = tabular.compas()
    one, same, other = (
        fitted.fit_classifier(table, n_epochs=1, seed=s)[0].weights[0] for s in (1, 1, 2)
    )
    assert torch.equal(one, same) and not torch.equal(one, other)
    with pytest.raises(ValueError, match="Unknown kind of classifier 'linear'"):
        fitted.fit_classifier(table, "linear")

"""CFRL (alibi): a network that learns by reinforcement, and hears each person's limits.

Autoencoder and settings are those of the package's example for tables (Adult), except the
steps of training, which are the package's default: ten times those of the example.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from alibi.explainers import CounterfactualRLTabular
from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor
from alibi.models.pytorch.autoencoder import HeAE
from alibi.models.pytorch.cfrl_models import ADULTDecoder, ADULTEncoder
from task import Answer, Task, quiet, run
from torch.utils.data import DataLoader, TensorDataset

HIDDEN, LATENT, EPOCHS, BATCH = 128, 15, 50, 128
SPARSITY, CONSISTENCY = 0.5, 0.5
STEPS = 100_000


def prepare(task: Task, method: str, seed: int) -> Answer:
    """Return CFRL's answers; autoencoder, actor and critic are trained here."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    x = task.train[task.features].to_numpy().astype(np.float32)
    encode, decode = get_he_preprocessor(
        x, task.features, {}, dict.fromkeys(task.whole, int)
    )
    seen = torch.tensor(encode(x)).float()
    network = HeAE(ADULTEncoder(HIDDEN, LATENT), ADULTDecoder(HIDDEN, [x.shape[1]]))
    loss = [torch.nn.MSELoss()]
    network(seen[:1])  # its layers learn their widths from a first person
    network.compile(
        torch.optim.Adam(network.parameters(), 1e-3), loss, loss_weights=[1.0], metrics={}
    )
    loader = DataLoader(TensorDataset(seen, seen), BATCH, shuffle=True)
    with quiet():
        network.fit(Pairs(loader), epochs=EPOCHS)

    def classifier(rows: np.ndarray) -> np.ndarray:
        yes = task.probability(np.asarray(rows, dtype=float))
        return np.column_stack([1 - yes, yes])

    explainer = CounterfactualRLTabular(
        predictor=classifier,
        encoder=network.encoder,
        decoder=network.decoder,
        latent_dim=LATENT,
        encoder_preprocessor=encode,
        decoder_inv_preprocessor=decode,
        coeff_sparsity=SPARSITY,
        coeff_consistency=CONSISTENCY,
        category_map={},
        feature_names=task.features,
        immutable_features=[name for name in task.features if name not in task.actionable],
        train_steps=STEPS,
        batch_size=100,
        num_workers=0,
        backend="pytorch",
        seed=seed,
    )
    with quiet():
        explainer.fit(x)

    def ask(person: pd.Series) -> pd.Series:
        now = person[task.actionable]
        low, high = (
            (ends.loc[person.name] - now).to_dict() for ends in (task.low, task.high)
        )
        ranges = {
            name: [min(low[name], 0.0), max(high[name], 0.0)] for name in task.actionable
        }
        features = person[task.features].to_numpy().astype(np.float32)[None]
        with quiet():
            explanation = explainer.explain(features, np.array([1]), [ranges])
        values = np.asarray(explanation.data["cf"]["X"], dtype=float)[0]
        return pd.Series(values, task.features)

    return ask


class Pairs:
    """Batches as the package's own fit wants them: an input and a list of targets."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        for seen, target in self.loader:
            yield seen, [target]

    def __len__(self) -> int:
        return len(self.loader)


run(prepare)

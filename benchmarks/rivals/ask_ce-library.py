"""PPCEF (ce-library): gradient descent on validity, distance and a flow's density.

It has no way to say what a person may change. "PPCEF, held" is ours: after each of its
steps a profile is put back between the person's limits. As in the package's own pipeline
everybody is answered at once, and its flow sees people with a little noise, anew in each
epoch; flow and settings are those of its ppcef_config.yaml, with the loss for two classes.
"""

import tempfile
from typing import Any

import pandas as pd
import torch
from cel.cf_methods.local_methods.ppcef import PPCEF
from cel.losses import BinaryDiscLoss
from cel.models.generative.maf.maf import MaskedAutoregressiveFlow
from task import Task, Together, quiet, run, torch_classifier
from torch.utils.data import DataLoader, TensorDataset

FLOW = {"hidden_features": 16, "num_blocks_per_layer": 4, "num_layers": 8}
FIT = {"epochs": 2000, "patience": 100, "lr": 0.003}
SEARCH = {"epochs": 5000, "lr": 0.001, "alpha": 1000}
BATCH, QUANTILE = 1024, 0.25
NOISE = 0.02  # on features between 0 and 1


def noisy(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    """Return a batch whose features are moved a little, and its labels."""
    x, y = map(torch.stack, zip(*rows, strict=True))
    return [x + NOISE * torch.randn_like(x), y]


class Held(PPCEF):
    """PPCEF whose profiles stay between limits, at each step of its descent.

    Attributes:
        least, most: By how much each feature may change, with shape (N, D).
    """

    least: torch.Tensor
    most: torch.Tensor

    def _search_step(self, delta: torch.Tensor, *given: Any, **how: Any) -> Any:
        delta.data.clamp_(self.least, self.most)
        return super()._search_step(delta, *given, **how)


def prepare(task: Task, method: str, seed: int) -> Together:
    """Return PPCEF's answers, over features between 0 and 1; its flow is fitted here."""
    torch.manual_seed(seed)
    table = task.train[task.features]
    low, spread = table.min(), table.max() - table.min()
    x = torch.tensor(((table - low) / spread).to_numpy()).float()
    y = torch.tensor(task.probability(table) >= 0.5).float()
    flow = MaskedAutoregressiveFlow(len(task.features), context_features=1, **FLOW)
    n_train = len(x) * 4 // 5
    fitted, held = (
        TensorDataset(x[p], y[p, None])
        for p in (slice(None, n_train), slice(n_train, None))
    )
    loaders = (
        DataLoader(fitted, BATCH, shuffle=True, collate_fn=noisy),
        DataLoader(held, BATCH),
    )
    with tempfile.TemporaryDirectory() as folder, quiet():
        flow.fit(*loaders, checkpoint_path=f"{folder}/best.pth", **FIT)
    least = torch.quantile(
        flow.predict_log_prob(DataLoader(TensorDataset(x, y[:, None]), BATCH)), QUANTILE
    )
    classifier = torch.nn.Sequential(
        torch_classifier(task, low.to_numpy(), spread.to_numpy()), torch.nn.Sigmoid()
    )
    is_held = method == "PPCEF, held"
    kind = Held if is_held else PPCEF
    explainer = kind(flow, classifier, BinaryDiscLoss())

    def may_change(ends: pd.DataFrame, people: pd.DataFrame) -> torch.Tensor:
        """Return by how much each feature may change, up to its limits; else by nothing."""
        change = pd.DataFrame(0.0, people.index, task.features)
        limits = ends.loc[people.index, task.actionable]
        change[task.actionable] = limits - people[task.actionable]
        return torch.tensor((change / spread).to_numpy()).float()

    def ask(people: pd.DataFrame) -> pd.DataFrame:
        scaled = torch.tensor(((people[task.features] - low) / spread).to_numpy()).float()
        if is_held:
            explainer.least = may_change(task.low, people).clamp(max=0)
            explainer.most = may_change(task.high, people).clamp(min=0)
        asked = DataLoader(TensorDataset(scaled, torch.zeros(len(scaled))), len(scaled))
        with quiet():
            answers = explainer.explain_dataloader(
                asked, log_prob_threshold=least, **SEARCH
            )
        profiles = answers.x_cfs
        if is_held:  # its last step, too
            change = torch.as_tensor(profiles) - scaled
            held = scaled + change.clamp(explainer.least, explainer.most)
            profiles = held.numpy()
        return pd.DataFrame(profiles, people.index, task.features) * spread + low

    return ask


run(prepare, at_once=True)

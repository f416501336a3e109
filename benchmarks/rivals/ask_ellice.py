"""ElliCE (ellice): robust counterfactuals by gradient, and from people of the data."""

import numpy as np
import pandas as pd
from ellice import Data, Explainer
from task import Answer, Task, run, torch_classifier

LABEL = "label"


def prepare(task: Task, method: str, seed: int) -> Answer:
    """Return ElliCE's answers; it is shown standardised features, as networks are."""
    table = (task.train[task.features] - task.mean) / task.std
    table[LABEL] = (task.probability(task.train) >= 0.5).astype(int)
    data = Data(table.astype("float32"), LABEL, continuous_features=task.features)
    classifier = torch_classifier(task, task.mean, task.std)
    explainer = Explainer(classifier, data, "pytorch", "cpu")
    mean, std = (pd.Series(moment, task.features) for moment in (task.mean, task.std))

    def ask(person: pd.Series) -> pd.Series | None:
        open_to = task.open_to(person.name)
        low, high = (ends.loc[person.name] for ends in (task.low, task.high))
        counterfactuals = explainer.generate_counterfactuals(
            ((person[task.features] - mean) / std).rename(person.name),
            method=method,
            features_to_vary=open_to,
            permitted_range={
                name: [(end[name] - mean[name]) / std[name] for end in (low, high)]
                for name in open_to
            },
            allowed_values={
                name: (np.arange(round(low[name]), round(high[name]) + 1) - mean[name])
                / std[name]
                for name in open_to
                if name in task.whole
            },
            target_class=1,
            progress_bar=False,
        )
        if counterfactuals.empty:
            return None
        return counterfactuals.iloc[0][task.features].astype(float) * std + mean

    return ask


run(prepare)

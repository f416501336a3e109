"""ElliCE (ellice): robust counterfactuals by gradient, and from people of the data."""

import pandas as pd
from ellice import Data, Explainer
from task import Answer, Task, run, torch_classifier

LABEL = "label"


def prepare(task: Task, method: str, seconds: float | None) -> Answer:
    """Return ElliCE's answers; it is shown standardised features, as networks are."""
    table = (task.train[task.features] - task.mean) / task.std
    table[LABEL] = (task.probability(task.train) >= 0.5).astype(int)
    data = Data(table.astype("float32"), LABEL, continuous_features=task.features)
    classifier = torch_classifier(task, task.mean, task.std)
    explainer = Explainer(classifier, data, "pytorch", "cpu")
    mean, std = (pd.Series(moment, task.features) for moment in (task.mean, task.std))

    def ask(person: pd.Series, times: float) -> pd.Series | None:
        open_to = task.open_to(person.name)
        low, high = ((ends.loc[person.name] - mean) / std for ends in (task.low, task.high))
        longer = (
            {} if times == 1 else {"max_iterations": int(1000 * times), "patience": 1000}
        )
        counterfactuals = explainer.generate_counterfactuals(
            ((person[task.features] - mean) / std).rename(person.name),
            method=method,
            features_to_vary=open_to,
            permitted_range={name: [low[name], high[name]] for name in open_to},
            target_class=1,
            progress_bar=False,
            optimization_params=longer,
        )
        if counterfactuals.empty:
            return None
        return counterfactuals.iloc[0][task.features].astype(float) * std + mean

    times = task.within(seconds, ask) if method == "continuous" else 1.0
    return lambda person: ask(person, times)


run(prepare)

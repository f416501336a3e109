"""DiCE (dice-ml): random sampling, a genetic algorithm, gradient descent."""

import numpy as np
import pandas as pd
from dice_ml import Data, Dice, Model
from task import Answer, Task, quiet, run, torch_classifier

LABEL = "accepted"


class Bank:
    """The classifier as DiCE asks it: as it would a model of scikit-learn."""

    classes_ = np.array([0, 1])

    def __init__(self, task: Task) -> None:
        self.task = task

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of no and yes, with shape (N, 2)."""
        yes = self.task.probability(rows[self.task.features].astype(float))
        return np.column_stack([1 - yes, yes])

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        """Return 1 for a yes and 0 for a no, with shape (N,)."""
        return (self.task.probability(rows[self.task.features].astype(float)) >= 0.5) * 1


def model_of(task: Task, method: str) -> Model:
    """Return the classifier for DiCE; its gradient sees features between 0 and 1."""
    if method != "gradient":
        return Model(model=Bank(task), backend="sklearn")
    import torch

    table = task.train[task.features]
    low, high = table.min().to_numpy(), table.max().to_numpy()
    network = torch.nn.Sequential(
        torch_classifier(task, low, high - low), torch.nn.Sigmoid()
    )
    return Model(model=network, backend="PYT", func="ohe-min-max")


def prepare(task: Task, method: str, seed: int) -> Answer:
    """Return DiCE's answers: one counterfactual a person, within what they may do."""
    table = task.train[task.features].copy()
    table[task.whole] = table[task.whole].astype(int)
    table[LABEL] = (task.probability(table) >= 0.5).astype(int)
    numbers = [name for name in task.features if name not in task.whole]
    data = Data(dataframe=table, continuous_features=task.features, outcome_name=LABEL)
    explainer = Dice(data, model_of(task, method), method=method)
    ranges = {name: [table[name].min(), table[name].max()] for name in task.features}

    def ask(person: pd.Series) -> pd.Series | None:
        open_to = task.open_to(person.name)
        query = person[task.features].to_frame().T
        query = query.astype(dict.fromkeys(numbers, float) | dict.fromkeys(task.whole, int))
        low, high = task.low.loc[person.name], task.high.loc[person.name]
        how = {
            "total_CFs": 1,
            "desired_class": 1,
            "features_to_vary": open_to,
            "permitted_range": ranges | {name: [low[name], high[name]] for name in open_to},
        }
        if method == "random":
            how["random_seed"] = seed
        with quiet():
            counterfactuals = explainer.generate_counterfactuals(query, **how)
        ends = counterfactuals.cf_examples_list[0].final_cfs_df
        if ends is None or len(ends) == 0:
            return None
        profile = ends.iloc[0][task.features].astype(float)
        return profile.where(profile.index.isin(open_to), person)  # it rounds the others

    return ask


run(prepare)

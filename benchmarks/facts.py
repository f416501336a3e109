r"""What a group audit without a causal world sees: FACTS, once, on notebook 06's people.

    .venv/bin/python -m pip install --target runs/facts --no-deps \
        aif360==0.6.1 mlxtend==0.25.0 colorama==0.4.6
    PYTHONPATH=.:runs/facts .venv/bin/python benchmarks/facts.py      half a minute

FACTS (Kavouras et al., arXiv:2306.14978) looks for subgroups in which an action, "set this
feature to that", flips the decision of more men than women. It needs features in a few
values, so each is cut at its quartiles among the applicants, and the classifier is shown
the median of each quarter. Gender, age and education may not change. The result is
benchmarks/facts.csv, a row for each attribute and metric, which notebook 06 shows.
"""

import lib.pinned

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from aif360.sklearn.detectors.facts import FACTS

from lib.base.files import PARAMS
from lib.method import loan
from lib.method.classifier import Classifier
from lib.paper.fairness import groups

PATH = Path(__file__).with_suffix(".csv")
COMPARED = ("gender", "race")
PAIRS = {"gender": ("women", "men"), "race": ("non-white", "white")}
N_BINS = 4
SUPPORT = 0.05  # of a subgroup, among the refused of either group
METRICS = {"equal-effectiveness": True, "equal-mean-recourse": False}  # is more better?


class OfBins:
    """Hold the classifier as FACTS asks it: people in bins, decisions 0 and 1."""

    def __init__(self, classifier: Classifier, medians: dict[str, dict]) -> None:
        self.classifier, self.medians = classifier, medians

    def predict(self, people: pd.DataFrame) -> np.ndarray:
        """Return 1 for each person who is accepted, else 0."""
        columns = [people[name].map(own) for name, own in self.medians.items()]
        x = torch.tensor(np.stack(columns, -1).astype(np.float32))
        return self.classifier.accepts(x).numpy().astype(int)


def binned(x: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, dict]]:
    """Return people in quarters of each feature, and the median of each quarter.

    Ages are intervals, since FACTS orders those; gender stays.
    """
    out, medians = {}, {}
    for name, values in x.items():
        codes, bins = values, values.map(float)
        if values.nunique() > N_BINS:
            bins = pd.qcut(values, N_BINS)
            codes = bins if name == "age" else bins.cat.codes.map("quarter {}".format)
        out[name] = pd.Series(list(codes), index=x.index, dtype=object)
        medians[name] = values.groupby(out[name]).median().to_dict()
    return pd.DataFrame(out), medians


def rows_of(
    people: pd.DataFrame, classifier: OfBins, attribute: str, n_refused: int
) -> list[dict]:
    """Return FACTS's findings for one attribute, a row a metric."""
    fixed = sorted({"gender", "race", "age", "education"} & set(people))
    detector = FACTS(
        classifier,
        attribute,
        categorical_features=list(people),
        freq_itemset_min_supp=SUPPORT,
        feats_not_allowed_to_change=fixed,
    ).fit(people, verbose=False)
    rows = []
    first, second = PAIRS[attribute]
    for metric, more_is_better in METRICS.items():
        detector.bias_scan(metric, "micro", top_count=1_000_000)
        values = pd.DataFrame(detector.subgroup_costs).T.astype(float)[[first, second]]
        values = values.replace([np.inf, -np.inf], np.nan).abs().dropna()
        gap = values[first] - values[second]
        worse = gap < 0 if more_is_better else gap > 0
        rows.append(
            {
                "metric": metric,
                "first": first,
                "second": second,
                "n_refused": n_refused,
                "n_subgroups": len(values),
                "mean_first": values[first].mean(),
                "mean_second": values[second].mean(),
                "first_is_worse": worse.mean(),
                "largest_gap": gap.abs().max(),
            }
        )
    return rows


def main() -> None:
    """Bin, ask FACTS, and save."""
    problem = loan.problem()
    population, h = problem.population, problem.classifier
    attributes = groups.read_attributes(PARAMS / "groups.yaml", population.features)
    refused, every = problem.refused("test"), population.x["recourse/test"]
    rows, labels = groups.balanced(population, refused, attributes, COMPARED, seed=0)
    accepted = every[h.accepts(every)]
    x = torch.cat([refused[rows], accepted])
    rng = np.random.default_rng(0)
    race = [*labels.race, *rng.choice(PAIRS["race"], len(accepted))]
    people, medians = binned(pd.DataFrame(x.numpy(), columns=population.features))
    is_refused = OfBins(h, medians).predict(people) == 0
    agree = (is_refused == ~h.accepts(x).numpy()).mean()
    found = []
    for attribute, own in (
        ("gender", attributes["gender"].read_off(population, x)),
        ("race", race),
    ):
        told = people.assign(**{attribute: own})
        if attribute == "gender":  # women and men, in place of its two values
            values = dict(zip(own, people.gender, strict=True))
            classifier = OfBins(h, medians | {"gender": values})
        else:
            classifier = OfBins(h, medians)
        found += rows_of(told, classifier, attribute, int(is_refused.sum()))
    table = pd.DataFrame(found).assign(
        decisions_kept=agree, aif360=version("aif360"), mlxtend=version("mlxtend")
    )
    table.round(4).to_csv(PATH, index=False)


if __name__ == "__main__":
    main()

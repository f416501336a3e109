"""The data sets of the HARE paper: facts and scaling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.beyond.hare import tabular
from lib.io import DATA
from lib.paper import gmsc

GMSC = gmsc.find(download=False)
needs_data = pytest.mark.skipif(
    GMSC is None, reason=f"the data is not here: {gmsc.VARIABLE} names it"
)
# rows of train and test, features, free features, share of positive labels in train
FACTS = {
    "adult": (36_624, 12_208, 13, 4, 0.239),
    "compas": (4_629, 1_543, 7, 3, 0.813),
    "credit": (86_645, 28_882, 10, 8, 0.932),
}


def read(name: str) -> tabular.Tabular:
    return tabular.credit(GMSC) if name == "credit" else getattr(tabular, name)()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_data) if n == "credit" else n for n in FACTS]
)
def test_facts_of_the_data(name):
    n_train, n_test, n_features, n_free, base_rate = FACTS[name]
    table = read(name)
    assert table.x["train"].shape == (n_train, n_features)
    assert table.x["test"].shape == (n_test, n_features)
    assert int(table.is_free.sum()) == n_free
    assert table.y["train"].double().mean().item() == pytest.approx(base_rate, abs=5e-4)
    both = torch.cat([*table.x.values()])
    assert (both.amin(0) == 0).all() and (both.amax(0) == 1).all()
    binary = both[:, ~table.is_continuous]
    assert ((binary == 0) | (binary == 1)).all()


def test_the_first_person_of_adult_is_that_of_the_file():
    table = tabular.adult()
    person = pd.read_csv(DATA / "adult_train.csv.gz").iloc[0]
    units = table.low + table.x["train"][0] * (table.high - table.low)
    values = dict(zip(table.features, units.tolist(), strict=True))
    for feature in np.array(table.features)[table.is_continuous]:
        assert values[feature] == pytest.approx(person[feature], rel=1e-12), feature
    # 1 is the alphabetically second of Female and Male, Non-White and White, Non-US and US
    binary = ["sex", "race", "native-country"]
    assert person[binary].tolist() == ["Female", "White", "US"]
    assert [values[feature] for feature in binary] == [0, 1, 1]


@needs_data
def test_nobody_of_credit_is_in_both_splits_and_nobody_is_far_out():
    """From the csv by numpy alone: who is kept, and the test split in its own order."""
    table = tabular.credit(GMSC)
    raw = gmsc.read(GMSC).dropna().rename(columns=gmsc.COLUMNS)
    values = raw[list(table.features)].to_numpy()
    z = np.abs(values - values.mean(0)) / values.std(0)
    kept = values[(z < 3).all(1)]
    assert len(kept) == 115_527
    units = torch.cat([*table.x.values()]).numpy() * (table.high - table.low).numpy()
    units += table.low.numpy()
    order = np.lexsort(np.round(kept, 6).T)
    other = np.lexsort(np.round(units, 6).T)
    np.testing.assert_allclose(kept[order], units[other], atol=1e-6)
    first = gmsc.read(GMSC).iloc[47_648].rename(gmsc.COLUMNS)
    assert units[86_645] == pytest.approx(first[list(table.features)].to_numpy())


def test_first_refused_people_keep_the_order_of_the_file():
    table = tabular.compas()
    refused = table.refused(lambda x: x[:, 2] < 0.2, 10)
    priors = table.x["test"][:, 2]
    assert torch.equal(refused, table.x["test"][(priors >= 0.2).nonzero()[:10, 0]])
    with pytest.raises(ValueError, match="Nobody in the test split of compas is refused"):
        table.refused(lambda x: x[:, 2] >= 0, 10)


def test_a_table_in_which_nothing_is_free_is_refused():
    with pytest.raises(ValueError, match="No feature is free"):
        replace(tabular.compas(), is_immutable=torch.ones(7, dtype=torch.bool))

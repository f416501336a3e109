"""The data sets of the HARE paper: facts and scaling."""

import hashlib
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
    x = dict(zip(table.features, table.x["train"][0].tolist(), strict=True))
    units = table.low + table.x["train"][0] * (table.high - table.low)
    values = dict(zip(table.features, units.tolist(), strict=True))
    for feature in tabular.ADULT[0]:
        assert values[feature] == pytest.approx(person[feature], rel=1e-12), feature
    assert person[["sex", "race", "native-country"]].tolist() == ["Female", "White", "US"]
    # the alphabetically second of Female and Male, Non-White and White, Non-US and US
    assert (x["sex"], x["race"], x["native-country"]) == (0, 1, 1)


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


def test_compressed_files_have_no_date():
    """Equal contents are equal bytes, so that the committed files can be made again."""
    for path in DATA.glob("*.csv.gz"):
        assert path.read_bytes()[4:8] == bytes(4), path.name
    digest = hashlib.sha256(
        pd.read_csv(DATA / "compas_test.csv.gz").to_csv(index=False).encode()
    )
    assert digest.hexdigest().startswith("6849f34e")


def people(**columns):
    frame = {
        "income": [1.0, 3.0, 5.0],
        "city": ["Rome", "Oslo", "Oslo"],
        "repaid": [0, 1, 1],
    }
    return pd.DataFrame(frame | columns)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (people(income=["a", "b", "c"]), "income holds .* values, not numbers"),
        (people(income=[1, None, 2]), "'train' misses values"),
        (people(income=[2, 2, 2]), "income has the same value for everyone"),
        (people(city=["Rome", "Oslo", "Bonn"]), "city holds 3 values, expected two"),
        (people(repaid=[0, 1, 2]), "repaid holds 2, expected 1"),
        (people().drop(columns="city"), "Unknown column 'city'"),
    ],
)
def test_bad_tables_are_refused(frame, message):
    with pytest.raises(ValueError, match=message):
        tabular.from_frames(
            "own",
            dict.fromkeys(tabular.SPLITS, frame),
            "repaid",
            ("income",),
            ("city",),
            (),
        )


def test_bad_parts_are_refused():
    table = tabular.compas()
    x = {split: tensor.clone() for split, tensor in table.x.items()}
    x["test"][0, 0] = 1.5
    for changed, message in (
        ({"x": x}, r"outside \[0, 1\]"),
        ({"is_immutable": torch.ones(7, dtype=torch.bool)}, "No feature is free"),
        ({"low": table.low[1:]}, r"low has shape \(6,\)"),
        ({"x": {"train": table.x["train"]}}, "Unknown split that a table needs: 'test'"),
        ({"y": table.x}, "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(table, **changed)


def test_first_refused_people_keep_the_order_of_the_file():
    table = tabular.compas()
    refused = table.refused(lambda x: x[:, 2] < 0.2, 10)
    priors = table.x["test"][:, 2]
    assert torch.equal(refused, table.x["test"][(priors >= 0.2).nonzero()[:10, 0]])
    with pytest.raises(ValueError, match="Nobody in the test split of compas is refused"):
        table.refused(lambda x: x[:, 2] >= 0, 10)

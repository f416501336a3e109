"""Tables of a batch beside the committed ones: what may differ, and what may not."""

import compare
import numpy as np
import pandas as pd
import pytest

from lib import io
from lib.io import ROOT

TABLE = pd.DataFrame({"setting": ["all 4", "3"], "validity": [0.5, np.nan], "n": [400, 30]})
MEANS = pd.DataFrame(
    {
        "metric": ["a", "b"],
        "mean": [0.5, 0.7],
        "lowest": [0.4, 0.7],
        "agrees": [True, False],
    }
).assign(se_networks=[0.01, np.nan])
# two standard errors: 0.2 of a share of 25 people, 0.3 of the mean, 20 of a count of 100
PEOPLE = pd.DataFrame(
    {"people": [25], "share": [0.5], "mean": [3.0], "+-": [0.15], "worse": [100]}
)
COMPARED = pd.DataFrame({"more": [-0.1], "2 s.e.": [0.08]})
CLAIM = pd.DataFrame({"claim": ["x"], "ours": [0.5], "low": [0.4], "high": [0.6]})


@pytest.mark.parametrize(
    ("committed", "changes", "n_outside"),
    [
        (TABLE, {"validity": [0.54, np.nan]}, 0),  # 0.02 and 5 % of 0.5
        (TABLE, {"validity": [0.55, np.nan]}, 1),
        (TABLE, {"validity": [0.5, 0.5]}, 1),
        (TABLE, {"n": [419, 30]}, 0),
        (TABLE, {"n": [421, 30]}, 1),
        (TABLE, {"setting": ["a", "3"]}, 1),
        # six standard errors of a difference, 0.01 times the root of 2; or 0.005
        (MEANS, {"mean": [0.584, 0.704]}, 0),
        (MEANS, {"mean": [0.586, 0.706]}, 2),
        (MEANS, {"lowest": [0.53, 0.7]}, 0),
        (MEANS, {"lowest": [0.55, 0.7]}, 1),
        (MEANS, {"agrees": [False, True]}, 0),  # follows from the numbers
        (PEOPLE, {"share": [0.79], "mean": [3.29], "worse": [119]}, 0),
        (PEOPLE, {"share": [0.81], "mean": [3.31], "worse": [121]}, 3),
        (PEOPLE, {"people": [28]}, 1),
        (COMPARED, {"more": [-0.03]}, 0),
        (COMPARED, {"more": [-0.01]}, 1),
        (COMPARED.assign(people=["Loan"]), {"more": [-0.03]}, 0),
        (CLAIM, {"ours": [0.64]}, 0),  # half the width, times the root of 2
        (CLAIM, {"ours": [0.65]}, 1),
        (CLAIM, {"ours": [0.5], "low": [0.1]}, 0),  # the ends are not compared
        (CLAIM.assign(here="holds"), {"here": ["does not hold"]}, 1),
        (CLAIM.assign(here="holds"), {"here": ["undecided"]}, 0),
    ],
)
def test_what_may_differ(committed, changes, n_outside):
    assert len(compare.outside(committed.assign(**changes), committed)) == n_outside


def test_another_shape_or_column_is_outside():
    for ours in (TABLE[:1], TABLE.rename(columns={"n": "m"})):
        assert len(compare.outside(ours, TABLE)) == 1


def test_tables_are_equal_within_outside_or_missing(tmp_path):
    changes = {"equal": 0.0, "within": 0.01, "outside": 0.2}
    for name, change in changes.items():
        committed = TABLE.fillna(0.5)
        ours = committed.assign(validity=0.5 + change)
        io.write(tmp_path / "root" / "tables" / name, committed.to_csv(index=False))
        io.write(tmp_path / "run" / "tables" / name, ours.to_csv(index=False))
    names = [*changes, "missing"]
    result = compare.compare(tmp_path / "run", tmp_path / "root", names).verdict
    assert result.to_dict() == {
        "equal": "equal",
        "within": "within the tolerance",
        "outside": "OUTSIDE",
        "missing": "MISSING",
    }


def test_committed_tables_equal_themselves():
    names = [path.name for path in (ROOT / "tables").glob("*.csv")]
    assert (compare.compare(ROOT, ROOT, names).verdict == "equal").all() and names

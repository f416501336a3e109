"""The study's printed tables."""

import pandas as pd
import pytest

from lib.beyond.evaluation import gamm, tominaga
from lib.io import ROOT


def test_the_print_is_that_of_the_table():
    model = tominaga.printed(3)
    assert (model.outcome, model.distance) == ("action", "sparsity")
    assert (model.intercept, model.t, model.aic) == (2.63, 38.06, 5261.35)
    assert model.edf == {"smooth": 4.25, "intercepts": 269.32, "slopes": 99.44}
    assert model.F == {"smooth": 18.46, "intercepts": 10.37, "slopes": 2.89}
    for number in tominaga.MODELS:  # the error follows, and is as printed, too
        assert round(tominaga.printed(number).se, 2) == 0.07


def test_an_error_follows_from_the_aic_of_a_fit():
    data = pd.read_csv(ROOT / "tests" / "reference" / "gamm_small.csv")
    fit = gamm.fit(data.y, data.x, data.u, k=8)
    error = tominaga.error_of(fit.aic, 1 + sum(fit.edf.values()), len(data))
    assert error**2 == pytest.approx(fit.sigma2, rel=1e-8)  # as far as the fit converges


def test_the_printed_numbers_add_up():
    value = tominaga.published("numbers").set_index("what")["value"]
    plans = int(value["recourse evaluations collected"])
    assert int(value["participants"]) == tominaga.N_PEOPLE == plans / 5
    assert int(value["evaluations removed"]) == tominaga.N_REMOVED
    assert int(value["evaluations analysed"]) == tominaga.N_ANSWERS


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="Unknown model 5: expected one of 1, 2, 3, 4"):
        tominaga.printed(5)

"""The search for settings at its smallest: batches, resuming, the choice by hand."""

import optuna
import pytest

from lib.studies import stacks, tuning


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'tuning.db'}"


def test_a_batch_is_told_and_a_search_goes_on(problem, storage):
    found = tuning.open_studies("score", storage)
    tuning.run_batch(problem, "score", found, n_each=2, n_epochs=1)
    again = tuning.open_studies("score", storage)  # as another worker, or after a stop
    tuning.run_batch(problem, "score", again, n_each=1, n_epochs=1)
    assert {
        profile: len(tuning.finished(study)) for profile, study in found.items()
    } == dict.fromkeys(tuning.PROFILES, 3)
    for study in again.values():
        for trial in tuning.finished(study):
            assert all(
                low <= trial.params[name] <= high
                for name, (low, high) in tuning.SPACE.items()
            )
            metrics = {
                m: [trial.user_attrs[f"{m}, {s}"] for s in (stacks.SOFT, stacks.MIXED)]
                for m in ("plausibility", "hap", "validity")
            }
            assert trial.values == pytest.approx(
                [sum(metrics["plausibility"]) / 2, sum(metrics["hap"]) / 2]
            )
            assert trial.constraints["validity"] == pytest.approx(
                tuning.LOWEST_VALIDITY - min(metrics["validity"])
            )


def test_an_interrupted_batch_is_not_waited_for(problem, storage, monkeypatch):
    found = tuning.open_studies("ranking", storage)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.icarma, "fit", stop)
    with pytest.raises(KeyboardInterrupt):
        tuning.run_batch(problem, "ranking", found, n_each=1, n_epochs=1)
    assert {t.state for study in found.values() for t in study.trials} == {
        optuna.trial.TrialState.FAIL
    }


def test_shortfall_and_choice_by_hand(storage):
    """The paper, linear: 0.996, 0.532, 0.029 for soft preferences, 0.958, 0.439, 0.44 for mixed ones."""
    studies_of = tuning.open_studies("ranking", storage)
    outcomes = [  # validity, plausibility, hap: soft, then mixed
        ((1.0, 0.6, 0.01), (0.95, 0.439, 0.5)),  # short by 0.008 and 0.06
        ((0.996, 0.502, 0.029), (0.96, 0.5, 0.4)),  # short by 0.03
        ((0.9, 0.9, 0.5), (0.9, 0.9, 0.5)),
    ]
    for profile, study in studies_of.items():
        for outcome in outcomes:
            attributes = {
                f"{metric}, {setting}": value
                for setting, values in zip(
                    (stacks.SOFT, stacks.MIXED), outcome, strict=True
                )
                for metric, value in zip(
                    ("validity", "plausibility", "hap"), values, strict=True
                )
            }
            ranges = {
                name: optuna.distributions.FloatDistribution(*ends, log=True)
                for name, ends in tuning.SPACE.items()
            }
            study.add_trial(
                optuna.trial.create_trial(
                    params={name: ends[0] for name, ends in tuning.SPACE.items()},
                    distributions=ranges,
                    user_attrs=attributes | {"n_epochs": 200},
                    constraints={
                        "validity": tuning.LOWEST_VALIDITY - min(v[0] for v in outcome)
                    },
                    values=[sum(v[1] for v in outcome) / 2, sum(v[2] for v in outcome) / 2],
                )
            )
    table = tuning.trials_table("ranking", studies_of)
    linear = table[table.profile == "linear"]
    assert linear.shortfall.tolist() == pytest.approx(
        [0.008 + 0.06, 0.03, 0.096 + 0.471 + 0.058 + 0.06]
    )
    assert linear.unreached.tolist() == pytest.approx(
        [0.01, 0.0, 0.076 + 0.038 + 0.421 + 0.01]
    )
    assert linear.chosen.tolist() == [False, True, False]
    assert linear.on_front.tolist() == [True, True, False]  # the third is not valid enough
    assert not linear.by_hand.any()


def test_finalists_are_the_best_so_far_and_the_choice_is_among_them(problem, storage):
    found = tuning.open_studies("ranking", storage)
    tuning.run_batch(problem, "ranking", found, n_each=3, n_epochs=1)
    before = tuning.trials_table("ranking", found)
    for _ in range(2):  # another worker, or the same command again, finds them done
        tuning.run_finalists(problem, "ranking", found, n_each=1, n_epochs=2)
    after = tuning.trials_table("ranking", found)
    assert len(after) == len(before) + len(tuning.PROFILES)
    for profile in tuning.PROFILES:
        best = before[before.profile == profile].sort_values("unreached").iloc[0]
        chosen = after[(after.profile == profile) & after.chosen].squeeze()
        assert chosen.n_epochs == 2 and all(
            chosen[name] == pytest.approx(best[name]) for name in tuning.SPACE
        )

"""Jobs of a batch: notes, what they took, once at a time, what is left half done."""

import contextlib
import sys
import threading
import time

import jobs
import only
import papermill
import pytest
import resources
import run_notebook

from lib.base import files, fits


def test_a_job_that_fails_leaves_a_note(tmp_path):
    with pytest.raises(SystemExit, match="a_fit failed"), jobs.noted(tmp_path, "a_fit"):
        raise ValueError("no such people")
    note = (tmp_path / "failed" / "a_fit.txt").read_text()
    assert note == "a_fit failed\n  ValueError: no such people\n"


def test_a_job_whose_note_finds_no_room_still_says_why(tmp_path):
    (tmp_path / "failed").write_text("no folder")
    with pytest.raises(SystemExit, match="no such people"), jobs.noted(tmp_path, "a_fit"):
        raise ValueError("no such people")


# --- what jobs took

LOOKED_AT = "s\th:m:s\tmax_rss\tcpu_time\n90.00\t0:01:30\t1000.00\t20.00\n"
TOO_FAST = "s\th:m:s\tmax_rss\tcpu_time\n0.30\t0:00:00\tNA\tNA\n"


def test_what_snakemake_measured_is_put_into_the_table(tmp_path, monkeypatch, capsys):
    """A job that did not run keeps its line, and so does one that was not looked at."""
    monkeypatch.setattr(resources, "ROOT", tmp_path)
    monkeypatch.setattr(resources, "TABLE", tmp_path / "resources.csv")
    known = {"kept": {"mem_mb": 7, "minutes": 0.7}, "fast": {"mem_mb": 8, "minutes": 0.8}}
    resources.write(resources.TABLE, known)
    for job, text in (("fit", LOOKED_AT), ("fast", TOO_FAST)):
        files.write(tmp_path / "runs" / "paper" / "benchmarks" / f"{job}.tsv", text)
    monkeypatch.setattr(resources.read, "__defaults__", (resources.TABLE,))
    resources.main()
    assert "1 of 3 jobs were measured" in capsys.readouterr().out
    found = {"mem_mb": 1049, "minutes": 1.5}
    assert resources.read() == {**known, "fit": found}


def test_a_part_counts_if_it_is_of_the_size_that_is_known(tmp_path):
    files.write(tmp_path / "plan.json", '{"parameters": {"n_per_job": 40}, "n": 3}')
    files.write(tmp_path / "benchmarks" / "0_40.tsv", LOOKED_AT)
    row = {"mem_mb": 1049, "minutes": 1.5}
    assert resources.of_parts(tmp_path, {"n_per_job": 40, "n": 3}) == [row]
    assert resources.of_parts(tmp_path, {"n_per_job": 41}) == []
    files.write(tmp_path / "summary.csv", "asked,applicants\n50,200\n")
    assert resources.of_parts(tmp_path, {"n": 3}) == [row | {"minutes": 6.0}]


# --- once at a time


def test_a_job_is_done_once_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(only, "PATIENCE", 0.3)
    said = r"a_fit of runs/.* is running already \(process \d+\)"
    with only.only_job(tmp_path, "a_fit"):
        with pytest.raises(ValueError, match=said), only.only_job(tmp_path, "a_fit"):
            pass
        with only.only_job(tmp_path, "another_fit"):
            pass


def test_what_is_left_of_a_killed_batch_is_waited_for(tmp_path):
    begun = time.monotonic()
    with contextlib.ExitStack() as held:
        held.enter_context(only.only_job(tmp_path, "a_fit"))
        threading.Timer(0.5, held.close).start()
        with only.only_job(tmp_path, "a_fit"):
            assert 0.5 <= time.monotonic() - begun < only.PATIENCE


# --- begun anew


def test_a_job_begins_anew_where_other_code_left_something(tmp_path, monkeypatch, capsys):
    """What is left half done is removed, and the job is not failed for it."""
    partial = tmp_path / "runs" / "smoke" / "partial" / "a_fit"
    seen = []

    def fit(given, name):
        assert (given["partial"], name) == (partial, "a_fit")
        seen.append(sorted(path.name for path in partial.glob("*")))
        live = fits.Live(rows=[])
        for i in fits.steps(2, live, lambda: {"alpha": alpha}, partial, "fit", every=0):
            live.rows.append(i)
        return live.rows

    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    monkeypatch.setattr(jobs, "read_network_parameters", lambda size: {})
    monkeypatch.setattr(jobs, "end_with_batch", lambda: True)
    monkeypatch.setattr(sys, "argv", ["networks.py", "smoke", "a_fit"])
    for number in (1, 1, 2):
        alpha = {"alpha": number}
        jobs.run({"a_fit": fit})
    kept = ["fit.safetensors"]
    assert seen == [[], kept, kept, []]
    said = capsys.readouterr().out
    assert said.count("a_fit: begins anew.") == 1
    assert "alpha is 1 there, 2 here" in said
    assert not (tmp_path / "runs" / "smoke" / "failed").exists()
    monkeypatch.setattr(jobs, "end_with_batch", lambda: False)  # started by hand
    jobs.run({"a_fit": fit})
    assert not partial.exists()


@pytest.mark.parametrize(("error", "n_tries"), [("OtherInputs", 2), ("ValueError", 1)])
def test_a_notebook_begins_anew_where_other_code_left_something(
    tmp_path, monkeypatch, capsys, error, n_tries
):
    """Another error of its cells is not tried again, and nothing is removed for it."""
    partial = tmp_path / "runs" / "smoke" / "partial" / "01_a"
    partial.mkdir(parents=True)
    tries = []

    def execute(notebook, executed, parameters):
        tries.append(partial.exists())
        if partial.exists():
            raise papermill.PapermillExecutionError(0, 1, "fit()", error, "other", [])

    monkeypatch.setattr(run_notebook, "ROOT", tmp_path)
    monkeypatch.setattr(run_notebook, "_execute", execute)
    monkeypatch.setattr(run_notebook, "read_parameters", lambda size, notebook: {})
    with contextlib.suppress(SystemExit):
        run_notebook.run_notebook("smoke", "01_a")
    assert tries == [True, False][:n_tries]
    assert partial.exists() is (n_tries == 1)
    assert ("01_a: begins anew. other" in capsys.readouterr().out) is (n_tries == 2)
    assert (tmp_path / "runs" / "smoke" / "failed").exists() is (n_tries == 1)

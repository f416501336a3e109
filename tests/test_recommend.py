"""Recommendations for a data set: the same bits for any cut; refusals first."""

import lib.pinned

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import answer
import numpy as np
import pandas as pd
import populations
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import resources
import torch
import yaml
from parameters import read_run_parameters

from lib.base.files import MODELS, PARAMS
from lib.beyond.millions import blocks
from lib.method import loan
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma
from lib.method.samplers import RankingSampler
from lib.paper import gmsc
from lib.search import descent
from lib.search.descent import Judge

N_BLOCKS = 4
N = (N_BLOCKS - 1) * blocks.SIZE + 100  # the last block is not full


@pytest.fixture(scope="module")
def people() -> pa.Table:
    """Applicants of three blocks and a bit; some can't be read."""
    rng = np.random.default_rng(0)
    x = loan.scm().sample(N, rng).numpy()
    actionable = list(loan.KINDS)[3:]
    scores = RankingSampler(actionable).draw(range(N), rng).scores.numpy()
    x[rng.integers(0, N, 300), rng.integers(0, 7, 300)] = np.nan
    scores[rng.integers(0, N, 300), 2] = 7
    names = [*loan.KINDS, *(f"{blocks.SCORE}{name}" for name in actionable)]
    return pa.table(dict(zip(names, [*x.T, *scores.T], strict=True)))


@pytest.fixture(scope="module")
def data(people, tmp_path_factory) -> Path:
    """The applicants in three files, whose row groups do not line up with blocks."""
    folder = tmp_path_factory.mktemp("applicants")
    for name, first, last, size in (
        ("a", 0, 5, 3),
        ("b", 5, 20_000, 9_973),
        ("c", 20_000, N, N),
    ):
        own = people.slice(first, last - first)
        pq.write_table(own, folder / f"{name}.parquet", row_group_size=size)
    return folder


def parameters(folder: Path, applicants: Path, **differs) -> Path:
    """A parameter file."""
    given = yaml.safe_load((PARAMS / "recommend.yaml").read_text())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(given | {"data": str(applicants)} | differs))
    return path


def answered(folder: Path, data: Path, n_blocks: int, order=1, **differs) -> dict:
    """Answer a data set by jobs of so many blocks, and return the manifest."""
    size = n_blocks * blocks.SIZE
    answer.plan(folder, parameters(folder, data, n_per_job=size, **differs))
    firsts = range(0, N_BLOCKS, n_blocks)
    for first in list(firsts)[::order]:
        answer.answer(folder, first, min(first + n_blocks, N_BLOCKS) - 1)
    answer.summarise(folder)
    return json.loads((folder / "manifest.json").read_text())


def told(folder: Path) -> pa.Table:
    """What all parts hold, in the order of their names."""
    return ds.dataset(folder / "recommendations").to_table().unify_dictionaries()


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> tuple[Path, dict]:
    """What one job answers, and its manifest."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, answered(folder, data, N_BLOCKS)


def test_one_job_is_block_by_block_what_the_library_says(whole, people):
    folder, manifest = whole
    given = read_run_parameters(folder / "mine.yaml", "recommend")
    solver, found = answer.solver_of(given), told(folder)
    values = np.stack([people[name].to_numpy() for name in people.column_names], -1)
    cuts = range(0, N, blocks.SIZE)
    parts = [blocks.answers(solver, values[i : i + blocks.SIZE], i) for i in cuts]
    assert found.equals(pa.Table.from_batches(parts).unify_dictionaries())
    assert found["row"].to_pylist() == list(range(N))
    assert found["why"].null_count < N - 300
    totals = blocks.summary(map(blocks.counted, parts))[1]
    assert manifest["found"] == totals and totals["applicants"] == N


@pytest.mark.parametrize(("n_blocks", "order"), [(1, -1), (3, 1)])
def test_the_same_bits_however_blocks_are_shared_out(
    whole, data, tmp_path, n_blocks, order
):
    folder, manifest = whole
    other = answered(tmp_path, data, n_blocks, order)
    assert len(other["parts"]) == -(-N_BLOCKS // n_blocks)
    assert told(tmp_path).equals(told(folder)) and other["found"] == manifest["found"]
    summaries = [(own / "summary.csv").read_bytes() for own in (folder, tmp_path)]
    assert summaries[0] == summaries[1]


def test_the_same_bits_however_files_are_cut(whole, people, tmp_path):
    pq.write_table(people, tmp_path / "one.parquet", row_group_size=20_000)
    manifest = answered(tmp_path / "out", tmp_path / "one.parquet", 3)
    assert manifest["found"] == whole[1]["found"]
    assert told(tmp_path / "out").equals(told(whole[0]))


def test_ten_members_and_the_proposer(people, whole, tmp_path):
    """Of two blocks with few refused people: shared out or not, the answers are equal."""
    is_refused = told(whole[0])["refused"].fill_null(False).to_numpy()
    chosen = np.sort([*np.flatnonzero(is_refused)[:300], *np.flatnonzero(~is_refused)])
    few = people.take(chosen).slice(0, blocks.SIZE + 200)
    pq.write_table(few, tmp_path / "few.parquet")
    for name, differs in (
        ("icarma", {"model": "loan_icarma_hard", "members": []}),
        ("proposer", {"solver": "proposer", "model": "loan_propose", "members": []}),
    ):
        digests = []
        for n_blocks in (1, 2):
            folder = tmp_path / f"{name}{n_blocks}"
            file = parameters(
                folder,
                tmp_path / "few.parquet",
                n_per_job=n_blocks * blocks.SIZE,
                **differs,
            )
            answer.plan(folder, file)
            for first in range(0, 2, n_blocks):
                answer.answer(folder, first, first + n_blocks - 1)
            answer.summarise(folder)
            digests.append(json.loads((folder / "manifest.json").read_text())["found"])
        assert digests[0] == digests[1]
        n_members = 10 if name == "icarma" else 1
        found = told(folder).to_pandas()
        assert (found.dropna(subset="valid").groupby("row").size() == n_members).all()


def test_people_with_whole_numbers():
    """Give Me Some Credit, or a stand-in for it."""
    scaling, _ = gmsc.scaler(MODELS)
    density = CausalFlow.load(MODELS, "gmsc_flow")
    h = NetworkClassifier.load(MODELS, "gmsc_classifier")
    frame = gmsc.stand_in(density, h, scaling, 600, seed=1).drop(columns="paid_back")
    for name in ("income", "credit_lines", "real_estate_loans", "utilization"):
        frame[f"{blocks.SCORE}{name}"] = 1
    frame.loc[0, "age"] = 40.5
    stack = ICarma.load(MODELS, "gmsc_icarma", answer.of_gmsc(MODELS)).select([0])
    found = blocks.answers(stack, frame.to_numpy(float), 0).to_pandas()
    assert found.why.dropna().tolist() == ["age is not a value that people can have"]
    told = found.dropna(subset="valid")
    assert len(told) > 50
    for name in ("credit_lines", "real_estate_loans", "late_90"):
        assert (told[f"after_{name}"] % 1 == 0).all()


def test_two_consequences_on_the_edge_between_whole_numbers(monkeypatch):
    """One is rounded down and the other up: both lower, or both higher, are not enough."""
    monkeypatch.setattr(descent, "EDGE", 1e-3)
    problem = answer.of_gmsc(MODELS)
    population = problem.population
    x = pd.DataFrame(
        [[42, 3, 6970.75681, 8, 0, 0.338711263, 0.133576133, 0, 0, 1]],
        columns=population.features,
    )
    x = population.standardised(x)
    acts = torch.tensor([[True, False, True, True]])
    judge = Judge(problem, problem.flow, x, acts, torch.ones(1, 4))
    values = torch.tensor([[0.609063983, -0.147210166, -0.045693368, -0.574230254]])
    _, log_odds, _ = judge(values)
    told = judge.recommendation(values)
    after = problem.flow.counterfactual(x, told.is_acted, told.values)
    for side in (-1e-3, 1e-3):
        assert problem.accepts(population.settled(x, after + side * ~told.is_acted))
    assert not problem.accepts(told.x_cf)
    assert log_odds <= problem.classifier.logit(told.x_cf) + 1e-6


def test_a_cluster_is_asked_for_what_each_problem_and_solver_took():
    named = {
        resources.RECOMMEND.format(problem=problem, solver=solver)
        for problem in answer.PROBLEMS
        for solver in answer.SOLVERS
    }
    assert named <= set(resources.read())
    assert named == set(resources.PARTS) - {"sweep"}
    assert populations.A_JOB == resources.N_ANSWERS
    assert populations.JOBS.keys() == answer.PROBLEMS.keys()
    assert all(set(models) == set(answer.SOLVERS) for models in populations.JOBS.values())


# --- what is refused


def refusal(work: Callable[[], object]) -> str:
    """What a ValueError says."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  (callers look at it)
        work()
    return str(error.value)


@pytest.mark.parametrize(
    ("differs", "message"),
    [
        (
            {"problem": "lone"},
            "mine.yaml: Unknown problem 'lone': expected one of loan, gmsc.",
        ),
        ({"solver": "grid"}, "mine.yaml: Unknown solver 'grid'"),
        ({"model": "loan_flow"}, "loan_flow.safetensors holds no stack"),
        ({"model": "../loan_flow"}, "A model cannot be called '../loan_flow'"),
        ({"models": "nowhere"}, "nowhere"),
        ({"members": [99]}, "Unknown member 99"),
        ({"members": [1, 1]}, "members names one of [1, 1] twice. Name each once."),
        (
            {"solver": "proposer", "model": "loan_propose"},
            "A proposer has no members, got [10]",
        ),
        ({"data": "nowhere"}, "There is no data set"),
        ({"data": "data"}, "There is no data set"),
        ({"outputs": "models"}, "outputs is 'models', expected a folder below runs"),
        ({"outputs": "runs/../lib"}, "expected a folder below runs"),
        ({"n_per_job": 0}, "n_per_job is 0, expected 1 or more."),
        ({"member": 3}, "has no parameter 'member'; did you mean members"),
        ({"members": [-1]}, "members is -1, expected 0 or more."),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(data, tmp_path, differs, message):
    file = parameters(tmp_path, data, **differs)
    assert message in refusal(lambda: answer.plan(tmp_path / "out", file))
    assert not (tmp_path / "out").exists()


def test_a_missing_parameter_is_named(tmp_path):
    (tmp_path / "mine.yaml").write_text("data: runs/applicants\n")
    said = refusal(lambda: read_run_parameters(tmp_path / "mine.yaml", "recommend"))
    assert "mine.yaml says nothing about problem, models, solver" in said


def test_data_without_preferences_is_refused(people, tmp_path):
    pq.write_table(people.drop(["score_income"]), tmp_path / "a.parquet")
    file = parameters(tmp_path, tmp_path / "a.parquet")
    said = refusal(lambda: answer.plan(tmp_path / "out", file))
    assert "a.parquet: It has no column score_income; found gender, age" in said


def test_a_folder_is_for_one_plan(people, tmp_path):
    data, out = tmp_path / "a.parquet", tmp_path / "out"
    pq.write_table(people.slice(0, 100), data)
    answer.plan(out, parameters(tmp_path, data))
    answer.plan(out, parameters(tmp_path, data))  # the same again goes on
    said = refusal(lambda: answer.plan(out, parameters(tmp_path, data, members=[1])))
    assert "was begun with others: parameters. Parts of two runs would be mixed" in said
    pq.write_table(people.slice(100, 100), data)
    for work in (
        lambda: answer.plan(out, parameters(tmp_path, data)),
        lambda: answer.answer(out, 0, 0),
    ):
        assert "was begun with others: data." in refusal(work)
    assert not (out / "recommendations").exists()


def test_a_summary_needs_the_plans_parts_and_no_others(people, tmp_path):
    pq.write_table(people.slice(0, 100), tmp_path / "a.parquet")
    answer.plan(tmp_path, parameters(tmp_path, tmp_path / "a.parquet"))
    (tmp_path / "recommendations").mkdir()
    name = "recommendations/blocks_000000_000000.parquet"
    said = refusal(lambda: answer.summarise(tmp_path))
    assert said == f"Expected the plan's parts and no others: see {name}."
    answer.answer(tmp_path, 0, 0)
    shutil.copy(tmp_path / name, tmp_path / "recommendations" / "blocks_other.parquet")
    said = refusal(lambda: answer.summarise(tmp_path))
    assert "see recommendations/blocks_other.parquet" in said


def test_data_that_changes_while_it_is_answered_is_noticed(people, tmp_path, monkeypatch):
    data = tmp_path / "a.parquet"
    pq.write_table(people.slice(0, 100), data)
    answer.plan(tmp_path, parameters(tmp_path, data))
    before = blocks.answers

    def meanwhile(*given):
        pq.write_table(people.slice(100, 100), data)
        return before(*given)

    monkeypatch.setattr(blocks, "answers", meanwhile)
    said = refusal(lambda: answer.answer(tmp_path, 0, 0))
    assert "was begun with others: data." in said
    assert not list((tmp_path / "recommendations").iterdir())
    assert not list((tmp_path / "partial").iterdir())


def test_answers_of_another_plan_are_refused(people, tmp_path):
    data = tmp_path / "a.parquet"
    pq.write_table(people.slice(0, 100), data)
    answer.plan(tmp_path, parameters(tmp_path, data))
    answer.answer(tmp_path, 0, 0)
    (tmp_path / "plan.json").unlink()
    said = refusal(lambda: answer.plan(tmp_path, parameters(tmp_path, data, members=[1])))
    assert "holds parts of a run whose plan.json is gone" in said
    (part,) = (tmp_path / "recommendations").rename(tmp_path / "kept").iterdir()
    answer.plan(tmp_path, parameters(tmp_path, data, members=[1]))
    (tmp_path / "kept").rename(tmp_path / "recommendations")
    assert f"{part.name} was made by another plan" in refusal(
        lambda: answer.summarise(tmp_path)
    )


def test_a_damaged_part_is_named_and_made_again(people, tmp_path):
    """Its footer is damaged, or holds something else than what blocks add up to."""
    pq.write_table(people.slice(0, 100), tmp_path / "a.parquet")
    answer.plan(tmp_path, parameters(tmp_path, tmp_path / "a.parquet"))
    answer.answer(tmp_path, 0, 0)
    answer.summarise(tmp_path)
    summary = (tmp_path / "summary.csv").read_bytes()
    (part,) = (tmp_path / "recommendations").iterdir()
    content = part.read_bytes()
    found, about = pq.read_table(part), pq.read_metadata(part).metadata
    counts = json.loads(about[b"blocks"])

    def write(**differs: object) -> None:
        given = {"plan": about[b"plan"]} | differs
        pq.write_table(found.replace_schema_metadata(given), part)

    def changed(**differs: object) -> Callable[[], None]:
        return lambda: write(blocks=json.dumps([counts[0] | differs]))

    for damage in (
        lambda: part.write_bytes(b""),
        lambda: part.write_bytes(content[:-20]),
        lambda: part.write_bytes(content[:-100] + bytes(92) + content[-8:]),
        lambda: pq.write_table(found.replace_schema_metadata(None), part),
        lambda: write(),
        *(
            lambda own=own: write(blocks=own)
            for own in ("", "3", "null", "[]", "{}", "[3]", "[{}]", "[" * 9_999, b"\xff")
        ),
        changed(left_out=[]),
        changed(members=None),
        changed(members=[{"member": []}]),
        changed(applicants="a"),
        changed(digest=0),
        lambda: part.unlink() or part.mkdir(),
    ):
        damage()
        said = refusal(lambda: answer.summarise(tmp_path))
        assert said.startswith(f"{part}: It is damaged: expected recommendations")
        assert said.endswith("Remove it, and run the same command again.")
    part.rmdir()
    answer.answer(tmp_path, 0, 0)
    answer.summarise(tmp_path)
    assert (tmp_path / "summary.csv").read_bytes() == summary
    assert part.read_bytes() == content


def test_a_job_that_fails_leaves_no_part(people, tmp_path, monkeypatch):
    """As after a kill: what was written so far lies elsewhere, and is written anew."""
    pq.write_table(people.slice(0, 2 * blocks.SIZE), tmp_path / "a.parquet")
    answer.plan(tmp_path, parameters(tmp_path, tmp_path / "a.parquet"))

    def interrupted(solver, block, first_row, names):
        if first_row:
            raise OSError("No space left on device")
        return before(solver, block, first_row, names)

    before = blocks.answers
    monkeypatch.setattr(blocks, "answers", interrupted)
    with pytest.raises(OSError, match="No space"):
        answer.answer(tmp_path, 0, 1)
    assert not list((tmp_path / "recommendations").iterdir())
    assert not list((tmp_path / "partial").iterdir())
    monkeypatch.setattr(blocks, "answers", before)
    answer.answer(tmp_path, 0, 1)
    assert told(tmp_path)["row"].to_pylist() == list(range(2 * blocks.SIZE))

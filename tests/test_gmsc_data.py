"""Give Me Some Credit: found, read and cleaned right, never taken for another."""

import zipfile

import numpy as np
import pandas as pd
import pytest

from lib.paper import gmsc

DATA = gmsc.find(download=False)
needs_data = pytest.mark.skipif(
    DATA is None, reason=f"the data is not here: {gmsc.VARIABLE} names it"
)


@pytest.fixture
def raw() -> pd.DataFrame:
    """Four hundred invented people with the csv's columns, called as ours."""
    rng = np.random.default_rng(0)
    n_people = 400
    people = pd.DataFrame({name: rng.poisson(1.0, n_people) for name in gmsc.COLUMNS})
    people["age"] = rng.integers(20, 90, n_people)
    people["income"] = rng.integers(0, 30_000, n_people).astype(float)
    people["utilization"] = 1.2 * rng.random(n_people)
    people["debt_ratio"] = rng.exponential(0.5, n_people)
    people.loc[:9, "income"] = np.nan
    people.loc[10:12, list(gmsc.LATENESS)] = 98
    people[gmsc.LABEL] = (rng.random(n_people) < 0.1).astype(int)
    return people


def csv(folder, people):
    """The path of a csv of these people with the columns of the competition."""
    path = folder / "cs-training.csv"
    people.rename(columns=gmsc.COLUMNS).to_csv(path)
    return path


@needs_data
def test_the_real_data_is_cleaned_as_published():
    raw = gmsc.read(DATA)
    people = gmsc.clean(raw)
    assert len(raw) == 150_000 and len(people) == 120_269
    is_code = (raw.dropna()[list(gmsc.LATENESS)] > gmsc.UNREADABLE).any(axis=1)
    assert is_code.sum() == 148
    assert people[list(gmsc.LATENESS)].max().tolist() == [18, 18, 18]
    assert people.income.max() == 17_000
    assert people.utilization.max() == people.debt_ratio.max() == 1
    assert people.paid_back.mean() == pytest.approx(1 - 8_357 / 120_269)
    for name, most in gmsc.MOST.items():
        assert people[name].max() == most, name


def test_cleaning_drops_caps_and_decodes(raw):
    given = raw.copy()
    people = gmsc.clean(raw)
    kept = raw[10:].reset_index(drop=True)
    assert len(raw) == 400 and len(people) == 390
    assert people.income.equals(kept.income.clip(upper=17_000))
    assert people.utilization.max() == 1 and people.age.equals(kept.age)
    assert (people.loc[:2, list(gmsc.LATENESS)] == 18).all(axis=None)
    assert people.paid_back.equals(kept[gmsc.LABEL] == 0)
    assert raw.equals(given)


def test_cleaning_keeps_whoever_lacks_only_what_is_not_used(raw):
    people = gmsc.clean(raw.assign(remark=np.nan))
    assert len(people) == 390 and "remark" not in people


def not_clean():
    """What is done to the table, and what is said of it."""
    label = gmsc.LABEL
    return {
        "label in words": (
            lambda raw: raw.assign(**{label: raw[label].map({0: "No", 1: "Yes"})}),
            r"must be 1 for a serious delinquency",
        ),
        "per cent of income": (
            lambda raw: raw.assign(debt_ratio=100 * raw.debt_ratio),
            r"debt_ratio has the median .*a share of income",
        ),
        "per cent of the limit": (
            lambda raw: raw.assign(utilization=100 * raw.utilization),
            r"utilization has the median .*a share of the credit limit",
        ),
        "negative": (
            lambda raw: raw.assign(late_90=-1),
            r"late_90 has negative values",
        ),
        "infinite": (
            lambda raw: raw.assign(income=raw.income.replace(raw.income.max(), np.inf)),
            r"'income' has 1 gaps or infinite values",
        ),
        "no numbers": (
            lambda raw: raw.assign(age=raw.age.astype(str)),
            r"age of row 0 is '\d+': expected a number",
        ),
        "a fraction": (
            lambda raw: raw.assign(dependents=0.5),
            r"dependents counts, so it must be whole",
        ),
        "nobody whole": (lambda raw: raw[:10], r"All 10 rows miss a value"),
        "empty": (lambda raw: raw[:0], r"All 0 rows miss a value"),
        "column missing": (
            lambda raw: raw.drop(columns="income"),
            r"income is missing: the table has",
        ),
        "column twice": (
            lambda raw: pd.concat([raw, raw[["age"]]], axis=1),
            r"two columns 'age'. Keep one",
        ),
        "no table": (
            lambda raw: raw.to_numpy(),
            r"Expected a table, got ndarray",
        ),
    }


@pytest.mark.parametrize("name", not_clean())
def test_what_cannot_be_cleaned_is_said(raw, name):
    spoil, message = not_clean()[name]
    with pytest.raises(ValueError, match=message):
        gmsc.clean(spoil(raw))


def test_another_file_is_not_taken_for_the_data(tmp_path, raw):
    with pytest.raises(ValueError, match=r"is not the data: expected a csv with SHA-256"):
        gmsc.read(csv(tmp_path, raw))


@needs_data
def test_half_a_download_is_not_taken_for_the_data(tmp_path):
    content = DATA.read_bytes()
    half = tmp_path / f"half{DATA.suffix}"
    half.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"be unpacked|is not the data"):
        gmsc.read(half)


def test_a_zip_that_was_damaged_is_said(tmp_path, raw):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(csv(tmp_path, raw), "cs-training.csv")
    content = bytearray(path.read_bytes())
    content[1_000:1_100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"be unpacked: .* If it is a download, delete it"):
        gmsc.read(path)


def test_a_zip_of_something_else_is_named(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "no data")
        file.writestr("__MACOSX/._cs-training.csv", "what a Mac adds")
    with pytest.raises(ValueError, match=r"no item named 'cs-training.csv'"):
        gmsc.read(path)


def test_where_the_data_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path / "cache")
    assert gmsc.find(download=False) is None
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "cs-training.csv.zip").write_bytes(b"")
    assert gmsc.find() == tmp_path / "cache" / "cs-training.csv.zip"
    monkeypatch.setenv(gmsc.VARIABLE, str(tmp_path / "nowhere.csv"))
    with pytest.raises(ValueError, match=r"There is no file .*nowhere.csv. Download"):
        gmsc.find()
    (tmp_path / "mine.csv").write_text("")
    assert gmsc.find(tmp_path / "mine.csv") == tmp_path / "mine.csv"
    with pytest.raises(ValueError, match=r"There is no file .*absent.csv. Download"):
        gmsc.read(tmp_path / "absent.csv")


def test_without_a_network_there_is_no_data_and_nothing_half(tmp_path, monkeypatch):
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path / "cache")
    tried = []

    def breaks_off(url, output_file, pooch):
        tried.append(url)
        with open(output_file, "wb") as file:
            file.write(b"half")
        raise OSError("connection lost")

    monkeypatch.setattr(gmsc.pooch, "HTTPDownloader", lambda **options: breaks_off)
    assert gmsc.find() is None and tried == [gmsc.MIRROR]
    assert gmsc.find(download=False) is None


@needs_data
def test_a_download_that_was_tampered_with_is_refused(tmp_path, monkeypatch):
    """One person's label is another, and the zip is sound: what came is not the data."""
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path / "cache")
    content = DATA.read_bytes()
    if zipfile.is_zipfile(DATA):
        with zipfile.ZipFile(DATA) as file:
            content = file.read("cs-training.csv")
    at = content.index(b"\n1,1,") + 3
    tampered = content[:at] + b"0" + content[at + 1 :]

    def comes(url, output_file, pooch):
        with zipfile.ZipFile(output_file, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("cs-training.csv", tampered)

    monkeypatch.setattr(gmsc.pooch, "HTTPDownloader", lambda **options: comes)
    path = gmsc.find()
    with pytest.raises(ValueError, match=rf"{gmsc.SHA256}, found one with"):
        gmsc.read(path)
    with pytest.raises(ValueError, match="is not the data"):
        gmsc.applicants("", 100, 0, or_stand_in=True)

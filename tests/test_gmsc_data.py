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


@needs_data
def test_the_real_data_is_cleaned_as_published():
    raw = gmsc.read(DATA)
    people = gmsc.clean(raw)
    assert len(raw) == 150_000 and len(people) == 120_269
    assert people.paid_back.mean() == pytest.approx(1 - 8_357 / 120_269)
    assert people[list(gmsc.COLUMNS)].max().equals(gmsc.HIGHEST.rename(None).astype(float))
    kept = raw.dropna().reset_index(drop=True)
    lateness = list(gmsc.LATENESS)
    is_code = (kept[lateness] > 90).any(axis=1)
    assert is_code.sum() == 148 and (people[lateness][is_code] == 18).all(axis=None)
    counts = gmsc.FEATURES.index[gmsc.FEATURES.is_count]
    assert people[counts][~is_code].eq(kept[counts][~is_code]).all(axis=None)


def test_cleaning_drops_caps_and_decodes():
    raw = pd.DataFrame(dict.fromkeys(gmsc.COLUMNS, range(4))).assign(
        income=[np.nan, 20_000, 3_000, 0], late_90=[0, 98, 2, 96], debt_ratio=0.5
    )
    raw = raw.assign(**{gmsc.LABEL: [0, 1, 0, 0], "remark": np.nan})
    given = raw.copy()
    people = gmsc.clean(raw)
    assert people.income.tolist() == [17_000, 3_000, 0]
    assert people.late_90.tolist() == [18, 2, 18] and people.utilization.max() == 1
    assert people.paid_back.tolist() == [False, True, True]
    assert raw.equals(given)
    for spoilt, message in (
        (raw.assign(**{gmsc.LABEL: "No"}), "must be 1 for a serious delinquency"),
        (raw.assign(age=-1), "negative values"),
        (raw.drop(columns="income"), "income is missing"),
    ):
        with pytest.raises(ValueError, match=message):
            gmsc.clean(spoilt)


def another(folder):
    path = folder / "cs-training.csv"
    pd.DataFrame(columns=list(gmsc.COLUMNS.values())).to_csv(path)
    return path


def damaged(folder):
    path = folder / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("cs-training.csv", "1,2,3\n" * 10_000)
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)
    return path


def of_something_else(folder):
    with zipfile.ZipFile(folder / "data.zip", "w") as file:
        file.writestr("readme.txt", "no data")
    return folder / "data.zip"


@pytest.mark.parametrize("make", [another, damaged, of_something_else])
def test_another_file_is_not_taken_for_the_data(tmp_path, make):
    with pytest.raises(
        ValueError, match=r"not the data: .* If it is a download, delete it"
    ):
        gmsc.read(make(tmp_path))
    with pytest.raises(ValueError, match=r"There is no file .*absent.csv. Download"):
        gmsc.read(tmp_path / "absent.csv")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no variable that names the data."""
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    monkeypatch.setattr(gmsc.pooch, "os_cache", lambda project: tmp_path)
    return tmp_path


def test_where_the_data_is_looked_for(cache, monkeypatch):
    assert gmsc.find(download=False) is None
    (cache / "cs-training.csv.zip").write_bytes(b"")
    assert gmsc.find() == cache / "cs-training.csv.zip"
    monkeypatch.setenv(gmsc.VARIABLE, "theirs.csv")
    assert str(gmsc.find()) == "theirs.csv" and str(gmsc.find("mine.csv")) == "mine.csv"


def test_without_a_network_there_is_no_data_and_nothing_half(cache, monkeypatch):
    tried = []

    def breaks_off(url, output_file, pooch):
        tried.append(url)
        with open(output_file, "wb") as file:
            file.write(b"half")
        raise OSError("connection lost")

    monkeypatch.setattr(gmsc.pooch, "HTTPDownloader", lambda **options: breaks_off)
    assert gmsc.find() is None and tried == [gmsc.MIRROR]
    assert gmsc.find(download=False) is None

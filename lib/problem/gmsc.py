"""Give Me Some Credit: where the data is found, and how it is cleaned.

The data is not part of this repository. `find` looks for the competition's cs-training.csv (150,000 people), as a csv or
inside a zip: at a path that is handed over, at the one in the environment variable ICARMA_GMSC_CSV, in the cache, and at
last on the web. Whatever the source, the SHA-256 of the csv decides whether it is the data.
"""

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
import torch
from torch import Tensor

from lib.base import checks, files
from lib.base.files import MODELS, PUBLISHED
from lib.causal.flow import CausalFlow
from lib.causal.graph import Graph
from lib.problem.classifier import Classifier, NetworkClassifier
from lib.problem.population import FOR_RECOURSE, Population, split
from lib.problem.recourse import Problem

VARIABLE = "ICARMA_GMSC_CSV"
SHA256 = "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac"
MIRROR = "https://raw.githubusercontent.com/SureshThyagara1/CYO---Kaggle-Give-Me-Some-Credit/master/Data/cs-training.csv.zip"
HOW_TO_GET_IT = (
    f"Download cs-training.csv from the Kaggle competition GiveMeSomeCredit (it asks for a login) or from {MIRROR}, and say "
    f"where it lies: {VARIABLE}=/path/to/cs-training.csv (or .zip)."
)

# our names, in causal order, and the columns of the csv
COLUMNS = {
    "age": "age",
    "dependents": "NumberOfDependents",
    "income": "MonthlyIncome",
    "credit_lines": "NumberOfOpenCreditLinesAndLoans",
    "real_estate_loans": "NumberRealEstateLoansOrLines",
    "utilization": "RevolvingUtilizationOfUnsecuredLines",
    "debt_ratio": "DebtRatio",
    "late_30_to_59": "NumberOfTime30-59DaysPastDueNotWorse",
    "late_60_to_89": "NumberOfTime60-89DaysPastDueNotWorse",
    "late_90": "NumberOfTimes90DaysLate",
}
LABEL = "SeriousDlqin2yrs"
SAID = {
    "age": "age {} years",
    "dependents": "{} dependents",
    "income": "income {} dollars a month",
    "credit_lines": "{} open credit lines",
    "real_estate_loans": "{} real-estate loans",
    "utilization": "{} of the credit limit in use",
    "debt_ratio": "debts {} of income",
    "late_30_to_59": "{} times 30 to 59 days late",
    "late_60_to_89": "{} times 60 to 89 days late",
    "late_90": "{} times 90 days late or more",
}
LATENESS = ("late_30_to_59", "late_60_to_89", "late_90")
COUNTS = ("age", "dependents", "credit_lines", "real_estate_loans", *LATENESS)
CAPS = {"debt_ratio": 1.0, "utilization": 1.0, "income": 17_000.0}
MOST = dict.fromkeys(LATENESS, 18) | {
    "age": 103,
    "dependents": 20,
    "credit_lines": 58,
    "real_estate_loans": 54,
}  # of anybody
UNREADABLE, WORST = 90, 18  # lateness above 90 times is a code, not a count
SPREAD = (
    0.05  # width of the cell over which an atom is spread, as a share of the feature's cap
)
ALMOST = (
    0.9999  # 7,461 people have a utilization of 0.9999999: they belong to the atom at 1
)


def find(path: str | Path = "", download: bool = True) -> Path | None:
    """The file with the data (csv or zip), or None if there is none and it can't be downloaded.

    Arguments:
        path: Where it is said to lie; "": look in the environment variable, in the cache and (unless download is False)
            on the web.
    Raises: ValueError: there is no file where it is said to be.
    """
    for said, given in (("path", path), (VARIABLE, os.environ.get(VARIABLE, ""))):
        if given:
            if not Path(given).is_file():
                raise ValueError(
                    f"{said} names {given}, and there is no such file. {HOW_TO_GET_IT}"
                )
            return Path(given)
    cached = Path(pooch.os_cache("icarma-companion")) / "cs-training.csv.zip"
    if cached.is_file():
        return cached
    if not download:
        return None
    pooch.get_logger().setLevel("WARNING")
    try:
        # written beside its place and moved there at its end, so that half a download is never found
        pooch.retrieve(
            MIRROR,
            None,
            cached.name,
            cached.parent,
            downloader=pooch.HTTPDownloader(timeout=20, progressbar=False),
        )
    except (OSError, ValueError):
        return None
    return cached


def read(path: Path) -> pd.DataFrame:
    """The 150,000 rows of the csv: label and ten features, called as in `COLUMNS`.

    Raises: ValueError: not a csv or zip, another csv, a column is missing, or the content differs.
    """
    try:
        content = _csv_of(path)
    except (zipfile.BadZipFile, KeyError, IsADirectoryError) as error:
        raise ValueError(
            f"{path} is not a zip with a cs-training.csv inside ({error}): half a download? Delete it. {HOW_TO_GET_IT}"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{path} is not the data: {_what_differs(path, content)} Expected SHA-256 {SHA256}, found {found}. If it is a download, delete it. {HOW_TO_GET_IT}"
        )
    raw = pd.read_csv(io.BytesIO(content), index_col=0)
    return raw.rename(columns={theirs: ours for ours, theirs in COLUMNS.items()})


def clean(raw: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """People that can be used, and how many each step of the cleaning concerns.

    Rows with missing values are dropped; debt ratio, utilization and income are capped; lateness codes become 18 times.

    Returns: Columns "paid_back" (bool) and the ten features, and the counts by step.
    Raises: ValueError: a column is missing, has negative values, or is in another unit; nobody is left.
    Source: section 10 of the specification of this study follows PEAR (De Toni et al.) and arXiv:2604.08030, appendix C.
    """
    if missing := [
        f"{ours} ({theirs})"
        for ours, theirs in (COLUMNS | {LABEL: LABEL}).items()
        if ours not in raw
    ]:
        raise ValueError(
            f"There is no column {', '.join(missing)}; found {', '.join(raw)}. {HOW_TO_GET_IT}"
        )
    if unknown := sorted(set(raw[LABEL].dropna().unique()) - {0, 1}, key=str):
        raise ValueError(
            f"{LABEL} holds {unknown[0]!r}: expected 1 for a serious delinquency and 0 for none."
        )
    people = raw.dropna()
    if len(people) == 0:
        raise ValueError(f"All {len(raw)} rows miss a value, so nobody is left.")
    if negative := [name for name in COLUMNS if (people[name] < 0).any()]:
        raise ValueError(f"{negative[0]} has values below zero. {HOW_TO_GET_IT}")
    typical = {
        "income": (1_000, 20_000, "dollars a month"),
        "utilization": (0.01, 1.0, "a share of the credit limit"),
        "age": (20, 90, "years"),
        "debt_ratio": (0.01, 3.0, "a share of income"),
    }
    for name, (low, high, unit) in typical.items():
        if not low <= people[name].median() <= high:
            raise ValueError(
                f"{name} has the median {people[name].median():g}: expected {unit}, {low:,} to {high:,}. Is the column in another unit?"
            )
    steps = {"rows": len(raw), "without missing values": len(people)}
    people = people.copy()
    for name, cap in CAPS.items():
        steps[f"{name} capped at {cap:,.0f}"] = int((people[name] > cap).sum())
        people[name] = people[name].clip(upper=cap)
    codes = (people[list(LATENESS)] > UNREADABLE).any(axis=1)
    steps[f"lateness codes made {WORST}"] = int(codes.sum())
    people[list(LATENESS)] = people[list(LATENESS)].where(
        people[list(LATENESS)] <= UNREADABLE, WORST
    )
    people.insert(0, "paid_back", people.pop(LABEL) == 0)
    return people[["paid_back", *COLUMNS]].reset_index(drop=True), steps


def stand_in(
    density: CausalFlow,
    h: Classifier,
    scaler: Mapping[str, Tensor],
    n_people: int,
    seed: int,
) -> pd.DataFrame:
    """Synthetic people in the place of real ones, with the columns of `clean`.

    They are drawn from a flow that was fitted to the real ones and made whole. Nobody's label is known, so it is drawn too:
    the classifier's odds of a default, divided by the weight that defaults had in its loss.

    Arguments:
        density, h, scaler: The models gmsc_flow, gmsc_classifier and gmsc_scaler ("mean", "std" (D,) and "weight").
    """
    rng = np.random.default_rng(seed)
    x = density.predict(
        torch.from_numpy(rng.standard_normal((n_people, len(COLUMNS)))).to(h.weights[0])
    )
    drawn = pd.DataFrame(
        whole(x.double() * scaler["std"] + scaler["mean"]).numpy(), columns=list(COLUMNS)
    )
    chance = torch.sigmoid(h.logit(x) + scaler["weight"].log()).numpy()  # of paying back
    drawn.insert(0, "paid_back", rng.random(n_people) < chance)
    return drawn


def applicants(
    path: str | Path, n_people: int, seed: int, models: Path = MODELS
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The people of the study, and the counts of `clean`; where there is no data, a `stand_in` and no counts.

    Arguments:
        path: As for `find`.
        n_people: How many of them, drawn without replacement; all if there are not more.
        models: Folder with the models of the stand-in: the committed ones.
    """
    checks.positive(n_people=n_people)
    found = find(path)
    if found is None:
        scaler, _ = files.load(models, "gmsc_scaler")
        h, density = (
            NetworkClassifier.load(models, "gmsc_classifier"),
            CausalFlow.load(models, "gmsc_flow"),
        )
        return stand_in(density, h, scaler, n_people, seed), {}
    people, steps = clean(read(found))
    return people.sample(min(n_people, len(people)), random_state=seed).sort_index(), steps


def graph(
    remove: Sequence[Sequence[str]] = (), reverse: Sequence[Sequence[str]] = ()
) -> Graph:
    """Return the published causal graph, or another one as changes of it.

    Arguments:
        remove, reverse: Edges, pairs [cause, effect], that are removed or turned round.
    Raises: ValueError: the published graph has no such edge.
    Source: graph of PEAR (De Toni et al.), Fig. 6 of arXiv:2604.08030.
    Example:
        >>> graph().parents["debt_ratio"]
        ('age', 'credit_lines', 'real_estate_loans')
        >>> graph(remove=[["age", "debt_ratio"]]).parents["debt_ratio"]
        ('credit_lines', 'real_estate_loans')
    """
    ours = {theirs: name for name, theirs in COLUMNS.items()}
    table = pd.read_csv(PUBLISHED / "pear_gmc_edges.csv")
    edges = [(ours[a], ours[b]) for a, b in zip(table.parent, table.child, strict=True)]
    for pair in [*remove, *reverse]:
        checks.known("feature", pair, tuple(COLUMNS))
        if tuple(pair) not in edges:
            raise ValueError(
                f"There is no edge from {pair[0]} to {pair[1]} that could be removed or turned round."
            )
        edges.remove((pair[0], pair[1]))
    return Graph.from_edges(list(COLUMNS), edges + [(b, a) for a, b in reverse])


def dequantised(people: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Features (N, 10) that a density can be fitted to: counts and atoms are spread evenly over cells.

    A count n becomes a number in [n - 1/2, n + 1/2); a value at a cap, or a utilization, debt ratio or income of exactly
    zero, is spread over `SPREAD` of its cap beyond the end.
    """
    columns = []
    for name in COLUMNS:
        value, noise = people[name].to_numpy(dtype=float), rng.random(len(people))
        if name in COUNTS:
            columns.append(value + noise - 0.5)
        else:
            width = SPREAD * CAPS[name]
            at_cap, at_zero = value >= ALMOST * CAPS[name], value == 0
            columns.append(
                np.select(
                    [at_cap, at_zero], [CAPS[name] + width * noise, -width * noise], value
                )
            )
    return np.stack(columns, -1)


def whole(x: Tensor) -> Tensor:
    """The inverse: features as people have them, counts whole, and all between zero and the most that anybody has."""
    is_count = torch.tensor([name in COUNTS for name in COLUMNS])
    most = torch.tensor([(CAPS | MOST)[name] for name in COLUMNS], dtype=x.dtype)
    return (
        torch.where(is_count, x.round(), x).clamp_min(0).minimum(most) + 0.0
    )  # -0 becomes 0


def population(people: pd.DataFrame, seed: int = 0) -> Population:
    """The Give Me Some Credit population: one sample, whose splits serve the classifier, the flow and recourse alike.

    Arguments:
        people: As `clean` gives them; or a stand-in with the same columns.
        seed: Of who is in which split, and of the noise that spreads counts and atoms over cells.
    Raises: ValueError: too few people to be split.
    Source: sections 5.2 and C.3 of arXiv:2604.08030; graph of PEAR (De Toni et al.); spreading is ours.
    """
    if len(people) < 20:
        raise ValueError(
            f"There are {len(people)} people: at least 20 are needed to fill three splits."
        )
    order, noise = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2)
    )
    people = people.iloc[order.permutation(len(people))]
    in_units = torch.from_numpy(dequantised(people, noise))
    paid_back = torch.from_numpy(people.paid_back.to_numpy(copy=True))
    rows = split(in_units, FOR_RECOURSE)
    mean = in_units[rows["train"]].mean(0)
    std = torch.from_numpy(in_units[rows["train"]].numpy().std(0))
    x = {part: ((in_units[own] - mean) / std).float() for part, own in rows.items()}
    y = {part: paid_back[own] for part, own in rows.items()}
    kinds = dict.fromkeys(COLUMNS, "actionable") | dict.fromkeys(
        ("age", "dependents"), "immutable"
    )
    kinds |= dict.fromkeys(("debt_ratio", *LATENESS), "mutable")
    return Population(
        name="Give Me Some Credit",
        kinds=kinds,
        graph=graph(),
        mean=mean,
        std=std,
        x={
            f"{use}/{part}": own
            for use in ("classifier", "flow", "recourse")
            for part, own in x.items()
        },
        y={
            f"{use}/{part}": own
            for use in ("classifier", "flow", "recourse")
            for part, own in y.items()
        },
        whole=whole,
    )


def problem(people: pd.DataFrame, models: Path = MODELS, seed: int = 0) -> Problem:
    """Return these people's population with the classifier and the flow of a folder of models."""
    drawn = population(people, seed)
    return Problem(
        drawn,
        NetworkClassifier.load(models, "gmsc_classifier", drawn.fingerprint),
        CausalFlow.load(models, "gmsc_flow", drawn.fingerprint),
    )


def in_words(before: Tensor, after: Tensor, columns: Sequence[int]) -> str:
    """One person's values in these columns, and to what they change, in the units of the data; both (10,), see `whole`."""
    parts = []
    for j in columns:
        name = list(COLUMNS)[j]
        values = (abs(float(value)) for value in (before[j], after[j]))  # no "-0 loans"
        said = [
            f"{value:.0%}" if CAPS.get(name) == 1 else f"{value:,.0f}" for value in values
        ]
        parts.append(SAID[name].format(" -> ".join(dict.fromkeys(said))))
    return ", ".join(parts)


def _csv_of(path: Path) -> bytes:
    if not zipfile.is_zipfile(path) and path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as file:
        names = [name for name in file.namelist() if name.endswith("cs-training.csv")]
        if not names:
            raise KeyError(f"it holds {', '.join(file.namelist())}")
        return file.read(names[0])


def _what_differs(path: Path, content: bytes) -> str:
    """In words: half a file, another file, missing columns, or another unit."""
    try:
        raw = pd.read_csv(io.BytesIO(content), index_col=0)
        clean(raw.rename(columns={theirs: ours for ours, theirs in COLUMNS.items()}))
    except (ValueError, UnicodeDecodeError) as error:
        return f"{error}"
    return (
        f"it has {len(raw):,} rows, expected 150,000."
        if len(raw) != 150_000
        else "some of its values differ."
    )

"""Give Me Some Credit: the people of the study as a population and as a problem.

Nobody knows the equations by which income, credit and arrears follow
from each other here. A graph is assumed, and a flow learns the rest.
Counts, and values that pile up at a cap, are spread over cells before
a density is fitted, and made whole again before a decision. How the
data is found, read and cleaned comes first.
"""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
import torch
from torch import Tensor

from lib import checks, io
from lib.io import MODELS, PARAMS
from lib.method import data
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.data import FOR_RECOURSE, Discretisation, Population
from lib.method.flow import CausalFlow
from lib.method.graph import Graph
from lib.method.problem import Problem

VARIABLE = "ICARMA_GMSC_CSV"
SHA256 = "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac"
MIRROR = (
    "https://raw.githubusercontent.com/SureshThyagara1/CYO---Kaggle-Give-Me-Some-Credit/"
    "master/Data/cs-training.csv.zip"
)
N_BYTES = 7_564_965  # of the csv
HOW_TO_GET_IT = (
    "Download cs-training.csv from the Kaggle competition GiveMeSomeCredit "
    f"(it asks for a login) or from {MIRROR}, and say where it lies: "
    f"{VARIABLE}=/path/to/cs-training.csv (or .zip)."
)

# how its classifier and its flow are fitted
CLASSIFIER: dict[str, Any] = {"negative_class_weight": 4.5}
# a spline flow with 32 units as printed; how many layers of them is lost, and two of them
# are likelier on validation people than one
FLOW: dict[str, Any] = {"hidden": (32, 32), "n_bins": 16}
PAST = "lateness is past"  # the other graph that has networks of its own

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
LATENESS = ("late_30_to_59", "late_60_to_89", "late_90")
COUNTS = ("age", "dependents", "credit_lines", "real_estate_loans", *LATENESS)
MOST = dict.fromkeys(LATENESS, 18) | {  # of anybody
    "age": 103,
    "dependents": 20,
    "credit_lines": 58,
    "real_estate_loans": 54,
}
CAPS = {"debt_ratio": 1.0, "utilization": 1.0, "income": 17_000.0}
UNREADABLE, WORST = 90, 18  # lateness above 90 times is a code, not a count
TYPICAL = {  # what a median may be, in the unit of the competition
    "income": (1_000, 20_000, "dollars a month"),
    "utilization": (0.01, 1.0, "a share of the credit limit"),
    "age": (20, 90, "years"),
    "debt_ratio": (0.01, 3.0, "a share of income"),
}


def find(path: str | Path = "", download: bool = True) -> Path | None:
    """Return the file with the data (csv or zip), or None if there is none.

    Arguments:
        path: Where it lies; "": look in the environment variable,
            then in the cache and (unless download is False) on the
            web.
        download: Whether to try the web at last. None is returned too
            if that fails.
    Raises: ValueError: there is no file at the path, or where the
        variable points.
    """
    for source, given in (("path", path), (VARIABLE, os.environ.get(VARIABLE, ""))):
        if given:
            if not Path(given).is_file():
                raise ValueError(
                    f"{source} names {given}, and there is no such file. {HOW_TO_GET_IT}"
                )
            return Path(given)
    cached = Path(pooch.os_cache("icarma-companion")) / "cs-training.csv.zip"
    if cached.is_file():
        return cached
    return _downloaded(cached) if download else None


def read(path: str | Path) -> pd.DataFrame:
    """Return the 150,000 rows of the csv: label and ten features, called as in `COLUMNS`.

    Raises: ValueError: there is no file, it is no csv or zip, or it
        is not the data.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}. {HOW_TO_GET_IT}")
    with io.in_file(path, f"Is it half a download? Delete it. {HOW_TO_GET_IT}"):
        content = _csv_bytes(path)
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise ValueError(
            f"{path} is not the data: expected a csv of {N_BYTES:,} bytes with SHA-256 "
            f"{SHA256}, found one of {len(content):,} with {digest}. "
            f"If it is a download, delete it. {HOW_TO_GET_IT}"
        )
    raw = pd.read_csv(BytesIO(content), index_col=0)
    return raw.rename(columns={theirs: ours for ours, theirs in COLUMNS.items()})


def _csv_bytes(path: Path) -> bytes:
    """Return the bytes of the csv at a path, which may be a zip that holds it."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    try:
        with zipfile.ZipFile(path) as file:
            members = file.namelist()
            wanted = [name for name in members if Path(name).name == "cs-training.csv"]
            if len(wanted) == 1:
                return file.read(wanted[0])
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"It can't be unpacked ({error}).") from error
    raise ValueError(
        "It is no zip with one cs-training.csv inside (it holds "
        f"{', '.join(members[:5]) or 'nothing'})."
    )


def clean(raw: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the people that can be used, and how many each step of the cleaning concerns.

    Rows with missing values are dropped. Debt ratio, utilization and
    income are capped. Lateness codes become 18 times.

    Arguments:
        raw: The label and the ten features, called as in `COLUMNS`;
            it stays as it is.
    Returns: Columns "paid_back" (bool) and the ten features; and the
        counts by step.
    Raises: ValueError: a column is missing, holds no numbers, has
        negative or infinite values, or is in another unit; nobody is
        left.
    Source: the cleaning of PEAR (De Toni et al.), as in appendix C of
        arXiv:2604.08030.

    Example:
        >>> raw = pd.DataFrame(dict.fromkeys(COLUMNS, [0.5, 0.5, 0.5])).assign(
        ...     age=[30, 40, 50],
        ...     income=[3_000, 20_000, np.nan],
        ...     late_90=[0, 98, 0],
        ...     SeriousDlqin2yrs=[0, 1, 0],
        ... )
        >>> people, steps = clean(raw)
        >>> people[["paid_back", "age", "income", "late_90"]]
           paid_back  age   income  late_90
        0       True   30   3000.0        0
        1      False   40  17000.0       18
        >>> steps["without missing values"], steps["income capped at 17,000"]
        (2, 1)
    """
    _check_columns(raw)
    people = raw.dropna(subset=[LABEL, *COLUMNS])
    if len(people) == 0:
        raise ValueError(f"All {len(raw)} rows miss a value, so nobody is left.")
    _check_values(people)
    steps = {"rows": len(raw), "without missing values": len(people)}
    people = people.copy()
    for name, cap in CAPS.items():
        steps[f"{name} capped at {cap:,.0f}"] = int((people[name] > cap).sum())
        people[name] = people[name].clip(upper=cap)
    lateness = people[list(LATENESS)]
    steps[f"lateness codes made {WORST}"] = int((lateness > UNREADABLE).any(axis=1).sum())
    people[list(LATENESS)] = lateness.where(lateness <= UNREADABLE, WORST)
    people.insert(0, "paid_back", people.pop(LABEL) == 0)
    return people[["paid_back", *COLUMNS]].reset_index(drop=True), steps


def check(people: pd.DataFrame) -> None:
    """Raise ValueError unless every feature holds values that somebody can have.

    Arguments:
        people: The ten features, as `clean` gives them; other columns
            are not looked at.
    """
    values = data.values(people, list(COLUMNS))
    for name, column in zip(COLUMNS, values.T, strict=True):
        if (column < 0).any():
            raise ValueError(f"{name} has negative values. See `clean`.")
        if name in COUNTS and (column % 1 != 0).any():
            raise ValueError(f"{name} counts, so it must be whole. See `clean`.")


def _downloaded(path: Path) -> Path | None:
    """Download the data to this path; return it, or None if that fails."""
    pooch.get_logger().setLevel("WARNING")
    web = pooch.HTTPDownloader(timeout=20, progressbar=False)
    try:
        # pooch moves a file to its place at the end, so that half a download is never found
        pooch.retrieve(MIRROR, None, path.name, path.parent, downloader=web)
    except (OSError, ValueError):
        return None
    return path


def _check_columns(raw: pd.DataFrame) -> None:
    """Raise ValueError unless every column is there, once, and holds numbers."""
    if not isinstance(raw, pd.DataFrame):
        raise ValueError(f"raw must be a pandas DataFrame, got {type(raw).__name__}.")
    expected = COLUMNS | {LABEL: LABEL}
    columns = raw.columns.tolist()
    if missing := [
        f"{ours} ({theirs})" for ours, theirs in expected.items() if ours not in raw
    ]:
        raise ValueError(
            f"There is no column {', '.join(missing)}; "
            f"found {', '.join(map(str, columns))}."
        )
    if twice := [name for name in expected if columns.count(name) > 1]:
        raise ValueError(f"There are several columns {twice[0]}: expected one.")
    if unknown := data.not_binary(raw[LABEL].dropna()):
        raise ValueError(
            f"{LABEL} holds {unknown[0]!r}: "
            "expected 1 for a serious delinquency and 0 for none."
        )
    for name in COLUMNS:
        if not pd.api.types.is_numeric_dtype(raw[name]):
            raise ValueError(f"{name} holds {raw[name].dtype} values: expected numbers.")


def _check_values(people: pd.DataFrame) -> None:
    """Raise ValueError unless values are finite, not negative, and in the expected unit."""
    for name in COLUMNS:
        if (people[name] < 0).any():
            raise ValueError(f"{name} has values below zero: drop or repair those rows.")
        if not np.isfinite(people[name].to_numpy(dtype=float)).all():
            raise ValueError(f"{name} has infinite values: drop or repair those rows.")
    for name, (low, high, unit) in TYPICAL.items():
        if not low <= people[name].median() <= high:
            raise ValueError(
                f"{name} has the median {people[name].median():g}: "
                f"expected {unit}, {low:,} to {high:,}. Is the column in another unit?"
            )


KINDS = (
    dict.fromkeys(COLUMNS, "actionable")
    | dict.fromkeys(("age", "dependents"), "immutable")
    | dict.fromkeys(("debt_ratio", *LATENESS), "mutable")
)
SPREAD = 0.05  # width of the cell over which an atom is spread, as a share of the cap
ALMOST = (
    0.9999  # 7,461 people have a utilization of 0.9999999: they belong to the atom at 1
)
DISCRETISATION = Discretisation(
    is_whole=torch.tensor([name in COUNTS for name in COLUMNS]),
    low=torch.zeros(len(COLUMNS), dtype=torch.float64),
    high=torch.tensor([(CAPS | MOST)[name] for name in COLUMNS], dtype=torch.float64),
)
PHRASES = {
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


@dataclass(frozen=True, eq=False)
class Applicants:
    """Hold the people of the study, and say whether they are real.

    Arguments:
        people: A row a person: "paid_back" (bool) and ten features,
            as `clean` gives them.
        steps: How many people each step of the cleaning concerned;
            empty for a stand-in.
        is_real: False for people who were drawn or invented.
        scaler: Mean and standard deviation of each feature, each with
            shape (10,), by which they are standardised; None: those
            of their training split.
    Raises: ValueError: a column is missing or impossible, or the
        scaler has another shape.
    """

    people: pd.DataFrame
    steps: Mapping[str, int]
    is_real: bool
    scaler: tuple[Tensor, Tensor] | None = None

    def __post_init__(self) -> None:
        check(self.people)
        for name, values in zip(("mean", "std"), self.scaler or (), strict=False):
            checks.shape(f"{name} of the scaler", values, (len(COLUMNS),))
        if "paid_back" not in self.people or self.people["paid_back"].dtype != bool:
            raise ValueError("people must have a column paid_back of booleans.")

    @property
    def heading(self) -> str:
        """Return what stands over tables and figures: how many people, and whether real."""
        n_people = len(self.people)
        if self.is_real:
            return f"{n_people:,} real applicants"
        return f"SYNTHETIC STAND-IN, {n_people:,} drawn people"


def applicants(
    path: str | Path,
    n_people: int,
    seed: int,
    or_stand_in: bool = False,
    models: Path = MODELS,
) -> Applicants:
    """Return the people of the study; without data a stand-in, if that is asked for.

    A stand-in is standardised as the real people were, so that the
    models of the folder can be used for it.

    Arguments:
        path: As for `find`.
        n_people: How many of them, drawn without replacement; all if
            there are not more.
        seed: Of who is drawn.
        or_stand_in: Whether to draw people by `stand_in` where there
            is no data.
        models: Folder with the models of the stand-in: the committed
            ones.
    Raises: ValueError: there is no data, and a stand-in was not asked
        for.
    """
    checks.positive_int(n_people=n_people)
    file = find(path)
    if file is not None:
        people, steps = clean(read(file))
        drawn = people.sample(min(n_people, len(people)), random_state=seed).sort_index()
        return Applicants(drawn, steps, is_real=True)
    if not or_stand_in:
        raise ValueError(
            f"The data of Give Me Some Credit was not found. {HOW_TO_GET_IT} "
            "Or ask for a synthetic stand-in by or_stand_in=True: people drawn from the "
            "flow that was fitted to the real ones."
        )
    scaling, _ = scaler(models)
    drawn = stand_in(
        CausalFlow.load(models, "gmsc_flow"),
        NetworkClassifier.load(models, "gmsc_classifier"),
        scaling,
        n_people,
        seed,
    )
    return Applicants(drawn, {}, is_real=False, scaler=(scaling["mean"], scaling["std"]))


def scaler(models: Path) -> tuple[dict[str, Tensor], str]:
    """Return the scaler in a folder of models, and whose it is: "real" or "synthetic".

    Arguments:
        models: Folder with gmsc_scaler.
    Returns: "mean" and "std" in the units of the data, with shape
        (10,), and the "weight" of a default in the classifier's loss;
        and whether real people, or a stand-in, were scaled.
    Raises: ValueError: there is no such file, or it holds something
        else.
    """
    tensors, settings = io.load(models, "gmsc_scaler")
    with io.loading("scaler", models, "gmsc_scaler"):
        checks.shape("weight", tensors["weight"], ())
        for name in ("mean", "std"):
            checks.shape(name, tensors[name], (len(COLUMNS),))
        for name in ("std", "weight"):
            if not (tensors[name] > 0).all():
                raise ValueError(
                    f"{name} must be above zero, got {tensors[name].tolist()}."
                )
        checks.one_of(
            "kind of people", [str(settings.get("people"))], ("real", "synthetic")
        )
    return tensors, settings["people"]


def stand_in(
    flow: CausalFlow,
    classifier: Classifier,
    scaler: Mapping[str, Tensor],
    n_people: int,
    seed: int,
) -> pd.DataFrame:
    """Draw synthetic people in the place of real ones, with the columns of `clean`.

    They are drawn from a flow that was fitted to the real ones, and
    made whole. Nobody's label is known, so it is drawn too: its odds
    are the classifier's odds of a default, divided by the weight that
    defaults had in the classifier's loss.

    Arguments:
        flow, classifier: The models gmsc_flow and gmsc_classifier.
        scaler: The model gmsc_scaler: "mean" and "std" (D,), and the
            "weight" of a default.
        n_people: How many people are drawn.
        seed: Of the people and of their labels.
    Raises: ValueError: n_people is no whole number above zero; the
        scaler lacks a part.
    """
    checks.positive_int(n_people=n_people)
    if missing := [name for name in ("mean", "std", "weight") if name not in scaler]:
        raise ValueError(
            f"The scaler has no {missing[0]!r}: expected mean, std and weight."
        )
    for what, features in (("flow", flow.features), ("classifier", classifier.features)):
        if features != tuple(COLUMNS):
            raise ValueError(
                f"The {what} is for the features {', '.join(features)}: expected "
                f"gmsc_{what}, for {', '.join(COLUMNS)}."
            )
    rng = np.random.default_rng(seed)
    noise = torch.from_numpy(rng.standard_normal((n_people, len(COLUMNS))))
    x = flow.predict(noise.to(flow.dtype))
    in_units = whole(x.double() * scaler["std"] + scaler["mean"])
    drawn = pd.DataFrame(in_units.numpy(), columns=list(COLUMNS))
    chance = torch.sigmoid(classifier.logit(x) + scaler["weight"].log())  # of paying back
    drawn.insert(0, "paid_back", rng.random(n_people) < chance.numpy())
    return drawn


def graph(
    remove: Sequence[Sequence[str]] = (), reverse: Sequence[Sequence[str]] = ()
) -> Graph:
    """Return the published causal graph, or another one as changes of it.

    Arguments:
        remove, reverse: Edges, pairs [cause, effect], that are
            removed or turned round.
    Raises: ValueError: the published graph has no such edge, an edge
        is changed twice, or features would cause each other in a
        circle.
    Source: graph of PEAR (De Toni et al.), Fig. 6 of
        arXiv:2604.08030.

    Example:
        >>> graph().parents["debt_ratio"]
        ('age', 'credit_lines', 'real_estate_loans')
        >>> graph(remove=[["age", "debt_ratio"]]).parents["debt_ratio"]
        ('credit_lines', 'real_estate_loans')
    """
    ours = {theirs: name for name, theirs in COLUMNS.items()}
    table = io.read_csv(PARAMS / "gmsc_edges.csv", ["parent", "child"])
    for column in (table.parent, table.child):
        checks.one_of("feature in gmsc_edges.csv", column, tuple(ours))
    published = [(ours[a], ours[b]) for a, b in zip(table.parent, table.child, strict=True)]
    edges = list(published)
    for pairs in (remove, reverse):
        if not isinstance(pairs, list | tuple):
            raise ValueError(f"Expected a list of edges [cause, effect], got {pairs!r}.")
    for pair in [*remove, *reverse]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"Expected an edge as a pair [cause, effect], got {pair!r}.")
        checks.one_of("feature", pair, tuple(COLUMNS))
        cause, effect = pair
        if (cause, effect) not in published:
            raise ValueError(
                f"There is no edge from {cause} to {effect} "
                "that could be removed or turned round."
            )
        if (cause, effect) not in edges:
            raise ValueError(f"The edge from {cause} to {effect} is changed twice.")
        edges.remove((cause, effect))
    return Graph.from_edges(list(COLUMNS), edges + [(b, a) for a, b in reverse])


def graphs(path: Path = PARAMS / "gmsc_graphs.yaml") -> dict[str, Graph]:
    """Return the causal graphs of a file by name: changes of the published one.

    Arguments:
        path: A YAML file with entries `name: {remove: [...], reverse:
            [...]}`, of which one of the two may be missing.
    Raises: ValueError: there is no such file, or an entry is no such
        change, see `graph`.
    """
    by_name = {}
    for name, change in io.load_yaml(path).items():
        with io.in_file(path, f"See {name}."):
            if not isinstance(change, dict):
                raise ValueError(f"Expected remove and reverse, got {change!r}.")
            checks.one_of("change of a graph", change, ("remove", "reverse"))
            by_name[name] = graph(**change)
    return by_name


def dequantised(people: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Return features that a density can be fitted to, counts and atoms spread over cells.

    A count n becomes a number in [n - 1/2, n + 1/2). A value at a
    cap, or a utilization, debt ratio or income of exactly zero, is
    spread evenly over `SPREAD` of its cap beyond the end.

    Arguments:
        people: The ten features, as `clean` gives them; other columns
            are left out.
        rng: Of the noise.
    Returns: Features in the order of `COLUMNS`, in units of the data,
        with shape (N, 10).
    Raises: ValueError: a column is missing, or holds values that
        nobody can have.

    Example:
        >>> people = pd.DataFrame(dict.fromkeys(COLUMNS, [0.0, 1.0])).assign(age=[40, 41])
        >>> spread = dequantised(people, np.random.default_rng(0))
        >>> spread[:, 0].round(2), (spread[:, 0] + 0.5).astype(int)
        (array([40.14, 40.77]), array([40, 41]))
    """
    check(people)
    columns = []
    for name in COLUMNS:
        value, noise = people[name].to_numpy(dtype=float), rng.random(len(people))
        if name in COUNTS:
            columns.append(value + noise - 0.5)
        else:
            cap, width = CAPS[name], SPREAD * CAPS[name]
            ends = [value >= ALMOST * cap, value == 0]
            columns.append(np.select(ends, [cap + width * noise, -width * noise], value))
    return np.stack(columns, -1)


def whole(x: Tensor) -> Tensor:
    """Return features as people have them, which undoes `dequantised`.

    Counts are whole, and all values are between zero and the most
    that anybody has.

    Arguments:
        x: Features in the units of the data, with shape (*, 10).
    Returns: Features with the same shape.
    Raises: ValueError: x has another number of features.

    Example:
        >>> one = torch.tensor([40.2, -0.3, 17_200, 7.4, 0.9, 0.6, -0.01, 0, 0, 19])
        >>> [round(value, 2) for value in whole(one).tolist()]
        [40.0, 0.0, 17000.0, 7.0, 1.0, 0.6, 0.0, 0.0, 0.0, 18.0]
    """
    checks.shape("x", x, (*x.shape[:-1], len(COLUMNS)))
    return DISCRETISATION(x)


def population(applicants: Applicants, seed: int = 0) -> Population:
    """Return the population, whose name says whether its people are real.

    It is one sample, whose splits serve the classifier, the flow and
    recourse alike.

    Arguments:
        applicants: As `applicants` gives them.
        seed: Of who is in which split, and of the noise that spreads
            counts over cells.
    Raises: ValueError: a split is empty.
    Source: sections 5.2 and C.3 of arXiv:2604.08030; graph of PEAR
        (De Toni et al.); spreading is ours.
    """
    if not isinstance(applicants, Applicants):
        raise ValueError(
            f"Expected Applicants, got {type(applicants).__name__}. Say of a table of "
            "people whether they are real: Applicants(people, steps={}, is_real=...)."
        )
    people = applicants.people
    order, noise = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2)
    )
    people = people.iloc[order.permutation(len(people))]
    in_units = torch.from_numpy(dequantised(people, noise))
    paid_back = torch.from_numpy(people["paid_back"].to_numpy(copy=True))
    rows = data.split(in_units, FOR_RECOURSE)
    title = "Give Me Some Credit"
    return Population.from_units(
        title if applicants.is_real else f"{title}, synthetic stand-in",
        KINDS,
        graph(),
        data.for_every_use({name: in_units[of] for name, of in rows.items()}),
        data.for_every_use({name: paid_back[of] for name, of in rows.items()}),
        discretisation=DISCRETISATION,
        scaler=applicants.scaler,
    )


def check_models(applicants: Applicants, models: Path) -> None:
    """Raise ValueError if these are real people and the models know a stand-in only.

    A stand-in has the scaler of the real people, so that models do not
    tell the two apart by it.

    Arguments:
        applicants: Who is asked about.
        models: Folder with gmsc_scaler, which says what was fitted.
    """
    _, fitted_to = scaler(models)
    if applicants.is_real and fitted_to == "synthetic":
        raise ValueError(
            f"The data is here, but the models in {models} were fitted to the stand-in: "
            f"remove {models}/gmsc_* and run the batch again."
        )


def problem(applicants: Applicants, models: Path = MODELS, seed: int = 0) -> Problem:
    """Return these people's population with the fitted classifier and flow.

    Arguments:
        applicants: As `applicants` gives them.
        models: Folder with gmsc_classifier and gmsc_flow: the
            committed ones.
        seed: As for `population`.
    Raises: ValueError: the models were fitted to another population,
        or to a stand-in for these real people.
    """
    check_models(applicants, models)
    drawn = population(applicants, seed)
    return Problem(
        drawn,
        NetworkClassifier.load(models, "gmsc_classifier", drawn.fingerprint),
        CausalFlow.load(models, "gmsc_flow", drawn.fingerprint),
    )


def in_words(before: Tensor, after: Tensor, columns: Sequence[int]) -> str:
    """Return in words what one person has in these columns, and to what that changes.

    Arguments:
        before, after: Features in units of the data, see `whole`,
            each with shape (10,).
        columns: Which of the ten features are described.
    Raises: ValueError: another shape, or a column that is not there.

    Example:
        >>> before = torch.tensor([40.0, 2, 4_000, 7, 1, 0.9, 0.35, 2, 0, 0])
        >>> after = before.clone()
        >>> after[5] = 0.25
        >>> in_words(before, after, [0, 5])
        'age 40 years, 90% -> 25% of the credit limit in use'
    """
    for name, x in (("before", before), ("after", after)):
        checks.people(name, x, tuple(COLUMNS))
        checks.shape(name, x, (len(COLUMNS),))
    checks.one_of("column", columns, range(len(COLUMNS)))
    phrases = []
    for j in columns:
        name = list(COLUMNS)[j]
        values = (abs(float(value)) for value in (before[j], after[j]))  # no "-0 loans"
        shown = [
            f"{value:.0%}" if CAPS.get(name) == 1 else f"{value:,.0f}" for value in values
        ]
        phrases.append(PHRASES[name].format(" -> ".join(dict.fromkeys(shown))))
    return ", ".join(phrases)

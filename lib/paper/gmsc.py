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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
import torch
from torch import Tensor

from lib import io
from lib.io import MODELS, PARAMS
from lib.method import data
from lib.method.classifier import NetworkClassifier
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

FEATURES = io.read_csv(PARAMS / "gmsc_features.csv", index_col="feature")
COLUMNS = FEATURES.column.to_dict()  # our names, in causal order, and those of the csv
KINDS = FEATURES.kind.to_dict()
HIGHEST = FEATURES.highest  # of a count that of anybody, else a cap
LATENESS = ("late_30_to_59", "late_60_to_89", "late_90")
LABEL = "SeriousDlqin2yrs"
SPREAD = 0.05  # width of the cell over which an atom is spread, as a share of the cap
# 7,461 people have a utilization of 0.9999999: they belong to the atom at 1
ALMOST = 0.9999
DISCRETISATION = Discretisation(
    is_whole=torch.tensor(FEATURES.is_count.to_numpy()),
    low=torch.zeros(len(COLUMNS), dtype=torch.float64),
    high=torch.tensor(HIGHEST.to_numpy(dtype=float)),
)


def find(path: str | Path = "", download: bool = True) -> Path | None:
    """Return where the data lies (csv or zip), or None if it is nowhere.

    Arguments:
        path: Where it should lie; "": look in the environment
            variable, then in the cache and (unless download is False)
            on the web.
        download: Whether to try the web at last. None is returned too
            if that fails.
    """
    given = path or os.environ.get(VARIABLE, "")
    if given:
        return Path(given)
    cached = Path(pooch.os_cache("icarma-companion")) / "cs-training.csv.zip"
    if not cached.is_file() and download:
        pooch.get_logger().setLevel("WARNING")
        web = pooch.HTTPDownloader(timeout=20)
        # pooch moves a file to its place at the end, so that there is never half a download
        with suppress(OSError, ValueError):
            pooch.retrieve(MIRROR, None, cached.name, cached.parent, downloader=web)
    return cached if cached.is_file() else None


def read(path: str | Path) -> pd.DataFrame:
    """Return the 150,000 rows of the csv: label and ten features, called as in `COLUMNS`.

    Arguments:
        path: Of the csv, or of a zip that holds it.
    Raises: ValueError: there is no file, or it is not the data.
    """
    if not Path(path).is_file():
        raise ValueError(f"There is no file {path}. {HOW_TO_GET_IT}")
    content = Path(path).read_bytes()
    # what is no zip, or is damaged, does not have the digest
    with suppress(zipfile.BadZipFile, zlib.error, KeyError), zipfile.ZipFile(path) as file:
        content = file.read("cs-training.csv")
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise ValueError(
            f"{path} is not the data: expected a csv with SHA-256 {SHA256}, or a zip of "
            f"it, found {digest}. If it is a download, delete it. {HOW_TO_GET_IT}"
        )
    raw = pd.read_csv(BytesIO(content), index_col=0)
    return raw.rename(columns={theirs: ours for ours, theirs in COLUMNS.items()})


def clean(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the people that can be used: "paid_back" (bool) and the ten features.

    Rows with missing values are dropped. Debt ratio, utilization and
    income are capped. A lateness of 96 or 98 times is a code and no
    count: it becomes 18 times, the most of anybody.

    Arguments:
        raw: The label and the ten features, called as in `COLUMNS`;
            it stays as it is.
    Raises: ValueError: a column is missing, holds no numbers or
        negative ones; the label is not 0 or 1.
    Source: the cleaning of PEAR (De Toni et al.), as in appendix C of
        arXiv:2604.08030.

    Example:
        >>> raw = pd.DataFrame(dict.fromkeys(COLUMNS, [0, 0, 0])).assign(
        ...     age=[30, 40, 50],
        ...     income=[3_000, 20_000, np.nan],
        ...     utilization=0.5,
        ...     debt_ratio=0.5,
        ...     late_90=[0, 98, 0],
        ...     SeriousDlqin2yrs=[0, 1, 0],
        ... )
        >>> clean(raw)[["paid_back", "age", "income", "late_90"]]
           paid_back  age   income  late_90
        0       True   30   3000.0        0
        1      False   40  17000.0       18
    """
    people = data.to_table(raw, [LABEL, *COLUMNS]).dropna().reset_index(drop=True)
    if not people[LABEL].isin([0, 1]).all():
        raise ValueError(f"{LABEL} must be 1 for a serious delinquency and 0 for none.")
    if (data.values(people, list(COLUMNS)) < 0).any():
        raise ValueError("There are negative values: drop or repair those rows.")
    features = people[list(COLUMNS)].clip(upper=HIGHEST, axis=1)
    features.insert(0, "paid_back", people[LABEL] == 0)
    return features


@dataclass(frozen=True, eq=False)
class Applicants:
    """Hold the people of the study, and say whether they are real.

    Arguments:
        people: A row a person: "paid_back" (bool) and ten features,
            as `clean` gives them.
        is_real: False for people who were drawn or invented.
        scaler: Mean and standard deviation of each feature, each with
            shape (10,), by which they are standardised; None: those
            of their training split.
    """

    people: pd.DataFrame
    is_real: bool
    scaler: tuple[Tensor, Tensor] | None = None

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
    file = find(path)
    if file is not None:
        people = clean(read(file))
        drawn = people.sample(min(n_people, len(people)), random_state=seed).sort_index()
        return Applicants(drawn, is_real=True)
    if not or_stand_in:
        raise ValueError(
            f"The data of Give Me Some Credit was not found. {HOW_TO_GET_IT} "
            "Or ask for a synthetic stand-in by or_stand_in=True: people drawn from the "
            "flow that was fitted to the real ones."
        )
    return stand_in(models, n_people, seed)


def scaler(models: Path) -> tuple[dict[str, Tensor], str]:
    """Return the scaler in a folder of models, and whose it is: "real" or "synthetic".

    Arguments:
        models: Folder with gmsc_scaler.
    Returns: "mean" and "std" in the units of the data, with shape
        (10,), and the "weight" of a default in the classifier's loss;
        and whether real people, or a stand-in, were scaled.
    """
    tensors, settings = io.load(models, "gmsc_scaler")
    return tensors, settings["people"]


def stand_in(models: Path, n_people: int, seed: int) -> Applicants:
    """Draw synthetic people in the place of real ones.

    They are drawn from a flow that was fitted to the real ones, and
    made whole. Nobody's label is known, so it is drawn too: its odds
    are the classifier's odds of a default, divided by the weight that
    defaults had in the classifier's loss.

    Arguments:
        models: Folder with gmsc_flow, gmsc_classifier and
            gmsc_scaler.
        n_people: How many people are drawn.
        seed: Of the people and of their labels.
    """
    flow = CausalFlow.load(models, "gmsc_flow")
    classifier = NetworkClassifier.load(models, "gmsc_classifier")
    tensors, _ = scaler(models)
    mean, std = tensors["mean"], tensors["std"]
    rng = np.random.default_rng(seed)
    noise = torch.from_numpy(rng.standard_normal((n_people, len(COLUMNS))))
    x = flow.predict(noise.to(flow.dtype))
    in_units = DISCRETISATION(x.double() * std + mean)
    drawn = pd.DataFrame(in_units.numpy(), columns=list(COLUMNS))
    chance = torch.sigmoid(classifier.logit(x) + tensors["weight"].log())  # of paying back
    drawn.insert(0, "paid_back", rng.random(n_people) < chance.numpy())
    return Applicants(drawn, is_real=False, scaler=(mean, std))


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
    table = io.read_csv(PARAMS / "gmsc_edges.csv", ["parent", "child"])
    edges = list(table.itertuples(index=False, name=None))
    for cause, effect in [*remove, *reverse]:
        if (cause, effect) not in edges:
            raise ValueError(
                f"There is no edge from {cause} to {effect} "
                "that could be removed or turned round."
            )
        edges.remove((cause, effect))
    return Graph.from_edges(list(COLUMNS), edges + [(b, a) for a, b in reverse])


def graphs() -> dict[str, Graph]:
    """Return the causal graphs of params/gmsc_graphs.yaml by name.

    Its entries are changes of the published one, `name: {remove: [...],
    reverse: [...]}`, of which one of the two may be missing.

    Raises: ValueError: an edge can't be changed, see `graph`.
    """
    changes = io.load_yaml(PARAMS / "gmsc_graphs.yaml")
    return {name: graph(**change) for name, change in changes.items()}


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

    Example:
        >>> people = pd.DataFrame(dict.fromkeys(COLUMNS, [0.0, 1.0])).assign(age=[40, 41])
        >>> spread = dequantised(people, np.random.default_rng(0))
        >>> spread[:, 0].round(2), (spread[:, 0] + 0.5).astype(int)
        (array([40.14, 40.77]), array([40, 41]))
    """
    values = people[list(COLUMNS)].to_numpy(dtype=float).T  # (10, N)
    noise = rng.random(values.shape)
    cap, is_count = (FEATURES[[name]].to_numpy() for name in ("highest", "is_count"))
    beyond = SPREAD * cap * noise
    cells = [is_count, values >= ALMOST * cap, values == 0]
    spread = np.select(cells, [values + noise - 0.5, cap + beyond, -beyond], values)
    return spread.T.copy()


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
    # a stand-in has the scaler of the real people, so that no fingerprint tells them apart
    _, fitted_to = scaler(models)
    if applicants.is_real and fitted_to == "synthetic":
        raise ValueError(
            f"The data is here, but the models in {models} were fitted to the stand-in: "
            f"remove {models}/gmsc_* and run the batch again."
        )
    drawn = population(applicants, seed)
    return Problem(
        drawn,
        NetworkClassifier.load(models, "gmsc_classifier", drawn.fingerprint),
        CausalFlow.load(models, "gmsc_flow", drawn.fingerprint),
    )


def in_words(before: Tensor, after: Tensor, columns: Sequence[int]) -> str:
    """Return in words what one person has in these columns, and to what that changes.

    Arguments:
        before, after: Possible features in units of the data, each
            with shape (10,).
        columns: Which of the ten features are described.

    Example:
        >>> before = torch.tensor([40.0, 2, 4_000, 7, 1, 0.9, 0.35, 2, 0, 0])
        >>> after = before.clone()
        >>> after[5] = 0.25
        >>> in_words(before, after, [0, 5])
        'age 40 years, 90% -> 25% of the credit limit in use'
    """
    phrases = []
    for j in columns:
        form = ".0%" if HIGHEST.iloc[j] == 1 else ",.0f"
        values = (abs(float(value)) for value in (before[j], after[j]))  # no "-0 loans"
        shown = dict.fromkeys(format(value, form) for value in values)
        phrases.append(FEATURES.phrase.iloc[j].format(" -> ".join(shown)))
    return ", ".join(phrases)

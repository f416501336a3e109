"""The paper's numbers with ours beside them, cell by cell.

What its claims say of such numbers is judged in `verdicts`.
"""

import numpy as np
import pandas as pd

from lib.base import checks, csv_files
from lib.base.files import PUBLISHED
from lib.studies.estimates import STANDARD_ERRORS, Estimate, by_person, ratio

# columns that tell the rows of one method apart
SETTING = {
    1: ["n_individually_actionable"],
    2: ["constraints", "cost_profile"],
    3: ["constraints", "cost_profile"],
    5: ["bias", "n_individually_actionable"],
    6: ["distribution", "n_individually_actionable", "plausibility_constraint"],
}
TABLES = {
    1: "icarma_table1",
    2: "icarma_table2",
    3: "icarma_table3",
    5: "icarma_table5",
    6: "icarma_table6",
}
DATASETS = ("Loan", "GMSC")

# what a row of one person is of
OF_WHOM = ["setting", "method", "member", "seed", "reported"]

# of which column of `metrics.per_person` each metric is the mean, and over which people;
# None: over all. `metrics.summarise` says why.
MEAN_OF: dict[str, tuple[str, str | None]] = {
    "validity": ("valid", None),
    "plausibility": ("plausible", "has_recourse"),
    "joint": ("joint", None),
    "hap": ("hard_action", "has_recourse"),
    "cost_mean": ("cost", "valid"),
    "n_acted": ("n_acted", "has_recourse"),
}
METRICS = tuple(MEAN_OF)
SEARCHES = ("oracle", "search")  # methods without networks, and so without seeds


def published(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return the rows of one of the paper's tables, without the lost columns.

    Arguments:
        number: Of the table, a key of `TABLES`.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting and method. The column "setting"
        joins what tells the rows of one method apart, for instance
        "soft, linear".
    Raises: ValueError: the table or the data set is unknown.
    Source: published/, from arXiv:2604.08030.
    Example:
        >>> table = published(1)
        >>> table[table.method == "iCARMA"][["setting", "validity", "plausibility"]].head(2)
           setting  validity  plausibility
        1  all (4)     0.999         0.886
        3        3     0.995         0.689
    """
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("data set", [dataset], DATASETS)
    rows = csv_files.read(
        PUBLISHED / f"{TABLES[number]}.csv", dtype={"n_individually_actionable": str}
    )
    rows = rows[rows.dataset == dataset].drop(
        columns=["table", "dataset", "cost_mean", "cost_sd", "note"]
    )
    rows.insert(0, "setting", rows[SETTING[number]].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)


def _check_rows(people: pd.DataFrame) -> None:
    """Raise ValueError unless there are rows, and a member answers a person once."""
    missing = [name for name in [*OF_WHOM, "person"] if name not in people]
    if missing or not len(people):
        raise ValueError(
            f"Expected rows of people with the columns {', '.join(OF_WHOM)} and person, "
            f"got {len(people)} rows without {', '.join(missing) or 'anybody in them'}. "
            "tables.recommend and tables.search make them."
        )
    twice = people.duplicated(["setting", "method", "member", "person"])
    if twice.any():
        first = people[twice].iloc[0]
        raise ValueError(
            f"Member {first.member} of {first.method} answers person {first.person} more "
            f"than once in {first.setting!r}. Were rows of two stacks, or the same rows "
            "twice, joined under one method? Give each stack a method of its own."
        )


def estimate(people: pd.DataFrame, metric: str) -> Estimate:
    """Return a metric's mean over the members of one setting, and how sure it is.

    Arguments:
        people: Rows of one setting and method, as `tables.recommend`
            and `tables.search` give them.
        metric: One of `METRICS`.
    Raises: ValueError: the metric is unknown, a member answers one
        person twice, or members answer different people.
    Example:
        Two members, three people; the second member helps one more:

        >>> rows = pd.DataFrame({"member": [0, 0, 0, 1, 1, 1], "person": [0, 1, 2] * 2})
        >>> rows["joint"] = [True, False, False, True, True, False]
        >>> found = estimate(rows, "joint")
        >>> round(found.value, 3), round(found.lowest, 3), round(found.highest, 3)
        (0.5, 0.333, 0.667)
    """
    return ratio(*sums(people, metric))


def sums(people: pd.DataFrame, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what a metric is the ratio of: two arrays with shape (M, N), for M members.

    `estimates.ratio` and `estimates.contrast` take them.

    Arguments:
        people: Rows of one setting and method, as `tables.recommend`
            and `tables.search` give them.
        metric: One of `METRICS`.
    Returns: What is added up above and below; zero, in both, for
        people who do not count.
    Raises: ValueError: as for `estimate`.
    Example:
        Nothing is recommended to the second person, who does not
        count:

        >>> rows = pd.DataFrame({"member": 0, "person": [0, 1]})
        >>> rows = rows.assign(hard_action=[True, False], has_recourse=[True, False])
        >>> above, below = sums(rows, "hap")
        >>> above.tolist(), below.tolist()
        ([[1.0, 0.0]], [[1.0, 0.0]])
    """
    checks.known("metric", [metric], METRICS)
    column, base = MEAN_OF[metric]
    values = by_person(people, column)
    counted = np.ones_like(values) if base is None else by_person(people, base)
    return values * counted, counted


def beside_paper(people: pd.DataFrame, number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return one of the paper's tables with ours beside it, both ways and with errors.

    What is compared is the *mean over seeds*: it says what the method
    gives, whichever network one happens to have. The member that
    validation chose stands beside it, as the paper reports one model.
    A difference in either direction counts, by the same rule for
    every method, setting and metric:

    agrees: |mean - paper| <= 2 standard errors, where the squares
    of three standard errors are added up [R]:

    - se_people, of ours over people (`estimates.ratio`);
    - se_networks, of ours over seeds: standard deviation of the M
      members over the root of M; empty for a search;
    - se_paper, of the paper's number over people. The paper gives
      none. It asked another draw of people than ours, so that its
      number cannot be taken as exact: to do that would call the luck
      of that draw a disagreement. Ours is the binomial one for as
      many people as we ask.

    What is left out: the paper's number is of one network, the best
    of ten on validation people, and how far that network lies from
    the mean of its ten is unknown. So look at lowest and highest,
    too: where the paper's number lies between them, the difference
    may be one of networks and not of methods.

    Arguments:
        people: Rows as `tables.recommend` gives them, of which one
            member is reported, and as `tables.search` does.
            Settings are named as in `published`.
        number: Of the table.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting, method and metric, with the
        columns

        - table, setting, method, metric;
        - paper, empty where it gives no number;
        - mean, lowest, highest: of our members; lowest and highest
          are empty for a search;
        - reported: of the member that validation chose;
        - difference: mean less paper;
        - se_people, se_networks, se_paper; agrees.
    Raises: ValueError: the table or the data set is unknown, there
        are no rows, a member answers one person twice, or not
        exactly one member of a method is reported.
    Example:
        >>> good = {"has_recourse": True, "valid": True, "plausible": True, "joint": True}
        >>> row = good | {"hard_action": False, "cost": 1.0, "n_acted": 1}
        >>> row |= {"setting": "2", "method": "iCARMA", "seed": 1000}
        >>> people = pd.DataFrame(
        ...     row | {"member": i, "reported": i == 1, "person": 0, "valid": i > 0}
        ...     for i in range(2)
        ... )
        >>> table = beside_paper(people, number=1).set_index("metric")
        >>> table.loc["validity", ["paper", "mean", "lowest", "reported"]].to_dict()
        {'paper': 0.991, 'mean': 0.5, 'lowest': 0.0, 'reported': 1.0}
    """
    paper = published(number, dataset).set_index(["setting", "method"])
    _check_rows(people)
    shown = [metric for metric in METRICS if metric != "hap" or "hap" in paper]
    rows = []
    for (setting, method), own in people.groupby(["setting", "method"], sort=False):
        of_reported = own[own.member == _reported(own)]
        for metric in shown:
            printed = np.nan
            if metric in paper and (setting, method) in paper.index:
                printed = paper[metric][setting, method]
            rows.append(
                {
                    "table": str(number) if dataset == "Loan" else f"{number}, {dataset}",
                    "setting": setting,
                    "method": method,
                    "metric": metric,
                }
                | _compared(own, of_reported, metric, printed)
            )
    return pd.DataFrame(rows)


def _compared(
    own: pd.DataFrame, of_reported: pd.DataFrame, metric: str, printed: float
) -> dict[str, float | bool | None]:
    """Return the printed number and ours, in the columns of `beside_paper`."""
    ours, method = estimate(own, metric), own.method.iloc[0]
    difference = ours.value - printed
    se_paper = np.nan
    if np.isfinite(printed):
        _, base = MEAN_OF[metric]
        n_members = own.member.nunique()
        n_people = (len(own) if base is None else own[base].sum()) / n_members
        se_paper = np.sqrt(printed * (1 - printed) / n_people) if n_people else np.nan
    error = np.hypot(ours.standard_error, se_paper)
    return {
        "paper": printed,
        "mean": ours.value,
        "lowest": np.nan if method in SEARCHES else ours.lowest,
        "highest": np.nan if method in SEARCHES else ours.highest,
        "reported": estimate(of_reported, metric).value,
        "difference": difference,
        "se_people": ours.se_people,
        "se_networks": ours.se_networks,
        "se_paper": se_paper,
        "agrees": bool(abs(difference) <= STANDARD_ERRORS * error)
        if np.isfinite(difference)
        else None,
    }


def _reported(own: pd.DataFrame) -> int:
    """Return the id of the member that is reported in a setting."""
    reported = own[own.reported].member.unique()
    if len(reported) != 1:
        raise ValueError(
            f"{len(reported)} of {own.member.nunique()} members of {own.method.iloc[0]} "
            f"are reported in {own.setting.iloc[0]!r}, expected one. Choose it on "
            "validation people, with tables.best_member, and give its id to "
            "tables.recommend as `chosen`."
        )
    return reported[0]

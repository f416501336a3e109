"""What the paper claims in sections 5.3, 5.4 and D, asked of its numbers and of ours.

Each claim is a range for a difference of two cells, or of their costs.
The paper's own printed numbers are asked first, then the search and
each set of networks. Where the paper says "slightly", "closely" or
"roughly", the range is ours [R]: `NEAR`, `SLIGHT`, `ROUGHLY`.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from lib.paper.claims import Estimate, Verdicts, by_person, contrast, published, sums
from lib.paper.designs import BIASES
from lib.paper.stacks import MIXED, SOFT

NEAR = 0.05  # shares that match closely differ by no more
SLIGHT = 0.15  # what differs slightly differs by no more
ROUGHLY = (0.4, 0.6)  # a half
DEARER = 1.5  # times the cost: a moderate increase, at most
FEWER = ("all (4)", "3", "2", "1")
PROFILES = ("concave", "linear", "convex")
CO, RCO = BIASES
SEARCH = "search"


class Rows:
    """Hold the rows of one table of the paper, by who answers and setting.

    Arguments:
        people: As `tables.evaluate` gives them, of a search and of sets
            of networks.
        number, dataset: Of the paper's table, as for
            `claims.published`.
    """

    def __init__(self, people: pd.DataFrame, number: int, dataset: str = "Loan") -> None:
        who = people.networks.where(people.networks != "", SEARCH)
        keys = [who.rename("who"), people.setting]
        self._rows = dict(iter(people.groupby(keys, sort=False)))
        self._paper = published(number, dataset).set_index(["method", "setting"])
        self.who = list(dict.fromkeys(who))

    @property
    def networks(self) -> list[str]:
        """The names of the sets of networks."""
        return [who for who in self.who if who != SEARCH]

    def has(self, who: str, *settings: str) -> bool:
        """Return whether somebody answers in all of these settings."""
        return all((who, setting) in self._rows for setting in settings)

    def of(self, who: str, setting: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return what a metric is the ratio of, as `claims.sums`."""
        return sums(self._rows[who, setting], metric)

    def among_answered(
        self, who: str, setting: str, values: Callable[[pd.DataFrame], pd.Series]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for what is computed of the rows of people with a recourse."""
        rows = self._rows[who, setting]
        counted = by_person(rows, "has_recourse")
        numerator = by_person(rows.assign(value=values(rows)), "value")
        return numerator * counted, counted

    def paper(self, who: str, setting: str, metric: str) -> float:
        """Return the paper's number; NaN where it prints none."""
        method = "oracle" if who == SEARCH else "iCARMA"
        if metric not in self._paper or (method, setting) not in self._paper.index:
            return np.nan
        return float(self._paper.loc[(method, setting), metric])

    def change(
        self,
        metric: str,
        after: tuple[str, str],
        before: tuple[str, str],
        times: float = 1.0,
    ) -> tuple[Estimate, float]:
        """Return ours and the paper's of a metric of (who, setting), less that before.

        What was before is multiplied by `times`.
        """
        ours = contrast(
            (1.0, *self.of(*after, metric)), (-times, *self.of(*before, metric))
        )
        return ours, self.paper(*after, metric) - times * self.paper(*before, metric)


def hard(people: pd.DataFrame) -> Verdicts:
    """Return the claims of section 5.3.

    Arguments:
        people: Rows of table 1.
    """
    rows, verdicts = Rows(people, 1), Verdicts()
    four = "all (4)"
    for who in rows.networks:
        network, by_search = (who, four), (SEARCH, four)
        claim = "5.3: with all four, iCARMA closely matches the oracle"
        ours, paper = rows.change("validity", network, by_search)
        verdicts.ask(claim, who, "validity", ours, -NEAR, NEAR, paper)
        ours, _ = rows.change("cost_mean", network, by_search, 1.25)
        verdicts.ask(claim, who, "not dearer by a quarter", ours, below=0.0)
        claim = "5.3: the oracle is slightly less valid, iCARMA slightly less plausible"
        ours, paper = rows.change("validity", network, by_search)
        verdicts.ask(claim, who, "validity", ours, 0.0, SLIGHT, paper)
        ours, paper = rows.change("plausibility", network, by_search)
        verdicts.ask(claim, who, "plausibility", ours, -SLIGHT, 0.0, paper)
    for who in rows.who:
        metrics = ["validity"] if who == SEARCH else ["validity", "plausibility"]
        for metric in metrics:
            steps = [(rows.of(who, k, metric), rows.paper(who, k, metric)) for k in FEWER]
            for (k, fewer), (before, after) in zip(
                pairwise(FEWER), pairwise(steps), strict=True
            ):
                claim = "5.3: validity and plausibility fall with fewer features"
                ours = contrast((1.0, *after[0]), (-1.0, *before[0]))
                what = f"{metric}, {k} to {fewer}"
                verdicts.ask(claim, who, what, ours, below=0.0, paper=after[1] - before[1])
            claim = "5.3: and the more so, the fewer are left"
            first, second, third, last = steps
            ours = contrast(
                (1.0, *third[0]), (-1.0, *last[0]), (-1.0, *first[0]), (1.0, *second[0])
            )
            paper = third[1] - last[1] - first[1] + second[1]
            verdicts.ask(claim, who, metric, ours, above=0.0, paper=paper)
    for who in rows.who:
        claim, metric = (
            ("5.3: with two, the oracle's validity is nearly half", "validity")
            if who == SEARCH
            else ("5.3: with two, iCARMA's plausibility is roughly half", "plausibility")
        )
        for what, times, side in (
            ("at least 0.4 of it", ROUGHLY[0], {"above": 0.0}),
            ("at most 0.6 of it", ROUGHLY[1], {"below": 0.0}),
        ):
            ours, paper = rows.change(metric, (who, "2"), (who, four), times)
            verdicts.ask(claim, who, what, ours, paper=paper, **side)
    claim = "5.3: iCARMA stays more valid, and is less plausible"
    for who in rows.networks:
        for k in ("3", "2", "1", "random"):
            ours, paper = rows.change("validity", (who, k), (SEARCH, k))
            verdicts.ask(claim, who, f"validity, {k}", ours, above=0.0, paper=paper)
            ours, paper = rows.change("plausibility", (who, k), (SEARCH, k))
            verdicts.ask(claim, who, f"plausibility, {k}", ours, below=0.0, paper=paper)
    _densities(verdicts, rows, "5.3: log-densities fall", "5.3: and spread to low density")
    claim = "5.3: the mean cost rises, and moderately"
    for who in rows.who:
        ours, _ = rows.change("cost_mean", (who, "1"), (who, four))
        verdicts.ask(claim, who, "one feature, less all four", ours, above=0.0)
        ours, _ = rows.change("cost_mean", (who, "1"), (who, four), DEARER)
        verdicts.ask(claim, who, "and less half as much again", ours, below=0.0)
    return verdicts


def _densities(verdicts: Verdicts, rows: Rows, falls: str, spreads: str) -> None:
    """Ask of figure 3 of whoever answers by networks, step by step."""
    for who in rows.networks:
        for k, fewer in pairwise(FEWER):
            after, before = (
                rows.among_answered(who, n, lambda people: people.log_p_cf)
                for n in (fewer, k)
            )
            ours = contrast((1.0, *after), (-1.0, *before))
            verdicts.ask(falls, who, f"{k} to {fewer}", ours, below=0.0)
            after, before = (rows.among_answered(who, n, _is_unlikely) for n in (fewer, k))
            ours = contrast((1.0, *after), (-1.0, *before))
            verdicts.ask(spreads, who, f"{k} to {fewer}", ours, above=0.0)


def _is_unlikely(people: pd.DataFrame) -> pd.Series:
    """Return who ends below the lowest twentieth of where people begin."""
    return people.log_p_cf < people.log_p.quantile(0.05)


def soft(people: dict[str, pd.DataFrame]) -> Verdicts:
    """Return the claims of section 5.4.

    Arguments:
        people: Rows of table 2 under "ranking", of table 3 under
            "score".
    """
    verdicts = Verdicts()
    by_way = {"ranking": Rows(people["ranking"], 2), "score": Rows(people["score"], 3)}
    for way, rows in by_way.items():
        for who in rows.who:
            for profile in PROFILES:
                if rows.has(who, f"{SOFT}, {profile}"):
                    _one_profile(verdicts, rows, who, profile, way)
            _shapes(verdicts, rows, who, way)
    _more_pronounced(verdicts, by_way)
    return verdicts


def _one_profile(verdicts: Verdicts, rows: Rows, who: str, profile: str, way: str) -> None:
    """Ask what section 5.4 says of every profile that is not constant."""
    soft_only, mixed = (who, f"{SOFT}, {profile}"), (who, f"{MIXED}, {profile}")
    for metric in ("validity", "plausibility"):
        if who == SEARCH and metric == "plausibility":
            continue
        ours, paper = rows.change(metric, soft_only, (who, f"{MIXED}, constant"))
        claim = "5.4: soft constraints are milder than hard ones"
        what = f"{metric}, {profile}, {way}"
        verdicts.ask(claim, who, what, ours, above=0.0, paper=paper)
    ours, paper = rows.change("hap", soft_only, (who, f"{SOFT}, constant"), 0.5)
    claim = (
        "5.4: hap is substantially lower than with the constant profile (less than half)"
    )
    if who == SEARCH:
        ours, paper = rows.change("hap", soft_only, (who, f"{SOFT}, constant"))
        claim = "5.4: the oracle's hap is lower too"
    verdicts.ask(claim, who, f"{profile}, {way}", ours, below=0.0, paper=paper)
    if who != SEARCH:
        ours, paper = rows.change("validity", mixed, soft_only)
        claim = "5.4: hard + soft: validity drops mildly"
        what = f"{profile}, {way}"
        verdicts.ask(claim, who, what, ours, above=-NEAR, paper=paper)
        ours, paper = rows.change("hap", mixed, soft_only)
        claim = "5.4: hard + soft: hap rises"
        verdicts.ask(claim, who, what, ours, above=0.0, paper=paper)
    for setting, name in ((soft_only[1], "soft"), (mixed[1], "mixed")):
        ours = contrast((1.0, *rows.of(who, setting, "hap")))
        claim = "5.4: hap is not zero"
        what, paper = f"{name}, {profile}, {way}", rows.paper(who, setting, "hap")
        verdicts.ask(claim, who, what, ours, above=1e-3, paper=paper)


def _shapes(verdicts: Verdicts, rows: Rows, who: str, way: str) -> None:
    """Ask in what the concave and the convex profile differ from the linear one."""
    claim = "5.4: scores: concave is more plausible with more hap, convex lowers both"
    for setting in (SOFT, MIXED):
        if way != "score" or not rows.has(who, f"{setting}, convex"):
            continue
        for profile, side in (("concave", {"above": 0.0}), ("convex", {"below": 0.0})):
            for metric in ("plausibility", "hap"):
                after, before = (who, f"{setting}, {profile}"), (who, f"{setting}, linear")
                ours, paper = rows.change(metric, after, before)
                what = f"{metric}, {profile}, {'soft' if setting == SOFT else 'mixed'}"
                verdicts.ask(claim, who, what, ours, paper=paper, **side)


def _more_pronounced(verdicts: Verdicts, by_way: dict[str, Rows]) -> None:
    """Ask whether profiles lie further apart with scores than with rankings."""
    claim = "5.4: scores make profiles more pronounced"
    shared = [who for who in by_way["score"].networks if who in by_way["ranking"].who]
    for who in shared:
        for setting in (SOFT, MIXED):
            settings = [f"{setting}, {profile}" for profile in PROFILES]
            if not all(rows.has(who, *settings) for rows in by_way.values()):
                continue
            for metric in ("validity", "plausibility", "hap"):
                terms, printed = [], 0.0
                for sign, way in ((1.0, "score"), (-1.0, "ranking")):
                    rows = by_way[way]
                    ratios = {s: rows.of(who, s, metric) for s in settings}
                    means = {
                        s: contrast((1.0, *parts)).value for s, parts in ratios.items()
                    }
                    high, low = max(means, key=means.get), min(means, key=means.get)  # type: ignore[arg-type]
                    terms += [(sign, *ratios[high]), (-sign, *ratios[low])]
                    theirs = [rows.paper(who, s, metric) for s in settings]
                    printed += sign * (max(theirs) - min(theirs))
                what = f"{metric}, {'soft' if setting == SOFT else 'mixed'}"
                verdicts.ask(claim, who, what, contrast(*terms), above=0.0, paper=printed)


def order(people: pd.DataFrame, trained: pd.DataFrame) -> Verdicts:
    """Return the claims of appendix D.1.

    Arguments:
        people: Rows of table 5.
        trained: Those of networks that were trained on `rco`, of
            rankings that lean to `rco`.
    """
    rows, verdicts = Rows(people, 5), Verdicts()
    for who in rows.who:
        metrics = ["validity"] if who == SEARCH else ["validity", "plausibility"]
        for metric in metrics:
            for bias, short in ((CO, "co"), (RCO, "rco")):
                after, before = (who, f"{bias}, 1"), (who, f"{bias}, all (4)")
                ours, paper = rows.change(metric, after, before)
                claim = "D.1: validity and plausibility drop, whatever the order"
                verdicts.ask(claim, who, f"{metric}, {short}", ours, below=0.0, paper=paper)
            for k in ("3", "2", "1", "random"):
                ours, paper = rows.change(metric, (who, f"{RCO}, {k}"), (who, f"{CO}, {k}"))
                claim = "D.1: rco: they drop slightly more"
                verdicts.ask(claim, who, f"{metric}, {k}", ours, -SLIGHT, 0.0, paper)
        for k in ("3", "2", "1", "random"):
            ours, _ = rows.change("cost_mean", (who, f"{RCO}, {k}"), (who, f"{CO}, {k}"))
            verdicts.ask("D.1: rco: costs are higher", who, k, ours, above=0.0)
    claim = "D.1: training on rco does not necessarily help (by less than 0.05)"
    paper_of = published(5).set_index(["method", "setting"])
    by_setting = dict(iter(trained.groupby("setting", sort=False)))
    for metric in ("validity", "plausibility"):
        for k in (*FEWER, "random"):
            setting = f"{RCO}, {k}"
            those, usual = (
                sums(by_setting[setting], metric),
                rows.of("as printed", setting, metric),
            )
            paper = paper_of.loc[("iCARMA (rco-trained)", setting), metric]
            paper -= rows.paper("as printed", setting, metric)
            ours = contrast((1.0, *those), (-1.0, *usual))
            verdicts.ask(
                claim, "as printed", f"{metric}, {k}", ours, below=NEAR, paper=paper
            )
    return verdicts


def ablation(people: pd.DataFrame, distributions: Sequence[str]) -> Verdicts:
    """Return the claims of appendix D.2, of the search.

    Arguments:
        people: Rows of table 6.
        distributions: The names that its settings begin with.
    """
    rows, verdicts = Rows(people, 6), Verdicts()
    for name in distributions:
        for k in ("1", "2"):
            free, demanded = (SEARCH, f"{name}, {k}, No"), (SEARCH, f"{name}, {k}, Yes")
            ours, paper = (
                contrast((1.0, *rows.of(*free, "validity"))),
                rows.paper(*free, "validity"),
            )
            claim, what = (
                "D.2: without the demand, validity is very high (0.85)",
                f"{name}, {k}",
            )
            verdicts.ask(claim, SEARCH, what, ours, above=0.85, paper=paper)
            ours, paper = rows.change("plausibility", free, demanded, 0.5)
            claim = "D.2: and plausibility is low (less than half)"
            verdicts.ask(claim, SEARCH, what, ours, below=0.0, paper=paper)
            ours, _ = rows.change("cost_mean", free, demanded)
            verdicts.ask("D.2: and it costs more", SEARCH, what, ours, above=0.0)
        one, two = (SEARCH, f"{name}, 1, No"), (SEARCH, f"{name}, 2, No")
        if name != "uniform random":
            claim = "D.2: from one to two features, validity and plausibility rise"
            for metric in ("validity", "plausibility"):
                ours, paper = rows.change(metric, two, one)
                verdicts.ask(
                    claim, SEARCH, f"{metric}, {name}", ours, above=0.0, paper=paper
                )
        ours, _ = rows.change("cost_mean", two, one)
        verdicts.ask("D.2: and the cost falls", SEARCH, name, ours, below=0.0)
    return verdicts


def transfer(people: dict[int, pd.DataFrame]) -> Verdicts:
    """Return the claims of appendix D.3.

    Arguments:
        people: Rows of tables 1 and 2 of Give Me Some Credit, by the
            number of the table.
    """
    verdicts = Verdicts()
    one, two = (Rows(people[number], number, "GMSC") for number in (1, 2))
    both = Rows(pd.concat(people.values()), 1, "GMSC")
    linear, three = "soft, linear", "hard (3) + soft, constant"
    three_linear = "hard (3) + soft, linear"
    for who in both.networks:
        for metric in ("validity", "plausibility"):
            ours, paper = one.change(metric, (who, "random"), (who, "all (4)"))
            claim = "D.3: hard constraints lower validity and plausibility"
            verdicts.ask(claim, who, metric, ours, below=0.0, paper=paper)

        def to_soft(metric: str, before: str, who: str = who) -> tuple[Estimate, float]:
            ours, _ = both.change(metric, (who, linear), (who, before))
            return ours, two.paper(who, linear, metric) - one.paper(who, before, metric)

        ours, paper = to_soft("validity", "random")
        verdicts.ask("D.3: soft: validity recovers", who, "", ours, above=0.0, paper=paper)
        ours, _ = to_soft("cost_mean", "all (4)")
        verdicts.ask("D.3: soft: at a higher cost", who, "", ours, above=0.0)
        ours, paper = to_soft("plausibility", "all (4)")
        claim = "D.3: soft: plausibility is slightly below the base case"
        verdicts.ask(claim, who, "", ours, -SLIGHT, 0.0, paper)
        ours, _ = both.change("cost_mean", (who, three_linear), (who, linear))
        verdicts.ask("D.3: hard + soft: the cost decreases", who, "", ours, below=0.0)
        ours, paper = two.change("hap", (who, three_linear), (who, three))
        verdicts.ask(
            "D.3: a linear profile lowers hap", who, "", ours, below=0.0, paper=paper
        )
        # "in contrast": hard constraints against none, soft ones against hard ones
        for setting, base, name, side, other in (
            ("random", "all (4)", "hard constraints lower", {"below": 0.0}, {"above": 0.0}),
            (linear, "random", "soft ones raise", {"above": 0.0}, {"below": 0.0}),
        ):
            after, before = (
                both.among_answered(who, key, lambda rows: rows.log_p_cf)
                for key in (setting, base)
            )
            ours = contrast((1.0, *after), (-1.0, *before))
            verdicts.ask(f"D.3: {name} the log-density", who, "", ours, **side)
            far, before = (
                both.among_answered(who, key, _is_unlikely) for key in (setting, base)
            )
            more = "more" if name.startswith("hard") else "fewer"
            ours = contrast((1.0, *far), (-1.0, *before))
            claim = (
                f"D.3: and {more} people end where hardly anybody is ({name.split()[0]})"
            )
            verdicts.ask(claim, who, "", ours, **other)
    return verdicts

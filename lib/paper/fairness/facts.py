"""What section 5.5 of the paper claims, as numbers that `lib.paper.claims` can ask."""

from collections.abc import Mapping

import numpy as np

from lib.paper.claims import Fact
from lib.paper.estimates import Estimate, contrast
from lib.paper.fairness.gaps import Parts, among, mean

MEASURES = ("cost, L2", "cost, squares", "cost, L1", "log-density")
SCENARIOS = ("baseline", "random", "income", "race")
WHO = {"iCARMA": "as printed", "search": "full search"}  # by method
WORST = "non-white women"
CELLS = (WORST, "white women", "non-white men", "white men")
# of four cells, by how much more race sets women back than men
INTERACTION = tuple(zip((1, -1, -1, 1), CELLS, strict=True))
BY_GENDER, BY_RACE = ((1, "women"), (-1, "men")), ((1, "non-white"), (-1, "white"))


def facts(
    parts: Mapping[tuple[str, str, str], Parts], members: Mapping[str, np.ndarray]
) -> dict[str, dict[str, Fact]]:
    """Return the facts of section 5.5 by name, each by who answers.

    Arguments:
        parts: Of the mean by method (a key of `WHO`), scenario and
            measure, as `gaps.expected` gives them.
        members: Row numbers of the people in each group.
    """

    def of(
        groups: tuple, measure: str, after: str, before: str = "", of_logs: bool = False
    ) -> dict[str, Estimate]:
        """Return a weighted sum of groups' means, or its growth, by who answers."""
        sides = [(1, after), (-1, before)][: 2 if before else 1]
        terms_of = {
            who: [
                (sign * side, *among(parts[method, scenario, measure], members[group]))
                for side, scenario in sides
                for sign, group in groups
            ]
            for method, who in WHO.items()
        }
        return {who: contrast(*terms, of_logs=of_logs) for who, terms in terms_of.items()}

    facts: dict[str, dict] = {}
    for measure in MEASURES:
        by_gender = f"{measure}: women less men"
        for name in SCENARIOS[:3]:
            facts[f"{by_gender}, {name}"] = of(BY_GENDER, measure, name)
        for before, after in (("baseline", "random"), ("random", "income")):
            grown = of(BY_GENDER, measure, after, before)
            facts[f"{by_gender}, {after} less {before}"] = grown
        race = {"non-white less white": BY_RACE, "interaction": INTERACTION}
        race |= {f"{WORST} less {cell}": ((1, WORST), (-1, cell)) for cell in CELLS[1:]}
        for name, groups in race.items():
            facts[f"{measure}: {name}, race"] = of(groups, measure, "race")
        for after in SCENARIOS[2:]:
            for before in SCENARIOS[:2]:
                facts[f"range over cells, {measure}: {after} less {before}"] = {
                    who: contrast(
                        *_range(parts[method, after, measure], members, 1),
                        *_range(parts[method, before, measure], members, -1),
                    )
                    for method, who in WHO.items()
                }
        if measure.startswith("cost"):
            by_men = of(BY_GENDER, measure, "income", of_logs=True)
            facts[f"log of {measure}: women by men, income"] = by_men
    seen = dict.fromkeys(WHO.values(), 0.0)
    for measure in ("cost, L2", "log-density", "helped"):
        for scenario in SCENARIOS[:3]:
            for who, estimate in of(BY_RACE, measure, scenario).items():
                seen[who] += not estimate.low <= 0 <= estimate.high
    facts["gaps by race in other scenarios that leave out zero"] = seen
    sizes = [len(members[cell]) for cell in CELLS]
    smallest = "people in the smallest cell by those in the largest"
    facts[smallest] = dict.fromkeys(WHO.values(), min(sizes) / max(sizes))
    return facts


def _range(of_all: Parts, members: Mapping[str, np.ndarray], sign: int) -> list[tuple]:
    """Return the highest mean of four cells less the lowest, as terms of a contrast.

    Which cells these are is read off the same means, so the range is
    biased upwards.
    """
    value = {cell: mean(of_all, members[cell]).value for cell in CELLS}
    highest, lowest = max(CELLS, key=value.__getitem__), min(CELLS, key=value.__getitem__)
    ends = ((sign, highest), (-sign, lowest))
    return [(times, *among(of_all, members[cell])) for times, cell in ends]

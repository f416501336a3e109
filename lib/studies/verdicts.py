"""Verdicts on claims: asked of the paper's numbers, and of our intervals.

A claim has parts, each a number that should lie in a range. Of ours
the whole interval decides, so that a part holds, does not hold, or is
undecided. Of the paper there is one number or none.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from lib.base import checks
from lib.studies.estimates import Estimate

CANNOT = "cannot be asked"  # of the paper, where it prints no number
TIE = "a tie"  # of the paper, where its two numbers are as far apart as the claim's bound


@dataclass
class Verdicts:
    """Collect the parts of claims and what came of them.

    Arguments:
        parts: A row each: claim, what, paper (its number), in the
            paper, ours, low, high, members (lowest to highest),
            here.
    Example:
        >>> verdicts = Verdicts()
        >>> rise = Estimate(0.3, 0.3, 0.3, se_people=0.05)
        >>> verdicts.ask("hap rises", "linear", rise, above=0, paper=-0.1)
        >>> verdicts.of("hap rises").loc["linear", ["in the paper", "here"]].tolist()
        ['does not hold', 'holds']
    """

    parts: list[dict[str, str | float]] = field(default_factory=list)

    def ask(
        self,
        claim: str,
        what: str,
        ours: Estimate,
        above: float = -np.inf,
        below: float = np.inf,
        paper: float = np.nan,
    ) -> None:
        """Note one part of a claim: does our interval, and the paper's number, lie there?

        Arguments:
            claim, what: Names of the claim and of the part.
            ours: Our number, with its interval.
            above, below: Ends of the range that the claim names.
            paper: The paper's number; NaN: it prints none.
        Raises: ValueError: the claim has this part already.
        Example:
            >>> verdicts = Verdicts()
            >>> loss = Estimate(-0.1, -0.1, -0.1, se_people=0.1)
            >>> verdicts.ask("validity stays", "convex", loss, above=-0.05)
            >>> verdicts.parts[0]["here"], verdicts.parts[0]["in the paper"]
            ('undecided', 'cannot be asked')
        """
        if any((own["claim"], own["what"]) == (claim, what) for own in self.parts):
            raise ValueError(
                f"The claim {claim!r} has a part {what!r} already. Was a cell run twice? "
                "Run the notebook from the top."
            )
        by_paper = CANNOT
        if np.isfinite(paper):
            by_paper = "holds" if above <= paper <= below else "does not hold"
            if paper in (above, below):
                by_paper = TIE
        has_members = ours.se_networks > 0
        members = f"{ours.lowest:.3f} to {ours.highest:.3f}" if has_members else ""
        self.parts.append(
            {
                "claim": claim,
                "what": what,
                "paper": paper,
                "in the paper": by_paper,
                "ours": ours.value,
                "low": ours.low,
                "high": ours.high,
                "members": members,
                "here": ours.lies(above, below),
            }
        )

    def of(self, *claims: str) -> pd.DataFrame:
        """Return the parts of one claim or of several, rounded, a row each.

        Columns that the paper fills are left out where it was not
        asked, and the range over members where there is none.

        Arguments:
            claims: As they were asked.
        Raises: ValueError: one of them was not asked.
        Example:
            >>> verdicts = Verdicts()
            >>> verdicts.ask("dearer", "k = 1", Estimate(1.5, 1.5, 1.5, 0.1), above=1)
            >>> verdicts.of("dearer").columns.tolist()
            ['ours', 'low', 'high', 'here']
        """
        own = pd.DataFrame(self.parts)
        checks.known("claim", claims, tuple(own.claim.unique()) if len(own) else ())
        own = own[own.claim.isin(claims)].drop(columns="claim").set_index("what")
        if own.paper.isna().all():
            own = own.drop(columns=["paper", "in the paper"])
        if (own.members == "").all():
            own = own.drop(columns="members")
        return own.round(3)

    def overall(self) -> pd.DataFrame:
        """Return one verdict a claim, for the paper and for ours.

        Example:
            >>> verdicts = Verdicts()
            >>> for what, value in {"linear": 0.3, "convex": -0.3}.items():
            ...     verdicts.ask("rises", what, Estimate(value, value, value, 0.1), above=0)
            >>> verdicts.overall().loc["rises", "here"]
            'in part (holds 1, does not hold 1)'
        """
        by_claim = pd.DataFrame(self.parts).groupby("claim", sort=False)
        return by_claim[["in the paper", "here"]].agg(_together)


def _together(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts came to which."""
    asked = parts[parts != CANNOT]
    if asked.empty:
        return CANNOT
    counts = asked.value_counts()
    if len(counts) == 1:
        return f"{asked.iloc[0]} ({len(asked)} of {len(asked)})"
    words = ("holds", "does not hold", "undecided", TIE)
    said = ", ".join(f"{word} {counts[word]}" for word in words if word in counts)
    return f"in part ({said})"

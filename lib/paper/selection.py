"""The rule by which settings are chosen. It was fixed before the search began.

The rule sees validation people, with preferences drawn as in
training, and nothing else. No room that it imports can read what the
paper reports; a test holds it to that.

1. Help comes first. A candidate is kept if the share of people with a
   valid and plausible recommendation lies within two standard errors
   of the highest such share among the candidates.
2. Of those kept, the most efficient is chosen (`metrics.efficiency`):
   the one whose recommendations come nearest to the cheapest known,
   by each person's own weights.

Efficiency alone would give up people who are hard to help, in favour
of a lower cost for the others. The share alone would not mind what a
recommendation costs.
"""

import numpy as np
import pandas as pd

from lib.base import checks

STANDARD_ERRORS = 2.0


def kept(candidates: pd.DataFrame) -> pd.Series:
    """Return which candidates help as many people as any, up to chance; a row each.

    Arguments:
        candidates: With columns joint, the share of people with a
            valid and plausible recommendation, and n_people, how many
            people that is a share of.
    Raises: ValueError: there are no candidates, or a column is
        missing.
    Example:
        The standard error of 0.50 among 100 people is 0.05:

        >>> kept(pd.DataFrame({"joint": [0.5, 0.41, 0.39], "n_people": 100})).tolist()
        [True, True, False]
    """
    checks.known("column", ["joint", "n_people"], tuple(candidates.columns))
    checks.not_empty("candidates", candidates)
    best = candidates.loc[candidates.joint.idxmax()]
    error = np.sqrt(best.joint * (1 - best.joint) / best.n_people)
    return candidates.joint >= best.joint - STANDARD_ERRORS * error


def ranked(candidates: pd.DataFrame) -> pd.DataFrame:
    """Return the candidates in the order of the rule: the first is the chosen one.

    Those who help fewer people come last, in the order of their share.

    Arguments:
        candidates: As for `kept`, and with a column efficiency.
    Raises: ValueError: there are no candidates, or a column is
        missing.
    Example:
        >>> shares = {"joint": [0.50, 0.45, 0.20], "efficiency": [0.1, 0.3, 0.9]}
        >>> candidates = pd.DataFrame(shares | {"n_people": 100})
        >>> ranked(candidates).index.tolist()
        [1, 0, 2]
    """
    checks.known("column", ["efficiency"], tuple(candidates.columns))
    is_kept = kept(candidates)
    first = candidates[is_kept].sort_values("efficiency", ascending=False, kind="stable")
    rest = candidates[~is_kept].sort_values("joint", ascending=False, kind="stable")
    return pd.concat([first, rest])

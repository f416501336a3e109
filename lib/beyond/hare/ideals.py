"""What a simulated person really wants: the hidden ideal of the HARE paper.

An ideal is a recourse that the person has in mind and cannot say; they can only tell
which of two offers is nearer to it. It lies on the classifier's boundary, at one of
three scales from the person. There are two protocols. `as_published` repeats the
released code of the paper, in which everybody of a seed shares one direction; and the
ideal may end where it is refused, as it is clipped after the check. `personal` draws for
each person, and its ideals are recourse.
"""

import numpy as np
import torch
from torch import Tensor

from lib import checks, io
from lib.beyond.hare.draws import streams
from lib.beyond.hare.generators import growing_spheres
from lib.beyond.hare.proposals import Streams
from lib.beyond.hare.spaces import Features, walk_back
from lib.beyond.hare.tabular import Tabular
from lib.io import PUBLISHED
from lib.method.classifier import Classifier

NEAR, INTERMEDIATE, FAR = 0.2, 0.8, 1.5
N_ATTEMPTS = 100
EPS = 1e-10  # within which an ideal lies at the boundary


def directions(table: Tabular, seed: int) -> Tensor:
    """Return the published directions of a seed, one an attempt, with shape (12, free).

    Raises: ValueError: there are none for this table or seed.
    Source: data/published/hare_directions.csv (`data/README.md`).
    """
    known = io.read_csv(PUBLISHED / "hare_directions.csv")
    names = (known.dataset + " " + known.seed.astype(str)).tolist()
    checks.one_of("data set and seed with directions", [f"{table.name} {seed}"], names)
    rows = known[(known.dataset == table.name) & (known.seed == seed)]
    free = [table.features[j] for j in table.is_free.nonzero().squeeze(-1).tolist()]
    by_attempt = rows.pivot(index="attempt", columns="feature", values="direction")
    return torch.from_numpy(by_attempt[free].to_numpy().copy())


def as_published(
    table: Tabular, classifier: Classifier, x: Tensor, seed: int, radius: float
) -> Tensor:
    """Return everybody's ideal as the released code of the paper makes it.

    A person goes `radius` along the seed's first direction and is clipped to [0, 1]; if
    that point is accepted, they go along the next one. The ideal is what Growing Spheres
    finds from there, clipped *after* it was found accepted.

    Arguments:
        x: Refused people, with shape (N, D).
        seed: 1 to 5.
        radius: `NEAR`, `INTERMEDIATE` or `FAR`.
    Returns: With shape (N, D); NaN for whom no direction ends refused.
    Raises: ValueError: as `directions`, or somebody is accepted.
    Source: section 5 of HARE (TMLR 2025) says "on the boundary"; the rest is facts of
        its released code.
    """
    checks.refused(classifier.accepts(x))
    start = torch.full_like(x, torch.nan)
    for z in directions(table, seed):
        left = start.isnan().any(-1)
        start[left] = _moved(table, classifier, x[left], radius * z)
    ideal, has_one = start.clone(), ~start.isnan().any(-1)
    if has_one.any():
        rngs = streams(int(has_one.sum()), seed, are_equal=True)
        nearest = growing_spheres(table, classifier, start[has_one], rngs, is_clipped=False)
        ideal[has_one] = nearest.clamp(0, 1)
    return ideal


def personal(
    table: Tabular, classifier: Classifier, x: Tensor, radius: float, rngs: Streams
) -> Tensor:
    """Return an ideal for each person: accepted, possible, and just so on the boundary.

    A person goes `radius` along a direction of their own, drawn again until the point,
    clipped to [0, 1], is refused. From there Growing Spheres finds an accepted point in
    [0, 1]. The ideal is where the segment between the two becomes accepted.

    Arguments:
        x: Refused people, with shape (N, D).
        radius: `NEAR`, `INTERMEDIATE` or `FAR`.
        rngs: A generator for each.
    Returns: With shape (N, D). NaN for whoever finds no refused start in 100 attempts,
        or no accepted point from it.
    Raises: ValueError: somebody is accepted.
    """
    checks.refused(classifier.accepts(x))
    n_free = int(table.is_free.sum())
    start, ideal = torch.full_like(x, torch.nan), torch.full_like(x, torch.nan)
    for _ in range(N_ATTEMPTS):
        left = start.isnan().any(-1).nonzero().squeeze(-1)
        if len(left) == 0:
            break
        z = np.stack([rngs[i].uniform(-1, 1, n_free) for i in left.tolist()])
        z *= radius / np.sqrt(np.square(z).sum(-1, keepdims=True))
        start[left] = _moved(table, classifier, x[left], torch.from_numpy(z))
    left = (~start.isnan().any(-1)).nonzero().squeeze(-1)
    if len(left):
        rngs = [rngs[i] for i in left.tolist()]
        accepted = growing_spheres(table, classifier, start[left], rngs)
        has_end = ~accepted.isnan().any(-1)
        left, accepted = left[has_end], accepted[has_end]
    if len(left):
        space = Features(classifier, start[left], table.is_free)
        closest, _ = walk_back(space, space.outcome(space.free, accepted), EPS)
        ideal[left] = closest.x_cf
    return ideal


def _moved(table: Tabular, classifier: Classifier, x: Tensor, way: Tensor) -> Tensor:
    """Return x moved along a way over the free features, clipped; NaN where accepted."""
    moved = x.clone()
    moved[:, table.is_free] = (x[:, table.is_free] + way).clamp(0, 1)
    return torch.where(classifier.accepts(moved)[:, None], torch.nan, moved)


def closeness(x: Tensor, x_cf: Tensor, ideal: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return how far an outcome is from an ideal, and how far its move points elsewhere.

    .. math:: \text{GTP} = |r - r^*|, \quad \text{GTD} = 1 -
        \frac{\langle r - x, r^* - x \rangle}{|r - x|\, |r^* - x|}

    Arguments:
        x, x_cf, ideal: Features before, after (r), and as the person would like them
            best (r*), each with shape (*, N, D).
    Returns: GTP in the units of the features, and GTD from 0 (the same direction) to 2
        (the opposite), each with shape (*, N); GTD is NaN where nothing moved, or
        nothing should.
    Raises: ValueError: shapes differ.
    Source: the metrics of HARE (TMLR 2025, OpenReview 56EBglCFvx).
    Example:
        The second person was moved in the opposite direction:

        >>> x, ideal = torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [1.0, 0.0]])
        >>> closeness(x, torch.tensor([[3.0, 0.0], [-1.0, 0.0]]), ideal)
        (tensor([4., 2.]), tensor([0.4000, 2.0000]))
    """
    checks.shape("x_cf", x_cf, x.shape)
    checks.shape("ideal", ideal, x.shape)
    move, wanted, apart = (
        (b - a).double() for a, b in ((x, x_cf), (x, ideal), (x_cf, ideal))
    )
    along = (move * wanted).sum(-1)
    lengths = (move.square().sum(-1) * wanted.square().sum(-1)).sqrt()
    away = torch.where(lengths > 0, 1 - along / lengths, torch.nan).clamp(0, 2)
    return apart.square().sum(-1).sqrt().to(x), away.to(x)

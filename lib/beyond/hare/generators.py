"""The base generators of the HARE paper: from a refused person to a first recourse.

Each takes a data set, a classifier h and people x (N, D), and returns r_0 (N, D), with a
row of NaN for whoever it finds none. Only *free* features move, those that are
continuous and mutable; all others stay equal to x, bit by bit. Where the released code
of the paper does otherwise, it is said: `nearest_accepted`, `clue` and `cruds` are as
published, `is_clipped` and `as_published` ask for it.

Draws come from a list of generators, one a person (`draws.streams`), so that nobody's
result depends on who else is in the batch.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare.autoencoders import N_LABEL, Autoencoder
from lib.beyond.hare.proposals import Streams
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import Classifier

STEP, PENALTY, N_LEVELS, N_STEPS = 0.01, 0.1, 3, 2_500  # of Wachter
SHELL, N_POINTS, N_SHELLS = 0.2, 1_000, 200  # of Growing Spheres
SHARE, N_NEIGHBOURS = 0.1, 50  # of FACE
SMALLEST = 1e-300  # length of an edge between equal people: a sparse zero is no edge
CODE_SHELL, N_CODES = 0.1, 300  # of CCHVAE
CLUE_STEP, N_CLUE_STEPS, PATIENCE, NEARNESS = 0.5, 400, 3, 4.0
CRUDS_STEP, N_CRUDS_STEPS, CLOSENESS = 0.008, 2_000, 1e-3


def wachter(table: Tabular, h: Classifier, x: Tensor) -> Tensor:
    """Descend from x towards acceptance; return the first accepted point on the way.

    The loss is softplus(-f) + l |r - x|_1 with the log-odds f. The weight l is halved
    twice, each time after 2,500 steps without success. Adam (amsgrad) takes the steps;
    each is followed by a clip to [0, 1].

    Arguments:
        x: Refused people, with shape (N, D).
    Returns: With shape (N, D).
    Raises: ValueError: somebody in x is accepted.
    Source: Wachter et al. (2018); settings of the HARE paper's code, which stops by the
        clock instead.
    """
    checks.refused(h.accepts(x))
    free, recourse = table.is_free, torch.full_like(x, torch.nan)
    moved = x[:, free].clone().requires_grad_()
    adam = torch.optim.Adam([moved], STEP, amsgrad=True, fused=True)
    for level in range(N_LEVELS):
        for _ in range(N_STEPS):
            r = x.clone()
            r[:, free] = moved
            logit = h.logit(r)
            is_new = (logit >= 0) & recourse.isnan().any(-1)
            recourse[is_new] = r.detach()[is_new]
            if not recourse.isnan().any():
                return recourse
            distance = (moved - x[:, free]).abs().sum()
            loss = F.softplus(-logit).sum() + PENALTY / 2**level * distance
            adam.zero_grad()
            loss.backward(inputs=[moved])
            adam.step()
            moved.data.clamp_(0, 1)
    return recourse


def growing_spheres(
    table: Tabular, h: Classifier, x: Tensor, rngs: Streams, is_clipped: bool = True
) -> Tensor:
    """Return the nearest accepted of points drawn in shells that grow around x.

    A shell holds 1,000 points over the free features at L1 distances of [0, 0.2),
    [0.2, 0.4), ... The first shell with an accepted point decides. All shells use the
    same directions.

    Arguments:
        x: Refused people, with shape (N, D).
        rngs: A generator for each.
        is_clipped: Whether points are clipped to [0, 1] before they are judged; the
            released code of the paper does not.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`.
    Source: Laugel et al. (2018); settings of the HARE paper's code.
    """
    checks.refused(h.accepts(x))
    free = table.is_free
    directions, shares = _directions(rngs, N_POINTS, int(free.sum()))

    def points(shell: int, left: Tensor) -> Tensor:
        points = x[left, None].repeat(1, N_POINTS, 1)
        lengths = SHELL * (shell + shares[left, :, None])
        drawn = points[..., free] + lengths * directions[left]
        points[..., free] = drawn.clamp(0, 1) if is_clipped else drawn
        return points

    return _in_shells(h, x, points)


def face(table: Tabular, h: Classifier, x: Tensor, rng: np.random.Generator) -> Tensor:
    """Return the accepted person of the data that is nearest along a path of people.

    A tenth of the training people is drawn, the same for everybody in x. Each of them
    is joined to the 50 nearest others, and each person in x to their 50 nearest, by
    Euclidean distance. r takes the free features of the person at the end of the
    shortest path with whose free features x is accepted.

    Arguments:
        x: Refused people, with shape (N, D).
        rng: Draws the tenth.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`.
    Source: Poyiadzi et al. (2020); settings of the HARE paper's code.
    """
    checks.refused(h.accepts(x))
    drawn = _tenth(table.x["train"], rng)
    ends = torch.where(table.is_free, drawn, x[:, None])  # (N, drawn, D)
    paths = torch.from_numpy(path_lengths(drawn.numpy(), x.numpy()))
    shortest, which = torch.where(h.accepts(ends), paths, torch.inf).min(-1)
    recourse = ends[torch.arange(len(x)), which]
    return torch.where(shortest.isfinite()[:, None], recourse, torch.nan)


def nearest_accepted(
    table: Tabular, h: Classifier, x: Tensor, rng: np.random.Generator
) -> Tensor:
    """Return the accepted person of the data who is nearest by L1 distance.

    That is what the released code of HARE does in effect where it says FACE: no path;
    a tenth of both splits is drawn, and immutable features change.

    Arguments:
        x: Refused people, with shape (N, D).
        rng: Draws the tenth.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`.
    """
    checks.refused(h.accepts(x))
    drawn = _tenth(torch.cat([*table.x.values()]), rng)
    ends = drawn[h.accepts(drawn)]
    if len(ends) == 0:
        return torch.full_like(x, torch.nan)
    return ends[torch.cdist(x, ends, p=1).argmin(-1)]


def _tenth(people: Tensor, rng: np.random.Generator) -> Tensor:
    """Return a tenth of the people (N, D), drawn at random."""
    rows = rng.permutation(len(people))[: round(SHARE * len(people))]
    return people[torch.from_numpy(rows)]


def path_lengths(
    sample: np.ndarray, starts: np.ndarray, n_neighbours: int = N_NEIGHBOURS
) -> np.ndarray:
    """Return how long the shortest paths are from starts to each of a sample.

    Arguments:
        sample: With shape (S, D). Two of them are joined if one is among the nearest of
            the other.
        starts: With shape (N, D). Each is joined to its nearest of the sample; no path
            goes through another start.
    Returns: Euclidean lengths with shape (N, S); infinite where there is no path.
    Example:
        Around three corners of a square, as its fourth side is not an edge:

        >>> corners = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        >>> path_lengths(corners, np.array([[0.0, 0.5]]), n_neighbours=1)
        array([[0.5, 1.5, 2.5]])
    """
    n_sample, n_starts = len(sample), len(starts)
    neighbours = NearestNeighbors(n_neighbors=min(n_neighbours, n_sample - 1)).fit(sample)
    among = neighbours.kneighbors_graph(mode="distance")  # nobody is their own neighbour
    first = neighbours.kneighbors_graph(
        starts, min(n_neighbours, n_sample), mode="distance"
    )
    among.data = among.data.clip(min=SMALLEST)
    between_starts = csr_array((n_starts, n_starts))
    graph = block_array([[among.maximum(among.T), None], [first, between_starts]])
    return dijkstra(graph, indices=range(n_sample, n_sample + n_starts))[:, :n_sample]


def cchvae(
    table: Tabular,
    h: Classifier,
    x: Tensor,
    model: Autoencoder,
    rngs: Streams,
    as_published: bool = False,
) -> Tensor:
    """Return the nearest accepted of people decoded from shells that grow in latent space.

    A shell holds 300 points around where x is encoded, at L1 distances of [0, 0.1),
    [0.1, 0.2), ... The first shell with an accepted person decides; of these the
    nearest to x by L1 distance.

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CCHVAE".
        rngs: A generator for each.
        as_published: Mutable binary features move too, and are rounded; and the shells
            reach into the immutable features that the decoder gets.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or a model of another kind.
    Source: Pawelczyk et al. (2020); settings of the HARE paper's code.
    """
    checks.refused(h.accepts(x))
    checks.one_of("kind of model", [model.kind], ("CCHVAE",))
    unseen = x[:, ~model.is_seen]
    centre = torch.cat([model.encode(x), unseen], -1)
    n_moved = centre.shape[-1] - (0 if as_published else unseen.shape[-1])
    directions, shares = _directions(rngs, N_CODES, n_moved)

    def points(shell: int, left: Tensor) -> Tensor:
        codes = centre[left, None].repeat(1, N_CODES, 1)
        codes[..., :n_moved] += (
            CODE_SHELL * (shell + shares[left, :, None]) * directions[left]
        )
        people = x[left, None].expand(-1, N_CODES, -1)
        decoded = model.decode(codes, people)
        if as_published:
            return torch.where(table.is_continuous, decoded, decoded.round())
        return torch.where(table.is_free, decoded, people)

    return _in_shells(h, x, points)


def clue(table: Tabular, h: Classifier, x: Tensor, model: Autoencoder) -> Tensor:
    """Descend in latent space to somebody near x of whom the classifier is sure.

    From the middle of the latent space Adam descends on the entropy of the decision
    plus (4 / D) |r - x|_1, at most 400 steps, and until three in a row were no
    improvement. The nearest accepted person on the way is returned: all features are
    the decoded ones, immutable and binary ones too, and may leave [0, 1].

    With these settings the decoder hardly heeds the latent point: whoever it decodes is
    close to the mean person. Where that person is refused, as in Adult, CLUE finds
    nearly nobody; the paper has no numbers there.

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CLUE".
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or a model of another kind.
    Source: Antoran et al. (2021); settings of the HARE paper's code.
    """
    checks.refused(h.accepts(x))
    checks.one_of("kind of model", [model.kind], ("CLUE",))
    unseen, z = x[:, ~model.is_seen], torch.zeros_like(model.encode(x)).requires_grad_()
    adam = torch.optim.Adam([z], CLUE_STEP, fused=True)
    nearest = _Nearest(h, x)
    best, waited = torch.full_like(x[:, 0], torch.inf), torch.zeros(len(x))
    for _ in range(N_CLUE_STEPS):
        r = model.decode(torch.cat([z, unseen], -1), x)
        logit, distance = h.logit(r), (r - x).abs().sum(-1)
        entropy = F.softplus(logit) - logit * logit.sigmoid()
        loss = entropy + NEARNESS / x.shape[-1] * distance
        runs = waited < PATIENCE
        nearest.update(r, runs)
        improves = loss.detach() < best
        best = torch.where(improves & runs, loss.detach(), best)
        waited = torch.where(improves & runs, 0, waited + 1)
        if (waited >= PATIENCE).all():
            break
        adam.zero_grad()
        loss.sum().backward(inputs=[z])
        adam.step()
    return nearest.recourse


def cruds(table: Tabular, h: Classifier, x: Tensor, model: Autoencoder) -> Tensor:
    """Descend over the two latent dimensions that belong to the label.

    RMSprop takes 2,000 steps on softplus(-f) + 0.001 |r - x|^2. The nearest accepted
    person on the way is returned: mutable binary features move too, and all may leave
    [0, 1].

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CRUDS".
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or a model of another kind.
    Source: Downs et al. (2020); settings of the HARE paper's code.
    """
    checks.refused(h.accepts(x))
    checks.one_of("kind of model", [model.kind], ("CRUDS",))
    code = model.encode(x)
    z, w = code[:, :-N_LABEL], code[:, -N_LABEL:].clone().requires_grad_()
    unseen = x[:, ~model.is_seen]
    optimiser = torch.optim.RMSprop([w], CRUDS_STEP)
    nearest = _Nearest(h, x)
    for _ in range(N_CRUDS_STEPS):
        r = model.decode(torch.cat([z, w, unseen], -1), x)
        nearest.update(r)
        distance = (r - x).square().sum(-1)
        loss = F.softplus(-h.logit(r)) + CLOSENESS * distance
        optimiser.zero_grad()
        loss.sum().backward(inputs=[w])
        optimiser.step()
    return nearest.recourse


class _Nearest:
    """Hold the nearest accepted person so far, by L1 distance; NaN: none."""

    def __init__(self, h: Classifier, x: Tensor) -> None:
        self.h, self.x = h, x
        self.recourse = torch.full_like(x, torch.nan)
        self.shortest = torch.full_like(x[:, 0], torch.inf)

    @torch.no_grad()
    def update(self, r: Tensor, may_change: Tensor | bool = True) -> None:
        """Take rows of r (N, D) that are accepted and nearer, of those that may change."""
        distance = (r - self.x).abs().sum(-1)
        is_nearer = self.h.accepts(r) & (distance < self.shortest) & may_change
        self.recourse[is_nearer] = r[is_nearer]
        self.shortest[is_nearer] = distance[is_nearer]


def _directions(rngs: Streams, n_points: int, n_moved: int) -> tuple[Tensor, Tensor]:
    """Return directions of L1 length 1, (N, points, moved), and shares of a shell."""
    shape = (n_points, n_moved)
    drawn = [(rng.standard_normal(shape), rng.random(n_points)) for rng in rngs]
    directions, shares = (torch.from_numpy(np.stack(p)) for p in zip(*drawn, strict=True))
    return directions / directions.abs().sum(-1, keepdim=True), shares


def _in_shells(h: Classifier, x: Tensor, points: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Return the nearest accepted point of the first shell that has one, or NaN.

    Arguments:
        points: From the number of a shell, and the rows of people who are left, to
            points with shape (left, points, D).
    """
    recourse = torch.full_like(x, torch.nan)
    for shell in range(N_SHELLS):
        left = recourse.isnan().any(-1).nonzero().squeeze(-1)
        if len(left) == 0:
            break
        drawn = points(shell, left)
        is_accepted = h.accepts(drawn)
        distance = (drawn - x[left, None]).abs().sum(-1)  # L1
        distance = torch.where(is_accepted, distance, torch.inf)
        nearest = drawn[torch.arange(len(drawn)), distance.argmin(-1)]
        recourse[left] = torch.where(is_accepted.any(-1, keepdim=True), nearest, torch.nan)
    return recourse

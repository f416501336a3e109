"""The base generators of the HARE paper: from a refused person to a first recourse.

Each takes a data set, a classifier and people x (N, D), and returns
r_0 (N, D), with a row of NaN for whoever it finds none. Only *free*
features move, those that are continuous and mutable; all others stay
equal to x, bit by bit. Where the released code of the paper does
otherwise, `as_published` (or `is_clipped`) says so.

Draws come from a list of generators, one a person (`draws.streams`), so that
nobody's result depends on who else is in the batch.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare import autoencoders
from lib.beyond.hare.autoencoders import Autoencoder
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import Classifier

STEP, PENALTY, N_LEVELS, N_STEPS = 0.01, 0.1, 3, 2_500  # of Wachter
SHELL, N_POINTS, N_SHELLS = 0.2, 1_000, 200  # of Growing Spheres
SHARE, N_NEIGHBOURS = 0.1, 50  # of FACE
CODE_SHELL, N_CODES = 0.1, 300  # of CCHVAE
CLUE_STEP, N_CLUE_STEPS, PATIENCE, NEARNESS = 0.5, 400, 3, 4.0
CRUDS_STEP, N_CRUDS_STEPS, CLOSENESS = 0.008, 2_000, 1e-3


def wachter(table: Tabular, classifier: Classifier, x: Tensor) -> Tensor:
    """Descend from x towards acceptance; return the first accepted point on the way.

    The loss is softplus(-f) + l |r - x|_1 with the log-odds f. The
    weight l is halved twice, each time after 2,500 steps without
    success. Adam (amsgrad) takes the steps; each is followed by a
    clip to [0, 1].

    Arguments:
        x: Refused people, with shape (N, D).
    Returns: With shape (N, D).
    Raises: ValueError: x holds no people, or somebody is accepted.
    Source: Wachter et al. (2018); settings of the HARE paper's code,
        which stops by the clock instead.
    """
    check(table, classifier, x)
    free, recourse = table.is_free, torch.full_like(x, torch.nan)
    moved = x[:, free].clone().requires_grad_()
    adam = torch.optim.Adam([moved], STEP, amsgrad=True, fused=True)
    for level in range(N_LEVELS):
        for _ in range(N_STEPS):
            r = x.clone()
            r[:, free] = moved
            logit = classifier.logit(r)
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
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    rngs: Sequence[np.random.Generator],
    is_clipped: bool = True,
) -> Tensor:
    """Return the nearest accepted of points drawn in shells that grow around x.

    A shell holds 1,000 points over the free features at L1 distances
    of [0, 0.2), [0.2, 0.4), ... The first shell with an accepted
    point decides. All shells use the same directions.

    Arguments:
        x: Refused people, with shape (N, D).
        rngs: A generator for each.
        is_clipped: Whether points are clipped to [0, 1] before they
            are judged; the released code of the paper does not.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or there is not one generator a
        person.
    Source: Laugel et al. (2018); settings of the HARE paper's code.
    """
    check(table, classifier, x, rngs)
    free = table.is_free
    directions, shares = _directions(rngs, N_POINTS, int(free.sum()))

    def points(shell: int, left: Tensor) -> Tensor:
        points = x[left, None].repeat(1, N_POINTS, 1)
        lengths = SHELL * (shell + shares[left, :, None])
        drawn = points[..., free] + lengths * directions[left]
        points[..., free] = drawn.clamp(0, 1) if is_clipped else drawn
        return points

    return _in_shells(classifier, x, points)


def face(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    rng: np.random.Generator,
    as_published: bool = False,
) -> Tensor:
    """Return the accepted person of the data that is nearest along a path of people.

    A tenth of the training people is drawn, the same for everybody in
    x. Each of them is joined to the 50 nearest others, and each
    person in x to their 50 nearest, by Euclidean distance. r takes
    the free features of the person at the end of the shortest path
    with whose free features x is accepted.

    Arguments:
        x: Refused people, with shape (N, D).
        rng: Draws the tenth.
        as_published: What the released code does in effect. It draws
            from both splits, and returns all features of the accepted
            person who is nearest by L1 distance: no path, and
            immutable features change.
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`.
    Source: Poyiadzi et al. (2020); settings of the HARE paper's code.
    """
    check(table, classifier, x)
    people = torch.cat([*table.x.values()]) if as_published else table.x["train"]
    n_drawn = round(SHARE * len(people))
    sample = people[torch.from_numpy(rng.permutation(len(people))[:n_drawn].copy())]
    recourse = torch.full_like(x, torch.nan)
    if as_published:
        ends = sample[classifier.accepts(sample)]
        for i in range(len(x) if len(ends) else 0):
            recourse[i] = ends[(ends - x[i]).abs().sum(-1).argmin()]
        return recourse
    lengths = torch.from_numpy(path_lengths(sample.numpy(), x.numpy()))
    for i, person in enumerate(x):
        ends = person.repeat(n_drawn, 1)
        ends[:, table.is_free] = sample[:, table.is_free]
        length = torch.where(classifier.accepts(ends), lengths[i], torch.inf)
        nearest = int(length.argmin())
        if length[nearest] < torch.inf:
            recourse[i] = ends[nearest]
    return recourse


def cchvae(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    model: Autoencoder,
    rngs: Sequence[np.random.Generator],
    as_published: bool = False,
) -> Tensor:
    """Return the nearest accepted of people decoded from shells that grow in latent space.

    A shell holds 300 points around where x is encoded, at L1
    distances of [0, 0.1), [0.1, 0.2), ... The first shell with an
    accepted person decides; of these the nearest to x by L1 distance.

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CCHVAE".
        rngs: A generator for each.
        as_published: Mutable binary features move too, and are
            rounded; and the shells reach into the immutable features
            that the decoder gets.
    Returns: With shape (N, D).
    Raises: ValueError: as `growing_spheres`, or a model of another
        kind.
    Source: Pawelczyk et al. (2020); settings of the HARE paper's code.
    """
    check(table, classifier, x, rngs)
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
        decoded = people.clone()
        decoded[..., model.is_seen] = model.decode_seen(codes)
        if as_published:
            return torch.where(table.is_continuous, decoded, decoded.round())
        return torch.where(table.is_free, decoded, people)

    return _in_shells(classifier, x, points)


def clue(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    model: Autoencoder,
    as_published: bool = False,
) -> Tensor:
    """Descend in latent space to somebody near x of whom the classifier is sure.

    From the middle of the latent space Adam descends on the entropy
    of the decision plus (4 / D) |r - x|_1, at most 400 steps, and
    until three in a row were no improvement. The nearest accepted
    person on the way is returned.

    With these settings the decoder hardly heeds the latent point:
    whoever it decodes is close to the mean person. Where that person
    is refused, as in Adult, CLUE finds nearly nobody; the paper has
    no numbers there.

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CLUE".
        as_published: All features are the decoded ones, immutable and
            binary ones too, and may leave [0, 1].
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or a model of another kind.
    Source: Antoran et al. (2021); settings of the HARE paper's code.
    """
    check(table, classifier, x)
    checks.one_of("kind of model", [model.kind], ("CLUE",))
    z = torch.zeros_like(model.encode(x)).requires_grad_()
    adam = torch.optim.Adam([z], CLUE_STEP, fused=True)
    recourse = torch.full_like(x, torch.nan)
    shortest, best = (torch.full_like(x[:, 0], torch.inf) for _ in range(2))
    waited = torch.zeros(len(x))
    for _ in range(N_CLUE_STEPS):
        r = model.decode(z, x)
        if not as_published:
            r = torch.where(table.is_free, r, x)
        logit, distance = classifier.logit(r), (r - x).abs().sum(-1)
        loss = _entropy(logit) + NEARNESS / x.shape[-1] * distance
        runs = waited < PATIENCE
        shown = r if as_published else r.clamp(0, 1)
        _keep_nearer(classifier, shown, x, recourse, shortest, runs)
        improves = loss.detach() < best
        best = torch.where(improves & runs, loss.detach(), best)
        waited = torch.where(improves & runs, 0, waited + 1)
        if (waited >= PATIENCE).all():
            break
        adam.zero_grad()
        loss.sum().backward(inputs=[z])
        adam.step()
    return recourse


def cruds(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    model: Autoencoder,
    as_published: bool = False,
) -> Tensor:
    """Descend over the two latent dimensions that belong to the label.

    RMSprop takes 2,000 steps on softplus(-f) + 0.001 |r - x|^2. The
    nearest accepted person on the way is returned.

    Arguments:
        x: Refused people, with shape (N, D).
        model: An autoencoder of the kind "CRUDS".
        as_published: Mutable binary features move too, and all may
            leave [0, 1].
    Returns: With shape (N, D).
    Raises: ValueError: as `wachter`, or a model of another kind.
    Source: Downs et al. (2020); settings of the HARE paper's code.
    """
    check(table, classifier, x)
    checks.one_of("kind of model", [model.kind], ("CRUDS",))
    code = model.encode(x)
    z, w = code[:, : -autoencoders.N_LABEL], code[:, -autoencoders.N_LABEL :].clone()
    w.requires_grad_()
    optimiser = torch.optim.RMSprop([w], CRUDS_STEP)
    recourse = torch.full_like(x, torch.nan)
    shortest = torch.full_like(x[:, 0], torch.inf)
    for _ in range(N_CRUDS_STEPS):
        r = model.decode(torch.cat([z, w], -1), x)
        if not as_published:
            r = torch.where(table.is_free, r, x)
        shown = r if as_published else r.clamp(0, 1)
        _keep_nearer(classifier, shown, x, recourse, shortest)
        distance = (r - x).square().sum(-1)
        loss = F.softplus(-classifier.logit(r)) + CLOSENESS * distance
        optimiser.zero_grad()
        loss.sum().backward(inputs=[w])
        optimiser.step()
    return recourse


def path_lengths(
    sample: np.ndarray, starts: np.ndarray, n_neighbours: int = N_NEIGHBOURS
) -> np.ndarray:
    """Return how long the shortest paths are from starts to each of a sample.

    Arguments:
        sample: With shape (S, D). Two of them are joined if one is
            among the nearest of the other.
        starts: With shape (N, D). Each is joined to its nearest of
            the sample; no path goes through another start.
    Returns: Euclidean lengths with shape (N, S); infinite where there
        is no path.
    Example:
        Around three corners of a square, as its fourth side is not
        an edge:

        >>> corners = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        >>> path_lengths(corners, np.array([[0.0, 0.5]]), n_neighbours=1)
        array([[0.5, 1.5, 2.5]])
    """
    tree, n_sample, n_starts = cKDTree(sample), len(sample), len(starts)
    n_asked = min(n_neighbours + 1, n_sample)  # each is its own nearest
    near = tree.query(sample, k=range(1, n_asked + 1))[1].ravel()
    rows = np.repeat(np.arange(n_sample), n_asked)
    ways = np.unique(np.concatenate([rows * n_sample + near, near * n_sample + rows]))
    n_asked = min(n_neighbours, n_sample)
    near = tree.query(starts, k=range(1, n_asked + 1))[1].ravel()
    out = np.repeat(np.arange(n_sample, n_sample + n_starts), n_asked)
    begin = np.concatenate([ways // n_sample, out])
    end = np.concatenate([ways % n_sample, near])
    points = np.concatenate([sample, starts])
    length = np.sqrt(np.square(points[begin] - points[end]).sum(-1))
    shape = (n_sample + n_starts, n_sample + n_starts)
    graph = csr_array((length, (begin, end)), shape=shape)
    return dijkstra(graph, indices=range(n_sample, n_sample + n_starts))[:, :n_sample]


def check(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    rngs: Sequence[np.random.Generator] | None = None,
) -> None:
    """Raise ValueError unless x are refused people of the table, with a generator each."""
    if tuple(classifier.features) != table.features:
        raise ValueError(
            f"The classifier knows {', '.join(classifier.features)}; the table has "
            f"{', '.join(table.features)}. Both must have the same features in the same "
            "order."
        )
    checks.people("x", x, table.features, torch.float64)
    checks.shape("x", x, (*x.shape[:1], len(table.features)))
    checks.not_empty("x", x)
    checks.refused(classifier.accepts(x))
    if rngs is not None and len(rngs) != len(x):
        raise ValueError(
            f"There are {len(rngs)} generators for {len(x)} people: expected one each, "
            "as `draws.streams` gives them."
        )


def _directions(
    rngs: Sequence[np.random.Generator], n_points: int, n_moved: int
) -> tuple[Tensor, Tensor]:
    """Return directions of L1 length 1, (N, points, moved), and shares of a shell."""
    shape = (n_points, n_moved)
    drawn = [(rng.standard_normal(shape), rng.random(n_points)) for rng in rngs]
    directions, shares = (torch.from_numpy(np.stack(p)) for p in zip(*drawn, strict=True))
    return directions / directions.abs().sum(-1, keepdim=True), shares


def _in_shells(
    classifier: Classifier, x: Tensor, points: Callable[[int, Tensor], Tensor]
) -> Tensor:
    """Return the nearest accepted point of the first shell that has one, or NaN.

    Arguments:
        points: From the number of a shell, and the rows of people who
            are left, to points with shape (left, points, D).
    """
    recourse = torch.full_like(x, torch.nan)
    for shell in range(N_SHELLS):
        left = recourse.isnan().any(-1).nonzero().squeeze(-1)
        if len(left) == 0:
            break
        drawn = points(shell, left)
        is_accepted = classifier.logit(drawn) >= 0
        distance = (drawn - x[left, None]).abs().sum(-1)  # L1
        distance = torch.where(is_accepted, distance, torch.inf)
        nearest = drawn[torch.arange(len(drawn)), distance.argmin(-1)]
        recourse[left] = torch.where(is_accepted.any(-1, keepdim=True), nearest, torch.nan)
    return recourse


def _keep_nearer(
    classifier: Classifier,
    r: Tensor,
    x: Tensor,
    recourse: Tensor,
    shortest: Tensor,
    may_change: Tensor | bool = True,
) -> None:
    """Write rows of r, and their L1 distances, into recourse where accepted and nearer."""
    distance = (r - x).abs().sum(-1).detach()
    is_nearer = (classifier.logit(r) >= 0) & (distance < shortest) & may_change
    recourse[is_nearer] = r.detach()[is_nearer]
    shortest[is_nearer] = distance[is_nearer]


def _entropy(logit: Tensor) -> Tensor:
    """Return the entropy of decisions with these log-odds, in nats."""
    return F.softplus(logit) - logit * logit.sigmoid()

"""The dialogue and its laws: argmin, never worse, never forbidden, nothing forgotten."""

import numpy as np
import pytest
import torch

from lib.beyond.hare.hare import Dialogue, Question, Simulated, remembered, rounds
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Actions, Features, walk_back
from lib.method import loan
from lib.method.classifier import Classifier
from lib.method.data import Population
from lib.method.flow import CausalFlow
from lib.method.graph import Graph
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation

NAMES = ("a", "b", "c", "d")
FREE = torch.tensor([True, True, True, False])
MANY = 1_000  # questions after which guesses are renewed: never, in these tests
N = 4_000


def straight(x):
    return x.sum(1) - 1.0


def bent(x):
    return x[:, 0] + x[:, 1] ** 2 + torch.sin(3 * x[:, 2]) - 1.0


def streams(n, seed=0):
    return np.random.default_rng(seed).spawn(n)


def space_of(logit=straight, n=20):
    x = torch.from_numpy(np.random.default_rng(0).random((n, 4))) * 0.1
    return Features(Classifier(NAMES, logit), x, FREE)


def base_of(space, to=0.9):
    return space.outcome(torch.ones_like(space.free), torch.full_like(space.x, to))


def ideals_of(space, seed=3):
    """Return what people want: anywhere, reachable or not."""
    wanted = torch.from_numpy(np.random.default_rng(seed).random(space.x.shape))
    return torch.where(space.free, wanted, space.x)


def fixed(values):
    """Return a proposal of the same values in every round."""
    return lambda *_: values


def held(space, base, user, n_questions=12, seed=0):
    """Yield the name of a dialogue of every kind, of at most so many questions, and it."""
    kinds = {
        "local": lambda d: rounds(d, Local(), n_questions // 3, 3),
        "best": lambda d: rounds(d, Local(), n_questions // 3, 3, calibrated="best"),
        "directions": lambda d: rounds(d, Directions(n_steps=20), 2, 6),
        "remembered": lambda d: remembered(d, n_questions, n_guesses=100, renewed=4),
    }
    for name, hold in kinds.items():
        yield name, hold(Dialogue(space, base, user, streams(len(space.x), seed)))


@pytest.mark.parametrize("calibrated", ["every", "best"])
def test_a_knock_out_without_noise_is_the_argmin(calibrated):
    """Law 3: whatever the order; k + 1 candidates take k questions."""
    space, k = space_of(), 7
    base, ideal = base_of(space, to=0.7), ideals_of(space)
    values = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 1, (k, 20, 4)))
    options = space.outcome(space.free.expand_as(values), values)
    assert space.accepts(options).all()
    if calibrated == "every":
        options, _ = walk_back(space, options)
    everything = torch.cat([base.x_cf[None], options.x_cf])
    best = (everything - ideal).norm(dim=-1).argmin(0)
    expected = everything[best, torch.arange(20)]
    if calibrated == "best":
        won = Recommendation(space.free, expected, expected)
        expected = torch.where((best > 0)[:, None], walk_back(space, won)[0].x_cf, expected)
    assert (best == 0).any() or calibrated == "every"
    for order in (list(range(k)), [3, 6, 0, 2, 5, 1, 4]):
        dialogue = Dialogue(space, base, Simulated(ideal), streams(20))
        rounds(dialogue, fixed(values[order]), 1, k, calibrated)
        torch.testing.assert_close(dialogue.incumbent.x_cf, expected, rtol=0, atol=1e-12)
        assert (dialogue.n_questions == k).all()


@pytest.mark.parametrize("logit", [straight, bent])
def test_no_answer_makes_it_worse_for_anybody(logit):
    """Law 5, for every person, after every answer; all that is shown is acceptable."""
    space = space_of(logit)
    base, user = base_of(space), Simulated(ideals_of(space))
    for name, dialogue in held(space, base, user):
        if name == "best":  # moves the best once more, after the answers
            continue
        before = at_first = user.distance(base.x_cf)
        for i, (question, _) in enumerate(dialogue.answers, start=1):
            differs = (question.challenger.x_cf != question.incumbent.x_cf).any(-1)
            assert differs[question.is_asked].all() and question.is_asked.any()
            for option in (question.incumbent, question.challenger):
                assert space.accepts(option)[question.is_asked].all()
            now = user.distance(dialogue.after(i).incumbent.x_cf)
            assert (now <= before).all(), name
            before = now
        assert dialogue.after(i).incumbent.x_cf.equal(dialogue.incumbent.x_cf)
        assert (before < at_first - 0.05).double().mean() > 0.5, name


def test_who_has_the_ideal_already_keeps_it_to_the_bit():
    """Law 6."""
    space = space_of(bent)
    base = base_of(space)
    for name, dialogue in held(space, base, Simulated(base.x_cf, within=-1.0)):
        for field in ("is_acted", "values", "x_cf"):
            assert getattr(dialogue.incumbent, field).equal(getattr(base, field)), name
        assert (dialogue.n_questions > 3).all(), name


def test_nobody_is_asked_more_than_was_said():
    space = space_of(bent)
    user = Simulated(ideals_of(space), flips=0.5, rngs=streams(20, 7))
    for name, dialogue in held(space, base_of(space), user):
        assert dialogue.n_questions.max() <= 12, name
        assert dialogue.n_questions.max() == 12 or name == "directions"
        assert space.accepts(dialogue.incumbent).all(), name  # a coin gets an answer, too
    # few candidates are acceptable: fewer questions, and never about the same thing twice
    values = torch.rand(6, 20, 4, generator=torch.Generator().manual_seed(0)).double() * 0.7
    values[3:] = values[:3]
    is_good = space.accepts(space.outcome(space.free.expand_as(values), values))
    dialogue = Dialogue(space, base_of(space), Simulated(ideals_of(space)), streams(20))
    rounds(dialogue, fixed(values), 1, 6)
    assert dialogue.n_questions.equal(is_good[:3].sum(0))
    assert 0 < is_good[:3].sum() < 60


def test_who_is_satisfied_is_not_asked_again():
    """HARE's absolute feedback; nothing is near enough for the last."""
    space = space_of(n=3)
    ideal = torch.tensor([[0.8, 0.2, 0.0, 0.0]] * 3, dtype=torch.float64)
    user = Simulated(ideal, within=torch.tensor([9.0, 0.2, 0.0], dtype=torch.float64))
    dialogue = rounds(Dialogue(space, base_of(space), user, streams(3)), Local(), 5, 3)
    far = user.distance(dialogue.incumbent.x_cf)
    assert dialogue.n_questions[0] == 1 and dialogue.n_questions[1] < 15
    assert dialogue.n_questions[2] == 15 and far[2] < far[1] <= 0.2


def test_a_base_that_finds_nothing_is_replaced_without_a_question():
    space = space_of(n=6)
    values = torch.full((4, 6, 4), 0.9, dtype=torch.float64)
    values -= 0.1 * torch.arange(4).view(4, 1, 1)
    nothing = Recommendation(torch.zeros_like(space.free), space.x, space.x)
    refused = space.outcome(space.free, space.x + 0.1)
    for base in (nothing, refused):
        dialogue = Dialogue(space, base, Simulated(space.x), streams(6))
        rounds(dialogue, fixed(values), 1, 4)
        assert (dialogue.n_questions == 3).all()
        assert space.accepts(dialogue.answers[0][0].incumbent).all()
        assert space.accepts(dialogue.incumbent).all()
        dialogue = Dialogue(space, base, Simulated(space.x), streams(6))
        assert (remembered(dialogue, 5, n_guesses=50).n_questions == 4).all()
    # where nothing is ever acceptable there is nothing to ask, and the base stays
    hopeless = space_of(lambda x: x.sum(1) - 99, n=6)
    for name, dialogue in held(hopeless, refused, Simulated(space.x)):
        assert not dialogue.answers, name
        assert dialogue.incumbent.x_cf.equal(refused.x_cf), name


@pytest.mark.parametrize("seed", range(2))
def test_nothing_forbidden_is_ever_shown(seed):
    """Law 4: Loan's committed models, any base, any answers."""
    problem, rng = loan.problem(), np.random.default_rng(seed)
    x = problem.refused("test")[100 * seed : 100 * seed + 40]
    n, column = len(x), problem.population.actionable_index
    mask = torch.from_numpy(rng.random((n, 4)) < 0.5)
    mask[torch.arange(n), torch.from_numpy(rng.integers(0, 4, n))] = True
    space = Actions(problem, x, Preferences.from_mask(mask), margin=0.5)
    log_p = problem.flow.log_prob(x)
    forbidden = torch.ones_like(x, dtype=torch.bool)
    forbidden[:, column] = ~mask
    anything = Actions(problem, x, Preferences(torch.ones(n, 4, dtype=torch.long)))
    values = Local(n_points=300, anywhere=1.0)(anything, x, 1, 0, streams(n, seed))
    options = anything.outcome(anything.free.expand_as(values), values)
    base = options[anything.accepts(options).long().argmax(0), torch.arange(n)]
    is_forbidden = (base.is_acted & forbidden).any(-1)
    assert (is_forbidden & anything.accepts(base)).sum() > 10
    assert (~anything.accepts(base)).any()

    def coins(question):
        no = torch.zeros(n, dtype=torch.bool)
        return torch.from_numpy(rng.random(n) < 0.5), no

    for name, dialogue in held(space, base, coins, 9, seed):
        for question, _ in dialogue.answers:
            for option in (question.incumbent, question.challenger):
                assert not (option.is_acted & forbidden).any(), name
                # judged again, in a batch of other size: rounding took nothing back
                asked, x_cf = question.is_asked, option.x_cf
                assert (problem.classifier.logit(x_cf) >= 0.5)[asked].all(), name
                assert (problem.flow.log_prob(x_cf) >= log_p)[asked].all(), name
        assert not (dialogue.incumbent.is_acted & forbidden).any(), name
        assert dialogue.n_questions.max() > 3 or name == "directions"  # too long for Loan


def test_answers_are_remembered_as_a_figure():
    """30 answers come nearer than showing all 600 guesses at the start would.

    The ideal lies on a triangle of area A, where the nearest of n
    points is 0.5 sqrt(A / n) away in the mean: 0.019 for n = 600, and
    0.085 for 30 questions at random.
    """
    n = 40
    h = Classifier(("a", "b", "c"), straight)
    x = torch.zeros(n, 3, dtype=torch.float64)
    space = Features(h, x, torch.tensor([True] * 3))
    rng = np.random.default_rng(0)
    user = Simulated(torch.from_numpy(rng.dirichlet(np.ones(3), n)))
    base = space.outcome(x == 0, x + 1 / 3 + 1e-9)
    dialogue = Dialogue(space, base, user, rng.spawn(n))
    remembered(dialogue, 30, n_guesses=600)
    area = 3**0.5 / 4 * 2
    assert user.distance(base.x_cf).mean() > 0.3
    assert user.distance(dialogue.incumbent.x_cf).mean() < 0.5 * (area / 600) ** 0.5


@pytest.mark.parametrize("renewed", [MANY, 3])
def test_no_guess_that_contradicts_an_answer_is_shown_and_the_ideal_is_not_lost(renewed):
    """Law 12: guesses that contain the ideal, and answers taken at their word."""

    class Listed(Local):
        def __call__(self, *_):
            return values

    space = space_of(n=15)
    values = torch.from_numpy(np.random.default_rng(4).uniform(0.2, 1, (40, 15, 4)))
    guesses, is_good = walk_back(
        space, space.outcome(space.free.expand_as(values), values), 1e-4
    )
    assert 200 < is_good.sum() < 600
    ideal = guesses.x_cf[is_good.double().argmax(0), torch.arange(15)]
    user = Simulated(ideal, within=-1.0)
    dialogue = Dialogue(space, base_of(space), user, streams(15))
    remembered(dialogue, 39, Listed(), 40, sharpness=1e-9, renewed=renewed)
    replies = []
    for question, is_better in dialogue.answers:
        one, other = question.incumbent.x_cf, question.challenger.x_cf
        is_open = question.is_asked & (one != ideal).any(-1)
        for better, worse in replies:
            nearer = (other - better).norm(dim=-1) <= (other - worse).norm(dim=-1)
            assert nearer[is_open].all()
        which = is_better[:, None]
        replies.append((torch.where(which, other, one), torch.where(which, one, other)))
    assert dialogue.incumbent.x_cf.equal(ideal)


class Valid(Actions):
    """Actions that need only be valid."""

    def accepts(self, candidates):
        return self.problem.classifier.accepts(candidates.x_cf)


def test_without_edges_actions_are_features():
    """Law 13: an empty graph and a linear flow; the same range for both."""
    graph = Graph(dict.fromkeys(NAMES, ()))
    flow = CausalFlow(graph, (), dtype=torch.float64).requires_grad_(False)
    for shift_or_log_scale in flow.layer.phi:
        shift_or_log_scale.fill_(0.3)
    kinds = dict.fromkeys(NAMES[:3], "actionable") | {"d": "mutable"}
    drawn = torch.from_numpy(np.random.default_rng(0).normal(size=(200, 4)))
    drawn = (drawn - drawn.mean(0)) / drawn.std(0, correction=0)
    people = {"recourse/train": drawn}
    one = torch.ones(4, dtype=torch.float64)
    population = Population("bare", kinds, graph, 0 * one, one, people, {})
    h = Classifier(NAMES, bent)
    problem = Problem(population, h, flow)
    x = problem.refused("train")[:15]
    everything = Preferences(torch.ones(15, 3, dtype=torch.long))
    actions, features = Valid(problem, x, everything), Features(h, x, FREE)
    features.low, features.high = actions.low, actions.high
    features.span = actions.span
    base, user = base_of(features, to=1.5), Simulated(ideals_of(features))
    assert features.accepts(base).all()
    pairs = (held(space, base, user, 12, 5) for space in (actions, features))
    for (name, one), (_, other) in zip(*pairs, strict=True):
        end, expected = one.incumbent, other.incumbent
        torch.testing.assert_close(end.x_cf, expected.x_cf, rtol=0, atol=1e-9)
        assert end.is_acted.equal(expected.is_acted), name
        assert one.n_questions.equal(other.n_questions)
        assert (end.x_cf != base.x_cf).any(-1).double().mean() > 0.5


def test_a_person_alone_is_the_person_of_the_batch():
    """Law 14, with answers of which some are wrong."""
    space, eps = space_of(bent, n=6), 1e-9
    ideal = ideals_of(space)

    def ask(rows):
        some = Features(space.classifier, space.x[rows], FREE)
        for hold in (
            lambda d: rounds(d, Local(), 4, 3, eps=eps),
            lambda d: rounds(d, Directions(n_steps=10), 2, 4, eps=eps),
            lambda d: remembered(d, 12, n_guesses=60, eps=eps),
        ):
            rngs, wrong = ([streams(6, seed)[i] for i in rows] for seed in (0, 1))
            user = Simulated(ideal[rows], 0.2, wrong)
            yield hold(Dialogue(some, base_of(some), user, rngs)).incumbent.x_cf

    together = list(ask(range(6)))
    for i in (0, 4):
        for batch, alone in zip(together, ask([i]), strict=True):
            torch.testing.assert_close(alone[0], batch[i], rtol=0, atol=1e-6)
    for batch, turned in zip(together, ask([5, 4, 3, 2, 1, 0]), strict=True):
        torch.testing.assert_close(turned.flip(0), batch, rtol=0, atol=1e-9)


def option(x_cf):
    return Recommendation(x_cf == x_cf, x_cf, x_cf)


@pytest.mark.parametrize("flips", [0.1, 1.0])
def test_wrong_answers_are_as_frequent_as_they_say(flips):
    """Of 4,000 people; within four standard errors. Who is not asked draws no number."""
    x = torch.zeros(N, 1, dtype=torch.float64)
    user = Simulated(x, flips=flips, rngs=streams(N))
    everyone = torch.ones(N, dtype=torch.bool)
    is_better, _ = user(Question(option(x + 1), option(x + 2), everyone))
    se = (flips * (1 - flips) / N) ** 0.5
    assert is_better.double().mean().item() == pytest.approx(flips, abs=4 * se)
    assert not user(Question(option(x + 1), option(x + 2), ~everyone))[0].any()


def test_a_coin_chooses_like_a_coin():
    """Law 3: of a knock-out of k the first is left with chance 2^-k, the last with 1/2."""
    islands = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    h = Classifier(("a",), lambda x: 0.01 - (x - islands).abs().amin(1))
    space = Features(h, torch.zeros(N, 1).double(), torch.tensor([True]), is_held=False)
    values = islands[1:].view(3, 1, 1).expand(3, N, 1)
    user = Simulated(space.x, flips=0.5, rngs=streams(N, 1))
    base = space.outcome(space.x == 0, space.x + 1)
    dialogue = rounds(Dialogue(space, base, user, streams(N)), fixed(values), 1, 3)
    shown = [1.0, *(q.challenger.x_cf[0].item() for q, _ in dialogue.answers)]
    assert (dialogue.n_questions == 3).all()
    for place, chance in enumerate((1 / 8, 1 / 8, 1 / 4, 1 / 2)):
        se = (chance * (1 - chance) / N) ** 0.5
        share = (dialogue.incumbent.x_cf == shown[place]).double().mean().item()
        assert share == pytest.approx(chance, abs=3.3 * se), place


def test_bad_input_is_named():
    space, rngs, local = space_of(n=2), streams(2), Local()
    base, ideal = base_of(space), ideals_of(space)
    holes = Recommendation(base.is_acted, base.values, base.x_cf * torch.nan)

    def begun(user=None, base=base, rngs=rngs):
        return Dialogue(space, base, user or Simulated(ideal), rngs)

    yes = torch.tensor([True, True])
    for call, message in (
        (lambda: rounds(begun(), local, 0, 3), "n_rounds must be a whole number above"),
        (lambda: rounds(begun(), local, 3, 3, "none"), "Unknown calibrated 'none'"),
        (lambda: begun(base=base[:1]), r"base.values has shape \(1, 4\)"),
        (lambda: begun(base=holes), "base holds NaN"),
        (lambda: begun(rngs=rngs[:1]), "Got 1 streams .* for 2 people"),
        (lambda: rounds(begun(), fixed(space.x), 1, 3), r"proposal gave has shape \(2, 4"),
        (lambda: remembered(begun(), 0), "n_questions must be a whole number above zero"),
        (lambda: remembered(begun(), 3, sharpness=0), "sharpness must be above zero"),
        (lambda: rounds(begun(lambda _: ("yes", yes)), local, 1, 2), "is_better is 'yes'"),
        (lambda: rounds(begun(lambda _: (yes, yes[:1])), local, 1, 2), "is_satisfied has"),
        (lambda: Simulated(ideal, flips=2), "flips is 2, expected a probability"),
        (lambda: Simulated(ideal, flips=0.5), "expected 2 rngs"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

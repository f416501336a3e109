"""The dialogue and its laws: argmin, never worse, never forbidden, nothing forgotten."""

import numpy as np
import pytest
import torch

from lib.beyond.hare.hare import Dialogue, Question, Simulated, remembered, rounds
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Actions, Features, walk_back
from lib.method import loan
from lib.method.classifier import Classifier
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation

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


def option(x_cf):
    return Recommendation(x_cf == x_cf, x_cf, x_cf)


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
    closer, _ = walk_back(space, options)
    shown = closer if calibrated == "every" else options
    distances = (torch.cat([base.x_cf[None], shown.x_cf]) - ideal).norm(dim=-1)
    best = distances.argmin(0)  # 0: the base, which is not moved
    expected = torch.cat([base.x_cf[None], closer.x_cf])[best, torch.arange(20)]
    assert (best == 0).any() or calibrated == "every"
    for order in (list(range(k)), [3, 6, 0, 2, 5, 1, 4]):
        dialogue = Dialogue(space, base, Simulated(ideal), streams(20))
        rounds(dialogue, fixed(values[order]), 1, k, calibrated)
        torch.testing.assert_close(dialogue.incumbent.x_cf, expected, rtol=0, atol=1e-12)
        assert (dialogue.n_questions == k).all()


def test_no_answer_makes_it_worse_for_anybody():
    """Law 5, for every person, after every answer; all that is shown is acceptable."""
    space = space_of(bent)
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
        dialogue = Dialogue(space, base, Simulated(space.x), streams(6))
        assert (remembered(dialogue, 5, n_guesses=50).n_questions == 4).all()
    # where nothing is ever acceptable there is nothing to ask, and the base stays
    hopeless = space_of(lambda x: x.sum(1) - 99, n=6)
    for name, dialogue in held(hopeless, refused, Simulated(space.x)):
        assert not dialogue.answers, name
        assert dialogue.incumbent.x_cf.equal(refused.x_cf), name


def test_nothing_forbidden_is_ever_shown():
    """Law 4: Loan's committed models, any base, any answers."""
    problem, rng = loan.problem(), np.random.default_rng(0)
    x = problem.refused("test")[:40]
    n, column = len(x), problem.population.actionable_index
    mask = torch.from_numpy(rng.random((n, 4)) < 0.5)
    mask[torch.arange(n), torch.from_numpy(rng.integers(0, 4, n))] = True
    space = Actions(problem, x, Preferences.from_mask(mask), margin=0.5)
    log_p = problem.flow.log_prob(x)
    forbidden = torch.ones_like(x, dtype=torch.bool)
    forbidden[:, column] = ~mask
    anything = Actions(problem, x, Preferences(torch.ones(n, 4, dtype=torch.long)))
    values = Local(n_points=300, anywhere=1.0)(anything, x, 1, 0, streams(n))
    options = anything.outcome(anything.free.expand_as(values), values)
    base = options[anything.accepts(options).long().argmax(0), torch.arange(n)]
    is_forbidden = (base.is_acted & forbidden).any(-1)
    assert (is_forbidden & anything.accepts(base)).sum() > 10
    assert (~anything.accepts(base)).any()

    def coins(question):
        no = torch.zeros(n, dtype=torch.bool)
        return torch.from_numpy(rng.random(n) < 0.5), no

    for name, dialogue in held(space, base, coins, 9):
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
    raw = space.outcome(space.free.expand_as(values), values)
    guesses, is_good = walk_back(space, raw, 1e-4)
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
    for rows, atol in (([0], 1e-6), ([4], 1e-6), ([5, 4, 3, 2, 1, 0], 1e-9)):
        for batch, one in zip(together, ask(rows), strict=True):
            torch.testing.assert_close(one, batch[rows], rtol=0, atol=atol)


@pytest.mark.parametrize("flips", [0.1, 1.0])
def test_wrong_answers_are_as_frequent_as_they_say(flips):
    """Of 4,000 people; within four standard errors. Who is not asked draws no number."""
    x = torch.zeros(N, 1, dtype=torch.float64)
    user = Simulated(x, flips=flips, rngs=streams(N))
    everyone = torch.ones(N, dtype=torch.bool)
    asked = Question(option(x + 1), option(x + 2), everyone)
    once, again = user(asked)[0], user(asked)[0]
    for is_wrong, share in ((once, flips), (once & again, flips**2)):
        se = (share * (1 - share) / N) ** 0.5
        assert is_wrong.double().mean().item() == pytest.approx(share, abs=4 * se)
    assert not user(Question(option(x + 1), option(x + 2), ~everyone))[0].any()


def test_bad_input_is_named():
    space, local, yes = space_of(n=2), Local(), torch.tensor([True, True])
    base, ideal = base_of(space), ideals_of(space)
    holes = Recommendation(base.is_acted, base.values, base.x_cf * torch.nan)

    def begun(user=None, base=base, n=2):
        return Dialogue(space, base, user or Simulated(ideal), streams(n))

    for call, message in (
        (lambda: rounds(begun(), local, 0, 3), "n_rounds must be a whole number above"),
        (lambda: rounds(begun(), local, 3, 3, "none"), "Unknown calibrated 'none'"),
        (lambda: begun(base=base[:1]), r"base.values has shape \(1, 4\)"),
        (lambda: begun(base=holes), "base holds NaN"),
        (lambda: begun(n=1), "Got 1 streams .* for 2 people"),
        (lambda: rounds(begun(), fixed(space.x), 1, 3), r"proposal gave has shape \(2, 4"),
        (lambda: remembered(begun(), 3, sharpness=0), "sharpness must be above zero"),
        (lambda: rounds(begun(lambda _: ("yes", yes)), local, 1, 2), "is_better is 'yes'"),
        (lambda: rounds(begun(lambda _: (yes, yes[:1])), local, 1, 2), "is_satisfied has"),
        (lambda: Simulated(ideal, flips=2), "flips is 2, expected a probability"),
        (lambda: Simulated(ideal, flips=0.5), "expected 2 rngs"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

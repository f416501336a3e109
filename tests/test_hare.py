"""The dialogue and its laws: argmin, never worse, never forbidden, nothing forgotten."""

import warnings

import numpy as np
import pytest
import torch

from lib.beyond.hare.hare import Dialogue, Question, remembered, rounds
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Actions, Features, walk_back
from lib.beyond.hare.users import Simulated, refine
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


def straight(x):
    return x.sum(1) - 1.0


def bent(x):
    return x[:, 0] + x[:, 1] ** 2 + torch.sin(3 * x[:, 2]) - 1.0


def streams(n, seed=0):
    return np.random.default_rng(seed).spawn(n)


def space_of(logit=straight, n=20, within=(0.0, 1.0)):
    x = torch.from_numpy(np.random.default_rng(0).random((n, 4))) * 0.1
    return Features(Classifier(NAMES, logit), x, FREE, within)


def base_of(space, to=0.9):
    return space.outcome(torch.ones_like(space.free), torch.full_like(space.x, to))


def ideals_of(space, seed=3):
    """Return what people want: anywhere, reachable or not."""
    wanted = torch.from_numpy(np.random.default_rng(seed).random(space.x.shape))
    return torch.where(space.free, wanted, space.x)


def fixed(values):
    """Return a proposal of the same values in every round."""
    return lambda *_: values


def dialogues(space, base, n_questions=12, seed=0):
    """Return a dialogue of every kind, of at most so many questions."""
    rng = streams(len(space.x), seed)
    kinds = {
        "local": lambda: rounds(space, base, Local(), n_questions // 3, 3, rng),
        "best": lambda: rounds(
            space, base, Local(), n_questions // 3, 3, rng, calibrated="best"
        ),
        "directions": lambda: rounds(space, base, Directions(n_steps=20), 2, 6, rng),
        "remembered": lambda: remembered(
            space, base, n_questions, rng, n_guesses=100, renewed=4
        ),
    }
    return {name: Dialogue(make()) for name, make in kinds.items()}


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
        dialogue = Dialogue(
            rounds(
                space, base, fixed(values[order]), 1, k, streams(20), calibrated=calibrated
            )
        )
        refined = refine(dialogue, Simulated(ideal))
        torch.testing.assert_close(refined.x_cf, expected, rtol=0, atol=1e-12)
        assert (dialogue.n_questions == k).all()


def test_every_shows_what_stands_at_the_boundary_and_best_ends_there():
    space = space_of(bent)
    base, ideal = base_of(space), ideals_of(space)

    def at_boundary(option):
        way = option.x_cf - space.x
        step = 1e-5 * way / way.abs().amax(-1, keepdim=True)
        nearer = space.outcome(option.is_acted, option.x_cf - step)
        return space.accepts(option) & ~space.accepts(nearer)

    refined = {}
    for name in ("local", "best"):
        dialogue = dialogues(space, base)[name]
        refined[name] = refine(dialogue, Simulated(ideal))
        is_there = torch.stack([at_boundary(q.challenger) for q, _ in dialogue.answers])
        is_asked = torch.stack([q.is_asked for q, _ in dialogue.answers])
        assert is_there[is_asked].all() if name == "local" else not is_there[is_asked].any()
        is_new = (refined[name].x_cf != base.x_cf).any(-1)
        assert is_new.any() and at_boundary(refined[name])[is_new].all()
    # the base is far beyond the boundary, and stays where nothing was better
    dialogue = dialogues(space, base)["best"]
    assert refine(dialogue, Simulated(base.x_cf)).x_cf.equal(base.x_cf)


@pytest.mark.parametrize("logit", [straight, bent])
def test_no_answer_makes_it_worse_for_anybody(logit):
    """Law 5, for every person, after every answer; all that is shown is acceptable."""
    space = space_of(logit)
    base, user = base_of(space), Simulated(ideals_of(space))
    for name, dialogue in dialogues(space, base).items():
        if name == "best":  # moves the best once more, after the answers
            continue
        before = at_first = user.distance(base.x_cf)
        while (question := dialogue.question) is not None:
            assert question.is_asked.any() and space.accepts(question.incumbent).all()
            differs = (question.challenger.x_cf != question.incumbent.x_cf).any(-1)
            assert differs[question.is_asked].all()
            assert space.accepts(question.challenger)[question.is_asked].all()
            dialogue.answer(*user.reply(question))
            now = user.distance(dialogue.incumbent.x_cf)
            assert (now <= before).all(), name
            before = now
        assert (before < at_first - 0.05).double().mean() > 0.5, name


def test_who_has_the_ideal_already_keeps_it_to_the_bit():
    """Law 6."""
    space = space_of(bent)
    base = base_of(space)
    for name, dialogue in dialogues(space, base).items():
        refined = refine(dialogue, Simulated(base.x_cf, within=-1.0))
        for field in ("is_acted", "values", "x_cf"):
            assert getattr(refined, field).equal(getattr(base, field)), name
        assert (dialogue.n_questions > 3).all(), name


def test_nobody_is_asked_more_than_was_said():
    space = space_of(bent)
    for name, dialogue in dialogues(space, base_of(space)).items():
        user = Simulated(ideals_of(space), flips=0.5, rngs=streams(20, 7))
        refine(dialogue, user)
        assert dialogue.n_questions.max() <= 12, name
        assert dialogue.n_questions.max() == 12 or name == "directions"
    # few candidates are acceptable: fewer questions, and never about the same thing twice
    values = torch.rand(6, 20, 4, generator=torch.Generator().manual_seed(0)).double() * 0.7
    values[3:] = values[:3]
    is_good = space.accepts(space.outcome(space.free.expand_as(values), values))
    dialogue = Dialogue(rounds(space, base_of(space), fixed(values), 1, 6, streams(20)))
    refine(dialogue, Simulated(ideals_of(space)))
    assert dialogue.n_questions.equal(is_good[:3].sum(0))
    assert 0 < is_good[:3].sum() < 60


def test_a_base_that_finds_nothing_is_replaced_without_a_question():
    space = space_of(n=6)
    values = torch.full((4, 6, 4), 0.9, dtype=torch.float64)
    values -= 0.1 * torch.arange(4).view(4, 1, 1)
    nothing = Recommendation(torch.zeros_like(space.free), space.x, space.x)
    refused = space.outcome(space.free, space.x + 0.1)
    for base in (nothing, refused):
        for calibrated in ("every", "best"):
            dialogue = Dialogue(
                rounds(space, base, fixed(values), 1, 4, streams(6), calibrated)
            )
            assert space.accepts(dialogue.question.incumbent).all()
            refined = refine(dialogue, Simulated(space.x))
            assert (dialogue.n_questions == 3).all() and space.accepts(refined).all()
        dialogue = Dialogue(remembered(space, base, 5, streams(6), n_guesses=50))
        refine(dialogue, Simulated(space.x))
        assert (dialogue.n_questions == 4).all()
    # where nothing is ever acceptable there is nothing to ask, and the base stays
    hopeless = space_of(lambda x: x.sum(1) - 99, n=6)
    for name, dialogue in dialogues(hopeless, refused).items():
        assert dialogue.question is None, name
        assert dialogue.incumbent.x_cf.equal(refused.x_cf), name
        assert dialogue.n_questions.tolist() == [0] * 6


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
    values = Local(n_points=300, anywhere=1.0)(
        anything, Recommendation(forbidden, x, x), 1, 0, streams(n, seed)
    )
    options = anything.outcome(anything.free.expand_as(values), values)
    base = options[anything.accepts(options).long().argmax(0), torch.arange(n)]
    is_forbidden = (base.is_acted & forbidden).any(-1)
    assert (is_forbidden & anything.accepts(base)).sum() > 10
    assert (~anything.accepts(base)).any()
    for name, dialogue in dialogues(space, base, 9, seed).items():
        assert not (dialogue.incumbent.is_acted & forbidden).any(), name
        while (question := dialogue.question) is not None:
            asked = question.is_asked
            for option in (question.incumbent, question.challenger):
                assert not (option.is_acted & forbidden).any(), name
                # judged again, in a batch of other size: rounding took nothing back
                assert (problem.classifier.logit(option.x_cf) >= 0.5)[asked].all(), name
                gain = problem.flow.log_prob(option.x_cf) - log_p
                assert (gain >= 0)[asked].all(), name
            is_better = torch.from_numpy(rng.random(n) < 0.5)
            dialogue.answer(is_better)
        assert not (dialogue.incumbent.is_acted & forbidden).any(), name
        assert dialogue.n_questions.max() <= 12
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
    refined = refine(
        Dialogue(remembered(space, base, 30, rng.spawn(n), n_guesses=600)), user
    )
    area = 3**0.5 / 4 * 2
    assert user.distance(base.x_cf).mean() > 0.3
    assert user.distance(refined.x_cf).mean() < 0.5 * (area / 600) ** 0.5


@pytest.mark.parametrize("renewed", [MANY, 3])
def test_no_guess_that_contradicts_an_answer_is_shown_and_the_ideal_is_not_lost(renewed):
    """Law 12: guesses that contain the ideal, and answers taken at their word."""

    class Listed(Local):
        def __call__(self, space, incumbent, n_candidates, round_index, rngs):
            return values

    space = space_of(n=15)
    values = torch.from_numpy(np.random.default_rng(4).uniform(0.2, 1, (40, 15, 4)))
    guesses, is_good = walk_back(
        space, space.outcome(space.free.expand_as(values), values), 1e-4
    )
    assert 200 < is_good.sum() < 600
    ideal = guesses.x_cf[is_good.double().argmax(0), torch.arange(15)]
    steps = remembered(
        space,
        base_of(space),
        39,
        streams(15),
        Listed(),
        40,
        sharpness=1e-9,
        renewed=renewed,
    )
    dialogue, user = Dialogue(steps), Simulated(ideal, within=-1.0)
    replies = []
    while (question := dialogue.question) is not None:
        one, other = question.incumbent.x_cf, question.challenger.x_cf
        is_open = question.is_asked & (one != ideal).any(-1)
        for better, worse in replies:
            nearer = (other - better).norm(dim=-1) <= (other - worse).norm(dim=-1)
            assert nearer[is_open].all()
        is_better, _ = user.reply(question)
        which = is_better[:, None]
        replies.append((torch.where(which, other, one), torch.where(which, one, other)))
        dialogue.answer(is_better)
    assert dialogue.incumbent.x_cf.equal(ideal)


def test_who_answers_by_a_coin_gets_an_answer_all_the_same():
    space = space_of(n=15)
    coins = np.random.default_rng(0)
    for name, dialogue in dialogues(space, base_of(space)).items():
        while dialogue.question is not None:
            dialogue.answer(torch.from_numpy(coins.random(15) < 0.5))
        assert space.accepts(dialogue.incumbent).all(), name


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
    base, ideal = base_of(features, to=1.5), ideals_of(features)
    assert features.accepts(base).all()
    pairs = (dialogues(space, base, 12, 5) for space in (actions, features))
    for one, other in zip(*(pair.items() for pair in pairs), strict=True):
        refined, expected = (refine(d, Simulated(ideal)) for _, d in (one, other))
        torch.testing.assert_close(refined.x_cf, expected.x_cf, rtol=0, atol=1e-9)
        assert refined.is_acted.equal(expected.is_acted), one[0]
        assert one[1].n_questions.equal(other[1].n_questions)
        assert (refined.x_cf != base.x_cf).any(-1).double().mean() > 0.5


def test_a_person_alone_is_the_person_of_the_batch():
    """Law 14, with answers of which some are wrong."""
    space = space_of(bent, n=6)
    ideal, eps = ideals_of(space), 1e-9

    def streams_of(rows, seed):
        return [streams(6, seed)[i] for i in rows]

    def ask(rows):
        some = Features(space.classifier, space.x[rows], FREE)
        base = base_of(some)
        made = (
            rounds(some, base, Local(), 4, 3, streams_of(rows, 0), eps=eps),
            rounds(some, base, Directions(n_steps=10), 2, 4, streams_of(rows, 0), eps=eps),
            remembered(some, base, 12, streams_of(rows, 0), n_guesses=60, eps=eps),
        )
        return [
            refine(Dialogue(steps), Simulated(ideal[rows], 0.2, streams_of(rows, 1))).x_cf
            for steps in made
        ]

    together = ask(range(6))
    for i in range(6):
        for batch, alone in zip(together, ask([i]), strict=True):
            torch.testing.assert_close(alone[0], batch[i], rtol=0, atol=1e-6)
    backwards = ask([5, 4, 3, 2, 1, 0])
    for batch, turned in zip(together, backwards, strict=True):
        torch.testing.assert_close(turned.flip(0), batch, rtol=0, atol=1e-9)


@pytest.mark.parametrize("error", [RuntimeError("no more"), KeyboardInterrupt()])
def test_a_search_that_fails_loses_nothing(error):
    """The last answer counts, and another dialogue begins with the best so far."""
    space = space_of(n=2)

    def proposal(space, incumbent, n_candidates, round_index, rngs):
        if round_index == 1:
            raise error
        return Local()(space, incumbent, n_candidates, round_index, rngs)

    dialogue = Dialogue(rounds(space, base_of(space), proposal, 3, 2, streams(2)))
    yes = torch.tensor([True, True])
    dialogue.answer(yes)
    last = dialogue.question.challenger
    with pytest.raises((ValueError, KeyboardInterrupt)) as raised:
        dialogue.answer(yes)
    if isinstance(raised.value, ValueError):
        assert "The answer is kept" in str(raised.value)
        assert "raised RuntimeError: no more" in str(raised.value)
    assert dialogue.question is None and dialogue.incumbent.x_cf.equal(last.x_cf)
    assert dialogue.n_questions.tolist() == [2, 2]
    with pytest.raises(ValueError, match="No question is open"):
        dialogue.answer(yes)
    assert dialogue.incumbent.x_cf.equal(last.x_cf)
    again = Dialogue(rounds(space, dialogue.incumbent, Local(), 1, 2, streams(2)))
    assert again.question.incumbent.x_cf.equal(last.x_cf)


def test_bad_answers_leave_the_question_open():
    space = space_of(n=2)
    dialogue = Dialogue(rounds(space, base_of(space), Local(), 1, 2, streams(2)))
    question, yes = dialogue.question, torch.tensor([True, True])
    for given, message in (
        (("yes",), "is_better is 'yes': expected a bool tensor"),
        ((yes.long(),), "is_better is tensor"),
        ((yes[:1],), r"is_better has shape \(1,\), expected \(2,\)"),
        ((yes, "no"), "is_satisfied is 'no'"),
        ((yes, yes[:1]), r"is_satisfied has shape \(1,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            dialogue.answer(*given)
        assert dialogue.question is question and not dialogue.answers


def test_bad_input_is_named():
    space = space_of(n=2)
    base, rngs, local = base_of(space), streams(2), Local()
    holes = Recommendation(base.is_acted, base.values, base.x_cf * torch.nan)
    for steps, message in (
        (rounds(space, base, local, 0, 3, rngs), "n_rounds must be a whole number above"),
        (rounds(space, base, local, 3, 0, rngs), "n_candidates must be a whole number"),
        (rounds(space, base, local, 3, 3, rngs, "none"), "Unknown calibrated 'none'"),
        (rounds(space, base[:1], local, 3, 3, rngs), r"base.values has shape \(1, 4\)"),
        (rounds(space, holes, local, 3, 3, rngs), "base.x_cf holds NaN"),
        (rounds(space, base, local, 3, 3, rngs[:1]), "Got 1 streams .* for 2 people"),
        (
            rounds(space, base, fixed([1, 2]), 1, 3, rngs),
            r"gave list, expected .*\(3, 2, 4",
        ),
        (rounds(space, base, fixed(space.x), 1, 3, rngs), r"gave \(2, 4\), expected"),
        (rounds(space, base, fixed(space.x[None, :1]), 1, 3, rngs), r"gave \(1, 1, 4\)"),
        (rounds(space, base, fixed(space.x[None][:0]), 1, 3, rngs), r"gave \(0, 2, 4\)"),
        (rounds(space, base, fixed(holes.x_cf[None]), 1, 1, rngs), "gave NaN"),
        (remembered(space, base, 0, rngs), "n_questions must be a whole number above zero"),
        (remembered(space, base, 3, rngs, n_guesses=0), "n_guesses must be"),
        (remembered(space, base, 3, rngs, renewed=0), "renewed must be"),
        (remembered(space, base, 3, rngs, sharpness=0), "sharpness must be above zero"),
        (remembered(space, base, 3, rngs, Directions()), r"expected Local\(...\)"),
        (remembered(space, base, 3, rngs[:1]), "Got 1 streams"),
    ):
        with pytest.raises(ValueError, match=message):
            Dialogue(steps)


def test_a_dialogue_warns_of_nothing_and_leaves_its_input_as_it_was():
    space = space_of(n=3)
    base = base_of(space)
    before = [tensor.clone() for tensor in (space.x, space.free, base.values, base.x_cf)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dialogue in dialogues(space, base).values():
            refine(dialogue, Simulated(ideals_of(space)))
    after = (space.x, space.free, base.values, base.x_cf)
    assert all(a.equal(b) for a, b in zip(before, after, strict=True))
    assert isinstance(dialogue.answers[0][0], Question)

"""Data and the SCM."""

from collections.abc import Callable

import torch
from torch import Tensor

from exercises.checking import Key, choice, key
from exercises.keys import as_percent, problem
from lib.method import loan

FIVE = slice(16, 21)  # refused test people, of whom some have an income above zero


def by_rule(x: Tensor) -> Tensor:
    """Return who would pay back by the rule of the label."""
    return loan.label(problem().population.inverse_transform(x))


def promised_and_brought(
    name: str, step: float, judge: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return to whom a judge says yes: if a number alone changes, if they act; each (N,).

    Arguments:
        name: Of the feature.
        step: In model units, for every refused person of the test
            split.
        judge: Of profiles; None: the classifier.
    """
    population, judge = problem().population, judge or problem().accepts
    x, j = problem().refused("test"), population.features.index(name)
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, j] = True
    values = x + step / population.std[j].item()
    alone = judge(torch.where(is_acted, values, x))
    assert population.truth is not None
    acted = judge(population.truth.counterfactual(x, is_acted, values))
    return alone, acted


@key("01.1")
def a_smaller_loan() -> Key:
    """Of those who lower the amount by 2."""
    answers = promised_and_brought("loan_amount", -2)
    alone, acted = (accepted.float().mean().item() for accepted in answers)
    shares = f"The changed number promises {alone:.3f}, acting brings {acted:.3f}"
    return choice(
        "B" if acted > alone else "A",
        f"{shares}: the duration falls with the amount, and both count against a person.",
        {
            "A": "The duration follows. Is that in the favour of a person, or not?",
            "B": "The duration follows. Is that in the favour of a person, or not?",
            "C": "The two would be equal if nothing followed. Look at the arrows again.",
        },
    )


@key("01.2")
def follows_from_education() -> Key:
    """Which features follow from education."""
    return Key(
        frozenset({"income", "savings"}),
        "Income follows from education, and savings from income.",
        (
            ({"income"}, "That follows directly. And what follows from what follows?"),
            ({"savings"}, "Along which path? What lies on the way follows, too."),
            (
                {"education", "income"},
                "Education itself is set. And what follows from what follows?",
            ),
            (set(), "Are there no arrows that leave education?"),
            (
                {"loan_amount", "loan_duration", "income", "savings"},
                "Not everything that may change follows: look at the arrows.",
            ),
            (
                {"education", "income", "savings"},
                "Education itself is set: it does not follow, it is acted on.",
            ),
            (
                {"gender", "age", "income", "savings"},
                "Causes of education stay as they are: an action cuts them off.",
            ),
            ({"gender", "age"}, "These are its causes. Follow the arrows forward."),
        ),
    )


@key("01.3")
def savings_by_hand() -> Key:
    """Savings of five people once their income is 3."""
    population = problem().population
    units = population.inverse_transform(problem().refused("test")[FIVE])
    income, savings = units[:, 5], units[:, 6]
    noise = savings - (-4 + 1.5 * income.clamp(min=0))
    after = -4 + 1.5 * 3.0
    return Key(
        after + noise,
        "Abduction (their own noise), action (income is 3), prediction.",
        (
            (
                torch.full_like(noise, after),
                "That is somebody without noise. Keep their own.",
            ),
            (savings, "Those are their savings now: nothing has followed yet."),
            (
                savings + 1.5 * (3.0 - income),
                "Below zero, income moves no savings: the equation has max(income, 0).",
            ),
            (
                savings + 1.5 * 3.0,
                "That is what an income of 3 adds to none at all. What have they now?",
            ),
            (
                -4 + 1.5 * (income + 3.0).clamp(min=0) + noise,
                "They set their income to 3. They do not raise it by 3.",
            ),
            (
                (after + noise - population.mean[6]) / population.std[6],
                "That is standardised. Give model units.",
            ),
            (noise, "That is their noise. Now put it back into the equation."),
        ),
        within=0.01,
    )


@key("01.4")
def wrong_both_ways() -> Key:
    """The share for whom a changed income of 3 misleads, by the rule."""
    alone, acted = promised_and_brought("income", 3, by_rule)
    is_misled = alone != acted
    by_classifier = torch.not_equal(*promised_and_brought("income", 3))
    share = is_misled.float().mean().item()
    return Key(
        share,
        "In total the two look alike; person by person they do not.",
        (
            (
                (alone & ~acted).float().mean().item(),
                "That is one of the two errors: promised, and not brought.",
            ),
            (
                (~alone & acted).float().mean().item(),
                "That is one of the two errors: brought, and not promised.",
            ),
            (
                (alone.float().mean() - acted.float().mean()).abs().item(),
                "That is the difference of the totals: the two errors cancel in it.",
            ),
            (
                is_misled.float().sum().item(),
                "That is how many people. Divide by how many were refused.",
            ),
            (1 - share, "That is who gets the same decision either way."),
            (
                is_misled[alone | acted].float().mean().item(),
                "It is a share of all who are refused now.",
            ),
            (acted.float().mean().item(), "That is who is accepted once they have acted."),
            (alone.float().mean().item(), "That is who is promised acceptance."),
            (
                by_classifier.float().mean().item(),
                "That is by the classifier. Let the rule judge.",
            ),
            *as_percent(share, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.0006,
    )


@key("01.5")
def as_the_step_grows() -> Key:
    """How those who are promised too little change with the step."""
    steps = (0.5, 1, 2, 4, 8)
    answers = [promised_and_brought("income", step) for step in steps]
    n_either_way = int((answers[-1][0] & answers[-1][1]).sum())
    n = [int((~alone & acted).sum()) for alone, acted in answers]
    peak = n.index(max(n))
    shape = "A" if peak == len(n) - 1 else "C" if peak == 0 else "B"
    hints = {
        "A": "At a very large step, who is refused whatever follows? Print the numbers.",
        "B": "Print the number for each step: does it ever turn?",
        "C": "At a step of zero nothing follows. Print the numbers.",
    }
    return choice(
        shape,
        f"{', '.join(map(str, n))} people at steps of {', '.join(map(str, steps))}. A "
        f"small step brings little. A large one is enough either way: at {steps[-1]} it "
        f"is for {n_either_way} of {len(answers[-1][0])}.",
        hints,
    )

"""Data and the SCM."""

import torch
from torch import Tensor

from exercises.checking import Key, choice, key, wrong_ways
from lib.method.problem import Problem


@key("01.1")
def a_smaller_loan(problem: Problem, x: Tensor) -> Key:
    """Of those who lower the amount by 2."""
    j, truth = problem.population.features.index("loan_amount"), problem.population.truth
    assert truth is not None
    changed = x.clone()
    changed[:, j] -= 2 / problem.population.std[j].item()
    followed = truth.counterfactual(x, do={"loan_amount": changed[:, j]})
    alone, acted = (problem.accepts(to).float().mean().item() for to in (changed, followed))
    duration = "The duration follows. Is that in the favour of a person, or not?"
    return choice(
        "C" if alone == acted else "B" if acted > alone else "A",
        f"The changed number promises {alone:.3f}, acting brings {acted:.3f}: the duration "
        "falls with the amount, and both count against a person.",
        {
            "A": duration,
            "B": duration,
            "C": "They would be equal if nothing followed. Look at the arrows again.",
        },
    )


@key("01.2")
def follows_from_education() -> Key:
    """Which features follow from education."""
    other = "Not everything that may change follows: look at the arrows."
    causes = "Causes of education stay as they are: follow the arrows forward."
    return Key(
        "Income follows from education, and savings from income.",
        [
            ("income", "Along which path? What follows directly from education?"),
            ("savings", "And what follows from what follows?"),
            ("education", "Education is set: it does not follow, it is acted on."),
            ("gender", causes),
            ("age", causes),
            ("loan_amount", other),
            ("loan_duration", other),
        ],
    )


@key("01.3")
def savings_by_hand(
    problem: Problem, savings_after: Tensor, income: Tensor, savings: Tensor, u: Tensor
) -> Key:
    """Savings of five people once their income is 3."""
    population = problem.population
    mean, std = population.mean[6], population.std[6]
    return Key(
        "Abduction (their own noise), action (income is 3), prediction.",
        [
            *wrong_ways(
                lambda noise, income, scale: (
                    (-4 + 1.5 * income.clamp(min=0) + noise - scale[0]) / scale[1]
                ),
                noise=[
                    u,
                    (0 * u, "That is somebody without noise. Keep their own."),
                    (savings + 4 - 1.5 * income, "Mind max(income, 0)."),
                ],
                income=[
                    torch.full_like(income, 3.0),
                    (income, "Those are their savings now: nothing has followed yet."),
                    (income + 3.0, "They set their income to 3, not raise it by 3."),
                ],
                scale=[(0, 1), ((mean, std), "That is standardised. Give model units.")],
            ),
            (savings + 1.5 * 3.0, "An income of 3 adds that to none. What have they now?"),
            (u, "That is their noise. Now put it back into the equation."),
        ],
        within=0.01,
    )


@key("01.4")
def wrong_both_ways(alone: Tensor, acted: Tensor, alone_and_acted: object) -> Key:
    """The share for whom a changed income misleads, by the rule."""
    assert callable(alone_and_acted)
    is_misled = alone != acted
    one = "That is one of the two errors: {}."
    by_classifier = torch.not_equal(*alone_and_acted("income", 2))
    wrong = [
        (alone & ~acted, one.format("promised, and not brought")),
        (~alone & acted, one.format("brought, and not promised")),
        (is_misled[alone | acted], "It is a share of all who are refused now."),
        (acted, "That is who is accepted once they have acted."),
        (alone, "That is who is promised acceptance."),
        (by_classifier, "That is by the classifier. Let the rule judge."),
        (~is_misled, "That is who gets the same decision either way."),
    ]
    return Key(
        "In total the two look alike; person by person they do not.",
        [
            *((who.float().mean().item(), hint) for who, hint in wrong),
            (
                (alone.float().mean() - acted.float().mean()).abs().item(),
                "That is the difference of the totals: the two errors cancel in it.",
            ),
            (is_misled.sum().item(), "That is how many people. Divide by the refused."),
        ],
        within=0.0006,
        is_share=True,
    )

"""Data and the SCM."""

import torch
from torch import Tensor

from exercises.checking import Key, choice, key, wrong_ways
from lib.method.problem import Problem


@key("01.1")
def a_smaller_loan(problem: Problem, x: Tensor) -> Key:
    """Of those who lower the amount by 2."""
    j = problem.population.features.index("loan_amount")
    changed = x.clone()
    changed[:, j] -= 2 / problem.population.std[j].item()
    followed = problem.causal_model.counterfactual(x, do={"loan_amount": changed[:, j]})
    alone, acted = (problem.accepts(to).float().mean().item() for to in (changed, followed))
    return choice(
        "C" if alone == acted else "B" if acted > alone else "A",
        f"The changed number promises {alone:.3f}, acting brings {acted:.3f}: the duration "
        "falls with the amount, and both count against a person.",
        {
            "AB": "The duration follows. Is that in the favour of a person, or not?",
            "C": "They would be equal if nothing followed. Look at the arrows again.",
        },
    )


@key("01.2")
def follows_from_education() -> Key:
    """Which features follow from education."""
    other = "Not everything that may change follows: look at the arrows."
    return Key(
        "Income follows from education, and savings from income.",
        [
            ("income", "Along which path? What follows directly from education?"),
            ("savings", "And what follows from what follows?"),
            ("education", "Education is set: it does not follow, it is acted on."),
            ("loan_amount", other),
            ("loan_duration", other),
        ],
    )


@key("01.3")
def savings_by_hand(income: Tensor, savings: Tensor, u: Tensor) -> Key:
    """Savings of five people once their income is 3."""
    return Key(
        "Abduction (their own noise), action (income is 3), prediction.",
        wrong_ways(
            lambda noise, income: -4 + 1.5 * income.clamp(min=0) + noise,
            (savings + 1.5 * 3.0, "An income of 3 adds that to none. What have they now?"),
            noise=[
                u,
                (0 * u, "That is somebody without noise. Keep their own."),
                (savings + 4 - 1.5 * income, "Mind max(income, 0)."),
            ],
            income=[
                torch.full_like(income, 3.0),
                (income + 3.0, "They set their income to 3, not raise it by 3."),
            ],
        ),
        within=0.01,
    )


@key("01.4")
def wrong_both_ways(alone: Tensor, acted: Tensor, alone_and_acted: object) -> Key:
    """The share for whom a changed income misleads, by the rule."""
    assert callable(alone_and_acted)
    promised = (alone & ~acted).float().mean().item()
    brought = (acted & ~alone).float().mean().item()
    by_classifier = torch.not_equal(*alone_and_acted("income", 2)).float().mean().item()
    return Key(
        "In total the two look alike; person by person they do not.",
        [
            (promised, "That is one of the two errors: promised, and not brought."),
            (brought, "That is one of the two errors: brought, and not promised."),
            (by_classifier, "That is by the classifier. Let the rule judge."),
            (abs(promised - brought), "In a difference of totals the two errors cancel."),
            ((alone != acted).sum().item(), "That is how many people. Give a share."),
        ],
        within=0.0006,
        is_share=True,
    )

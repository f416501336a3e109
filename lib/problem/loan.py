"""The Loan population: semi-synthetic applicants whose true equations are known."""

from pathlib import Path

import torch
from scipy import stats
from torch import Tensor

from lib.base.files import MODELS
from lib.causal.flow import CausalFlow
from lib.causal.scm import SCM, Equation, Parents, additive
from lib.problem.classifier import NetworkClassifier
from lib.problem.population import Population
from lib.problem.recourse import Problem


def scm() -> SCM:
    """The semi-synthetic Loan model, in model units (centred; neither euros nor years).

    Source: names and shape from arXiv:2604.08030; the equations are facts of the public code of CARMA
    (Majumdar & Valera, doi 10.1145/3630106.3659003). Explained line by line in notebook 01.
    """

    def education_score(pa: Parents) -> Tensor:
        return -1 + 0.5 * pa["gender"] + torch.sigmoid(0.1 * pa["age"])

    return SCM(
        {
            "gender": additive((), lambda pa: 0.0, stats.bernoulli(0.5)),
            "age": additive((), lambda pa: -35.0, stats.gamma(10, scale=3.5)),
            "education": Equation(
                ("gender", "age"),
                lambda pa, u: -0.5 + torch.sigmoid(education_score(pa) + u),
                lambda pa, x: torch.logit(x + 0.5) - education_score(pa),
                stats.norm(0, 0.5),
            ),
            "loan_amount": additive(
                ("gender", "age"),
                lambda pa: 1 - 0.01 * (pa["age"] - 5).square() + (1 - pa["gender"]),
                stats.norm(0, 2),
            ),
            "loan_duration": additive(
                ("gender", "age", "loan_amount"),
                lambda pa: (
                    -1 + 0.1 * pa["age"] + 2 * (1 - pa["gender"]) + pa["loan_amount"]
                ),
                stats.norm(0, 3),
            ),
            "income": additive(
                ("gender", "age", "education"),
                lambda pa: (
                    -4
                    + 0.1 * (pa["age"] + 35)
                    + 2 * pa["gender"]
                    + pa["gender"] * pa["education"]
                ),
                stats.norm(0, 2),
            ),
            "savings": additive(
                ("income",),
                lambda pa: -4 + 1.5 * pa["income"].clamp(min=0),
                stats.norm(0, 5),
            ),
        }
    )


def label(x: Tensor) -> Tensor:
    r"""Whether a loan was paid back, as a function of the features in model units, with shape (*, 7) -> (*,).

    .. math:: Y = 1 \iff \sigma(0.3\,(-L - D + I + S + k\,I\,S)) \ge 0.5, \quad
              k = 1 \text{ if } I \ge 0 \text{ and } S \ge 0 \text{ else } -1
    """
    amount, duration, income, savings = x[..., 3:].unbind(-1)
    k = torch.where((income >= 0) & (savings >= 0), 1.0, -1.0)
    return -amount - duration + income + savings + k * income * savings >= 0


def population(
    n_classifier: int = 20_000,
    n_flow: int = 25_000,
    n_recourse: int = 20_000,
    seed: int = 0,
) -> Population:
    """The Loan population: three independent draws, for the classifier, the flow and recourse.

    Arguments:
        n_classifier, n_flow: People drawn for each fit; split 0.8 / 0.1 / 0.1 into train, validation, test.
        n_recourse: People drawn for recourse; split 0.5 / 0.25 / 0.25.
        seed: Of all three draws.
    Raises: ValueError: a size is too small to be split.
    Source: section 5.1 and appendix C of arXiv:2604.08030; sizes as in the public code of CARMA.
    """
    kinds = {
        "gender": "immutable",
        "age": "immutable",
        "education": "mutable",
        "loan_amount": "actionable",
        "loan_duration": "actionable",
        "income": "actionable",
        "savings": "actionable",
    }
    return Population.from_scm(
        scm(), kinds, label, "Loan", n_classifier, n_flow, n_recourse, seed
    )


def problem(
    models: Path = MODELS,
    n_classifier: int = 20_000,
    n_flow: int = 25_000,
    n_recourse: int = 20_000,
    seed: int = 0,
) -> Problem:
    """Return the Loan population with the classifier and the flow that lie in a folder of models."""
    drawn = population(n_classifier, n_flow, n_recourse, seed)
    return Problem(
        drawn,
        NetworkClassifier.load(models, "loan_classifier", drawn.fingerprint),
        CausalFlow.load(models, "loan_flow", drawn.fingerprint),
    )

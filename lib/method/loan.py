"""The Loan population: semi-synthetic applicants whose true equations are known."""

from dataclasses import replace
from pathlib import Path

import torch
from scipy import stats
from torch import Tensor

from lib import checks
from lib.io import MODELS
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.data import Population
from lib.method.flow import CausalFlow
from lib.method.problem import Problem
from lib.method.scm import SCM, Equation, Parents, additive

KINDS = {
    "gender": "immutable",
    "age": "immutable",
    "education": "mutable",
    "loan_amount": "actionable",
    "loan_duration": "actionable",
    "income": "actionable",
    "savings": "actionable",
}

# the first applicant's preferences, as `preferences.from_words` reads them
EXAMPLE_PREFERENCES = {
    "loan_amount": "easy",
    "loan_duration": "manageable",
    "income": "hard",
    "savings": "can't",
}
# what may be asked of anybody who does not say otherwise: a sensible default, chosen here
LIMITS = {
    "loan_amount": "only down",
    "loan_duration": "only down",
    "income": "only up",
    "savings": "only up",
}
# her index in the order of `first_applicant`; for the one before her networks fail
EXAMPLE_INDEX = 1


def scm() -> SCM:
    """Return the true Loan model, in model units (centred; neither euros nor years).

    Source: names and shape from arXiv:2604.08030; the equations are
        facts of the public code of CARMA (Majumdar & Valera, doi
        10.1145/3630106.3659003). Explained line by line in notebook
        01.
    Example:
        Somebody of average age earns 4 more; savings follow at one
        and a half times that:

        >>> person = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0])
        >>> scm().counterfactual(person, do={"income": 5.0})
        tensor([0., 0., 0., 0., 0., 5., 8.])
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
    r"""Return whether each loan was paid back, with shape (*,).

    .. math:: Y = 1 \iff \sigma(0.3\,(-L - D + I + S + k\,I\,S)) \ge 0.5, \quad
              k = 1 \text{ if } I \ge 0 \text{ and } S \ge 0 \text{
              else } -1

    Arguments:
        x: Features in model units, with shape (*, 7). L, D, I, S are
            the last four: amount and duration of the loan, income and
            savings.
    Raises: ValueError: x has another shape, or is not finite.
    Example:
        Two people alike, but the second asks for four times as much:

        >>> label(torch.tensor([[0.0, 0, 0, 1, 1, 1, 1], [0.0, 0, 0, 4, 1, 1, 1]]))
        tensor([ True, False])
    """
    checks.people("x", x, tuple(KINDS))
    amount, duration, income, savings = x[..., 3:].unbind(-1)
    k = torch.where((income >= 0) & (savings >= 0), 1.0, -1.0)
    return -amount - duration + income + savings + k * income * savings >= 0


def population(
    n_classifier: int = 20_000,
    n_flow: int = 25_000,
    n_recourse: int = 20_000,
    seed: int = 0,
) -> Population:
    """Return the Loan population: three draws, for the classifier, the flow and recourse.

    Arguments:
        n_classifier, n_flow: People drawn for each fit; split 0.8 /
            0.1 / 0.1 into train, validation, test.
        n_recourse: People drawn for recourse; split 0.5 / 0.25 /
            0.25.
        seed: Of all three draws.
    Raises: ValueError: a split is empty.
    Source: section 5.1 and appendix C of arXiv:2604.08030; sizes as
        in the public code of CARMA.
    Example:
        >>> people = population(200, 200, 400)
        >>> {split: len(x) for split, x in people.x.items() if "recourse" in split}
        {'recourse/train': 200, 'recourse/validation': 100, 'recourse/test': 100}
    """
    sizes = n_classifier, n_flow, n_recourse
    drawn = Population.from_scm(scm(), KINDS, label, "Loan", *sizes, seed)
    return replace(drawn, has_units=False)


def problem(
    models: Path = MODELS,
    n_classifier: int = 20_000,
    n_flow: int = 25_000,
    n_recourse: int = 20_000,
    seed: int = 0,
) -> Problem:
    """Return the Loan population with its fitted classifier and flow.

    Arguments:
        models: The folder in which they lie, as "loan_classifier" and
            "loan_flow".
        n_classifier, n_flow, n_recourse, seed: As for `population`;
            the models must have been fitted to the population of
            these sizes and this seed.
    Raises: ValueError: as `population`; a model is missing, or was
        fitted to another population.
    Example:
        >>> share = len(loan.problem().refused("test")) / 5_000  # of the applicants
        >>> round(share, 2)
        0.49
    """
    drawn = population(n_classifier, n_flow, n_recourse, seed)
    return Problem(
        drawn,
        NetworkClassifier.load(models, "loan_classifier", drawn.fingerprint),
        CausalFlow.load(models, "loan_flow", drawn.fingerprint),
    )


def first_applicant(population: Population, classifier: Classifier) -> Tensor:
    """Return the applicant whom the notebooks follow, standardised, with shape (1, D).

    She is typical. The refused women of the test split are put in
    order: first who stands nearest to the middle of all the refused,
    both in the rating and in how common a profile is (the larger of
    the two distances counts). She is the first of them for whom, with
    `EXAMPLE_PREFERENCES`, the grid and every network as printed, of the
    constant and the linear profile, hold an answer. A test asks them;
    here her index is known.

    Arguments:
        population: Loan.
        classifier: Who decides.
    """
    assert population.truth is not None  # Loan's equations are known
    x = population.x["recourse/test"]
    x = x[~classifier.accepts(x)]
    women = (population.inverse_transform(x)[:, 0] < 0.5).nonzero()[:, 0]
    both = torch.stack([classifier.logit(x), population.truth.log_prob(x)])
    places = both.argsort(-1).argsort(-1) / len(x)
    order = (places - 0.5).abs().amax(0)[women].argsort(stable=True)
    return x[women[order[: EXAMPLE_INDEX + 1]][-1:]]

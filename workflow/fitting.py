"""What the fits of Loan and of Give Me Some Credit share: who applies, and a flow."""

from collections.abc import Mapping
from typing import Any

from lib import io
from lib.method import flow
from lib.method.data import Population
from lib.method.graph import Graph
from lib.paper import gmsc


def drawn(given: Mapping[str, Any]) -> dict[str, int]:
    """Return how many people the Loan population has, and its seed."""
    return {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}


def applicants(given: Mapping[str, Any]) -> tuple[gmsc.Applicants, dict[str, Any]]:
    """Return the applicants of Give Me Some Credit, and what models are made with."""
    n_people, seed = given["n_applicants"], given["seed"]
    people = gmsc.applicants("", n_people, seed, or_stand_in=True)
    print(people.heading, flush=True)
    made_with = {
        "people": "real" if people.is_real else "synthetic",
        "n_people": len(people.people),
        "seed": seed,
    }
    return people, made_with


def credit_flow(
    population: Population,
    graph: Graph,
    n_epochs: int,
    seed: int,
    name: str,
) -> flow.CausalFlow:
    """Return a flow that is fitted to a population under a graph; print how well.

    Arguments:
        name: Of the bar, and in what is printed.
    """
    fitted, history = flow.fit(
        graph,
        population.x["flow/train"],
        population.x["flow/validation"],
        n_epochs=n_epochs,
        seed=seed,
        progress=io.progress_bar(name),
        **gmsc.FLOW,
    )
    print(f"{name}: {history['validation'].max():.3f} nats a validation person", flush=True)
    return fitted

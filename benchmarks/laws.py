"""Ten thousand random people and limits: no solver goes beyond a limit.

    .venv/bin/python benchmarks/laws.py      about twenty minutes

Refused people of Loan, of Give Me Some Credit and of a table with categories state random
directions, limits and steps. Every solver answers them, with the committed networks where
there are some. The result is benchmarks/laws.csv: how often a recommendation breaks a
limit, acts on what is closed, leaves somebody with a fraction of a count or of a category,
and how many have one. Without the data (docs/run.md) Give Me Some Credit is left out.
"""

import lib.reproducible

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.beyond.hare.spaces import Actions
from lib.beyond.propose.propose import Proposer
from lib.io import MODELS
from lib.method import icarma, loan
from lib.method.data import Population
from lib.method.grid import Grid
from lib.method.icarma import Settings, load_by_profile
from lib.method.limits import Limits
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, Solver
from lib.method.samplers import RankingSampler, WithLimits
from lib.paper import gmsc
from lib.search.continuous import Search

PATH = Path(__file__).with_suffix(".csv")
N_PEOPLE = 10_000
FAR = 1e-5  # standard deviations: more than rounding moves a value


def main() -> None:
    """Ask everybody, count, and save."""
    rows = []
    for name, problem, networks in problems():
        x, preferences = asked(problem, N_PEOPLE, seed=0)
        for who, solver in solvers(problem, networks).items():
            start = perf_counter()
            recommendation = solver.recommend(x, preferences)
            seconds = perf_counter() - start
            rows.append(
                {"people": name, "solver": who, "asked": len(x)}
                | counted(problem, x, preferences, recommendation)
                | {"seconds": round(seconds, 1)}
            )
            print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(PATH, index=False)


def problems() -> Iterator[tuple[str, Problem, dict[str, Solver]]]:
    """Yield problems by name, with the networks that there are."""
    problem = loan.problem()
    network = load_by_profile(MODELS, "loan_icarma_ranking", problem)["linear"][0]
    proposer = Proposer.load(MODELS, "loan_propose", problem)
    yield "Loan", problem, {"iCARMA": network, "proposer": proposer}
    try:
        problem = gmsc.problem(gmsc.applicants("", 200_000, seed=0))
    except ValueError as error:
        print(f"Give Me Some Credit is left out: {error}")
    else:
        network = load_by_profile(MODELS, "gmsc_icarma", problem)["linear"][0]
        proposer = Proposer.load(MODELS, "gmsc_propose", problem)
        yield "GMSC", problem, {"iCARMA": network, "proposer": proposer}
    problem = with_categories()
    sampler = RankingSampler(problem.population.actionable)
    networks: dict[str, Solver] = {}
    for who, one in (
        ("iCARMA", sampler),
        ("limit-conditioned iCARMA", WithLimits(sampler, problem.population)),
    ):
        networks[who] = icarma.fit(problem, one, Settings(n_epochs=60))[0].best
    yield "a table with categories", problem, networks


@dataclass(frozen=True)
class Options:
    """Recommend what a dialogue might show: any point, brought among a person's actions."""

    problem: Problem

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return a random option of HARE's space of actions for people (N, D)."""
        rng = np.random.default_rng(1)
        anywhere = x + torch.from_numpy(rng.normal(size=x.shape)).to(x)
        everything = torch.ones_like(x, dtype=torch.bool)
        return Actions(self.problem, x, preferences).outcome(everything, anywhere)


def with_categories() -> Problem:
    """Return the problem of a table of simulated people with a job and a home."""
    rng, n = np.random.default_rng(0), 3_000
    job = rng.choice(4, n, p=[0.2, 0.35, 0.3, 0.15])
    frame = pd.DataFrame({"job": np.array(["none", "cook", "clerk", "doctor"])[job]})
    frame["income"] = 15 + 8 * job + rng.normal(0, 4, n)
    frame["cards"] = rng.poisson(1 + job / 2)
    frame["home"] = np.where(rng.random(n) < 0.2 + 0.15 * job, "own", "rent")
    worth = frame.income - 2 * frame.cards + 4 * (frame.home == "own")
    frame["paid"] = worth + rng.normal(0, 4, n) > 28
    kinds = dict.fromkeys(("job", "income", "cards"), "actionable") | {"home": "mutable"}
    edges = {"income": ["job"], "cards": ["job"], "home": ["job"]}
    return Problem.from_frame(frame, "paid", kinds, edges)


def solvers(problem: Problem, networks: dict[str, Solver]) -> dict[str, Solver]:
    """Return all solvers of a problem, by name."""
    network = networks["iCARMA"]
    return networks | {
        "pruned": Pruned(network, problem),
        "grid": Grid(problem, n_values=9),
        "HARE's options": Options(problem),
        "search over all values": Search(problem, n_samples=16, n_starts=1, n_steps=4),
    }


def asked(problem: Problem, n_people: int, seed: int) -> tuple[Tensor, Preferences]:
    """Return refused people, some of them several times, and their preferences."""
    rng = np.random.default_rng(seed)
    refused = problem.refused("test")
    x = refused[rng.integers(0, len(refused), n_people)]
    sampler = RankingSampler(problem.population.actionable)
    scores = sampler.draw(range(n_people), rng).scores
    return x, Preferences(scores, limits=random_limits(problem.population, x, rng))


def random_limits(population: Population, x: Tensor, rng: np.random.Generator) -> Limits:
    """Return limits of every kind, each of some people and features, (N, K)."""
    columns = population.actionable_index
    now = population.to_records(x)[:, columns].numpy()
    std = population.std[columns].numpy()
    shape = now.shape
    n_categories = np.array(
        [len(population.categories.get(name, ())) for name in population.actionable]
    )

    def some(values: np.ndarray, share: float = 0.3) -> Tensor:
        is_stated = (rng.random(shape) < share) & (n_categories == 0)
        return torch.from_numpy(np.where(is_stated, values, np.nan))

    low = some(now + std * rng.normal(-0.5, 1, shape))
    high = some(now + std * rng.normal(0.5, 1, shape))
    low = torch.where(low > high, torch.nan, low)
    decrease, increase = (
        some(std * rng.choice([0.0, 0.5, np.inf], shape, p=[0.5, 0.3, 0.2]))
        for _ in range(2)
    )
    step = some(std * rng.choice([0.1, 0.4], shape), 0.2)
    if population.discretisation is not None:
        step = torch.where(population.discretisation.is_whole[columns], step.ceil(), step)
    codes = np.arange(n_categories.max())
    is_allowed = rng.random((*shape, len(codes))) < 0.4  # none of them: not stated
    is_allowed &= codes < n_categories[:, None]
    return Limits(low, high, decrease, increase, step, torch.from_numpy(is_allowed))


def broken(
    problem: Problem, x: Tensor, preferences: Preferences, recommendation: Recommendation
) -> Tensor:
    """Return by how many standard deviations each value breaks a limit, (N, K).

    It is worked out from what was stated, and zero or below where
    nothing is broken.
    """
    population, limits = problem.population, preferences.limits
    assert limits is not None
    columns = population.actionable_index
    now, then = (
        population.to_records(values)[:, columns] for values in (x, recommendation.values)
    )
    beyond = [
        limits.low - then,
        then - limits.high,
        now - then - limits.max_decrease,
        then - now - limits.max_increase,
        (then - (then / limits.step).round() * limits.step).abs(),
    ]
    mask = limits.allowed_categories
    if mask.any():
        code = then.long().clamp(0, mask.shape[-1] - 1)[..., None]
        beyond.append((mask.any(-1) & ~mask.gather(-1, code)[..., 0]).double())
    most = torch.stack([amount.nan_to_num(nan=-1.0) for amount in beyond]).amax(0)
    is_acted = recommendation.is_acted[:, columns]
    return torch.where(is_acted, most / population.std[columns], -1.0)


def counted(
    problem: Problem, x: Tensor, preferences: Preferences, recommendation: Recommendation
) -> dict[str, int]:
    """Return how many recommendations break what, and how many people have one."""
    population = problem.population
    done = problem.discretise(x, recommendation)
    is_acted = done.is_acted[:, population.actionable_index]
    fractions = torch.zeros(len(x), dtype=torch.bool)
    if population.discretisation is not None:
        units = population.inverse_transform(done.x_cf.double())
        is_whole = population.discretisation.is_whole
        is_fraction = ((units - units.round()).abs() > 1e-3) & is_whole
        fractions = (is_fraction & (done.x_cf != x)).any(-1)
    is_broken = (broken(problem, x, preferences, done) > FAR).any(-1)
    return {
        "beyond a limit": int(is_broken.sum()),
        "on what is closed": int((is_acted & ~preferences.is_actionable).any(-1).sum()),
        "in fractions": int(fractions.sum()),
        "answered": int(done.has_recourse.sum()),
    }


if __name__ == "__main__":
    main()

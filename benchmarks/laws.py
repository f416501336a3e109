"""Ten thousand random people and limits: nothing beyond a limit, whoever recommends.

    .venv/bin/python benchmarks/laws.py      about half an hour on two cores

Refused people of Loan, of Give Me Some Credit and of a table with categories say random
directions, limits and steps. Every solver answers them, with the committed networks where
there are some. The result is benchmarks/laws.csv: how often an answer breaks a limit, acts
on what is closed, leaves somebody with a fraction of a count or of a category, and how many
have an answer. Without the data (docs/run.md) Give Me Some Credit is left out.
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
from lib.method import loan, training
from lib.method.grid import Grid
from lib.method.icarma import ICarma, Settings
from lib.method.limits import Limits
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, Solver
from lib.method.pruned import Pruned
from lib.method.samplers import RankingSampler, WithLimits
from lib.paper import gmsc
from lib.search.continuous import Refined, Search

PATH = Path(__file__).with_suffix(".csv")
N_PEOPLE = 10_000
FAR = 1e-5  # standard deviations: more than rounding moves a value


def main() -> None:
    """Ask everybody, count, and save."""
    rows = []
    for name, problem, networks in problems():
        x, own = asked(problem, N_PEOPLE, seed=0)
        for who, solver in solvers(problem, networks).items():
            start = perf_counter()
            found = solver.recommend(x, own)
            seconds = perf_counter() - start
            rows.append(
                {"people": name, "solver": who, "asked": len(x)}
                | counted(problem, x, own, found)
                | {"seconds": round(seconds, 1)}
            )
            print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(PATH, index=False)


def problems() -> Iterator[tuple[str, Problem, dict[str, Solver]]]:
    """Yield problems by name, with the networks that there are."""
    problem = loan.problem()
    stack = ICarma.load(MODELS, "loan_icarma_ranking", problem)
    proposer = Proposer.load(MODELS, "loan_propose", problem)
    yield "Loan", problem, {"iCARMA": stack.member(0), "proposer": proposer}
    try:
        problem = gmsc.problem(gmsc.applicants("", 200_000, seed=0))
    except ValueError as error:
        print(f"Give Me Some Credit is left out: {error}")
    else:
        stack = ICarma.load(MODELS, "gmsc_icarma", problem)
        proposer = Proposer.load(MODELS, "gmsc_propose", problem)
        yield "GMSC", problem, {"iCARMA": stack.member(0), "proposer": proposer}
    problem = with_categories()
    sampler = RankingSampler(problem.population.actionable)
    networks: dict[str, Solver] = {}
    for who, one in (
        ("iCARMA", sampler),
        ("iCARMA that hears limits", WithLimits(sampler, problem.population)),
    ):
        stack, _ = training.fit(problem, one, Settings(n_epochs=60), seeds=[0])
        networks[who] = stack.member(0)
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
        "refined": Refined(network, problem, n_scouts=16, n_starts=1, n_steps=4),
        "grid": Grid(problem, n_values=9),
        "HARE's options": Options(problem),
        "search over all values": Search(problem, n_scouts=16, n_starts=1, n_steps=4),
    }


def asked(problem: Problem, n_people: int, seed: int) -> tuple[Tensor, Preferences]:
    """Return refused people, some of them several times, and what they say."""
    rng = np.random.default_rng(seed)
    refused = problem.refused("test")
    x = refused[rng.integers(0, len(refused), n_people)]
    sampler = RankingSampler(problem.population.actionable)
    scores = sampler.draw(range(n_people), rng).scores
    return x, Preferences(scores, limits=random_limits(problem.population, x, rng))


def random_limits(population: Population, x: Tensor, rng: np.random.Generator) -> Limits:
    """Return limits of every kind, each of some people and features, (N, K)."""
    columns = population.actionable_index
    now = population.as_recorded(x)[:, columns].numpy()
    std = population.std[columns].numpy()
    shape = now.shape
    sets = [2 ** len(population.categories.get(n, ())) for n in population.actionable]
    has_limits = np.array(sets) == 1

    def said(values: np.ndarray, share: float = 0.3) -> Tensor:
        is_said = (rng.random(shape) < share) & has_limits
        return torch.from_numpy(np.where(is_said, values, np.nan))

    low = said(now + std * rng.normal(-0.5, 1, shape))
    high = said(now + std * rng.normal(0.5, 1, shape))
    low = torch.where(low > high, torch.nan, low)
    fall, rise = (
        said(std * rng.choice([0.0, 0.5, np.inf], shape, p=[0.5, 0.3, 0.2]))
        for _ in range(2)
    )
    step = said(std * rng.choice([0.1, 0.4], shape), 0.2)
    if population.whole is not None:
        step = torch.where(population.whole.is_whole[columns], step.ceil(), step)
    among = rng.integers(1, np.maximum(sets, 2), shape).astype(float)
    some = np.where((rng.random(shape) < 0.5) & ~has_limits, among, np.nan)
    return Limits(low, high, fall, rise, step, torch.from_numpy(some))


def broken(
    problem: Problem, x: Tensor, preferences: Preferences, found: Recommendation
) -> Tensor:
    """Return by how many standard deviations each value breaks a limit, (N, K).

    What is asked is worked out here from what was said. It is zero or
    below where nothing is broken.
    """
    population, limits = problem.population, preferences.limits
    assert limits is not None
    columns = population.actionable_index
    acts = found.is_acted[:, columns]
    now, then = (population.as_recorded(own)[:, columns] for own in (x, found.values))
    chosen = limits.among.nan_to_num().long() >> then.long().clamp(0, 62)
    is_beyond = limits.among.isfinite() & (chosen & 1 == 0)
    each = [
        limits.low - then,
        then - limits.high,
        now - then - limits.fall,
        then - now - limits.rise,
        (then - (then / limits.step).round() * limits.step).abs(),
        is_beyond.double(),
    ]
    most = torch.stack([own.nan_to_num(nan=-1.0) for own in each]).amax(0)
    return torch.where(acts, most / population.std[columns], -1.0)


def counted(
    problem: Problem, x: Tensor, preferences: Preferences, found: Recommendation
) -> dict[str, int]:
    """Return how many answers break what, and how many people have one."""
    population = problem.population
    done = problem.carried_out(x, found)
    closed = done.is_acted[:, population.actionable_index] & ~preferences.is_actionable
    fractions = torch.zeros(len(x), dtype=torch.bool)
    if population.whole is not None:
        units = population.in_units(done.x_cf.double())
        off = ((units - units.round()).abs() > 1e-3) & population.whole.is_whole
        fractions = (off & (done.x_cf != x)).any(-1)
    return {
        "beyond a limit": int((broken(problem, x, preferences, done) > FAR).any(-1).sum()),
        "on what is closed": int(closed.any(-1).sum()),
        "in fractions": int(fractions.sum()),
        "answered": int(done.has_recourse.sum()),
    }


if __name__ == "__main__":
    main()

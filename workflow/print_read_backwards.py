"""Write what the printed table of the study of notebook 10 implies, as a report.

`python workflow/print_read_backwards.py [MODELS [REPORT]]` reads
willingness.csv and willingness_latent.csv of the folder MODELS, and
writes Markdown. The committed report, docs/print_read_backwards.md,
is of the committed models.
"""

import lib.reproducible

import itertools
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib import io
from lib.beyond.evaluation import gamm, refits, tominaga, willingness

REPORT = "docs/print_read_backwards.md"
TEMPLATE = io.ROOT / "workflow" / "print_read_backwards.md"
N_DRAWS, N_CENTRED, SEED = 20, 2, 0  # draws of what people were shown
NEAR, FAR = np.array([0.3]), np.array([6.3])  # proximities like 1 change and 9 changes
SHARES = (0.2, 0.3, 0.4, 0.7)  # of its range, by which items of the nearest plan move
WORDS = {
    "intercept": "mean",
    "sigma2": "error variance",
    "edf_intercepts": "EDF of levels",
    "edf_slopes": "EDF of slopes",
    "F_smooth": "F of the curve",
    "edf_smooth": "EDF of the curve",
    "se": "s.e. of the mean",
    "aic": "AIC",
    "F_intercepts": "F of levels (a check)",
    "F_slopes": "F of slopes (a check)",
}
# curves over proximity, scaled to fall by 1 from NEAR to FAR
BY_SIZE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elbow at 2": lambda d: np.maximum(2 - d, 0),
    "elbow at 2.5": lambda d: np.maximum(2.5 - d, 0),
    "elbow at 3": lambda d: np.maximum(3 - d, 0),
    "exp(-d/1)": lambda d: np.exp(-d),
    "exp(-d/1.5)": lambda d: np.exp(-d / 1.5),
    "line": lambda d: -d,
}


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown, with its index as first columns."""
    rows = table.reset_index().astype(str)
    lines = [list(rows.columns), ["---"] * len(rows.columns), *rows.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def implied(model: int, drawn: Sequence[gamm.Design]) -> dict[str, float]:
    """Return variances that a model's print implies, and its standard error over ours."""
    of_print = tominaga.printed(model)
    latent, se = refits.of_print(of_print, drawn)
    sd = float(np.mean([one.x.std() for one in drawn]))
    return {
        "errors": latent.error,
        "levels": latent.between,
        "slopes": latent.slope,
        "slopes, over a sd of d": latent.slope * sd,
        "s.e. / printed": se / of_print.se,
    }


def every_pool() -> pd.DataFrame:
    """Return standard errors over the printed, by what was shown, and which are kept."""
    rows = {}
    shares = {"2, 3, 3, 2": willingness.SPARSEST, "few of one": willingness.FEW_OF_ONE}
    for name, mean, sd in itertools.product(shares, (5.0, 6.0, 7.0, 8.0), (1.2, 1.8, 2.4)):
        pool = willingness.Pool(mean, sd, shares[name])
        drawn = refits.samples(pool, N_DRAWS, SEED)
        some = drawn[:N_CENTRED]
        centred = [refits.design(one.x - one.x.mean(), one.person) for one in some]
        row = {"mean shown": float(np.mean([one.x.mean() for one in drawn]))}
        for model, outcome in ((1, "acceptance"), (3, "action")):
            row[outcome] = implied(model, drawn)["s.e. / printed"]
            row[f"{outcome}, d centred"] = implied(model, centred)["s.e. / printed"]
        row["as large as quoted"] = float(np.mean([(d.x >= 11).sum() >= 3 for d in drawn]))
        rows[name, mean, sd] = row
    table = pd.DataFrame(rows).T.rename_axis(["sparsest plans", "pool: mean", "sd"])
    is_near = table[["acceptance", "action"]].sub(1).abs().max(axis=1) <= 0.02
    return table.assign(kept=is_near & (table["as large as quoted"] >= 0.5))


def by_size(share: float) -> list[gamm.Design]:
    """Return draws of proximities: items of the nearest plan move by a share of a range."""
    drawn = []
    for i in range(N_DRAWS):
        rng = np.random.default_rng([SEED, i])
        n, people = willingness.POOLS["middle"].draw(rng, n_removed=0)
        d = (n.reshape(-1, 5) * [0.7, share, 0.7, 0.7, 0.7]).ravel().round(2)
        out = rng.choice(len(d), tominaga.N_REMOVED, replace=False, p=n / n.sum())
        drawn.append(refits.design(np.delete(d, out), np.delete(people, out)))
    return drawn


def curves_by_size(drawn: Sequence[gamm.Design]) -> pd.DataFrame:
    """Return falls of action by proximity at which model 4's F is found again."""
    of_print, sds = tominaga.printed(4), implied(4, drawn)
    n_people, rows = willingness.N_PEOPLE, {}

    def refit(f: Callable[[np.ndarray], np.ndarray], fall: float) -> pd.DataFrame:
        """Return F and EDF of the curve in SIMULATED answers, a row a draw."""
        fitted = []
        for i, one in enumerate(drawn):
            rng = np.random.default_rng([SEED, i, 1])
            both = [sds["levels"], sds["slopes"]]
            level, slope = rng.normal(0, both, (n_people, 2)).T
            y = fall * f(one.x) / (f(NEAR) - f(FAR)) + level[one.person]
            y = y + slope[one.person] * one.x + rng.normal(0, sds["errors"], len(one.x))
            fit = one.fit(y)
            fitted.append({"F": fit.test().f, "EDF": fit.edf["smooth"]})
        return pd.DataFrame(fitted)

    for name, f in BY_SIZE.items():
        fall = 1.0
        for _ in range(2):  # F less 1 grows with the square of the fall
            fall *= ((of_print.F["smooth"] - 1) / (refit(f, fall).F.mean() - 1)) ** 0.5
        refitted = refit(f, fall)
        rows[name] = {"fall": fall, **refitted.mean(), "sd of EDF": refitted.EDF.std()}
    table = pd.DataFrame(rows).T
    off = (table.EDF - of_print.edf["smooth"]).abs()
    return table.assign(fits=off <= 2 * table["sd of EDF"])


def report(latents: pd.DataFrame, summaries: pd.DataFrame) -> str:
    """Return the report of what `refits.studies` returned."""
    printed = {model: tominaga.printed(model) for model in tominaga.MODELS}
    pools = every_pool()
    kept = {
        (model, name): implied(model, refits.samples(pool, N_DRAWS, SEED))
        for model in (1, 3)
        for name, pool in willingness.POOLS.items()
    }
    curves = refits.curves_that_fit(latents, summaries)
    fits = curves[curves.fits]
    cells = curves.fall.map("{:.2f}".format) + " (" + curves.EDF.map("{:.1f}".format) + ")"
    cells = cells.where(curves.fits, "[" + cells + "]").where(curves.is_reached, "-")
    wide = cells.unstack("pool").loc[list(willingness.SHAPES), list(willingness.POOLS)]
    wide.insert(0, "by the fifth", curves["by the fifth"].groupby("shape").first().round(3))
    of = dict(list(summaries.groupby("study")))
    is_seen = summaries.quantity == "p_smooth < 0.05"
    power = summaries[is_seen & (summaries.study == "power")]
    power = power.pivot(index="shape", columns="fall", values="mean")
    size = of["size"].set_index("quantity")
    refit = {
        shape: rows.set_index("quantity") for shape, rows in of["refit"].groupby("shape")
    }
    beside = {
        model: refits.beside_print(printed[model], refit[shape])
        .loc[list(WORDS)]
        .rename(WORDS)
        .round(3)
        for model, shape in ((3, willingness.MIDDLE), (1, willingness.FLAT))
    }
    proximity = {share: by_size(share) for share in SHARES}
    sizes = {(m, share): implied(m, d) for m in (2, 4) for share, d in proximity.items()}
    of_size = curves_by_size(proximity[0.3])
    falls = of_size.fall[of_size.fits.astype(bool)]
    return TEMPLATE.read_text(encoding="utf-8").format(
        n_answers=tominaga.N_ANSWERS,
        errors=", ".join(f"{one.error:.3f}" for one in printed.values()),
        aic_action=printed[4].aic - printed[3].aic,
        aic_acceptance=printed[1].aic - printed[2].aic,
        n_draws=N_DRAWS,
        most_centred=pools.filter(like="centred").max(axis=None),
        pools=markdown(pools.infer_objects().round(3)),
        variances=markdown(pd.DataFrame(kept).T.rename_axis(["model", "pool"]).round(3)),
        action=printed[3],
        n_fit=len(fits),
        n_curves=len(curves),
        least=fits.fall.min(),
        most=fits.fall.max(),
        fifth=fits["by the fifth"].min(),
        sd_of_fall=fits["sd of fall"].max(),
        curves=markdown(wide),
        n_refits=of["refit"].datasets.iloc[0],
        refit_3=markdown(beside[3]),
        refit_1=markdown(beside[1]),
        n_size=size.datasets.iloc[0],
        n_power=of["power"].datasets.iloc[0],
        power=markdown(power.round(2)),
        size=size["mean"]["p_smooth < 0.05"],
        whole=refit[willingness.FLAT]["mean"]["p_smooth < 0.05"],
        within=1.96 * size.sd["drop"],
        sizes=markdown(
            pd.DataFrame(sizes).T.rename_axis(["model", "nearest plan moves by"]).round(3)
        ),
        by_size=printed[4],
        curves_by_size=markdown(of_size.rename_axis("shape").round(2)),
        least_by_size=falls.min(),
        most_by_size=falls.max(),
    )


def main(models: str = "models", path: str = REPORT) -> None:
    """Write the report of what lies in a folder of models."""
    folder = io.inside(models)
    latents, summaries = (
        io.read_csv(folder / f"willingness{ending}.csv") for ending in ("_latent", "")
    )
    io.write(io.inside(path), report(latents, summaries))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Recommend for Parquet files of applicants: `python workflow/recommend.py FILE`.

FILE is like params/recommend.yaml. It says who decides, who
recommends, and where applicants and recommendations lie.
"""

import lib.reproducible

import sys
from pathlib import Path

import parameters

from lib import io
from lib.beyond import batches

DEFAULTS = io.PARAMS / "recommend.yaml"


def main(path: Path) -> None:
    """Recommend as a parameter file says."""
    given, defaults = io.load_yaml(path), io.load_yaml(DEFAULTS)
    parameters.check(given, defaults, str(path))
    given = defaults | given
    adviser = batches.Adviser(
        given["population"], given["solver"], given["profile"], io.inside(given["models"])
    )
    source, target = io.inside(given["input"]), io.inside(given["output"])
    n_people = batches.recommend(
        adviser, source, target, given["scheduler"], given["n_workers"]
    )
    print(f"Recommendations for {n_people:,} applicants: {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Rebuild everything from nothing, and compare it with the committed files: `make verify`.

The batch runs at the paper's size in runs/verify/copy, a copy of what
it reads (`SOURCES`). No model, table or figure is in there, whether
committed or of an earlier run. An interrupted one goes on where it
stopped if all that it copied is still the same; a finished one starts
anew. The last lines are also in runs/verify/verified.txt.
"""

import lib.pinned

import argparse
import shutil
import sys
from pathlib import Path

import compare
from parameters import MODEL_SIZE, ROOT
from reproduce import only_batch, run_notebooks

from lib.base import files
from lib.paper import gmsc

SOURCES = (
    "benchmarks",
    "data",
    "lib",
    "notebooks",
    "page",
    "params",
    "requirements.lock",
    "tests/reference",
    "workflow",
)
NOT_SOURCES = ("__pycache__", ".ipynb_checkpoints")
NEEDS_DATA = "07_gmsc_transfer"


def main() -> None:
    """Rebuild, compare, print a line a file; exit with 1 if one differs or is missing."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    folder = ROOT / "runs" / "verify"
    try:
        with only_batch(folder):
            lines, n_failed = verify(folder)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}\nNothing was compared.")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: the same command goes on from here.")
    print(f"\n{lines}")
    sys.exit(n_failed > 0)


def verify(folder: Path) -> tuple[str, int]:
    """Return a line a file and the count, and how many differ or are missing.

    Arguments:
        folder: For the copy and everything that is rebuilt in it.
    Raises: ValueError: not everything ran; the data is named, and not
        there.
    """
    has_data = gmsc.find() is not None
    copy = copy_of_sources(ROOT, folder)
    goes_on = (copy / "runs").exists()
    print(
        f"{'Going on' if goes_on else 'From nothing'}, in {copy.relative_to(ROOT)}",
        flush=True,
    )
    names = (path.stem for path in (copy / "notebooks").glob("*.ipynb"))
    run_notebooks(MODEL_SIZE, copy, [n for n in names if has_data or n != NEEDS_DATA])
    compared = compare.compare(copy / "runs" / MODEL_SIZE, ROOT, has_data)
    lines = "\n".join([*map(str, compared), "", compare.count(compared)])
    files.write(folder / "verified.txt", f"{lines}\n")
    return lines, sum(one.fails for one in compared)


def copy_of_sources(root: Path, folder: Path) -> Path:
    """Return folder/copy, which holds `SOURCES` and what was rebuilt from just these.

    What was rebuilt is kept if the sources are the same and
    verified.txt does not say that it was compared; else it is removed.

    Arguments:
        root: The repository.
        folder: Where the copy is made.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     copy = copy_of_sources(ROOT, Path(folder))
        ...     all((copy / name).exists() for name in SOURCES), (copy / "models").exists()
        (True, False)
    """
    copy, compared = folder / "copy", folder / "verified.txt"
    if not compared.exists() and contents(copy) == contents(root):
        return copy
    folder.mkdir(parents=True, exist_ok=True)
    compared.touch()  # until the copy is whole, nothing can go on from it
    shutil.rmtree(copy, ignore_errors=True)
    for path in contents(root):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, copy / path)
    compared.unlink()
    return copy


def contents(root: Path) -> dict[Path, bytes]:
    """Return what the files of `SOURCES` hold, by path.

    Example:
        >>> Path("lib/pinned.py") in contents(ROOT), contents(ROOT / "nowhere")
        (True, {})
    """
    paths = [path for name in SOURCES for path in [root / name, *(root / name).rglob("*")]]
    return {
        path.relative_to(root): path.read_bytes()
        for path in paths
        if path.is_file() and not set(path.parts) & set(NOT_SOURCES)
    }


if __name__ == "__main__":
    main()

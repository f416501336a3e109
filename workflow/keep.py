"""Keep models and tables of the last batch at the paper's size: `make models`.

They take the place of the committed ones. What was made of a stand-in
for Give Me Some Credit is not kept.
"""

import shutil
import sys
from pathlib import Path

import chain
import compare
from parameters import MODEL_SIZE, ROOT


def keep(run: Path, root: Path, has_data: bool) -> None:
    """Copy models and tables of a batch into the repository; print what is not copied.

    Arguments:
        run: Folder of the batch.
        root: The repository.
        has_data: Whether the batch had the data of Give Me Some Credit.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as run, TemporaryDirectory() as root:
        ...     for name in ("04_hard.csv", "11_gmsc.csv"):
        ...         path = Path(run) / "tables" / name
        ...         path.parent.mkdir(exist_ok=True)
        ...         path.touch()
        ...     keep(Path(run), Path(root), has_data=False)
        ...     [path.name for path in (Path(root) / "tables").iterdir()]
        Made of a stand-in, so the committed ones stay: 11_gmsc.csv
        ['04_hard.csv']
    """
    left_out = []
    for folder in ("models", "tables"):
        (root / folder).mkdir(exist_ok=True)
        for pattern in compare.PATTERNS[folder]:
            for path in sorted((run / folder).glob(pattern)):
                if has_data or not chain.is_of_the_data(path.name):
                    shutil.copy(path, root / folder)
                else:
                    left_out.append(path.name)
    if left_out:
        print(f"Made of a stand-in, so the committed ones stay: {', '.join(left_out)}")


if __name__ == "__main__":
    made = ROOT / "runs" / MODEL_SIZE
    if not (made / "models").is_dir():
        sys.exit(f"There is no runs/{MODEL_SIZE}/models: make all first.")
    keep(made, ROOT, compare.is_of_real_people(made / "models"))

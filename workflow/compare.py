"""Which files of a batch equal the committed ones, to the bit, and in what others differ.

Compared are the folders models, tables and figures of a batch with
those of the repository. Figures without a notebook's number in front
are not the batch's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chain
import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file

from lib import io
from lib.paper import gmsc

PATTERNS = {
    "models": ("*.safetensors", "*.csv"),
    "tables": ("*.csv",),
    "figures": ("[0-9]*.png", "[0-9]*.pdf"),
}
NO_DATA = "not rebuilt (no data)"


@dataclass(frozen=True)
class Compared:
    """Hold a file's verdict, and print as a line.

    Arguments:
        file: Folder and name.
        verdict: "equal", "DIFFERS: ...", "missing" (committed, and not
            made by the batch), "not committed", or `NO_DATA`.

    Example:
        >>> one = Compared("models/loan_flow.safetensors", "missing")
        >>> print(one, one.is_equal, one.fails)
        models/loan_flow.safetensors: missing False True
    """

    file: str
    verdict: str

    def __str__(self) -> str:
        return f"{self.file}: {self.verdict}"

    @property
    def is_equal(self) -> bool:
        """Return whether the file was rebuilt to the bit."""
        return self.verdict.startswith("equal")

    @property
    def fails(self) -> bool:
        """Return whether the committed file was not rebuilt, though it could have been."""
        return self.verdict == "missing" or self.verdict.startswith("DIFFERS")


def compare(
    run: Path, root: Path, has_data: bool, notebooks: Collection[str] | None = None
) -> list[Compared]:
    """Return a verdict for each model, table and figure of a batch or of the repository.

    Arguments:
        run: Folder of the batch.
        root: The repository.
        has_data: Whether the batch had the data of Give Me Some
            Credit; without it, nothing of it is compared.
        notebooks: Only what is made when these are run; None: all.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as run, TemporaryDirectory() as root:
        ...     for folder, number in ((run, 1), (root, 2)):
        ...         (Path(folder) / "tables").mkdir()
        ...         table = pd.DataFrame({"k": [4, 3], "validity": [0.5, number]})
        ...         table.to_csv(Path(folder) / "tables" / "04_hard.csv", index=False)
        ...     print(*compare(Path(run), Path(root), has_data=True))
        tables/04_hard.csv: DIFFERS: 1 of 4 cells, by 1 at most, in validity
    """
    compared = []
    for folder, patterns in PATTERNS.items():
        names = {
            path.name
            for where in (run, root)
            for pattern in patterns
            for path in (where / folder).glob(pattern)
        }
        for name in sorted(names):
            if notebooks is not None and not chain.is_of(notebooks, folder, name):
                continue
            rebuilt, committed = run / folder / name, root / folder / name
            no_data = chain.is_of_the_data(name) and not has_data
            verdict = NO_DATA if no_data else verdict_on(rebuilt, committed)
            compared.append(Compared(f"{folder}/{name}", verdict))
    return compared


def count(compared: Sequence[Compared]) -> str:
    """Return how many of each kind are equal, and a line for each that is not.

    Example:
        >>> two = [Compared("tables/a", "equal"), Compared("tables/b", "missing")]
        >>> print(count(two))  # doctest: +NORMALIZE_WHITESPACE
        Equal to the committed files, to the bit:
        0 of 0 models, 1 of 2 tables, 0 of 0 figures (PNG and PDF)
          tables/b: missing
    """
    judged = [one for one in compared if one.verdict != NO_DATA]
    counts = []
    for folder in PATTERNS:
        of_folder = [one for one in judged if one.file.startswith(folder)]
        n_equal = sum(one.is_equal for one in of_folder)
        counts.append(f"{n_equal} of {len(of_folder)} {folder}")
    lines = [
        f"Equal to the committed files, to the bit: {', '.join(counts)} (PNG and PDF)",
        *(f"  {one}" for one in judged if not one.is_equal),
    ]
    if left_out := [one.file for one in compared if one.verdict == NO_DATA]:
        lines.append(f"  {NO_DATA}: {', '.join(left_out)}")
    return "\n".join(lines)


def is_of_real_people(models: Path) -> bool:
    """Return whether the models of Give Me Some Credit were fitted to the real people.

    Raises: ValueError: there is no gmsc_scaler.

    Example:
        >>> is_of_real_people(io.MODELS)
        True
    """
    return gmsc.scaler(models)[1] == "real"


def verdict_on(rebuilt: Path, committed: Path) -> str:
    """Return the verdict on one file, of which one of the two may not be there.

    Example:
        >>> from lib.io import MODELS
        >>> path = MODELS / "loan_flow.safetensors"
        >>> verdict_on(path, path), verdict_on(Path("nowhere"), path)
        ('equal', 'missing')
    """
    if not rebuilt.is_file():
        return "missing"
    if not committed.is_file():
        return "not committed"
    if rebuilt.read_bytes() == committed.read_bytes():
        return "equal"
    kinds = {io.ENDING: _difference_of_models, ".csv": _difference_of_tables}
    kinds[".png"] = _difference_of_images
    try:
        difference = kinds.get(rebuilt.suffix, lambda *_: "its bytes")(rebuilt, committed)
    except (ValueError, OSError, SafetensorError) as error:
        return f"DIFFERS: one of the files is damaged ({error})"
    return f"DIFFERS: {difference}"


def _difference_of_models(rebuilt: Path, committed: Path) -> str:
    """Return in what two models differ: names and shapes, values, or the header only."""
    ours, theirs = load_file(rebuilt), load_file(committed)
    shapes = [
        {name: tensor.shape for name, tensor in model.items()} for model in (ours, theirs)
    ]
    if shapes[0] != shapes[1]:
        odd = sorted(dict(shapes[0].items() ^ shapes[1].items()))
        return f"names or shapes of tensors: {', '.join(odd)}"
    differ = [name for name in ours if not torch.equal(ours[name], theirs[name])]
    if not differ:
        return "only the header"
    most = max(float((ours[n].double() - theirs[n].double()).abs().max()) for n in differ)
    return f"{len(differ)} of {len(ours)} tensors, by {most:.2g} at most"


def _difference_of_tables(rebuilt: Path, committed: Path) -> str:
    """Return in what two tables differ: shape, columns or cells."""
    as_text: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    ours, theirs = (io.read_csv(path, **as_text) for path in (rebuilt, committed))
    if ours.shape != theirs.shape:
        rows, columns = theirs.shape
        return f"{len(ours)} rows of {ours.shape[1]}, not {rows} of {columns}"
    if list(ours) != list(theirs):
        return f"columns {', '.join(ours)}, not {', '.join(theirs)}"
    differs = (ours != theirs).to_numpy()
    numbers = [
        table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)[differs]
        for table in (ours, theirs)
    ]
    apart = np.abs(np.subtract(*numbers))
    most = f", by {np.nanmax(apart):.2g} at most" if np.isfinite(apart).any() else ""
    columns = ours.columns[differs.any(0)]
    return f"{differs.sum()} of {ours.size} cells{most}, in {', '.join(columns)}"


def _difference_of_images(rebuilt: Path, committed: Path) -> str:
    """Return in what two images differ: size or pixels."""
    ours, theirs = (
        np.asarray(Image.open(path).convert("RGBA")).astype(int)
        for path in (rebuilt, committed)
    )
    if ours.shape != theirs.shape:
        return "its size"
    apart = np.abs(ours - theirs).max(-1)
    n_differ = np.count_nonzero(apart)
    return f"{n_differ:,} of {apart.size:,} pixels, by {apart.max()} of 255 at most"

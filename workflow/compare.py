"""Which files of a batch equal the committed ones, to the bit, and in what others differ.

Compared are the folders models, tables and figures of a batch with
those of the repository. Figures without a notebook's number in front
are not the batch's.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chain
import numpy as np
import pandas as pd
from PIL import Image
from torch import Tensor

from lib.base import files, tables
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
    found = []
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
            found.append(Compared(f"{folder}/{name}", verdict))
    return found


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
    parts = []
    for folder in PATTERNS:
        own = [one for one in judged if one.file.startswith(folder)]
        parts.append(f"{sum(one.is_equal for one in own)} of {len(own)} {folder}")
    lines = [
        f"Equal to the committed files, to the bit: {', '.join(parts)} (PNG and PDF)",
        *(f"  {one}" for one in judged if not one.is_equal),
    ]
    if left_out := [one.file for one in compared if one.verdict == NO_DATA]:
        lines.append(f"  {NO_DATA}: {', '.join(left_out)}")
    return "\n".join(lines)


def is_of_real_people(models: Path) -> bool:
    """Return whether the models of Give Me Some Credit were fitted to the real people.

    Raises: ValueError: there is no gmsc_scaler.

    Example:
        >>> is_of_real_people(files.MODELS)
        True
    """
    return gmsc.scaler(models)[1] == "real"


def verdict_on(rebuilt: Path, committed: Path) -> str:
    """Return the verdict on one file, of which one of the two may not be there.

    Example:
        >>> from lib.base.files import MODELS
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
    try:
        if rebuilt.suffix == files.ENDING:
            return _verdict_on_models(rebuilt, committed)
        if rebuilt.suffix == ".csv":
            return f"DIFFERS: {_difference_of_tables(rebuilt, committed)}"
        if rebuilt.suffix == ".png":
            return f"DIFFERS: {_difference_of_images(rebuilt, committed)}"
    except ValueError as error:
        return f"DIFFERS: one of the files is damaged ({error})"
    return "DIFFERS: its bytes"


def _verdict_on_models(rebuilt: Path, committed: Path) -> str:
    """Return the verdict on model files that differ: in tensors, or in the header only.

    The same version of torch comes in several builds, and the header
    names the one at hand. That alone is no other model.
    """
    (tensors, header), (others, other_header) = map(_model, (rebuilt, committed))
    in_tensors = files.difference(tensors, others)
    keys = [
        key
        for key in header | other_header
        if header.get(key, "nothing") != other_header.get(key, "nothing")
    ]
    said = [
        f"{key} is {header.get(key, 'nothing')}, not {other_header.get(key, 'nothing')}"
        for key in keys
    ]
    in_header = "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if said[3:] else "")
    if in_tensors:
        return f"DIFFERS: {in_tensors}" + (f"; header: {in_header}" if said else "")
    if keys == ["model.provenance.torch"]:
        versions = [text[keys[0]].strip('"') for text in (header, other_header)]
        if versions[0].partition("+")[0] == versions[1].partition("+")[0]:
            return f"equal, made with another build of torch ({' for '.join(versions)})"
    return f"DIFFERS: only the header: {in_header or 'its order, or its spaces'}"


def _model(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return tensors of a model file, and its header, by path ("model.settings.tau").

    Raises: ValueError: the file is damaged.
    """
    tensors, header = files.read(path)
    header["model"].pop("checksum", None)  # it follows from the rest
    return tensors, _flat(header, "")


def _flat(part: Any, path: str) -> dict[str, str]:
    """Return what a nested header holds, as JSON, by its path."""
    if isinstance(part, list):
        part = dict(enumerate(part))
    if not isinstance(part, Mapping):
        return {path.removeprefix("."): json.dumps(part)}
    flat: dict[str, str] = {}
    for key, inner in part.items():
        flat |= _flat(inner, f"{path}.{key}")
    return flat


def _difference_of_tables(rebuilt: Path, committed: Path) -> str:
    """Return in what two tables differ: shape, columns or cells."""
    read = [
        tables.read(path, dtype=str, keep_default_na=False) for path in (rebuilt, committed)
    ]
    own, other = read
    if own.shape != other.shape:
        return f"{len(own)} rows of {own.shape[1]}, not {len(other)} of {other.shape[1]}"
    if list(own) != list(other):
        return f"columns {', '.join(own)}, not {', '.join(other)}"
    differs = (own != other).to_numpy()
    if not differs.any():
        return "its bytes, and no cell"
    numbers = [
        table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)[differs]
        for table in read
    ]
    apart = np.abs(np.subtract(*numbers))
    most = f", by {np.nanmax(apart):.2g} at most" if np.isfinite(apart).any() else ""
    columns = own.columns[differs.any(0)]
    return f"{differs.sum()} of {own.size} cells{most}, in {', '.join(columns)}"


def _difference_of_images(rebuilt: Path, committed: Path) -> str:
    """Return in what two images differ: size or pixels."""
    own, other = map(_pixels, (rebuilt, committed))
    if own.shape != other.shape:
        sizes = [f"{width} x {height}" for height, width, _ in (own.shape, other.shape)]
        return f"{sizes[0]} pixels, not {sizes[1]}"
    apart = np.abs(own - other).max(-1)
    if not apart.any():
        return "its bytes, and no pixel"
    n_differ = np.count_nonzero(apart)
    return f"{n_differ:,} of {apart.size:,} pixels, by {apart.max()} of 255 at most"


def _pixels(path: Path) -> np.ndarray:
    """Return the pixels of an image, with shape (height, width, 4).

    Raises: ValueError: it is none.
    """
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGBA")).astype(int)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is no image: {error}") from error

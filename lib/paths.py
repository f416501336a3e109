"""Where things lie, whatever folder a notebook or a test is run from."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARAMS = ROOT / "params"  # a folder for each size of the batch, and what tuning found
MODELS = ROOT / "models"  # the committed ones
PUBLISHED = ROOT / "published"  # the paper's tables and the GMSC graph, as CSV


def inside(folder: str | Path) -> Path:
    """Folder as an absolute path; relative ones are taken from the repository's root."""
    return ROOT / folder

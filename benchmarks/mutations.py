"""Mutate model files, and count which are loaded all the same, and with what in them.

    .venv/bin/python benchmarks/mutations.py [10000]

Each mutation is one change of one committed model: bits or bytes, a part that is cut,
doubled, zeroed or moved, a word of the header, or two tensors of one shape that change
places. A file that is loaded must hold the same model. The result is
benchmarks/mutations.csv, a row a kind.
"""

import lib.pinned

import json
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from lib.base import files, progress
from lib.base.files import MODELS

PATH = Path(__file__).with_suffix(".csv")
NAMES = ("loan_classifier", "loan_flow", "loan_carma")
Mutation = Callable[[bytes, np.random.Generator], bytes]


def at(raw: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Return the ends of a part of a file."""
    start = int(rng.integers(len(raw)))
    return start, min(start + int(rng.integers(1, 65)), len(raw))


def bit(raw: bytes, rng: np.random.Generator) -> bytes:
    """Flip one bit."""
    i, k = int(rng.integers(len(raw))), int(rng.integers(8))
    return raw[:i] + bytes([raw[i] ^ (1 << k)]) + raw[i + 1 :]


def some_bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    """Replace a part by random bytes."""
    start, end = at(raw, rng)
    return raw[:start] + rng.bytes(end - start) + raw[end:]


def cut(raw: bytes, rng: np.random.Generator) -> bytes:
    """Leave a part out, or everything from there on."""
    start, end = at(raw, rng)
    return raw[:start] + (raw[end:] if rng.random() < 0.5 else b"")


def doubled(raw: bytes, rng: np.random.Generator) -> bytes:
    """Repeat a part."""
    start, end = at(raw, rng)
    return raw[:end] + raw[start:end] + raw[end:]


def zeroed(raw: bytes, rng: np.random.Generator) -> bytes:
    """Set a part to zero."""
    start, end = at(raw, rng)
    return raw[:start] + bytes(end - start) + raw[end:]


def moved(raw: bytes, rng: np.random.Generator) -> bytes:
    """Let two parts of one length change places."""
    (a, end), b = at(raw, rng), int(rng.integers(len(raw)))
    (a, b), size = sorted((a, b)), end - a
    size = min(size, b - a, len(raw) - b)
    if size <= 0:
        return raw
    return (
        raw[:a]
        + raw[b : b + size]
        + raw[a + size : b]
        + raw[a : a + size]
        + raw[b + size :]
    )


def header(raw: bytes, rng: np.random.Generator) -> bytes:
    """Change one letter of the header, so that it is text still."""
    (n,) = struct.unpack("<Q", raw[:8])
    i = 8 + int(rng.integers(n))
    return raw[:i] + bytes([int(rng.integers(32, 127))]) + raw[i + 1 :]


def tensors(raw: bytes, rng: np.random.Generator) -> bytes:
    """Let two tensors of one shape change names."""
    (n,) = struct.unpack("<Q", raw[:8])
    said = json.loads(raw[8 : 8 + n])
    names = [name for name in said if name != "__metadata__"]
    pairs = [
        (one, other)
        for i, one in enumerate(names)
        for other in names[i + 1 :]
        if said[one]["shape"] == said[other]["shape"]
    ]
    if not pairs:
        return raw
    one, other = pairs[int(rng.integers(len(pairs)))]
    said[one], said[other] = said[other], said[one]
    text = json.dumps(said, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + raw[8 + n :]


KINDS: dict[str, Mutation] = {
    own.__name__: own
    for own in (bit, some_bytes, cut, doubled, zeroed, moved, header, tensors)
}


def outcome(folder: Path, name: str, raw: bytes, changed: bytes) -> str:
    """Return what becomes of a changed file."""
    if changed == raw:
        return "unchanged"
    (folder / f"{name}.safetensors").write_bytes(changed)
    try:
        found = files.load(folder, name)
    except ValueError:
        return "refused"
    except Exception as error:
        return type(error).__name__
    (weights, told), (own, said) = found, files.load(MODELS, name)
    is_same = weights.keys() == own.keys() and told == said
    is_same = is_same and all(
        part.shape == own[key].shape and part.equal(own[key])
        for key, part in weights.items()
    )
    return "the same model" if is_same else "another model"


def mutated(n: int, seed: int = 0) -> pd.DataFrame:
    """Return how many mutations of each kind had each outcome."""
    rng, rows = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as folder:
        for i in progress.bar("mutations")(range(n)):
            name, kind = NAMES[i % len(NAMES)], [*KINDS][i // len(NAMES) % len(KINDS)]
            raw = (MODELS / f"{name}.safetensors").read_bytes()
            changed = KINDS[kind](raw, rng)
            rows.append((kind, outcome(Path(folder), name, raw, changed)))
    table = pd.DataFrame(rows, columns=["kind", "outcome"])
    return pd.crosstab(table.kind, table.outcome)


def main() -> None:
    """Count, print and save; exit with 1 if another model was loaded or something broke."""
    table = mutated(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    table.to_csv(PATH)
    print(table.to_string())
    sys.exit(int(set(table) - {"unchanged", "refused", "the same model"} != set()))


if __name__ == "__main__":
    main()

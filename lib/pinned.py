"""Pin the arithmetic of this process: `import lib.pinned`, before anything else.

A rerun then gives the same bits: one thread, one instruction path for
matrix products on every x86 processor with AVX2, deterministic
algorithms. Training is chaotic: a difference in the last bit grows to
the third decimal within minutes. torch and numpy read these
environment variables once, when they are first imported. So this line
has to stand before them.

`lib` works without it. Numbers then agree with the committed ones
within the spread over seeds.

Raises: ImportError: numpy or torch was imported before, under other
    settings.

Example:
    >>> import lib.pinned
    >>> import torch
    >>> torch.get_num_threads(), lib.pinned.PINS["OMP_NUM_THREADS"]
    (1, '1')
"""

import os
import sys

PINS = {
    "OMP_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}

_too_early = [name for name in ("torch", "numpy") if name in sys.modules]
if _too_early and any(os.environ.get(name) != value for name, value in PINS.items()):
    raise ImportError(
        f"{_too_early[0]} was imported before lib.pinned, so the arithmetic can no longer "
        "be pinned. Make `import lib.pinned` the first import (pandas imports numpy too) "
        "and restart the process or kernel. Or leave the line out: everything works, with "
        "other last digits."
    )
os.environ.update(PINS)

import torch  # noqa: E402 - it reads the variables above

torch.set_num_threads(1)
# By this name for deterministic algorithms, five seconds of unused imports are spared.
torch.set_deterministic_debug_mode("error")

"""Solver code behind the notebooks of the iCARMA companion.

Importing this package pins the arithmetic, so that a rerun gives the same bits: one thread, one
instruction path for matrix products on every x86 processor with AVX2, deterministic algorithms.
Training is chaotic: a difference in the last bit grows to the third decimal within minutes.
The pins are environment variables that torch and numpy read once, when they are first imported.
"""

import os
import sys

_PINS = {
    "OMP_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}

_too_early = [name for name in ("torch", "numpy") if name in sys.modules]
if _too_early and any(os.environ.get(k) != v for k, v in _PINS.items()):
    raise ImportError(
        f"{_too_early[0]} was imported before lib, so its arithmetic can no longer be pinned and the numbers "
        "would not be the committed ones. Import lib first (restart the kernel if this is a notebook)."
    )
os.environ.update(_PINS)

import torch  # noqa: E402  (after the pins, on purpose)

torch.set_num_threads(1)
torch.set_deterministic_debug_mode("error")  # deterministic algorithms; by this name, five seconds of unused imports are spared

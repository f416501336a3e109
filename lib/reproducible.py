"""Same machine and environment, same bits: one thread, and deterministic algorithms.

`import lib.reproducible` sets both for this process. Every fit draws
its random numbers from a generator that its seed makes, so that a
second run gives the same bits.

Another processor rounds differently in the last digit. This is rare if
five environment variables are set before Python starts (`VARIABLES`).
The Makefile exports them. What training gives without them agrees within
the spread over seeds.

Example:
    >>> import lib.reproducible
    >>> torch.get_num_threads()
    1
"""

import torch

# read once by torch and numpy, when they are first imported
VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}

torch.set_num_threads(1)
# torch.use_deterministic_algorithms(True) sets the same, and imports a compiler for it
torch.set_deterministic_debug_mode("error")

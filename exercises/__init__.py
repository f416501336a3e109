"""Exercises that answer back: `from exercises import check`."""

import lib.reproducible  # one thread, deterministic algorithms

from exercises.checking import check

__all__ = ["check"]

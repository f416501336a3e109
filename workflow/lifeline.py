"""The line from a job back to reproduce.py: standard input, which closes when the batch is gone."""

import os
import stat
import threading


def end_with_batch() -> None:
    """Nothing; from now on this process ends when its standard input closes (the batch was killed, say).

    Or else two jobs would write to the same files after a restart. Only the batch gives its jobs a pipe; a job started by
    hand is left alone.
    """
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)

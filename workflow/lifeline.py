"""The line from a job back to reproduce.py: standard input, which closes with the batch."""

import contextlib
import os
import threading

# Set by reproduce.py: it says that standard input is a pipe which the batch holds open.
VARIABLE = "ICARMA_LIFELINE"


def end_with_batch() -> bool:
    """End this process, from now on, as soon as the batch that started it is gone.

    Otherwise a job of a killed batch goes on, and after a restart two
    jobs write to the same files. A job that was started by hand has
    no batch and is left alone, whatever its standard input is.
    Processes that this one starts are not tied to the batch by it.

    Returns: Whether a batch started it.
    Example:
        >>> end_with_batch()  # started by hand: nothing happens
        False
    """
    is_of_batch = bool(os.environ.pop(VARIABLE, ""))
    if is_of_batch:
        threading.Thread(target=_wait, daemon=True).start()
    return is_of_batch


def end_rules_with_batch(profile: str) -> None:
    """End Snakemake, which reads its rules just now, as soon as the batch is gone.

    Otherwise it would see its jobs end, and remove what they were to
    make, which another batch may have made meanwhile. Jobs of the
    profile `local` hold the line, too; those on a cluster have none.

    Example:
        >>> end_rules_with_batch("local")  # started by hand: nothing happens
    """
    if end_with_batch() and profile == "local":
        os.environ[VARIABLE] = "stdin"


def _wait() -> None:
    """Read standard input until it closes, then end the process."""
    while os.read(0, 1024):
        pass
    with contextlib.suppress(OSError):  # nobody may be left to read it
        os.write(2, b"The batch has ended, and so does this job.\n")
    os._exit(1)

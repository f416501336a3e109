"""One process at a time: a lock that the system lets go of when its holder ends."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 10.0  # seconds that the processes of a killed batch have to end


@contextlib.contextmanager
def only_one(lock: Path, what: str, way_out: str, patience: float = 0.0) -> Iterator[None]:
    """Hold a file; the system lets go of it when this process ends, however.

    Arguments:
        lock: Made if it does not exist; it holds the number of the
            process that holds it.
        what: Is running then, for the message.
        way_out: What to do about it, for the message.
        patience: Seconds to wait for another process to end.
    Raises: ValueError: another process holds it, or the folder knows
        no locks.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     lock = Path(folder) / "lock"
        ...     with only_one(lock, "It", "Wait."), only_one(lock, "It", "Wait."):
        ...         print("never printed")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: It is running already (process ...): Wait.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + patience
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _is_taken(file):
            if time.monotonic() >= end:
                holder = os.pread(file, 20, 0).decode(errors="replace")
                raise ValueError(f"{what} is running already (process {holder}): {way_out}")
            time.sleep(0.2)
        with contextlib.suppress(OSError):  # a full disk: then the number is missing
            os.truncate(file, 0)
            os.write(file, str(os.getpid()).encode())
        yield
    finally:
        os.close(file)


@contextlib.contextmanager
def only_job(run: Path, name: str) -> Iterator[None]:
    """Hold a job, or a notebook, of a run; what is left of a killed batch is waited for.

    Arguments:
        run: The folder runs/<size>.
        name: Of the job.
    Raises: ValueError: another process holds it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, only_job(Path(folder), "loan_carma"):
        ...     [path.name for path in Path(folder).rglob("loan*")]
        ['loan_carma']
    """
    way_out = "two would write to the same files. Wait for it, or stop it."
    with only_one(run / "locks" / name, f"{name} of runs/{run.name}", way_out, PATIENCE):
        yield


def _is_taken(file: int) -> bool:
    """Return whether this process could take the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ValueError(
            f"This folder knows no locks ({error.strerror}), so two runs could not be kept "
            "apart. Put the repository on a disk that does, or mount it with flock."
        ) from error
    return True

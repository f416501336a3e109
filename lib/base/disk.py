"""Files that are written in one step: a kill or a full disk never leaves half of one.

A kill may leave a hidden file beside it, which the next batch removes.
"""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
HALF_DONE = ".partial"  # of a file that is being written, or was when its process ended


def write(path: Path, content: bytes | str) -> None:
    """Write a file in one step: it is there whole, or as it was before.

    What is written lies beside it until it is whole, as
    .<name>.<at random>.partial, so that two processes that write the
    same file don't meet.

    Arguments:
        path: Of the file; its folder is made if it does not exist.
        content: Text is written as UTF-8.
    Raises: OSError: it can't be written, for instance because the
        disk is full; what stood there before is whole.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "tables" / "one.csv"
        ...     write(path, "a,b\\n")
        ...     path.read_text(), [found.name for found in path.parent.iterdir()]
        ('a,b\\n', ['one.csv'])
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content
    half_done = path.with_name(f".{path.name}.{secrets.token_hex(4)}{HALF_DONE}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half_done.write_bytes(raw)
        os.replace(half_done, path)
    except OSError as error:
        way_out = "Make room, and start" if error.errno in FULL else "Mend that, and start"
        raise OSError(
            f"{path} can't be written, {len(raw):,} bytes: {error.strerror}. What was "
            f"there before is whole. {way_out} again: what is finished is kept."
        ) from error
    finally:
        with suppress(OSError):
            half_done.unlink(missing_ok=True)

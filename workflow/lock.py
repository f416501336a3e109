"""Write the locks: exact pins, each with the checksums of what may be installed.

`python workflow/lock.py`, with uv on the PATH (`pip install uv`).

requirements.lock and docs/book/requirements.lock hold for Python 3.11
and later on Linux and macOS; what is in them already keeps its
version where requirements.in allows it. To raise a pin, take its
entry out of the lock, or change requirements.in, and run this.

torch comes without CUDA: its checksums are those of the builds for
processors on its own index, and of PyPI's for macOS. Where that index
does not answer, those of the lock are kept if the version is the same.
"""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from lib import io

INDEX = "https://download.pytorch.org/whl/cpu/torch/"
PYPI = "https://pypi.org/simple/torch/"
AS_JSON = "application/vnd.pypi.simple.v1+json"
FOLDERS = (".", "docs/book")  # that have a requirements.in
PYTHONS = ("cp311", "cp312", "cp313")
OF_CUDA = ("nvidia-", "cuda-", "triton==")


def main() -> None:
    """Write both locks, or say what is missing and leave them as they are."""
    for folder in FOLDERS:
        path = io.ROOT / folder / "requirements.lock"
        before = path.read_text(encoding="utf-8")
        entries = resolved(path.with_suffix(".in"), path)
        pins = [
            of_torch(entry, before) if entry.startswith("torch==") else entry
            for entry in entries
            if not entry.startswith(OF_CUDA)
        ]
        name = path.relative_to(io.ROOT).with_suffix(".in")
        io.write(
            path, f"# Exact pins, made from {name} by workflow/lock.py.\n{''.join(pins)}"
        )


def resolved(requirements: Path, lock: Path) -> list[str]:
    """Return the entries of a lock, as uv resolves them; those there keep their version."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version=3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", str(requirements)]
    command += ["--output-file", str(lock.with_suffix(".new"))]
    pins = re.findall(
        r"^([\w.-]+==[^ ;\n]+)", lock.read_text(encoding="utf-8"), re.MULTILINE
    )
    known = lock.with_suffix(".known")
    try:
        known.write_text("\n".join(pins), encoding="utf-8")
        subprocess.run([*command, "--constraint", str(known)], check=True)
        text = lock.with_suffix(".new").read_text(encoding="utf-8")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"uv can't resolve {requirements} ({error}). Is it installed?")
    finally:
        for path in (known, lock.with_suffix(".new")):
            path.unlink(missing_ok=True)
    return re.findall(r"^\S.*\n(?: .*\n)*", text, re.MULTILINE)


def of_torch(entry: str, before: str) -> str:
    """Return torch's entry with the checksums of its builds without CUDA.

    Arguments:
        entry: As uv resolved it.
        before: The lock as it was.
    """
    version = entry.split("==")[1].split()[0]
    try:
        page = content(INDEX, "text/html").decode()
        links = re.findall(r'/torch-([^"#]+\.whl)#sha256=(\w{64})', page)
        asked = json.loads(content(PYPI, AS_JSON))["files"]
    except OSError as error:
        known = re.search(
            rf"^torch=={re.escape(version)} .*\n(?: .*\n)*", before, re.MULTILINE
        )
        if known is None:
            sys.exit(f"{INDEX} or {PYPI} does not answer ({error}), and torch is another.")
        return known[0]
    on_pypi = [(file["filename"], file["hashes"]["sha256"]) for file in asked]
    starts = tuple(f"{version}%2Bcpu-{python}-" for python in PYTHONS)
    hashes = {
        digest for name, digest in links if name.startswith(starts) and "linux" in name
    }
    starts = tuple(f"torch-{version}-{python}-macosx" for python in PYTHONS)
    hashes |= {digest for name, digest in on_pypi if name.startswith(starts)}
    lines = [
        f"torch=={version}",
        *(f"    --hash=sha256:{digest}" for digest in sorted(hashes)),
    ]
    return " \\\n".join(lines) + "\n"


def content(address: str, kind: str) -> bytes:
    """Return what lies at an address."""
    request = urllib.request.Request(address, headers={"Accept": kind})
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.read()


if __name__ == "__main__":
    main()

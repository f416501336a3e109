"""Profiles: where the jobs of a batch run, and what an earlier batch left there.

A profile is a folder of workflow/profiles. Its config.yaml holds
Snakemake's options; the command `cancel` beside it ends the jobs of a
batch that is no longer there. Jobs of the profile `local` are
processes of the batch and end with it, so it has no such command.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from parameters import ROOT

from lib.base import files

PROFILES = Path("workflow/profiles")
LOCAL = "local"


def check_profile(profile: str, root: Path = ROOT) -> None:
    """Raise ValueError unless a profile is there, and what Snakemake needs for it.

    Its config.yaml is plain YAML, as `files.entries` reads it.

    Example:
        >>> check_profile("local")
        >>> check_profile("slrum")
        Traceback (most recent call last):
        ValueError: There is no profile 'slrum'; there are generic, local, slurm.
    """
    known = sorted(path.parent.name for path in (root / PROFILES).glob("*/config.yaml"))
    if profile not in known:
        raise ValueError(f"There is no profile {profile!r}; there are {', '.join(known)}.")
    file = root / PROFILES / profile / "config.yaml"
    executor = files.entries(file).get("executor", LOCAL)
    if not isinstance(executor, str) or not re.fullmatch(r"[a-z0-9-]+", executor):
        raise ValueError(
            f"{file}: executor is {executor!r}, expected the name of one of Snakemake's, "
            "such as local or slurm."
        )
    plugin = f"snakemake-executor-plugin-{executor}"
    if executor != LOCAL and not importlib.util.find_spec(plugin.replace("-", "_")):
        raise ValueError(
            f"The profile {profile} needs a part of Snakemake that is not installed: "
            f"{Path(sys.executable).parent / 'pip'} install {plugin}"
        )


def environment(profile: str, run: Path) -> dict[str, str]:
    """Return what a profile needs in the environment, beside what every batch needs.

    Arguments:
        profile: A folder of workflow/profiles.
        run: The folder of the batch's results. Its jobs are found by a
            name that is made from it.

    Example:
        >>> environment("local", Path("runs/smoke"))
        {}
        >>> environment("slurm", Path("/runs/smoke"))["ICARMA_BATCH"]
        'icarma-8fe6aa208128'
    """
    if profile == LOCAL:
        return {}
    name = hashlib.blake2b(str(run.resolve()).encode(), digest_size=6).hexdigest()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"ICARMA_BATCH": f"icarma-{name}", "PATH": path}


def cancel_earlier(profile: str, environment: Mapping[str, str], root: Path = ROOT) -> None:
    """Cancel the jobs that an earlier batch left, and wait until they are gone.

    Otherwise two jobs could write to the same files: where Snakemake
    was killed, its jobs on a cluster go on.

    Arguments:
        profile: A folder of workflow/profiles.
        environment: All of it; ICARMA_BATCH says whose jobs.
        root: The repository, or a copy.
    Raises: ValueError: that failed; says why.

    Example:
        >>> cancel_earlier("local", {})  # they ended with their batch
    """
    if profile == LOCAL:
        return
    command = PROFILES / profile / "cancel"
    ended = subprocess.run(
        [root / command],
        cwd=root,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise ValueError(
            f"What an earlier batch left could not be cancelled, so nothing was started "
            f"({command}):\n{ended.stderr.strip()}"
        )

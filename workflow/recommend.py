"""Recommend for a Parquet data set of applicants, which may be larger than memory.

`python workflow/recommend.py params/recommend.yaml`

The file names the data, the models, who answers, and a folder below
runs. The data has a column for each feature, in the units of the
data that the models were fitted to, and "score_..." for each of the K
features that may be acted on: from 1 (easiest) to K, and K + 1 for
"can't". It may have "low_..." and "high_..." of such a feature: between
what values the person may set it. The folder gets

- recommendations: Parquet files, together a row an applicant in the
  order of the data (of several members, refused people have a row
  each); `lib.beyond.millions.blocks.schema` says what the columns hold;
- summary.csv: a row a member: how many applicants were accepted, left
  out and asked, how many act, would be accepted (valid), are as likely
  as before (plausible), both (joint), and the mean cost of the valid;
- manifest.json: data, models, code and versions, what was left out and
  why, and a checksum of all answers.

Applicants are shared out to jobs, two at a time, or on a cluster
(`--profile slurm`). An interrupted run goes on with the jobs that were
not finished. The same applicants get the same answers, to the bit,
however they are shared out.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parameters import ROOT
from reproduce import run_of_its_own, run_rules


def recommend(parameters: Path, given: Mapping[str, Any], profile: str) -> None:
    """Check and plan, run the jobs that are missing, and print the summary.

    Arguments:
        parameters: File.
        given: What it says, as `read_run_parameters` reads it.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: a job failed. What is wrong with parameters,
        models or data is printed, and ends the process.
    """
    outputs = given["outputs"]
    # in a process of its own, whose memory is free again when the jobs begin
    planned = subprocess.run(
        [sys.executable, "workflow/answer.py", outputs, "plan", parameters.resolve()],
        cwd=ROOT,
        check=False,
    )
    if planned.returncode:
        sys.exit(planned.returncode)
    config, folder = f"outputs={outputs}", ROOT / outputs
    run_rules("workflow/recommend.smk", config, folder, profile=profile)
    print(f"\n{outputs}/summary.csv:\n")
    print((ROOT / outputs / "summary.csv").read_text(encoding="utf-8"), end="")
    print(
        nobody(json.loads((ROOT / outputs / "manifest.json").read_text())["found"]), end=""
    )


def nobody(found: Mapping[str, Any]) -> str:
    """Return why nobody was asked about, if so; else nothing.

    Arguments:
        found: Totals, as `lib.beyond.millions.blocks.summary` gives them.

    Example:
        >>> found = {"applicants": 5, "accepted": 3, "left_out": {"age is missing": 2}}
        >>> print(nobody(found), end="")
        Nobody is told anything: of 5 applicants 3 are accepted as they are, and the rows of
        2 can't be used (age is missing: 2).
        >>> nobody(found | {"accepted": 1})
        ''
    """
    left_out = found["left_out"]
    n_left_out = sum(left_out.values())
    if found["accepted"] + n_left_out < found["applicants"]:
        return ""
    why = "; ".join(f"{reason}: {n:,}" for reason, n in left_out.items())
    return (
        f"Nobody is told anything: of {found['applicants']:,} applicants "
        f"{found['accepted']:,} are accepted as they are, and the rows of\n{n_left_out:,} "
        f"can't be used{f' ({why})' if why else ''}.\n"
    )


if __name__ == "__main__":
    run_of_its_own(__doc__, "recommend", recommend)

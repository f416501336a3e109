"""Recommend for a Parquet data set of applicants, which may be larger than memory.

`python workflow/recommend.py params/recommend.yaml`

The file names the data, the models, who answers, and a folder below
runs. The data has a column for each feature, in the units of the
data that the models were fitted to, and "score_..." for each of the K
features that may be acted on: from 1 (easiest) to K, and K + 1 for
"can't". The folder gets

- recommendations: Parquet files, together a row an applicant in the
  order of the data (of several members, refused people have a row
  each); `lib.solvers.blocks.schema` says what the columns hold;
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

import argparse
import os
import subprocess
import sys
from pathlib import Path

import clusters
from parameters import ROOT, read_population_parameters
from reproduce import only_batch, run_rules


def main() -> None:
    """Recommend for the data set that the command line's file names."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("parameters", type=Path)
    arguments.add_argument(
        "--profile", default=clusters.LOCAL, help="a folder of workflow/profiles"
    )
    path, profile = vars(arguments.parse_args()).values()
    try:
        clusters.check_profile(profile)
        outputs = os.path.normpath(read_population_parameters(path)["outputs"])
        with only_batch(ROOT / outputs):
            recommend(path, outputs, profile)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: the same command goes on from here.")


def recommend(parameters: Path, outputs: str, profile: str) -> None:
    """Check and plan, run the jobs that are missing, and print the summary.

    Arguments:
        parameters: File, as `read_population_parameters` reads it.
        outputs: Folder, below the repository.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: a job failed. What is wrong with parameters,
        models or data is printed, and ends the process.
    """
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


if __name__ == "__main__":
    main()

"""Recommendations for a data set of applicants: a job for each range of blocks, then a sum.

Started by recommend.py, after it has left plan.json in the folder of outputs.
"""

import json
import os
import sys
from pathlib import Path

from lifeline import VARIABLE, end_with_batch

# Snakemake ends with recommend.py, as its jobs do. It would go on with other jobs, see them
# end, and remove what they leave, which another run may have made meanwhile.
line = os.environ.get(VARIABLE, "")
end_with_batch()
os.environ[VARIABLE] = line

OUTPUTS = config["outputs"]
PLAN = json.loads(Path(OUTPUTS, "plan.json").read_text(encoding="utf-8"))
PYTHON = sys.executable


rule all:
    input: f"{OUTPUTS}/manifest.json"


# The plan is the same as long as its parts are there: recommend.py sees to that.
rule blocks:
    input: ancient(f"{OUTPUTS}/plan.json")
    output: f"{OUTPUTS}/recommendations/blocks_{{first}}_{{last}}.parquet"
    shell: "{PYTHON:q} workflow/answer.py {OUTPUTS:q} {wildcards.first} {wildcards.last}"


rule summary:
    input: [f"{OUTPUTS}/{part}" for part in PLAN["parts"]]
    output: f"{OUTPUTS}/manifest.json"
    shell: "{PYTHON:q} workflow/answer.py {OUTPUTS:q} summary"

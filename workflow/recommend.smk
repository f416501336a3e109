"""Recommendations for a data set of applicants: a job for each range of blocks, then a sum.

Started by recommend.py, after it has left plan.json in the folder of outputs.
"""

import json
import sys
from pathlib import Path

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

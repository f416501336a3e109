"""Recommendations for a data set of applicants: a job for each range of blocks, then a sum.

Started by recommend.py, after it has left plan.json in the folder of outputs.
"""

import json
import sys
from pathlib import Path

import resources as measured
from lifeline import end_rules_with_batch

end_rules_with_batch(config["profile"])

OUTPUTS = config["outputs"]
PLAN = json.loads(Path(OUTPUTS, "plan.json").read_text(encoding="utf-8"))
PYTHON = sys.executable
TAKEN = measured.read()
WHO = measured.RECOMMEND.format(**PLAN["parameters"])
# of the job that was measured, so many times
TIMES = PLAN["parameters"]["n_per_job"] * PLAN["n_members"] / measured.N_ANSWERS
GIVEN = measured.asked_for(WHO, TAKEN)
MEMORY = GIVEN["mem_mb"] + measured.MARGIN * measured.MB_A_MEMBER * (PLAN["n_members"] - 1)
RUNTIME = measured.asked_for(WHO, TAKEN, TIMES)["runtime"]


rule all:
    input: f"{OUTPUTS}/manifest.json"


# The plan is the same as long as its parts are there: recommend.py sees to that.
rule blocks:
    input: ancient(f"{OUTPUTS}/plan.json")
    output: f"{OUTPUTS}/recommendations/blocks_{{first}}_{{last}}.parquet"
    benchmark: f"{OUTPUTS}/benchmarks/blocks_{{first}}_{{last}}.tsv"
    resources: mem_mb=MEMORY, runtime=RUNTIME
    shell: "{PYTHON:q} workflow/answer.py {OUTPUTS:q} {wildcards.first} {wildcards.last}"


rule summary:
    input: [f"{OUTPUTS}/{part}" for part in PLAN["parts"]]
    output: f"{OUTPUTS}/manifest.json"
    localrule: True
    shell: "{PYTHON:q} workflow/answer.py {OUTPUTS:q} summary"

"""Networks of many seeds at many settings: a job for each part, then one table.

Started by sweep.py, after it has left plan.json in the folder of outputs.
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
# of the part that was measured, so many times
LONGEST = max(setting["n_epochs"] for setting in PLAN["settings"])
TIMES = PLAN["n_per_job"] / measured.N_SWEEP * max(1, LONGEST / measured.N_EPOCHS)
GIVEN = measured.asked_for("sweep", measured.read(), TIMES)


rule all:
    input: f"{OUTPUTS}/networks.csv"


# The plan stays the same: sweep.py sees to that.
rule networks:
    input: ancient(f"{OUTPUTS}/plan.json")
    output: f"{OUTPUTS}/parts/{{setting}}_{{first}}.csv"
    benchmark: f"{OUTPUTS}/benchmarks/{{setting}}_{{first}}.tsv"
    resources: mem_mb=GIVEN["mem_mb"], runtime=GIVEN["runtime"]
    shell: "{PYTHON:q} workflow/seeds.py {OUTPUTS:q} {wildcards.setting} {wildcards.first}"


rule table:
    input: [f"{OUTPUTS}/parts/{part}.csv" for part in PLAN["parts"]]
    output: f"{OUTPUTS}/networks.csv"
    localrule: True
    run:
        lines = [Path(part).read_text(encoding="utf-8").splitlines() for part in input]
        rows = [row for part in lines for row in part[1:]]
        Path(output[0]).write_text("\n".join([lines[0][0], *rows, ""]), encoding="utf-8")

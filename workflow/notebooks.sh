# Execute all notebooks in place, with their own parameters, and drop what differs from one
# execution to the next.
set -eu
.venv/bin/jupyter execute --inplace --kernel_name=python3 notebooks/*.ipynb exercises/solutions/*.ipynb
.venv/bin/nbstripout --keep-output --keep-count --keep-id \
  --extra-keys "metadata.papermill cell.metadata.papermill cell.metadata.execution metadata.language_info" \
  notebooks/*.ipynb exercises/solutions/*.ipynb

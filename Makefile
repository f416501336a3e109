# make reproduce    the paper: notebooks 00 to 07 at its size, from nothing; then paper against ours, and every table against the committed one
# make beyond       the notebooks from 08 on, on top of that             make all     both
# make quick        all of it at a smaller size, a few minutes           make smoke   at the smallest
# make test         unit tests, examples, and the paper's notebooks executed again and compared with their committed outputs
# make test-beyond  the other notebooks, exercises, book, slides, and the page in a browser             make test-all   both
# make check        linter, types, and which module may import which     make lab     JupyterLab
# make recommend    recommendations for a Parquet file of applicants (PARAMETERS=params/recommend.yaml, or yours)
# make book, make slides, make site (both, as published): in runs/       make clean   without environments, runs and caches

SHELL := bash
PYTHON ?= python3
CORES ?= 2
BIN := .venv/bin
# With these, programs and kernels give the same bits on x86 processors with AVX2 (exceptions: docs/run.md).
export OMP_NUM_THREADS := 1
export MKL_CBWR := COMPATIBLE
export ATEN_CPU_CAPABILITY := avx2
export ONEDNN_MAX_CPU_ISA := AVX2
export OPENBLAS_CORETYPE := Haswell
unexport PYTHONDONTWRITEBYTECODE
# Caches go to runs/ where the home folder can't be written.
export HOME := $(shell test -w "$$HOME" && echo "$$HOME" || { mkdir -p runs/home; realpath runs/home; })

.PHONY: help setup reproduce beyond all quick smoke recommend test test-beyond test-all check lab book slides site clean

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

# Arguments: size, target. What is finished stays; what was interrupted is run again. On CI tests in
# a browser run beside it and may take a port that a kernel has chosen: there a job has two attempts.
batch = $(BIN)/python -m snakemake -s workflow/Snakefile --cores $(CORES) --rerun-incomplete --nolock --keep-going --quiet rules --show-failed-logs $(if $(CI),--retries 1) --config size=$(1) -- $(2)

reproduce: setup
	@$(call batch,paper,paper)
	@$(BIN)/python workflow/report.py paper
	@$(BIN)/python workflow/compare.py paper

beyond: setup
	@$(call batch,paper,beyond)
	@$(BIN)/python workflow/compare.py paper
all: reproduce beyond

quick smoke: setup
	@$(call batch,$@,all)
	@$(BIN)/python workflow/report.py $@

recommend: setup
	@$(BIN)/python workflow/recommend.py $(or $(PARAMETERS),params/recommend.yaml)

PAPER := notebooks/0[0-7]* notebooks/appendix* notebooks/reference.ipynb tests/test_* lib workflow examples page
BEYOND := notebooks/0[89]* notebooks/1* tests/beyond exercises docs/book
# A notebook's cells share a kernel, so one worker takes a whole file; what is named first is begun first.
PYTEST = $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env --nbval-cell-timeout=1800

test: setup
	$(PYTEST) $(PAPER)

test-beyond test-all: setup .venv-book/ready
	$(PYTEST) $(BEYOND) $(if $(filter test-all,$@),$(PAPER))

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

lab: setup
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb --ServerApp.root_dir=.

book: .venv-book/ready
	@rm -rf runs/book && .venv-book/bin/sphinx-build -q -W --keep-going -c docs/book -d runs/book/doctrees . runs/book/html

slides: .venv-book/ready
	@rm -rf runs/slides && .venv-book/bin/sphinx-build -q -W --keep-going -b revealjs -d runs/slides/doctrees docs/slides runs/slides/html

site: book slides
	@rm -rf runs/site && cp -r runs/book/html runs/site && cp -r runs/slides/html runs/site/slides && touch runs/site/.nojekyll

clean:
	rm -rf .venv .venv-book runs build *.egg-info .snakemake .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -name .git -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

setup: .venv/ready
.venv/ready: requirements.lock torch.lock pyproject.toml
	@PYTHON="$(PYTHON)" bash workflow/environment.sh

.venv-book/ready: docs/book/requirements.lock
	@$(PYTHON) -m venv --clear .venv-book
	@.venv-book/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r $<
	@touch $@

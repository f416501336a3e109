# make reproduce   the paper: notebooks 00 to 07 at its size, from nothing, then one table: paper against ours
# make beyond      the notebooks from 08 on, on top of that           make all      both
# make quick       all of it at a smaller size          make smoke    at the smallest
# make recommend   recommendations for a Parquet file of Loan's or Give Me Some Credit's applicants (PARAMETERS=params/recommend.yaml, or yours)
# make test        unit tests, examples, and the paper's notebooks executed again and compared with their committed outputs
# make test-beyond the other notebooks, exercises, book, slides, and the page in a browser
# make check       ruff (rules and format), mypy, and which module may import which
# make lab         JupyterLab in this environment
# make calibrate   what the paper's text has lost is chosen by a few declared cells, an hour or two; the result is committed
# make choose      settings by our own rule, which sees no published number, an hour; the result is committed
# make rivals      packages that people would install today, each in an environment of its own, asked about the same people: benchmarks/rivals.csv, an hour of two cores
# make page        the page "you are the applicant" again, page/applicant.html, from models/
# make book        the notebooks as a book, in runs/book/html; nothing is executed
# make slides      a lecture of 45 minutes, in runs/slides/html
# make site        book, page and slides as they are published, in runs/site
# For maintainers: make notebooks (execute in place), make exercises (students' files from the solutions), make models (keep a paper-size run's, and its tables), make lock (pins), make clean (environments and runs, too)

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
BOOK := .venv-book/bin
TORCH := https://download.pytorch.org/whl/cpu/torch/
WEAKNESSES := https://pypi.org/pypi/pip/24.0/json
QUIETLY := --quiet --no-compile --no-cache-dir --disable-pip-version-check
# With these, programs and kernels give the same bits on every x86 processor with AVX2; numpy
# and torch read them when they are first imported (lib/reproducible.py).
export OMP_NUM_THREADS := 1
export MKL_CBWR := COMPATIBLE
export ATEN_CPU_CAPABILITY := avx2
export ONEDNN_MAX_CPU_ISA := AVX2
export OPENBLAS_CORETYPE := Haswell
# Hundreds of modules are imported by each of a dozen processes, in a quarter of the time
# where Python may keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup environment reproduce beyond all quick smoke recommend test test-beyond exercises check lab page book slides site calibrate choose rivals notebooks models lock clean

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

reproduce: setup
	@$(BIN)/python workflow/reproduce.py paper --part paper

beyond: setup
	@$(BIN)/python workflow/reproduce.py paper --part beyond

all: setup
	@$(BIN)/python workflow/reproduce.py paper

quick smoke: setup
	@$(BIN)/python workflow/reproduce.py $@

PARAMETERS ?= params/recommend.yaml

recommend: setup
	@$(BIN)/python workflow/recommend.py '$(PARAMETERS)'

# A notebook's cells share a kernel, so one worker takes a whole file; what is named first is begun first.
PYTEST = $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=1800

test: setup
	$(PYTEST) $(NBVAL) notebooks/0[0-7]* notebooks/reference.ipynb tests lib workflow examples page --ignore tests/beyond

# Made before, once: the tests of the book and those of the lecture both need it, side by side.
test-beyond: setup .venv-book/ready
	$(PYTEST) $(NBVAL) notebooks/0[89]* notebooks/1* tests/beyond exercises docs/book

exercises: setup
	@$(BIN)/python exercises/make.py

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if $(call answers,$(WEAKNESSES)); \
	then $(BIN)/pip-audit --progress-spinner off --require-hashes --disable-pip -r requirements.lock -r docs/book/requirements.lock; \
	else echo "Known weaknesses of the pinned packages: NOT LOOKED UP, PyPI's list does not answer."; fi

rivals: setup
	@$(BIN)/python benchmarks/rivals.py

# Its numbers and letters, then all in one file.
page: setup
	@$(BIN)/python page/export.py
	@$(BIN)/python page/fonts.py
	@$(BIN)/python page/build.py

# From the committed notebooks, as they are, and from nothing: what was read before is not
# warned about again.
book: .venv-book/ready
	@rm -rf runs/book
	@$(BOOK)/sphinx-build -q -W --keep-going -c docs/book -d runs/book/doctrees . runs/book/html
	@echo "Open runs/book/html/index.html"

slides: .venv-book/ready
	@rm -rf runs/slides
	@$(BOOK)/sphinx-build -q -W --keep-going -b revealjs -d runs/slides/doctrees docs/slides runs/slides/html
	@echo "Open runs/slides/html/index.html"

# What .github/workflows/publish.yml hands to GitHub Pages.
site: book slides
	@rm -rf runs/site
	@cp -r runs/book/html runs/site
	@cp -r runs/slides/html runs/site/slides
	@touch runs/site/.nojekyll
	@echo "Open runs/site/index.html"

lab: setup
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb --ServerApp.root_dir=.

calibrate: setup
	@$(BIN)/python workflow/calibrate.py

# Two lanes, one core each; transfer needs the data of notebook 07.
choose: setup
	@trap 'kill 0' INT TERM; ( $(BIN)/python workflow/choose.py ranking && $(BIN)/python workflow/choose.py score ) & one=$$!; \
	$(BIN)/python workflow/choose.py transfer & other=$$!; wait $$one; wait $$other

# Whether an address answers within three seconds.
answers = $(PYTHON) -c 'import urllib.request as r; r.urlopen("$(1)", timeout=3)' 2> /dev/null

setup: .venv/ready

# Made afresh whenever a pin changes. Python compiles the modules it imports; compiling all of them takes half a minute.
# Only files whose checksums are in the lock are installed. On Linux torch's build without CUDA lies on an index of its own.
.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and \
	  f"Python 3.11 or later is needed, $(PYTHON) is {v}: name another, e.g. make PYTHON=python3.11 ...")'
	@$(MAKE) --no-print-directory environment

environment:
	@echo "Setting up .venv (1.5 GB, a minute or two) ..."
	@$(PYTHON) -m venv --clear .venv || { echo "$(PYTHON) cannot make an environment. On Debian and Ubuntu: apt install python3-venv."; exit 1; }
	@links=; if [ "$$(uname -s)" = Linux ]; then \
	  if $(call answers,$(TORCH)); then links="--find-links $(TORCH)"; \
	  else echo "$(TORCH) does not answer. pip has to find torch's build without CUDA elsewhere, such as in PIP_FIND_LINKS; PyPI has another, whose checksum is refused."; fi; fi; \
	$(BIN)/pip install $(QUIETLY) --require-hashes $$links -r requirements.lock
	@echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/icarma_companion.pth"
	@touch .venv/ready

# The book's tools stay out of .venv.
.venv-book/ready: docs/book/requirements.lock
	@echo "Setting up .venv-book (a minute) ..."
	@$(PYTHON) -m venv --clear .venv-book
	@$(BOOK)/pip install $(QUIETLY) --require-hashes -r $<
	@touch $@

# With the default parameters, in order, each in its folder, and without what differs from one execution to the next.
notebooks: setup
	$(BIN)/jupyter execute --inplace --kernel_name=python3 notebooks/*.ipynb exercises/solutions/*.ipynb
	$(BIN)/nbstripout --keep-output --keep-count --keep-id \
	  --extra-keys "metadata.papermill cell.metadata.papermill cell.metadata.execution metadata.language_info" notebooks/*.ipynb exercises/solutions/*.ipynb

# The models that the notebooks read by default, and the tables: those of the last paper-size run.
models: setup
	@$(BIN)/python workflow/keep.py

lock: setup
	@$(BIN)/python workflow/lock.py

# What runs, tests and installations left; the tree is as it was cloned.
clean:
	rm -rf .venv .venv-book runs build *.egg-info .snakemake .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -name .git -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

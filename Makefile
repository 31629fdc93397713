# Everything a person needs: `make reproduce`. `make help` lists the rest.
# Needed before: Python 3.11, git, make. The environment is built in $(VENV) from requirements.lock.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
CORES  ?= all
PYTEST ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.kvcert-env

# One thread a process and several processes side by side: numerical libraries that each take all cores only quarrel.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export TOKENIZERS_PARALLELISM := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLBACKEND := Agg
export PYTHONUNBUFFERED := 1
export PATH := $(abspath $(BIN)):$(PATH)

SNAKEMAKE := $(BIN)/snakemake --cores $(CORES)
# A workflow with nothing left to do ends silently; then the table is shown from here.
SHOWN := .snakemake/verdicts-shown

.DEFAULT_GOAL := help
.PHONY: help env reproduce smoke test test-fast test-slurm mutations lint format unlock verdicts clean clean-smoke distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP) ## build the environment from the lock (a second call does nothing)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python found; install Python 3.11 or name one: make PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "make: the lock is for Python 3.11, $(PYTHON) is another; name one: make PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

reproduce: env unlock ## the whole study: every cell, seven verdicts, tables and figures
	@rm -f $(SHOWN)
	@$(SNAKEMAKE)
	@test -e $(SHOWN) || $(BIN)/kvcert verdicts

smoke: env unlock ## the same on a tiny grid, in a few minutes: results-smoke/, figures-smoke/
	@rm -f $(SHOWN)
	@$(SNAKEMAKE) --configfile config/smoke.yaml
	@test -e $(SHOWN) || $(BIN)/kvcert --results results-smoke verdicts

test: env ## all tests, the smoke grid among them
	@$(BIN)/python -m pytest $(PYTEST)

test-fast: env ## the tests that need neither the real model nor long
	@$(BIN)/python -m pytest -m "not slow" $(PYTEST)

test-slurm: env ## a real Slurm on this machine (installed with apt where possible): smoke grid, faults; 15 minutes
	@$(BIN)/python tests/slurm/install.py
	@$(BIN)/python -m pytest -o addopts="-ra --strict-markers --strict-config -n 2 --dist loadfile" $(PYTEST) tests/slurm

mutations: env ## break the kernels on purpose, 36 ways: every one must be caught
	@$(BIN)/python tests/kernels/mutations.py

lint: env ## style, types, workflow
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/snakefmt --check Snakefile workflow
	@$(BIN)/snakemake --lint

format: env ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/snakefmt Snakefile workflow

unlock: env
	@$(BIN)/kvcert unlock

verdicts: env ## the verdict table of results/
	@$(BIN)/kvcert verdicts

clean: ## delete results and figures of all grids inside this folder, and caches of tools
	rm -rf results results-* figures figures-* .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

clean-smoke: ## delete the smoke grid's results and figures
	rm -rf results-smoke figures-smoke

distclean: clean ## also delete the environment, the converted model and the texts
	rm -rf $(VENV) .kvcert

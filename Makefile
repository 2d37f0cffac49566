# Two commands on a fresh machine: `make demo` and `make test`. Both install what they need into .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

export VOUCH_HOME ?= $(CURDIR)/.vouch

.PHONY: help install demo stop test lint types bench bench-accept clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED) ## build .venv from pyproject.toml and constraints.txt; nothing to do when neither changed

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Vouch needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "installing about 2 GB into $(VENV); this takes some minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[airflow,dev]'
	@touch $@

demo: install ## sample catalog -> Airflow -> index -> API -> an answer; leaves all of it running
	$(BIN)/vouch demo

stop: ## stop what the demo left running
	@if [ -x $(BIN)/vouch ]; then $(BIN)/vouch demo --stop; else echo "nothing is installed, so nothing runs"; fi

test: install lint types ## lint, types, floors, and every test
	$(BIN)/python -m pytest

lint: install ## style and floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install ## mypy --strict
	$(BIN)/mypy

bench: install ## quality and speed beside their peers; prints tables, keeps them in build/benchmarks
	$(BIN)/python -m pytest tests/benchmarks --run-benchmarks -s

bench-accept: install ## measure quality anew and write the tables that later runs are held against
	$(BIN)/python -m pytest tests/benchmarks/test_quality.py --run-benchmarks --accept-quality -s

clean: stop ## forget the environment and the demo's data
	rm -rf $(VENV) .vouch

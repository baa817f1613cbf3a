# `make demo` and `make test` do their own set-up; Python 3.11, make and git are all they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
DOCS_READY := $(VENV)/.docs
AXE := build/web/node_modules/axe-core/package.json
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
BENCHMARKS := benchmarks/speed.py benchmarks/scaling.py benchmarks/costs.py
PYTEST_ARGS ?=

# Two test workers on two cores: one thread each, or they fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow test-web attack sanitize mutate lint bench rivals tables rescore docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## fit a density to the bundled household power data; picture and report in out/
	$(BIN)/python examples/demo.py

test: $(READY)  ## run the tests, all but the slow ones
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not web" $(PYTEST_ARGS)

slow: $(READY)  ## run the slow tests: full figures, compiled kernels, kill and resume
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(PYTEST_ARGS)

test-web: $(READY) $(AXE)  ## run the tests of pages in Chromium: report, explorer, site
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile -m web $(PYTEST_ARGS)

attack: $(READY)  ## an hour of hostile tables, values, files and signals; MINUTES=5 for less
	$(ONE_THREAD) PYTHONPATH=tests $(BIN)/python -m campaign --minutes $(or $(MINUTES),60)

sanitize:  ## run the C++ kernels with hostile weights under AddressSanitizer and UBSan
	@mkdir -p build
	$(CXX) -std=c++17 -O1 -g -march=native -fno-math-errno -fno-trapping-math -Wno-psabi -fopenmp \
		-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
		-I src/nits/kernels/native tests/sanitize/hostile.cpp -o build/sanitize
	ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=3 build/sanitize

mutate: $(READY)  ## break the code in known ways and show the test that notices; MUTATIONS="02 11" for some
	$(BIN)/python tests/mutate.py $(MUTATIONS)

lint: $(READY)  ## ruff check, ruff format --check, mypy --strict, tables as their results say
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python benchmarks/tables.py --check

bench: $(READY)  ## run the benchmarks of speed; needs make rivals
	@set -e; for script in $(BENCHMARKS); do echo "$$script"; $(BIN)/python $$script; done

rivals: $(READY)  ## install what the benchmarks compare with
	$(PIP) --no-build-isolation -e '.[rivals]'

tables: $(READY)  ## write the tables of results in README.md, benchmarks/README.md and docs/
	$(BIN)/python benchmarks/tables.py

rescore: $(READY)  ## reproduce the headline figures from their weights; needs NITS_DATA
	$(BIN)/python benchmarks/rescore.py

docs: $(DOCS_READY)  ## build the site in build/site, tutorials run; a warning or a broken link is an error
	$(BIN)/python docs/check_links.py
	$(ONE_THREAD) $(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet -j 2 docs build/site
	$(BIN)/python docs/check_site.py build/site

clean:  ## remove outputs and caches; the virtual environment stays
	rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# The build tools go in first, so that the editable install needs no build environment of its own.
$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; a minute or two)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation -e '.[plot,dev]'
	@touch $@

# Judges pages for screen readers and keyboards; half a megabyte, so it is not in the repository.
$(AXE):
	@mkdir -p build/web
	npm install --prefix build/web --silent --no-audit --no-fund axe-core@4.11.0

$(DOCS_READY): $(READY)
	$(PIP) --no-build-isolation -e '.[docs]'
	@touch $@

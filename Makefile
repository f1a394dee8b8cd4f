# `make demo` and `make test` do all their own set-up: only a package index, Python 3.11+ and make are needed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
# What is installed for development; CI adds the extras whose tests it must not skip.
EXTRAS ?= dev
# Test processes; each uses one thread.
WORKERS ?= 2
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
# A process that has run out of tests takes over some of another's, so that none is idle at the end.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Tests start many processes: where compiled modules are not kept, each would compile felicity anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow check lint types pages bench docs notebooks format clean

demo: $(INSTALLED)
	$(BIN)/felicity run starter -o runs/starter-smollm2
	@echo "Open runs/starter-smollm2/report.html in a browser."

# What a person runs after every change: under five minutes on two processors.
test: $(READY)
	$(PYTEST) -m "not slow"

# The rest: simulated error rates, large comparisons with other programs, killed runs, packages built and installed.
test-slow: $(READY)
	$(PYTEST) -m slow

# The types take about as long as the pages, and each needs one processor.
check: $(READY)
	$(MAKE) --no-print-directory -j2 lint types pages

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# That the generated pages are up to date and every link works.
pages: $(READY)
	$(BIN)/python docs/generate.py --check
	$(MKDOCS)

bench: $(READY)
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/compare.py --model smollm2
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/precision.py
	$(BIN)/python benchmarks/masked.py --bfloat16
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/acceptability.py
	$(BIN)/python benchmarks/babylm.py
	$(BIN)/python benchmarks/pairs.py
	$(BIN)/python benchmarks/priors.py
	$(BIN)/python benchmarks/continuations.py
	$(BIN)/python benchmarks/rating.py --limit 100
	$(BIN)/python benchmarks/key_times.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/explore.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/reliability.py

docs: $(READY)
	$(BIN)/python docs/generate.py
	$(MKDOCS)
	@echo "Open site/index.html in a browser."

# Run the notebooks and write their pages.
notebooks: $(READY)
	$(BIN)/python docs/notebooks.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What a user installs; `make demo` needs no more.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "felicity needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "Installing felicity into $(VENV); this takes some minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $(INSTALLED)

# And what its developers need as well.
$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $(READY)

# Every target sets up .venv when needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := pyproject.toml setup.py setup.cfg src/stribeck/__init__.py

.PHONY: demo test test-slow lint bench clean

demo: $(VENV)/.fit
	$(BIN)/stribeck demo --output build/demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.fit
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'stribeck needs Python 3.11 or newer: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.fit: $(BIN)/python $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[fit]'
	touch $@

$(VENV)/.dev: $(VENV)/.fit $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

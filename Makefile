# Every target sets up .venv when needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests side by side; those of one file stay together.
JOBS ?= 2
SETUP := pyproject.toml setup.py setup.cfg src/stribeck/__init__.py

.PHONY: demo demo-arm test test-slow test-numpy1 lint bench clean

demo: $(VENV)/.fit
	$(BIN)/stribeck demo --output build/demo

# A seven-joint arm, designed motion to identified links, without hardware.
demo-arm: $(VENV)/.arm
	$(BIN)/python examples/arm_demo/demo_arm.py --output build/demo-arm

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not slow" -n $(JOBS) --dist loadfile

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

# As on a robot with ROS 2 Jazzy from apt: numpy 1.26, no JAX.
test-numpy1: build/numpy1/.ready
	build/numpy1/bin/python -m pytest -q -m "not slow" test/core test/nodes test/servo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'stribeck needs Python 3.11 or newer: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)

build/numpy1/.ready: $(BIN)/python $(SETUP)
	$(BIN)/python -m venv --clear build/numpy1
	build/numpy1/bin/python -m pip install -q --disable-pip-version-check 'numpy<2' -e '.[ros,test]'
	touch $@

$(VENV)/.fit: $(BIN)/python $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[fit,ros]'
	touch $@

$(VENV)/.arm: $(VENV)/.fit $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[arm]' 'example-robot-data>=4'
	touch $@

$(VENV)/.dev: $(VENV)/.fit $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

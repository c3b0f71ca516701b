# Every target sets up .venv when needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests side by side; those of one file stay together, in the order of the folders: the last files are short.
JOBS ?= 2
FILES := --dist loadfile --no-loadscope-reorder
# Tests that are quick, and folders of those for what runs on a robot.
QUICK := test/model test/rigid test/live test/files test/recordings test/survey test/session test/test_project.py --ignore=test/model/test_jax_agreement.py --ignore=test/live/test_closed_loop.py
ROBOT := test/model test/rigid test/live test/files test/recordings test/survey test/session test/servo test/emulator test/nodes
# Tests and programs start many processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
SETUP := pyproject.toml setup.py setup.cfg src/stribeck/__init__.py

.PHONY: demo demo-arm figures test test-quick test-ci test-slow test-slice test-versions lint docs docs-links bench soak clean

demo: $(VENV)/.fit
	$(BIN)/stribeck demo --output build/demo

# A seven-joint arm, designed motion to identified links, without hardware.
demo-arm: $(VENV)/.arm
	$(BIN)/python examples/arm_demo/demo_arm.py --output build/demo-arm

# Three side by side on two cores: tests of nodes wait more than they compute.
test test-ci test-versions: JOBS = 3

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not slow" -n $(JOBS) $(FILES)

# A minute, for the inner loop: no process, bus or search is waited for.
test-quick: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not slow and not real_time" -n $(JOBS) $(QUICK)

# Tests of a second or more whose lines others reach, too: closed loops, faults, regressions. CI runs them for every change.
test-ci: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m ci -n $(JOBS) $(FILES)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow
	$(BIN)/python -m pytest -q -m "hypothesis and not slow" --hypothesis-profile=explore -n $(JOBS)

# One slice of the slow tests, another each day; at most 15 minutes. SLICE='--list' shows them all, '--day 3' picks one.
test-slice: $(VENV)/.dev
	$(BIN)/python .ci/slow_slice.py $(SLICE)

# What runs on a robot, on each Python and numpy: VERSIONS='3.11:1.26 3.13:2' picks some. Minutes for each, as nothing is
# waited for; with WHOLE=1 also the tests of nodes and processes, half an hour for each.
ON_EACH = $(if $(WHOLE),-m "not slow" $(ROBOT),-m "not slow and not real_time" $(QUICK) test/servo test/emulator)
VERSIONS ?= 3.11:1.26 3.11:2 3.12:1.26 3.12:2 3.13:2
test-versions:
	set -e; for pair in $(VERSIONS); do \
	    python=$${pair%:*}; numpy=$${pair#*:}; place=build/python$$python-numpy$$numpy; \
	    echo "Python $$python, numpy $$numpy"; \
	    python$$python -m venv $$place; \
	    $$place/bin/python -m pip install -q --disable-pip-version-check "numpy==$$numpy.*" -e '.[ros,test]'; \
	    $$place/bin/python -m pytest -q -n $(JOBS) $(FILES) $(ON_EACH); \
	done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy controllers/*.py docs/format_keys.py test/support/emulated_bus.py
	$(BIN)/lint-imports
	$(BIN)/python controllers/generate.py --check

# build/docs/index.html; a broken link or reference is an error.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

# Links to other sites, too; needs a network.
docs-links: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -b linkcheck docs build/docs-links

# Pictures of README and documentation, drawn again: NAMES='demo joint' draws some.
figures: $(VENV)/.dev
	$(BIN)/python docs/draw_pictures.py $(NAMES)

bench: $(VENV)/.dev
	$(BIN)/python bench/run.py

# Bus, nodes, guard and compensation at 1 kHz with random faults, bounded: MINUTES=60 (at most 120).
MINUTES ?= 30
soak: $(VENV)/.fit
	mkdir -p build
	$(BIN)/python bench/soak.py --minutes $(MINUTES) --json build/soak.json

clean:
	rm -rf $(VENV) build dist docs/generated src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'stribeck needs Python 3.11 or newer: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.fit: $(BIN)/python $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[fit,ros]'
	touch $@

$(VENV)/.arm: $(VENV)/.fit $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[arm]' 'example-robot-data>=4'
	touch $@

$(VENV)/.dev: $(VENV)/.fit $(SETUP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

# make demo: set up, run the main job on real data.   make test: set up, run every always-on check.
# PYTHON=python3.12 make test: with another interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
STAMP := $(VENV)/installed-for-$(VERSION)

.PHONY: demo test lint bench study-check wheel clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dpsurvey needs Python 3.11 or newer; '$(PYTHON)' is $(or $(VERSION),not there). Try: PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

study-check: $(STAMP)
	$(BIN)/python -m pytest -m slow tests

wheel: $(STAMP)
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist out

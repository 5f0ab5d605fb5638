# make demo: set up, run the main job on real data.   make test: set up, run every always-on check.
# PYTHON=python3.12 make test: with another interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
STAMP := $(VENV)/installed-for-$(VERSION)

# What the R side needs on Debian and Ubuntu; pandoc and knitr render its vignette, r-base-dev compiles rpy2.
R_PACKAGES := r-base-core r-base-dev r-recommended r-cran-reticulate r-cran-testthat \
  r-cran-posterior r-cran-jsonlite r-cran-knitr r-cran-rmarkdown pandoc

.PHONY: demo test lint bench study-check r-deps wheel clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dpsurvey needs Python 3.11 or newer; '$(PYTHON)' is $(or $(VERSION),not there). Try: PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	@echo 'Setting up $(VENV): this takes a few minutes, once.'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: r-deps
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

# Where R is missing and can be had (Debian or Ubuntu, as root), say what is going to be installed and install it;
# where there is R, give Python the rpy2 that fits it. Elsewhere the R tests skip and say how to get R.
r-deps: $(STAMP)
	@if command -v dpkg-query >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  missing=""; \
	  for package in $(R_PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q '^install ok installed' || missing="$$missing $$package"; \
	  done; \
	  if [ -n "$$missing" ]; then \
	    echo "Installing for the R tests:$$missing"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$missing >/dev/null; \
	  fi; \
	fi
	@if command -v R >/dev/null; then \
	  $(BIN)/python -c 'import rpy2.rinterface_lib' 2>/dev/null || \
	  if Rscript -e 'quit(status = getRversion() >= "4.5")'; \
	  then $(BIN)/python -m pip install --quiet rpy2 'rpy2-rinterface<3.6.6'; \
	  else $(BIN)/python -m pip install --quiet rpy2; fi; \
	else echo "R is not installed: its tests will skip. Install R and run this again, or on Debian run it as root."; fi

wheel: $(STAMP)
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist out

# Three commands do everything on a machine that has Python 3.11 to 3.13, make and pip:
#   make run    set up, then do the main job on the embedded default dataset
#   make test   set up, then format check, lint, types, layers and all tests
#   make docs   set up, then build the documentation into site/, with warnings as errors
# Each creates .venv itself and installs only when pyproject.toml has changed.

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that fits; override with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 && { echo $$p; break; }; done)

.PHONY: run test docs format benchmarks clean

run: $(VENV)/.installed
	$(BIN)/mcetm train

test: $(VENV)/.installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist worksteal

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html, or with search: $(BIN)/python -m http.server --directory site"

format: $(VENV)/.installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

benchmarks: $(VENV)/.installed-dev
	$(BIN)/mcetm bench
	$(BIN)/python benchmarks/read.py
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "mcetm needs Python 3.11, 3.12 or 3.13; name one with: make PYTHON=/path/to/python"; exit 2; }
	@# Some systems ship venv without ensurepip; then the outer pip fills the environment.
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install pip; }

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --prefer-binary --editable ".[mujoco]"
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --prefer-binary --editable ".[dev]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --prefer-binary --editable ".[docs]"
	@touch $@

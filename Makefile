# Two commands do everything on a fresh machine with make and a Python from 3.11 to 3.14, of which
# the oldest is taken unless PYTHON names one: `make demo` and `make test`.
PYTHON ?= $(firstword $(foreach version,3.11 3.12 3.13 3.14,\
  $(shell command -v python$(version) 2>/dev/null)) python3)
VENV := .venv
BIN := $(VENV)/bin
DOCS := $(VENV)-docs
TORCH := torch==2.13.0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all check format bench docs clean

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; v = sys.version_info; (3, 11) <= v < (3, 15) or sys.exit(\
	  f'bcfl needs a Python from 3.11 to 3.14, got {v[0]}.{v[1]}; try make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --no-deps -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation \
	  --config-settings editable_mode=compat --editable .  # a mode that type checkers follow
	touch $@

# The tools of the documentation have their own environment, which also sees the packages of $(VENV).
$(DOCS)/installed: $(VENV)/installed
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open( \
	  'pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" \
	  > $$($(DOCS)/bin/python -c "import site; print(site.getsitepackages()[0])")/bcfl-packages.pth
	touch $@

demo: $(VENV)/installed
	$(BIN)/bcfl run demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed
	$(BIN)/python -m tests.bench

docs: $(DOCS)/installed
	$(DOCS)/bin/python -m sphinx --fail-on-warning --keep-going --fresh-env docs build/docs
	@echo "open build/docs/index.html"

clean:
	rm -rf $(VENV) $(DOCS) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

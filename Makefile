# `make demo` and `make test` need nothing but Python (3.11 or newer) and make; they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE_READY := $(VENV)/.core-ready
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

# Tests start hundreds of processes. Where the environment forbids Python's compiled files, each of them would compile NumPy,
# SciPy and this package again: measured, a third of the time of all tests.
unexport PYTHONDONTWRITEBYTECODE

# Logs of real robots, where the folder exists; the tests that want them skip otherwise.
ifneq ($(wildcard ../shared/data),)
export STEELYARD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo lock audit test lint unit coverage hooks papers docs proof benchmark chaos fuzz clean
.DEFAULT_GOAL := demo

# uv takes a fifth of pip's time for the same packages. It does not read pip's settings: where it fails, pip is asked.
# Not compiled: of all that is installed the tests import a small part, which Python compiles when it does.
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || \
    $(BIN)/python -m pip install --quiet --no-compile $(1)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

# What the package itself needs, and nothing for its tests: a quarter of the size.
$(CORE_READY): pyproject.toml | $(BIN)/python
	$(call install,--editable .)
	@touch $(CORE_READY)

$(READY): pyproject.toml | $(BIN)/python
ifdef LOCKED
	$(call install,--require-hashes --requirement requirements/lock.txt)
	$(call install,--no-deps --no-build-isolation --editable .)
else
	$(call install,--requirement requirements/build.in)
	$(call install,--no-build-isolation --editable '.[dev]')
endif
	@touch $(CORE_READY) $(READY)

# Every dependency of tests and site by version and hash, for `LOCKED=1 make test`, on all systems from Python 3.11 on.
# Without a line about where packages come from: that is the machine's own affair.
lock:
	$(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv
	build/lock/bin/uv pip compile pyproject.toml requirements/build.in --extra dev --extra docs --universal \
	    --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements/lock.txt

# Known vulnerabilities of the pinned versions. It asks a database on the network; without one it says that nothing was audited
# and exits with 2.
audit:
	$(PYTHON) -m venv build/audit && build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/python packaging/audit.py

demo: $(if $(LOCKED),$(READY),$(CORE_READY))
	$(BIN)/steelyard demo

# Types are checked while tests wait for browsers and processes.
test: $(READY)
	@$(MAKE) --no-print-directory -j 2 lint unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Collected once before: the first collection compiles all tests, and each of three workers would do it for itself.
# What failed runs once more alone, and both results are printed: browsers and child processes may exceed a time limit on a
# busy machine. A failure that goes away is a flaw to be looked at.
unit: $(READY)
	@$(BIN)/python -m pytest --collect-only -qq -m 'not proof' > /dev/null
	$(BIN)/python -m pytest -n 3 --dist worksteal -m 'not proof' || \
	    $(BIN)/python -m pytest -n 0 -m 'not proof' --last-failed --last-failed-no-failures none

# The lines that did not run, file by file, by SlipCover: the same tests, a fifth slower.
coverage: $(READY)
	$(BIN)/python -m slipcover -m pytest -n 3 --dist worksteal -m 'not proof'
	@$(BIN)/python -m slipcover --merge .coverage.json --out .coverage.json --skip-covered
	@$(BIN)/python -c 'import json; print("Lines that ran: %.1f %%" % json.load(open(".coverage.json"))["summary"]["percent_covered"])'

# Linters and types before every commit.
hooks: $(READY)
	$(BIN)/python -m pip install --quiet pre-commit
	$(BIN)/pre-commit install

# The five papers with few repetitions, into build/papers: the pages, and an error if what they assert does not hold, or if one
# takes more than 30 processor seconds. (20 are meant; the rest is for slower machines.)
papers: $(READY)
	$(BIN)/steelyard reproduce all --fast --most-seconds 30 --overwrite -o build/papers

# The site, into site/; a warning is an error: a broken link, a page in no navigation, a name that is gone.
# (Not --quiet, under which mkdocs does not count its warnings.)
docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'Look at site/index.html.'

$(DOCS_READY): $(READY)
	$(call install,--editable '.[docs]')
	@touch $(DOCS_READY)

# What takes longer than the tests may: proofs among the tests, the papers in full, every benchmark. Hours; it goes on where it
# was stopped, and writes docs/proof.md. A part: make proof PROOF='--only plants'
proof: $(READY)
	$(call install,--editable '.[benchmark]')
	$(BIN)/python benchmarks/proof.py $(PROOF)

# Odd inputs for every reader, seeded; goes on where it ended. Longer: make fuzz FUZZ='--seconds 3600'.
# Coverage-guided, where atheris is installed: python -m fuzz.guided --all. Counts and curves: python -m fuzz.plot build/fuzz.
fuzz: $(READY)
	$(BIN)/python -m fuzz.run $(FUZZ)

benchmark: $(READY)
	$(call install,--editable '.[benchmark]')
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/identify.py
	$(BIN)/python benchmarks/monte_carlo.py

# Kills at random moments over every command that writes, Ctrl-C, full and read-only disks, two at once, clock jumps.
# It keeps what is done in build/chaos.jsonl and goes on there: make chaos TRIALS=2000
TRIALS ?= 200
chaos: $(READY)
	$(BIN)/python benchmarks/chaos.py --trials $(TRIALS) --store build/chaos.jsonl

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .coverage.json

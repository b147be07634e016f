# Everything a person runs. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
STAMP := $(VENV)/.installed

# A CPU build of torch. The extra index is named for this one command only, with a short timeout: where it
# does not answer, pip goes on with whatever else it is configured to look at.
TORCH := torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# Threads of numeric libraries in tests: parallelism comes from processes.
TEST_ENV := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
TESTS ?= tests
# Test processes: many tests wait (for kills, leases, restarts), so two share two cores well.
PARALLEL ?= 2

.PHONY: help install demo up down test soak lint format bench peers lock clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with the CPU stack and the development tools

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("geo-engine needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(STAMP): $(VENV)/bin/python pyproject.toml constraints.txt packs.txt
	$(PIP) install --quiet --no-deps '$(TORCH)' 2>/dev/null || \
	  $(PIP) install --quiet --no-deps --timeout 10 --retries 1 --extra-index-url '$(TORCH_INDEX)' '$(TORCH)'
	$(PIP) install --quiet --no-deps --require-hashes --requirement packs.txt
	$(PIP) install --quiet --no-deps --requirement constraints.txt
	@if $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torchvision") is None)' \
	  && ! $(BIN)/python -c 'import torchvision' 2>/dev/null; then \
	  $(PIP) uninstall --quiet --yes torchvision torchaudio torchcodec; fi
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: install ## upload the sample documents, ask ten questions, show cited answers
	$(BIN)/geo models fetch
	$(BIN)/geo demo

up: install ## start the stack and keep it running in the background
	$(BIN)/geo up --detach

down: ## stop the stack
	$(BIN)/geo down

test: install ## run the tests (under 25 minutes on two cores)
	$(BIN)/geo models fetch
	$(TEST_ENV) $(BIN)/pytest -n $(PARALLEL) --dist loadscope --no-loadscope-reorder -m 'not soak' $(TESTS)

soak: install ## run what takes over a minute each
	$(BIN)/geo models fetch
	$(TEST_ENV) $(BIN)/pytest -m soak $(TESTS)

lint: install ## ruff, pyright and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	PYTHONPATH=. $(BIN)/lint-imports

format: install ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## measure against the peers and print one JSON object per benchmark
	$(BIN)/geo bench parse --json
	$(BIN)/geo bench ingest --json
	$(BIN)/python -m benchmarks.query_overhead --json
	$(BIN)/python -m benchmarks.batching

peers: install ## make the environment of the systems that the benchmarks compare with
	$(BIN)/python -c 'from ingest.peers import peer_python; peer_python()'

lock: install ## write constraints.txt from what is installed
	$(BIN)/python scripts/lock.py constraints.txt

clean: ## remove the environment and the caches, not the data folder
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis

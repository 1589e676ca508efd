# Sandferry. `make demo` and `make test` need nothing but Python >= 3.11, git and make.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
# Test processes: most tests wait for a server or a countdown, so more than there are cores.
JOBS ?= 6
TESTS ?=
LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN := $(VENV)/.runs
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
ADVICE := the packages could not be installed: is PyPI reachable? behind a proxy set HTTPS_PROXY

.PHONY: demo start test canary lint bench corpus docs lock help clean live-e2b live-daytona

demo: $(RUN) ## Show a clone, a copy-back and managed tools on real parts, with faults (half a minute)
	@$(BIN)/sandferry demo

start: $(STAMP) ## Run the whole service here, with an embedded Valkey, until Ctrl-C (docs/operations.md)
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho start

test: $(STAMP) ## Run the tests; those that need Docker are skipped where there is no engine (not in CI)
	@echo "==> running the tests ($(or $(TESTS),about a quarter of an hour on two cores); Docker ones need an engine, see docs/development.md)"
	@$(BIN)/python -m tests.rig.docker_engine --optional -- $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(TESTS)

lint: $(STAMP) ## Check format, lint, types, import arrows and shell scripts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python docs/generate.py --check
	@if command -v shellcheck >/dev/null; then git ls-files "*.sh" | xargs shellcheck; \
	elif [ "$$CI" = true ]; then echo "shellcheck is missing: apt-get install shellcheck"; exit 1; \
	else echo "shellcheck is not installed: shell scripts were not checked"; fi

canary: $(STAMP) ## Plant secrets everywhere and look for them everywhere; prints the matrix (2 min)
	@$(BIN)/python -m tests.canary

live-e2b: $(STAMP) ## Run the driver against the real E2B (needs SANDFERRY_E2B_API_KEY_FILE; costs cents)
	@$(BIN)/pytest tests/live/live_provider.py --provider e2b

live-daytona: $(STAMP) ## Run the driver against the real Daytona (needs SANDFERRY_DAYTONA_API_KEY_FILE; costs cents)
	@$(BIN)/pytest tests/live/live_provider.py --provider daytona

bench: $(STAMP) ## Measure against peers, side by side; one JSON object a line
	@$(BIN)/python -m tests.benchmarks

corpus: $(STAMP) ## Judge the corpus of public failures beside others: accuracy, false and missed retries
	@$(BIN)/python -m tests.corpus

docs: $(STAMP) ## Write what is generated in docs: JSON Schemas, settings, failure rules
	@$(BIN)/python docs/generate.py

lock: ## Resolve the dependencies anew into requirements/ (needs uv)
	@$(LOCK) --all-extras --group dev --upgrade -o requirements/dev.txt
	@$(LOCK) --extra docker --extra flower --group build -c requirements/dev.txt -o requirements/worker.txt

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache build dist

help: ## Say what there is
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-12s %s\n' "$$name" "$$what"; done

# What the service runs on, and an editable install of it.
$(RUN): pyproject.toml requirements/worker.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Sandferry needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@command -v git >/dev/null || { echo "Sandferry needs git: install it with your package manager"; exit 1; }
	@echo "==> installing into $(VENV) (about half a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing: on Debian, apt-get install python3-venv"; exit 1; }
	@$(PIP) --require-hashes -r requirements/worker.txt || { echo "$(ADVICE)"; exit 1; }
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $(RUN)

# What tests, lint and documents need besides.
$(STAMP): $(RUN) requirements/dev.txt
	@echo "==> installing the tools for development (about half a minute, once)"
	@$(PIP) --require-hashes -r requirements/dev.txt || { echo "$(ADVICE)"; exit 1; }
	@touch $(STAMP)

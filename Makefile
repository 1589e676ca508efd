# Sandferry. `make demo` and `make test` need nothing but Python >= 3.11, git and make.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
# Test processes: most tests wait for a server or a countdown, so more than there are cores.
JOBS ?= 4
TESTS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test canary lint bench corpus docs lock help clean

demo: $(STAMP) ## Show a clone, a copy-back and managed tools on real parts, with faults (half a minute)
	@$(BIN)/sandferry demo

test: $(STAMP) ## Run the tests; those that need Docker are skipped where there is no engine (not in CI)
	@echo "==> running the tests (about ten minutes on two cores; Docker ones need an engine, see docs/development.md)"
	@$(BIN)/python -m tests.rig.docker_engine --optional -- $(BIN)/pytest -n $(JOBS) --dist loadfile $(TESTS)

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

bench: $(STAMP) ## Measure against peers, side by side; one JSON object a line
	@$(BIN)/python -m tests.benchmarks

corpus: $(STAMP) ## Judge the corpus of public failures beside others: accuracy, false and missed retries
	@$(BIN)/python -m tests.corpus

docs: $(STAMP) ## Write what is generated in docs: JSON Schemas, settings, failure rules
	@$(BIN)/python docs/generate.py

lock: ## Resolve the dependencies anew into requirements/ (needs uv)
	@uv pip compile pyproject.toml --extra docker --extra flower --group dev --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -q -o requirements/dev.txt
	@uv pip compile pyproject.toml --extra docker --extra flower --universal --python-version 3.11 -c requirements/dev.txt \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -q -o requirements/worker.txt

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache build dist

help: ## Say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-6s %s\n' "$$name" "$$what"; done

$(STAMP): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Sandferry needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@command -v git >/dev/null || { echo "Sandferry needs git: install it with your package manager"; exit 1; }
	@echo "==> installing into $(VENV) (about half a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing: on Debian, apt-get install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt || { \
		echo "the packages could not be installed: is PyPI reachable? behind a proxy set HTTPS_PROXY"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

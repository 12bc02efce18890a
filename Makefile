# The commands of this repository. `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.built
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help venv demo test lowest newest sbom docs torture bench bench-peers lint generated lock clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name what; do printf '  make %-11s  %s\n' "$$name" "$$what"; done

venv: $(STAMP) ## build .venv with everything that is needed (PYTHON=… chooses the interpreter)

$(STAMP): pyproject.toml requirements/ci.txt tools/make_venv.sh
	@sh tools/make_venv.sh "$(PYTHON)" "$(VENV)"

demo: $(STAMP) ## watch a task be killed and carry on
	@$(BIN)/perdure demo $(ARGS)

test: $(STAMP) ## run all tests, minutes per part at the end (ARGS="unit store" for some of them)
	@$(BIN)/python tools/run_tests.py $(ARGS)

lowest: $(STAMP) ## run some tests with the lowest versions that pyproject.toml allows, in build/lowest
	@mkdir -p build && $(BIN)/python tools/lowest_versions.py > build/lowest.txt
	@sh tools/try_versions.sh "$(PYTHON)" build/lowest "-r build/lowest.txt" $(ARGS)

newest: ## run the same tests with the newest versions that can be had, in build/newest
	@sh tools/try_versions.sh "$(PYTHON)" build/newest ".[rich,postgres,keyring,server,otel]" $(ARGS)

sbom: $(STAMP) ## write the bill of materials (CycloneDX), to build/perdure.cdx.json
	@mkdir -p build && $(BIN)/python tools/make_sbom.py > build/perdure.cdx.json && echo build/perdure.cdx.json

docs: $(STAMP) ## build the documentation as a site, in build/docs
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "open build/docs/index.html"

torture: $(STAMP) ## kill things at random, for as long as asked (ARGS=…)
	@$(BIN)/python -m tests.torture $(ARGS)

bench: $(STAMP) ## measure against the budgets, beside a bare commit
	@$(BIN)/perdure bench $(ARGS)

bench-peers: $(STAMP) ## measure DBOS, LangGraph, Temporal and Restate beside perdure; writes docs/explanation/peers.md
	@$(BIN)/python -m benchmarks.peers $(ARGS)

lint: $(STAMP) ## ruff, mypy and the floors
	@$(BIN)/python tools/run_tests.py lint

generated: $(STAMP) ## write what is made from the code: stubs of doors, perdure.sync, OpenAPI, reference
	@for tool in doors sync openapi reference; do $(BIN)/python tools/make_$$tool.py || exit 1; done

lock: $(STAMP) ## write requirements/ci.txt anew (ARGS=--upgrade takes newer versions)
	@sh tools/make_lock.sh "$(BIN)/python" $(ARGS)

clean: ## remove .venv and what tools left behind
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

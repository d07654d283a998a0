# Needs Python 3.11 or later, make and a C++ compiler; everything else goes into $(VENV).

PYTHON ?= python3
VENV ?= .venv
PYTEST_FLAGS ?= -n auto --dist worksteal
FUZZ_RUNS ?= 100000
BENCH ?= likelihood objectives reading boosted neural extreme aggregation preference
BENCH_FLAGS ?=
FIGURES ?= usual

BIN := $(VENV)/bin

# Compiled modules are kept: the tests start many processes, and each would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow test-native lint style types format bench figures docs install dist clean distclean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## install into .venv and run the demo
	$(BIN)/tierrank demo --examples demo
	@echo
	@echo "To go on, with the commands of README.md:"
	@echo "  open demo/index.html         # what came out"
	@echo "  source $(BIN)/activate"
	@echo "  tierrank train demo/train.txt --valid demo/vali.txt --out demo/model"

# Types are checked beside the tests; what they say comes last, and either fails the whole.
test: style ## install into .venv, then lint, types and tests (PYTEST_FLAGS="-n 2 -k tiers")
	@$(BIN)/python -m mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_FLAGS); tests=$$?; \
	wait $$types; types=$$?; echo "mypy: $$(cat $(VENV)/types.log)"; \
	exit $$((tests ? tests : types))

test-slow: $(VENV)/.installed-dev ## the tests that are long by nature: kills, fuzzing, simulations, whole experiments
	TIERRANK_ALL_EXAMPLES=1 $(BIN)/python -m pytest -m "slow or fuzz" $(PYTEST_FLAGS)

test-native: $(VENV)/.installed-dev ## the native core under sanitizers and a fuzzer (FUZZ_RUNS=1000000)
	PYTHON=$(BIN)/python FUZZ_RUNS=$(FUZZ_RUNS) tests/native/run

lint: style types ## ruff, import-linter and mypy

style: $(VENV)/.installed-dev
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.installed-dev
	$(BIN)/python -m mypy

format: $(VENV)/.installed-dev ## mend what ruff can mend, and format
	$(BIN)/python -m ruff check --fix
	$(BIN)/python -m ruff format

# With --json name.json, each program writes its own: name-likelihood.json, name-objectives.json.
bench: $(VENV)/.installed-bench ## time all beside its peers (BENCH=objectives BENCH_FLAGS="--help")
	@set -e; for name in $(BENCH); do \
	$(BIN)/python benchmarks/$$name.py $(patsubst %.json,%-$$name.json,$(BENCH_FLAGS)); done

# Without FIGURES, those that take a quarter of an hour at most; "none" only refreshes README and docs.
figures: $(VENV)/.installed-bench ## run what the figures of README and docs are from (FIGURES="likelihood reading")
	$(BIN)/python docs/figures/refresh.py $(FIGURES)

docs: $(VENV)/.installed-docs ## build the site into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

install: $(VENV)/.installed-dev ## install into .venv with the tools for development

# On Linux a wheel brings the C++ library of its compiler along, since that of another machine may be older.
WHEEL_FLAGS := $(if $(filter Linux,$(shell uname -s)),-C cmake.define.TIERRANK_STATIC=ON)

# The wheel is built from the sdist, so that a file that the sdist lacks is missed here.
dist: $(VENV)/.installed-dist ## build sdist and wheel into dist/, and look at both as the index would
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist $(WHEEL_FLAGS) .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/pyroma --min 8 dist/*.tar.gz  # of 10: there is no address of an author
	@$(BIN)/python -m auditwheel show dist/*.whl || true

clean: ## remove caches and builds
	rm -rf build dist docs/_build docs/gallery docs/generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf $(VENV)

# A stamp is written last, so an interrupted installation is taken up again by the next make.
# The installation is editable: only new dependencies, a new version or a change of the native core
# call for another one.

# As old as the Python it runs under may be, this must parse there.
OLD_PYTHON = import sys; sys.version_info < (3, 11) and sys.exit( \
	"tierrank needs Python 3.11 or later; this is %s: %s. Try: make distclean, then make PYTHON=python3.12 ..." \
	% (sys.version.split()[0], sys.executable))

# pip with its progress bars on a terminal, and silent in a log.
# The native core is built by the tools in $(VENV), not in an environment that pip throws away, so that
# a change of a source compiles only what it touches.
BUILD_TOOLS = scikit-build-core nanobind cmake ninja

define pip_install
	@echo "Installing tierrank$(1) into $(VENV) (the first time takes a few minutes: torch is large) ..."
	@quiet=--quiet; if [ -t 1 ]; then quiet=; fi; \
	install="$(BIN)/python -m pip install $$quiet --disable-pip-version-check -c constraints.txt"; \
	$$install $(BUILD_TOOLS) && $$install --no-build-isolation -e '.$(1)'
endef

# The sources of the native core: when one changes, it is built anew.
NATIVE := $(wildcard native/*)

define NO_COMPILER
tierrank builds its native core with a C++20 compiler (GCC 11, Clang 14 or later), and none was found.
  Debian, Ubuntu:  sudo apt install g++
  Fedora:          sudo dnf install gcc-c++
  macOS:           xcode-select --install
  Windows:         use WSL, or Clang of LLVM (winget install LLVM.LLVM)
Or name one: make CXX=/path/to/clang++ ... A wheel (pip install tierrank) needs no compiler.
endef
export NO_COMPILER

$(VENV)/.created:
	@command -v $(CXX) >/dev/null 2>&1 || command -v c++ >/dev/null 2>&1 || { echo "$$NO_COMPILER" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || \
	{ $(PYTHON) -c '$(OLD_PYTHON)' && $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -c '$(OLD_PYTHON)'
	@touch $@

# Not [all]: the demo trains no language model.
DEMO := [plots,neural,boost,tables,export,distributed]

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt $(NATIVE)
	$(call pip_install,$(DEMO))
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml constraints.txt $(NATIVE)
	$(call pip_install,[dev])
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: $(VENV)/.created pyproject.toml constraints.txt $(NATIVE)
	$(call pip_install,[bench])
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

DIST := [dev,dist]  # a comma would part the arguments of a call

$(VENV)/.installed-dist: $(VENV)/.created pyproject.toml constraints.txt $(NATIVE)
	$(call pip_install,$(strip $(DIST)))
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

$(VENV)/.installed-docs: $(VENV)/.created pyproject.toml constraints.txt $(NATIVE)
	$(call pip_install,[docs])
	@touch $(VENV)/.installed $@

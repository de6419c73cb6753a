# make setup | demo | kernels | test | test-all | bench | benchmarks | tables | docs | graphs | paper | lock | clean
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
EXTRAS ?=
BIN    := $(VENV)/bin

comma := ,
empty :=
space := $(empty) $(empty)
TEST_EXTRAS := dev,torch,ray
pip     = $(BIN)/python -m pip --disable-pip-version-check install --quiet
# The locked list with its hashes first (setuptools before what it builds), torch apart, then phaze without looking for anything.
define install
$(PYTHON) tools/lock.py --for build > $(VENV)/locked.txt
$(pip) --require-hashes --no-deps --requirement $(VENV)/locked.txt
$(PYTHON) tools/lock.py --for '$(1)' > $(VENV)/locked.txt
$(pip) --require-hashes --no-deps --no-build-isolation --requirement $(VENV)/locked.txt
$(if $(filter torch,$(subst $(comma), ,$(1))),$(pip) --constraint constraints.txt torch)
$(pip) --no-deps --no-build-isolation --editable .
$(BIN)/python -m compileall -q src/phaze
endef
stamp   = $(VENV)/.ready$(if $(1),-$(subst $(comma),-,$(1)))

.PHONY: setup demo test test-all bench benchmarks tables docs graphs kernels paper lock lint clean
.DEFAULT_GOAL := setup

setup: $(call stamp,$(EXTRAS))
	@echo "phaze is ready: $(BIN)/phaze --help"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras, so that a second run starts at once.
$(call stamp,$(EXTRAS)): pyproject.toml constraints.txt requirements.lock | $(BIN)/python
	$(call install,$(EXTRAS))
	$(BIN)/phaze kernels
	@touch $@

ifneq ($(EXTRAS),$(TEST_EXTRAS))
$(call stamp,$(TEST_EXTRAS)): pyproject.toml constraints.txt requirements.lock | $(BIN)/python
	$(call install,$(TEST_EXTRAS))
	$(BIN)/phaze kernels
	@touch $@
endif

demo: setup
	$(BIN)/phaze plan --model llama3-8b --chip h100 --devices 64 --batch 4M-tokens --html runs/plan.html
	$(BIN)/phaze search --model llama3-8b --out runs/demo

lint: $(call stamp,$(TEST_EXTRAS))
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=2 $(BIN)/mypy --strict src tests tools examples docs/tables.py docs/site_links.py docs/scaling.py

# Debian's chromium and axe-core (npm registry) for the tests of the page; where they cannot be installed those tests say that they were not run.
browser: $(call stamp,$(TEST_EXTRAS))
	@command -v chromium > /dev/null 2>&1 || command -v chromium-browser > /dev/null 2>&1 \
	  || { command -v apt-get > /dev/null 2>&1 && echo "installing chromium for the tests of the page" \
	  && { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null 2>&1 \
	  || { apt-get update -qq > /dev/null 2>&1 \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null 2>&1; }; }; } \
	  || echo "no chromium here: the tests of the page in a browser are NOT RUN"
	@$(BIN)/python -m tests.browser.axe

test: lint browser
	$(BIN)/pytest

test-all: lint browser
	$(BIN)/pytest -m ''

# Our solvers against published times and other tools, then the time of every stage. PARTS="placement cost" does some.
bench: $(call stamp,$(TEST_EXTRAS))
	$(BIN)/python -m tools.bench $(PARTS)
	$(BIN)/pytest tests/bench -n 0 -m '' --override-ini addopts=-q -s

# Measures docs/benchmarks.md anew, with the peers installed: about two minutes on a quiet machine.
benchmarks: $(call stamp,$(TEST_EXTRAS))
	$(call install,$(TEST_EXTRAS)$(comma)peers)
	$(BIN)/python docs/tables.py --measured

# Rewrites the tables between markers in docs/ from the commands that the markers name, the page of all keys, and what type checkers see of options as keys.
tables: $(call stamp,$(TEST_EXTRAS))
	$(BIN)/python docs/tables.py
	$(BIN)/python -m tools.format_keys
	$(BIN)/python -m tools.key_stubs

# The documentation as a searchable site in site/; a warning or a broken link is an error.
docs: | $(BIN)/python
	$(call install,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open it with: $(BIN)/python -m http.server --directory site"

# The picture of the page in README.md, made anew from a search; needs chromium.
picture: $(call stamp,$(TEST_EXTRAS)) browser
	$(BIN)/python docs/picture.py

# Traces every named model and family anew and writes src/phaze/graph/data; NAMES="gpt llama2-7b" does some.
graphs: $(call stamp,$(TEST_EXTRAS))
	$(BIN)/python -m tools.graphs $(NAMES)

# Compiles every kernel for a generic x86-64 CPU into src/phaze/compiled/shipped, after a change to a file of kernels.
kernels: $(call stamp,$(TEST_EXTRAS))
	$(BIN)/python -m tools.kernels

# Writes requirements.lock anew from constraints.txt: every package with the hashes of its files, as the registry has them.
lock: | $(BIN)/python
	$(BIN)/python -m tools.lock

# The ICML 2024 paper's experiment and where co-design pays: searches in runs/paper (resumed if stopped), tables in
# docs/paper.md, pictures in docs/images/paper. PARTS="--only map" does one part.
paper: setup
	$(call install,$(if $(EXTRAS),$(EXTRAS)$(comma))paper)
	$(BIN)/python -m examples.paper.reproduce $(PARTS)

clean:
	rm -rf $(VENV) runs build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Short names for what a developer does all day; each recipe is the plain command behind it.
PYTHON ?= python3
BUILD  ?= build/dev
JOBS   ?= $(shell nproc)
STAGE   = $(BUILD)/stage
# Manual pages belong to the wheel; a developer's build does not wait for them.
CMAKE_FLAGS ?= -DPTT_MAN=OFF

.PHONY: help dev test bench ctest lint docs commands format wheel clean
help:           ## this list
	@sed -n 's/^\([a-z]*\): .*## /\1\t/p' $(MAKEFILE_LIST)

dev:            ## build the native parts and install them to build/dev/stage
	cmake -S . -B $(BUILD) $(CMAKE_FLAGS)
	cmake --build $(BUILD) --parallel $(JOBS)
	cmake --install $(BUILD) --prefix $(STAGE) >/dev/null

test: dev       ## run the Python tests against the stage (ARGS="-k name")
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) -m pytest $(ARGS)

bench: dev       ## what tracing costs on this machine; figures are kept in build/bench
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/hotpath.py
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/hotpath.py --threads 2
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/posix.py
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/instructions.py
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/size.py
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/startup.py
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/programs.py

ctest: dev      ## run the tests written in C
	ctest --test-dir $(BUILD) --output-on-failure

lint: docs      ## ruff, mypy, the import contract, and the documentation without a warning
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	PYTHONPATH=src $(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()"

docs:           ## build the documentation into build/site
	$(PYTHON) -m sphinx -q -W --keep-going -b html -d build/site/.doctrees docs build/site

commands:       ## write the generated parts of docs/reference anew: commands and tables
	PYTHONPATH=src $(PYTHON) -m nptltrace.cli._markdown docs/reference/commands
	PYTHONPATH=src $(PYTHON) -m nptltrace.cli._tables_page docs/reference/tables.md

format:         ## let ruff format the Python files
	$(PYTHON) -m ruff format

wheel:          ## build the wheel into dist/
	$(PYTHON) -m pip wheel --no-deps --wheel-dir dist .

clean:          ## remove everything that was built
	rm -rf build dist

# Short names for what a developer does all day; each recipe is the plain command behind it.
PYTHON ?= python3
BUILD  ?= build/dev
JOBS   ?= $(shell nproc)
STAGE   = $(BUILD)/stage
# Manual pages belong to the wheel; a developer's build does not wait for them.
CMAKE_FLAGS ?= -DPTT_MAN=OFF

.PHONY: help dev test bench ctest lint generated-lint python-lint types-lint imports-lint web web-lint web-format web-test
.PHONY: web-licences web-protocol binding docs commands format wheel clean
help:           ## this list
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' $(MAKEFILE_LIST)

dev:            ## build the native parts and install them to build/dev/stage
	cmake -S . -B $(BUILD) $(CMAKE_FLAGS)
	cmake --build $(BUILD) --parallel $(JOBS)
	cmake --install $(BUILD) --prefix $(STAGE) >/dev/null

test: dev       ## run the Python tests against the stage (ARGS="-k name")
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) -m pytest $(ARGS)

bench: dev       ## what tracing costs on this machine, beside what others cost (ARGS="--quick")
	NPTLTRACE_NATIVE_DIR=$(CURDIR)/$(STAGE) $(PYTHON) benchmarks/bench.py $(ARGS)

# The packages that check and build the page: web/package-lock.json names them, with their sums.
WEB     = build/web
WEB_BIN = $(CURDIR)/$(WEB)/node_modules/.bin
$(WEB)/packages: web/package.json web/package-lock.json
	mkdir -p $(WEB) && cp web/package.json web/package-lock.json $(WEB)
	cd $(WEB) && npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error
	touch $@

web: $(WEB)/packages ## build the page of ptt ui alone, for a look at build/web/page
	node web/build.mjs --modules $(WEB)/node_modules --out $(WEB)/page

web-licences: $(WEB)/packages ## write the licences of what is in the page anew
	node web/build.mjs --modules $(WEB)/node_modules --out $(WEB)/page --licences

web-lint: $(WEB)/packages ## types, lint and format of the page's sources
	cd web && $(WEB_BIN)/tsc --noEmit -p . && $(WEB_BIN)/biome check --error-on-warnings .

web-protocol:   ## write the page's declarations of what the server answers anew
	PYTHONPATH=src $(PYTHON) -m nptltrace.ui.typescript web/src/base/protocol.ts

web-format: $(WEB)/packages ## let biome format the page's sources
	cd web && $(WEB_BIN)/biome check --write .

web-test: $(WEB)/packages ## the page's unit tests
	node web/build.mjs --modules $(WEB)/node_modules --out $(WEB)/tests --tests
	node --test $(WEB)/tests

ctest: dev      ## run the tests written in C
	ctest --test-dir $(BUILD) --output-on-failure

# Several that may run at one time; check.sh has them do so.
LINTS = types-lint docs generated-lint python-lint imports-lint $(if $(shell command -v npm),web-lint)
lint: $(LINTS)  ## ruff, mypy, the import contract, the page, generated files, and the documentation without a warning
	$(if $(filter web-lint,$(LINTS)),,@echo "npm is missing: web/ is not checked")

generated-lint: ## are the files that catalog/generate.py writes up to date?
	$(PYTHON) catalog/generate.py --check

python-lint:    ## ruff
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check

types-lint:     ## mypy
	$(PYTHON) -m mypy

imports-lint:   ## the import contract
	PYTHONPATH=src $(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()"

binding:        ## declare the C headers to Python anew
	$(PYTHON) tools/bind_headers.py

docs:           ## build the documentation into build/site
	$(PYTHON) -m sphinx -q -W --keep-going -b html -d build/site/.doctrees docs build/site

commands:       ## write the generated parts of docs/reference anew: commands, tables and JSON
	PYTHONPATH=src $(PYTHON) -m nptltrace.cli.pages.markdown docs/reference/commands
	PYTHONPATH=src $(PYTHON) -m nptltrace.cli.pages.tables_page docs/reference/tables.md
	PYTHONPATH=src $(PYTHON) -m nptltrace.cli.pages.json_page docs/reference/json.md

format:         ## let ruff format the Python files
	$(PYTHON) -m ruff format

wheel:          ## build sdist and wheel as they are published, into dist/ (SYSROOT=DIR: for the C library in there)
	tools/wheel.sh $(SYSROOT)

clean:          ## remove everything that was built
	rm -rf build dist

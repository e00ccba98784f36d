# Two commands are enough: `make run` and `make test`. Each sets everything up on a machine that has Python 3.11 or newer.
# `make help` lists the rest. PYTHON=... names the interpreter to make .venv with.

.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
UV := $(VENV)-lock/bin/uv
UV_VERSION := 0.13.8
HADOOP_VERSION := 3.5.0
SEEDS ?= 1..26000
HOURS ?= 0.2
PYTEST_ARGS ?= -n auto --dist loadscope --no-loadscope-reorder

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run demo test check format mutants bench soak screenshots generate sbom audit package jobs-archive gcs-connector chart simulate detection docs quiet loud test-nightly lock clean help

run: $(VENV)/runtime.stamp  ## Run the service on the embedded Pub/Sub server, until Ctrl-C
	@exec $(BIN)/ordering-prober run

demo: $(VENV)/runtime.stamp  ## Show the service at work: one fault after the other, in two minutes
	@exec $(BIN)/ordering-prober demo

# The tests start the program hundreds of times: if none may write bytecode, each compiles all of it again.
test: $(VENV)/dev.stamp  ## Run the test suite, but for what waits for minutes (PYTEST_ARGS="-n 0" for one process)
	@sh .ci/get-tools $(BIN) $(VENV)/setup.log
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m "not nightly" $(PYTEST_ARGS)

check: $(VENV)/dev.stamp  ## Run the static checks: style, format, types, imports, addresses, prose
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q tests/architecture/test_addresses.py tests/architecture/test_prose.py

format: $(VENV)/dev.stamp  ## Format the code and fix what can be fixed mechanically
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

mutants: $(VENV)/dev.stamp  ## Break the checker on purpose, one fault at a time: a test must notice each
	$(BIN)/python tests/mutants/run.py

bench: $(VENV)/dev.stamp  ## Measure the speed of everything and write docs/performance.md; tell what became worse
	@sh .ci/get-tools $(BIN) $(VENV)/setup.log
	$(BIN)/python -m benchmarks.report

soak: MINUTES ?= 20
soak: $(VENV)/dev.stamp  ## Run everything for MINUTES=20 under load while one thing after the other breaks; draw build/soak.svg
	@mkdir -p build
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) --picture build/soak.svg

screenshots: $(VENV)/dev.stamp  ## Draw the pictures of the pages in docs/images/ again, and record the demo
	$(BIN)/python -m tests.browser.screenshots
	$(BIN)/python -m tests.browser.demo_recording

sbom: $(VENV)/dev.stamp  ## Write dist/sbom.json, the software bill of materials of the service (CycloneDX)
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements constraints/runtime.txt --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json

audit: $(VENV)/dev.stamp  ## Look up known vulnerabilities in the packages of the service and its jobs
	$(BIN)/pip-audit --disable-pip --require-hashes --requirement constraints/runtime.txt --requirement constraints/jobs.txt

package: $(VENV)/runtime.stamp  ## Build the Python package into dist/
	@$(BIN)/hatchling build --target wheel --directory dist

jobs-archive: $(VENV)/runtime.stamp  ## Build dist/ordering-prober-jobs.zip: the project for Spark's --py-files
	@rm -rf build/jobs && mkdir -p dist
	@$(BIN)/hatchling build --target wheel --directory build/jobs && mv build/jobs/*.whl dist/ordering-prober-jobs.zip

gcs-connector:  ## Get Hadoop's connector for Cloud Storage into build/gcs-connector, for the image jobs-gcs (needs Maven)
	mvn --batch-mode --strict-checksums org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact=org.apache.hadoop:hadoop-gcp:$(HADOOP_VERSION):jar:shaded -DoutputDirectory=build/gcs-connector

chart: $(VENV)/dev.stamp  ## Package the Helm chart, with its rules and dashboards, into dist/
	@mkdir -p dist
	@$(BIN)/python -c "import helm_python; print(helm_python.package('helm/ordering-keys-prober', destination='dist'))"

simulate: $(VENV)/runtime.stamp  ## Run the whole prober in virtual time, 200 times: every fault must be found, without a false alarm
	$(BIN)/ordering-prober simulate --seeds 1..200

detection: $(VENV)/runtime.stamp  ## Gather 10,000 hours of probes and write docs/detection.md: which probe finds which fault (hours; after Ctrl-C it goes on from there)
	$(BIN)/python -m prober.simulation.page docs/detection.md --seeds $(SEEDS) --hours $(HOURS) --results docs/detection.json

generate: $(VENV)/dev.stamp  ## Write every generated file again: rules, dashboards, the pages on configuration, costs, metrics and performance, and the README and schema of the chart
	@$(BIN)/python -m tests.generated

docs: $(VENV)/dev.stamp  ## Build the documentation site into build/site
	@$(BIN)/python -m tests.site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file docs/mkdocs.yaml

quiet: MINUTES ?= 15
quiet: $(VENV)/dev.stamp  ## Run the healthy service for MINUTES=15 beside a CPU load: no alert, no bad check, no pending message
	@sh .ci/get-tools $(BIN) $(VENV)/setup.log
	$(BIN)/python -m tests.whole.quiet --minutes $(MINUTES)

loud: $(VENV)/dev.stamp  ## Inject each fault, follow it to the page and back, and write docs/loud.md (two hours)
	@sh .ci/get-tools $(BIN) $(VENV)/setup.log
	$(BIN)/python -m tests.whole.loud $(if $(PACE),--pace $(PACE)) docs/loud.md

test-nightly: export FULL_PROPERTIES = 1
test-nightly: test  ## Run every test, also those that wait for minutes or watch the whole service (three hours)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m nightly $(PYTEST_ARGS)
	@$(MAKE) quiet loud

lock: $(UV)  ## Write constraints/ again, with the newest versions that pyproject.toml allows
	$(COMPILE) --output-file constraints/dev.txt pyproject.toml --group build --group dev
	$(COMPILE) --output-file constraints/runtime.txt pyproject.toml --extra exports --extra monitoring --extra nats --constraints constraints/dev.txt
	$(COMPILE) --output-file constraints/jobs.txt pyproject.toml --extra exports --extra monitoring --extra nats --extra jobs --constraints constraints/dev.txt
	$(COMPILE) --output-file constraints/build.txt --group build --constraints constraints/dev.txt
	@! grep -nE '://|^-' constraints/*.txt || { echo "constraints/ must hold no address and no option" >&2; exit 1; }

clean:  ## Remove what the other targets made
	rm -rf $(VENV) $(VENV)-lock build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## List every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

# --- set-up: a stamp that is older than a file it was made from means that something has to be installed again ---

$(VENV)/runtime.stamp: $(VENV)/pyvenv.cfg pyproject.toml constraints/runtime.txt constraints/build.txt
	@echo "==> Installing what the service needs; the log is $(VENV)/setup.log"
	@$(INSTALL_LOCKED) -r constraints/runtime.txt -r constraints/build.txt
	@$(INSTALL_PROJECT)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/pyvenv.cfg pyproject.toml constraints/dev.txt
	@echo "==> Installing what the service and its tests need, which takes a minute or two; the log is $(VENV)/setup.log"
	@$(INSTALL_LOCKED) -r constraints/dev.txt
	@$(INSTALL_PROJECT)
	@touch $(VENV)/runtime.stamp $@

LOGGED = sh .ci/logged $(VENV)/setup.log
# The locks hold every package, so nothing is resolved: pip before 24 would take a newer version for what is asked for with an extra.
INSTALL_LOCKED = $(LOGGED) $(BIN)/python -m pip install --require-hashes --no-deps
INSTALL_PROJECT = $(LOGGED) $(BIN)/python -m pip install --no-deps --no-build-isolation --editable .

$(VENV)/pyvenv.cfg $(VENV)-lock/pyvenv.cfg:
	@sh .ci/make-venv $(@D)

$(UV): $(VENV)-lock/pyvenv.cfg
	@$(VENV)-lock/bin/python -m pip install uv==$(UV_VERSION)
	@touch $@

# An environment that was copied from elsewhere, or whose interpreter is gone, is made again.
$(shell [ -L $(VENV) ] || grep -qsF '$(CURDIR)/$(VENV)' $(VENV)/pyvenv.cfg && $(BIN)/python -c '' 2>/dev/null || rm -f $(VENV)/pyvenv.cfg)

COMPILE = $(UV) pip compile --no-config --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
	--custom-compile-command "make lock" --no-annotate --no-emit-index-url --no-emit-find-links

# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check
READY := .venv/.ready

# Keep compiled modules, whatever the environment says: the tests start hundreds of Pythons.
export PYTHONDONTWRITEBYTECODE :=

# Three processes on two cores: tests on Spark spend half of their time waiting.
PYTEST := $(BIN)/pytest -n 3 --dist loadscope --no-loadscope-reorder

.PHONY: demo compare ddos-map check test test-long bench clean java pins
demo: java
	@$(BIN)/rheostat demo

compare: $(READY)
	@$(BIN)/rheostat compare --topology wordcount --curve day --out comparison \
		--policies static,threshold,occupancy,joint,ds2,multilevel,e2df,elysium,autoscale

ddos-map: java
	@$(BIN)/python benchmarks/ddos_map.py

# The quick part, for every commit: everything that needs no Java.
check: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@{ $(BIN)/mypy && $(BIN)/lint-imports; } & checks=$$!; $(PYTEST) -m 'not jvm and not long'; tested=$$?; \
		wait $$checks && exit $$tested

# Everything; starting the JVMs and type checking run side by side.
test: java
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/python -m tests.jvm & { $(BIN)/mypy && $(BIN)/lint-imports; }; checked=$$?; wait; exit $$checked
	@$(PYTEST) -m 'not long' --durations 20

# Proofs that take long; docs/ has their latest output.
test-long: java
	@$(PYTEST) -m long --durations 20
	@PYTHONPATH=. $(BIN)/python -m benchmarks.chaos

java: $(READY)
	@$(BIN)/python -c 'from rheostat.services.java import java_version; java_version()' 2>/dev/null || \
		{ echo "Spark needs Java 17 or later: on Debian and Ubuntu, apt install openjdk-17-jre-headless"; exit 2; }

bench: $(READY)
	@failed=0; for b in benchmarks/bench_*.py; do echo "== $$b"; PYTHONPATH=. $(BIN)/python $$b || failed=1; done; exit $$failed

# pip runs again only when one of these changed. The pins are the tested versions, so that no new release breaks a set-up.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Rheostat needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv || \
		{ echo "Python's venv module is missing: on Debian and Ubuntu, apt install python3-venv"; rm -rf .venv; exit 2; }
	@echo "Setting up .venv (once, about a minute)" && $(PIP) -c constraints.txt -e '.[dev]'
	@touch $(READY)

pins: $(READY)
	@$(PIP) --upgrade --upgrade-strategy eager -e '.[dev]'
	@{ echo "# Written by 'make pins': the versions that 'make test' passed with."; \
		$(BIN)/pip freeze --exclude-editable; } > constraints.txt
	@touch $(READY) && git diff constraints.txt && echo "constraints.txt holds today's newest versions. Commit it when 'make test' passes."

clean:
	rm -rf .venv demo comparison trial platform ddos.map.yaml .rheostat build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# airtcp: `make help` lists the targets. All set-up is done by scripts/setup.

VENV := .venv
PYTHON_FILES := python benches
# cargo and maturin shall use the interpreter of the environment, not whatever python3 is on PATH.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help build demo test bench bench-peers study fmt lint clean setup setup-test native module

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: native module ## release build: .venv/bin/airtcp and target/release/airtcp

demo: build ## build, then reproduce the Packet Control paper in its quick form
	$(VENV)/bin/airtcp study run packet-control --quick

define stage
	@printf '\n== %s\n' '$(1)'
endef

test: setup-test ## formatters, linters and all tests; stops at the first failure
	$(call stage,cargo fmt)
	cargo fmt --all --check
	$(call stage,cargo clippy)
	cargo clippy --workspace --all-targets -- -D warnings
	$(call stage,cargo test)
	cargo test --workspace
	$(call stage,ruff)
	$(VENV)/bin/ruff check --config python/pyproject.toml $(PYTHON_FILES)
	$(VENV)/bin/ruff format --config python/pyproject.toml --check $(PYTHON_FILES)
	$(call stage,mypy)
	cd python && ../$(VENV)/bin/mypy
	$(VENV)/bin/mypy --strict benches/peers/run.py
	$(call stage,build)
	$(MAKE) --no-print-directory build
	$(call stage,pytest)
	cd python && ../$(VENV)/bin/pytest
	@printf '\nAll tests passed.\n'

bench: setup ## benchmarks of the crates (criterion, quick form)
	cargo bench --workspace --bench '*' -- --quick --noplot

bench-peers: native ## the same work in airtcp, ns-2 and ns-3
	$(VENV)/bin/python benches/peers/run.py $(ARGS)

study: build ## reproduce a paper: make study STUDY=packet-control [ARGS='--runs 5']
	@test -n "$(STUDY)" || { echo 'make study STUDY=name (airtcp study list shows the names)' >&2; exit 2; }
	$(VENV)/bin/airtcp study run $(STUDY) $(ARGS)

fmt: setup-test ## format all code
	cargo fmt --all
	$(VENV)/bin/ruff check --config python/pyproject.toml --fix $(PYTHON_FILES)
	$(VENV)/bin/ruff format --config python/pyproject.toml $(PYTHON_FILES)

lint: setup-test ## clippy, ruff and mypy
	cargo clippy --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check --config python/pyproject.toml $(PYTHON_FILES)
	cd python && ../$(VENV)/bin/mypy

clean: ## remove everything built (results/ stays)
	rm -rf target fuzz/target $(VENV)
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf python/.mypy_cache python/.pytest_cache python/.ruff_cache python/.hypothesis .mypy_cache .ruff_cache

setup:
	@scripts/setup build

setup-test:
	@scripts/setup test

native: setup
	cargo build --release --package airtcp-cli

module: setup
	PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --release --quiet --manifest-path python/Cargo.toml

# airtcp: `make help` lists the targets. scripts/setup does all set-up.

VENV := .venv
BIN := $(VENV)/bin
# python/pyproject.toml has the tools' settings; the scripts outside the package use them, too.
RUFF_SCRIPTS := --config python/pyproject.toml benches dist docs/site scripts/kernels studies
# Cargo's: `release` builds quickly; `dist` takes longer and runs faster.
PROFILE := release
# GATEWAY=no leaves out all live commands but link; then clang, libelf and zlib are not needed.
GATEWAY := yes
ifeq ($(GATEWAY),yes)
PURPOSE := build
else
PURPOSE := simulate
FEATURES := --no-default-features --features airtcp-cli/link
endif

CORES := $(shell getconf _NPROCESSORS_ONLN)
# The longest of cargo's tests are of real time, and mostly wait.
TEST_THREADS := $(shell expr 4 '*' $(CORES))
# Making a failing case smaller must not take longer than CI has.
export PROPTEST_MAX_SHRINK_TIME ?= 120000
# Containers often set it, and then each of hundreds of processes compiles pandas, SciPy and
# matplotlib again (3 s each).
unexport PYTHONDONTWRITEBYTECODE

# How what pytest runs is built, and where it is in target/. After CI nobody uses it. There most of
# it was built for cargo's tests, with the same profile and features.
ifdef CI
BUILD_FOR_PYTEST = cargo build --profile test --workspace --lib --bins --tests && scripts/install-module debug
TESTED := debug
else
BUILD_FOR_PYTEST = $(MAKE) --no-print-directory build
TESTED := $(PROFILE)
endif

# Exit codes 3 and 4 of a study: it ran, and some claims are undecided or refuted. These are results.
WITH_VERDICTS := [ $$? -ge 3 ]

.DEFAULT_GOAL := help
.PHONY: help build dist test-dist docs demo test soak deny test-long test-kernels compare-queues bench bench-link bench-peers bench-sweeps bench-gateway quic-peers tunnel-peer study study-all fmt lint linters meanwhile test-rust test-python clean setup setup-simulate setup-test module

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: setup ## .venv/bin/airtcp and target/release/airtcp [PROFILE=dist: target/dist/airtcp] [GATEWAY=no]
	cargo build --profile $(PROFILE) --package airtcp-cli --package airtcp-python $(FEATURES)
	@scripts/install-module $(PROFILE)

dist: ## what users install, into dist/out: binaries, wheels, Debian packages [ARGS=wheels]
	@scripts/setup dist
	scripts/dist $(ARGS)

test-dist: ## installs and runs what make dist made, in bare trees (as root) [ARGS=wheel]
	scripts/test-dist $(ARGS)

docs: ## the documentation as a site, into target/docs
	@scripts/setup docs
	$(call stage,documentation site)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'file://$(CURDIR)/target/docs/index.html'

demo: module ## build the simulator, then reproduce the Packet Control paper and Table 3 of M-TCP+ in quick form
	$(BIN)/airtcp study run packet-control --quick || $(WITH_VERDICTS)
	$(BIN)/airtcp study run m-tcp-plus --quick || $(WITH_VERDICTS)

define stage
	@printf '\n== %s\n' '$(1)'
endef

test: setup-test ## formatters, linters and all tests; stops at the first failure
	$(call stage,formatters)
	cargo fmt --all --check
	cd python && ../$(BIN)/ruff format --check
	$(BIN)/ruff format --check $(RUFF_SCRIPTS)
	$(call stage,cargo test)
	cargo test --workspace --no-run
	@$(MAKE) --no-print-directory -j2 test-rust meanwhile
	@printf '\nAll tests passed.\n'

test-rust:
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace

# The tests of the gateway wait most of the time. Linters, the site and pytest compute meanwhile, with what those
# leave of the processors, and say all at the end. cargo locks target/ until the tests run: they come first.
meanwhile:
	@sleep 20
	@nice -n 19 $(MAKE) --no-print-directory linters docs test-python >target/meanwhile.log 2>&1; status=$$?; cat target/meanwhile.log; exit $$status

test-python:
	$(call stage,build)
	$(BUILD_FOR_PYTEST)
	$(call stage,pytest)
	cd python && AIRTCP_NATIVE=$(CURDIR)/target/$(TESTED)/airtcp ../$(BIN)/pytest -n $(CORES)

# With the tests' profile: procedural macros and build scripts have been built for it already.
linters:
	$(call stage,cargo clippy)
	cargo clippy --profile test --workspace --all-targets -- -D warnings
	@# On its own: libfuzzer-sys makes `cc` compile in parallel, a feature with which all C code would
	@# be compiled again. Nothing is linked; without the variable, libFuzzer's C++ would be compiled.
	CUSTOM_LIBFUZZER_PATH=$(CURDIR)/fuzz/Cargo.toml cargo clippy --profile test --package airtcp-fuzz --features libfuzzer -- -D warnings
	$(call stage,rustdoc)
	RUSTDOCFLAGS='-D warnings' cargo doc --profile test --workspace --no-deps --quiet
	$(call stage,ruff)
	cd python && ../$(BIN)/ruff check
	$(BIN)/ruff check $(RUFF_SCRIPTS)
	$(call stage,mypy)
	cd python && ../$(BIN)/mypy
	cd python && ../$(BIN)/mypy ../benches/peers/run.py
	cd python && ../$(BIN)/mypy ../benches/gateway/run.py
	cd python && ../$(BIN)/mypy ../studies/live/beside.py
	cd python && ../$(BIN)/mypy ../benches/senders.py ../benches/sweeps.py
	cd python && ../$(BIN)/mypy ../benches/stacks/run.py
	cd python && ../$(BIN)/mypy ../scripts/kernels/queues.py

soak: setup-test ## the tests of processes, sockets and time, many times under load (as root) [ARGS='20 5']
	scripts/soak $(ARGS)

deny: ## licences, sources and advisories of the dependencies (needs cargo install cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { echo 'make deny: cargo install --locked cargo-deny' >&2; exit 2; }
	cargo deny check licenses bans sources
	cargo deny check advisories

test-long: ## outages of minutes and mass outages through the gateway, and the whole model (as root, a quarter of an hour)
	AIRTCP_LONG=1 cargo test --package airtcp-edge --test safety
	AIRTCP_LONG=1 cargo test --package airtcp-cli --test gateway -- --exact outages::long_outages
	AIRTCP_LONG=1 cargo test --package airtcp-cli --test gateway -- mass:: --nocapture

test-kernels: ## the gateway and its unit on Debian's kernels, in a virtual machine (as root, on an idle machine) [ARGS=PACKAGE]
	scripts/test-kernels $(ARGS)

compare-queues: build ## the kernel's queue disciplines in a virtual machine, beside the simulator's (as root) [ARGS='--runs 1 CELL']
	scripts/compare-queues $(ARGS)

bench: setup ## benchmarks of the crates (criterion, quick form)
	cargo bench --workspace --bench '*' -- --quick --noplot

bench-link: setup ## packet rate and punctuality of the link emulator, beside a plain veth pair (as root)
	cargo bench --package airtcp-emu --bench link

bench-peers: setup-simulate ## the same work in airtcp, ns-2, ns-3 and htsim [ARGS='dumbbell --htsim DIR']
	scripts/pgo --no-default-features --features simulator
	$(BIN)/python benches/peers/run.py $(ARGS)

bench-sweeps: build ## what sweeps and studies of short runs cost, beside the same runs by the native command
	$(BIN)/python benches/sweeps.py target/release/airtcp

bench-gateway: setup-test ## as root: what a gateway costs, beside kernel forwarding [ARGS='--seconds 10 -- COMMAND']
	cargo build --profile dist --package airtcp-linux --example pass_through --example latency
	$(BIN)/python benches/gateway/run.py $(ARGS)

quic-peers: ## the ends of QUIC downloads (quinn, aioquic), which studies/wake needs
	cargo build --release --manifest-path benches/quic/Cargo.toml --target-dir target/quic
	test -x target/quic/venv/bin/python || python3 -m venv target/quic/venv
	target/quic/venv/bin/pip install --quiet --requirement benches/quic/requirements.txt

tunnel-peer: ## WireGuard in user space (Debian's wireguard-go), which studies/wake needs
	mkdir -p target/tunnel
	cd target/tunnel && apt-get download wireguard-go && dpkg-deb --extract wireguard-go_*.deb .

study: module ## reproduce a paper: make study STUDY=packet-control [ARGS='--runs 5']
	@test -n "$(STUDY)" || { echo 'make study STUDY=name (airtcp study list shows the names)' >&2; exit 2; }
	$(BIN)/airtcp study run $(STUDY) $(ARGS) || $(WITH_VERDICTS)

study-all: build ## all studies in full (live and wake only as root), then docs/claims [ARGS=--quick: few runs, and the pages stay]
	@[ "$$(id -u)" != 0 ] || { scripts/setup test && $(MAKE) --no-print-directory quic-peers tunnel-peer; }
	$(BIN)/airtcp study all $(ARGS) || $(WITH_VERDICTS)
ifeq (,$(filter --quick,$(ARGS)))
	$(BIN)/airtcp study claims --take results --out docs/claims
endif

fmt: setup-test ## format all code
	cargo fmt --all
	cd python && ../$(BIN)/ruff check --fix && ../$(BIN)/ruff format
	$(BIN)/ruff check --fix $(RUFF_SCRIPTS)
	$(BIN)/ruff format $(RUFF_SCRIPTS)

lint: setup-test ## clippy, rustdoc, ruff and mypy
	@$(MAKE) --no-print-directory linters

clean: ## remove everything built (results/ stays)
	rm -rf target $(VENV)
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf python/.mypy_cache python/.pytest_cache python/.ruff_cache python/.hypothesis .mypy_cache .ruff_cache

setup:
	@scripts/setup $(PURPOSE)

setup-simulate:
	@scripts/setup simulate

setup-test:
	@scripts/setup test

# The Python module with the simulator only: it needs no clang.
module: setup-simulate
	cargo build --profile $(PROFILE) --package airtcp-python
	@scripts/install-module $(PROFILE)

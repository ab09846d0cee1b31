# `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
ARGS ?=
AMQP_URL := $(or $(LANEKEEPER__AMQP__URL),amqp://guest:guest@127.0.0.1:5672)
REDIS_URL := $(or $(LANEKEEPER__REDIS__URL),redis://127.0.0.1:6379)
POSTGRES_URL := $(or $(LANEKEEPER__DATABASE__URL),postgres://lanekeeper:lanekeeper@127.0.0.1:5432/lanekeeper)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: services
services: ## RabbitMQ, Redis and PostgreSQL on loopback: those that answer, or Docker's, or Debian's
	@scripts/services.sh up

.PHONY: services-stop
services-stop: ## End the services that `make services` started, and nothing else
	@scripts/services.sh down

.PHONY: test
test: ## Every test, on real services (ARGS="name" for some of them)
	@scripts/services.sh packages test
	@scripts/clients.sh
	@scripts/phone_zones.sh
	@scripts/schemathesis.sh
	@scripts/services.sh up test
ifeq ($(strip $(ARGS)),)
	# Most of them wait for services and time-outs: twice as many at once as there are processors.
	RUST_TEST_THREADS=$$(($$(nproc) * 2)) $(CARGO) test --locked --workspace -- --skip scenarios:: --skip outages::
	# What measures runs alone: a busy machine is late, and a late Redis is an outage.
	$(CARGO) test --locked --test it -- --test-threads=1 scenarios:: outages::
else
	$(CARGO) test --locked --workspace $(ARGS)
endif

.PHONY: run
run: ## Services, then a worker whose carrier is a sandbox
	@scripts/services.sh up run
	$(CARGO) build --locked
	@scripts/run.sh "$(AMQP_URL)" "$(REDIS_URL)" "$(POSTGRES_URL)"

.PHONY: bench
bench: ## Throughput, HTTP and backlogs (ARGS=--quick for a short run, ARGS="--only NAME" for one part of the backlogs)
	@scripts/services.sh packages
	@scripts/services.sh up test
ifeq ($(filter --only,$(ARGS)),)
	$(CARGO) bench --locked --bench throughput -- $(ARGS)
	$(CARGO) bench --locked --bench http -- $(ARGS)
endif
	$(CARGO) bench --locked --bench backlog -- $(ARGS)
ifeq ($(ARGS),)
	@# What happens to jobs while queues come and go under faults; how often the seed's faults strike is printed.
	LANEKEEPER_TEST_INTERLEAVINGS=200 $(CARGO) test --locked --test it -- hot::interleavings --nocapture --test-threads=1
endif

.PHONY: lint
lint: ## Formatting, clippy and documentation, warnings being errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@# The documentation of a program is for its developers: private items are part of it.
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --locked --workspace --no-deps --document-private-items

.PHONY: queries
queries: ## Renew .sqlx after a change of a query or of migrations/
	@scripts/queries.sh

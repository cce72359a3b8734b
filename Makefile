# Everything here works with Go, make and git; what needs a RabbitMQ starts a
# private one (see e2e/rabbit) or uses the one that RSCTL_AMQP_URL names.

.DEFAULT_GOAL := help
GO ?= go
# The RabbitMQ of "make test": installed, 3.10, 4.0 or 4.3.
SERIES ?= installed
# The ones of "make test-matrix".
MATRIX ?= 3.10 4.0 4.3
# Time per package: the faults of e2e take minutes on a busy machine.
TEST_TIMEOUT ?= 20m
# Time per fuzz target.
FUZZTIME ?= 30s
# Time of "make chaos", without starting brokers and draining queues.
CHAOS_TIME ?= 10m
# Time that the endpoint is away in "make outage".
OUTAGE_TIME ?= 60s
# Time of "make soak".
SOAK_TIME ?= 10m
# Set it to 1 and "make bench" installs what it compares rsctl with: Debian's
# amqp-tools and python3-celery into the system, npm's rascal into a temporary folder.
RIVALS ?=
# Version of staticcheck; empty leaves it out, for work without a network.
STATICCHECK ?= v0.8.2

# The race detector needs a C compiler on most systems.
RACE := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
BROKER_PACKAGES := ./pkg/confirm/... ./pkg/service/... ./pkg/topology/broker/... ./pkg/runtime/... ./cmd/... ./e2e/...

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: go ## Build bin/rsctl
	@$(GO) build -o bin/rsctl ./cmd/rsctl

.PHONY: demo
demo: withbroker ## See orders flow through a private RabbitMQ, start to end
	@bin/withbroker -series $(SERIES) -- $(GO) run ./e2e/demo

.PHONY: test
test: withbroker race-note clients-note ## All tests, on a private RabbitMQ; SERIES=4.3 picks another
	@bin/withbroker -series $(SERIES) -delayed-message -- $(GO) test $(RACE) -timeout $(TEST_TIMEOUT) -shuffle=on ./...

.PHONY: test-unit
test-unit: go race-note ## The tests that need no broker
	@$(GO) test $(RACE) -shuffle=on $$($(GO) list ./... | grep -v -x -F "$$($(GO) list $(BROKER_PACKAGES))")

.PHONY: test-matrix
test-matrix: withbroker ## The tests that use a broker, on RabbitMQ 3.10, 4.0 and 4.3
	@test -z "$$RSCTL_AMQP_URL" || { echo "test-matrix starts its own brokers: unset RSCTL_AMQP_URL" >&2; exit 2; }
	@set -e; for series in $(MATRIX); do \
		echo "RabbitMQ $$series"; \
		bin/withbroker -series $$series -delayed-message -- $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -shuffle=on $(BROKER_PACKAGES); \
	done

.PHONY: lint
lint: go ## gofmt, go vet, staticcheck, go mod tidy, and how the files of a package hang together
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l) && test -z "$$files" || { echo "not gofmt-ed (run gofmt -w on them): $$files" >&2; exit 1; }
	@$(GO) vet ./...
	@test -z "$(STATICCHECK)" || $(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) ./... || \
		{ echo "staticcheck failed; without a network run: make lint STATICCHECK=" >&2; exit 1; }
	@$(GO) mod tidy -diff
	@$(GO) run ./internal/tools/rooms

.PHONY: bench
bench: withbroker ## Throughput as ratios against bare loops, and the tools of today (RIVALS=1)
	@bin/withbroker -series $(SERIES) -- $(GO) run ./e2e/bench $(if $(RIVALS),-install)

.PHONY: chaos
chaos: go ## Break things under load for CHAOS_TIME (10m) and account for every message
	@$(GO) run ./e2e/chaos -time $(CHAOS_TIME) -series $(SERIES)

.PHONY: outage
outage: withbroker ## An HTTP endpoint away for OUTAGE_TIME (60s) under 200 messages/s
	@RSCTL_OUTAGE=$(OUTAGE_TIME) bin/withbroker -series $(SERIES) -- $(GO) test -count=1 -v -run TestAnOutageOfTheEndpoint ./e2e

.PHONY: soak
soak: withbroker ## Memory of rsctl at full load for SOAK_TIME (10m)
	@bin/withbroker -series $(SERIES) -- $(GO) run ./e2e/bench -soak $(SOAK_TIME)

.PHONY: fuzz
fuzz: go ## Run every fuzz target for FUZZTIME (30s)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$$file"); do \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
		done; \
	done

.PHONY: licenses
licenses: go ## Write the licences of linked modules, which the binary prints
	@UPDATE=1 $(GO) test -count=1 ./cmd/rsctl/internal/licenses

.PHONY: clean
clean: ## Remove what the targets built
	@rm -rf bin

# The rest is used by the targets above.

.PHONY: go
go:
	@command -v $(GO) >/dev/null || { echo "Go is missing: install it from https://go.dev/dl/ (go.mod names the version)" >&2; exit 2; }

.PHONY: withbroker
withbroker: go
	@$(GO) build -o bin/withbroker ./e2e/withbroker

.PHONY: clients-note
clients-note:
	@for tool in python3 node php ruby; do \
		command -v $$tool >/dev/null || echo "no $$tool: its client in examples/workers is not tried" >&2; \
	done

.PHONY: race-note
race-note:
	@test -n "$(RACE)" || echo "no C compiler: testing without the race detector" >&2

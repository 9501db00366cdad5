# Needs Linux, Go, make and git; everything else comes as Go modules.

# The same settings whatever the caller has set. VCS stamping fails in a tree
# that belongs to another user, and nothing reads the stamp.
export GOFLAGS := -buildvcs=false
export GOWORK := off

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# What runs below uses all cores by itself.
.NOTPARALLEL:

# As many letters of the commit in every clone, lest the same commit have two versions.
VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo devel)
LDFLAGS := -X kube-queue.dev/kube-queue/pkg/program/identity.linked=$(VERSION)

# What runs in seconds, with no cluster.
UNIT := ./apis/... ./hack/... ./pkg/... ./extensions/... ./cmd/... ./test/acceptance/... ./test/audit/... ./test/demo/... \
	./test/faultproxy ./test/podrunner ./test/rights/... \
	$(addprefix ./test/perf/,jobs loadgen noopqueue pace report rig scenario trail wire)
# Each package starts a cluster of its own: more than two would be slower on 2 cores.
CLUSTER_TEST := go test -count=1 -p 2 -timeout 40m

INTEGRATION := ./test/clustertest/... ./test/integration/... ./test/examples ./test/perf
# These begin first, lest one of them is left over to run alone.
LONGEST := ./test/e2e ./test/e2e/resourcequota ./test/e2e/install ./test/integration/admission

# The race detector is the one thing here that needs a C compiler.
HAVE_CC := { [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null; }

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / {sub("%", "NAME", $$1); printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: build-localcluster ## Build the programs and the local cluster into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kube-queue-controller ./cmd/job-extensions ./cmd/kube-queue-simulator

.PHONY: build-localcluster
build-localcluster:
	go build -C test/localcluster -o $(CURDIR)/bin/ ./cmd/localcluster

.PHONY: images
images: ## Build images of the programs with bills of materials into bin/images/, VERSION=v1.2.3
	go build -C hack/images -o $(CURDIR)/bin/tools/ .
	bin/tools/images --version '$(VERSION)'

.PHONY: generate
generate: ## Write deep copies, clients, listers, informers, CRDs, deploy/ and pages of docs/
	hack/update-codegen.sh

.PHONY: verify
verify: ## Check formatting, vet, staticcheck, tidy modules and generated code
	hack/verify.sh

.PHONY: test
test: verify test-race test-chart test-alerts test-images test-localcluster test-cluster ## Run every check and test

.PHONY: test-unit
test-unit: ## Run the unit tests (seconds)
	go test $(UNIT) ./test/traces

.PHONY: test-race
test-race: ## Run the unit tests with the race detector
	@$(HAVE_CC) || echo "No C compiler ($$(go env CC)): the tests run without the race detector."
	go test $$($(HAVE_CC) && echo -race) -count=1 -timeout 20m $(UNIT)
	go test -count=1 ./test/traces

.PHONY: test-images
test-images: ## Build images twice, compare them, and run what is in them
	cd hack/images && go test -count=1 -timeout 20m ./...

.PHONY: test-images-all
test-images-all: ## The same with the images of all platforms; test-images has that of this machine
	cd hack/images && go test -count=1 -timeout 30m ./whole -v -platforms=linux/amd64,linux/arm64

.PHONY: test-chart
test-chart: ## Render the chart with helm and compare with golden files; builds helm the first time
	go test -count=1 ./test/chart

.PHONY: test-alerts
test-alerts: ## Fire each alert, with Prometheus's own engine
	go test -C test/alerts -count=1 ./...

.PHONY: test-localcluster
test-localcluster: ## Test the local cluster itself
	cd test/localcluster && $(CLUSTER_TEST) ./...

# What the programs may do is what they did in all these tests together.
.PHONY: test-cluster
test-cluster: ## test-integration, test-frameworks and test-e2e at once: shorter than one by one
	rm -rf bin/rights && mkdir -p bin/rights
	KUBE_QUEUE_RIGHTS=$(CURDIR)/bin/rights $(CLUSTER_TEST) $(LONGEST) $(INTEGRATION) ./test/frameworks/... ./test/e2e/...
	go run ./test/rights/cmd/rights-check bin/rights deploy/rbac

.PHONY: test-integration
test-integration: ## Test against a real API server
	$(CLUSTER_TEST) $(INTEGRATION)

.PHONY: test-frameworks
test-frameworks: ## Tell the life of a job of each framework, with its real operator
	$(CLUSTER_TEST) ./test/frameworks/...

.PHONY: test-examples
test-examples: ## Release each operator's own examples and compare their pods with their units
	$(CLUSTER_TEST) ./test/examples/pods

.PHONY: test-e2e
test-e2e: ## Test everything together, with the real operators
	$(CLUSTER_TEST) ./test/e2e/...

.PHONY: test-storm
test-storm: ## 200 jobs under ResourceQuotas beside pods that nobody queued; test-e2e has 60
	go test -count=1 -v -timeout 20m ./test/e2e/resourcequota -run Storm -storm=200

.PHONY: test-failover
test-failover: ## 20 leaders killed, frozen and cut off while 500 jobs flow; test-e2e has 4 and 60
	go test -count=1 -v -timeout 30m ./test/e2e/failover -faults=20 -jobs=500

# What test-upgrade begins with: the last commit of 0.1.0.
FROM ?= 7fd85e2

.PHONY: test-upgrade
test-upgrade: ## Upgrade from the release of commit FROM with 50 jobs queued and running, and roll back; test-e2e upgrades from itself
	go test -count=1 -v -timeout 20m ./test/e2e/install -run TestNoJobIsLostByUpgradeRollbackAndUninstall -from=$(FROM)

.PHONY: bench
bench: ## Measure the core alone: releases, passes and memory, up to a million units
	go test ./pkg/scheduler -run '^$$' -bench . -timeout 30m

# What is played: a name or the path of a file, see test/perf/scenario/files/units.
SCENARIO ?= baseline

.PHONY: perf
perf: perf-ceiling ## Measure everything: perf-ceiling, perf-units with each scenario, perf-jobs (half an hour)
	for scenario in baseline large deep wide; do $(MAKE) perf-units SCENARIO=$$scenario; done
	for policy in RoundRobin Block; do \
		go run ./test/perf units --scenario baseline --policy $$policy --json bin/perf/units-baseline-$$policy.json; done
	$(MAKE) perf-jobs

.PHONY: perf-ceiling
perf-ceiling: ## Measure what the API server alone can take
	go run ./test/perf ceiling --json bin/perf/ceiling.json

.PHONY: perf-units
perf-units: ## Measure the controller with the units of SCENARIO=baseline
	go run ./test/perf units --scenario $(SCENARIO) --json bin/perf/units-$(notdir $(SCENARIO:.yaml=)).json

# What perf-jobs plays, one after the other: see test/perf/scenario/files/jobs.
JOBS ?= steady ample waiting burst

.PHONY: perf-jobs
perf-jobs: ## Measure both programs with batch Jobs, against none without a queue
	for name in $(JOBS); do go run ./test/perf jobs --scenario $$name --compare --json bin/perf/jobs-$$name.json; done

.PHONY: demo
demo: build ## Watch two jobs queue and run on a real control plane; leaves it up
	go run ./test/demo

.PHONY: demo-all
demo-all: build ## The same with a job of each framework in one quota
	go run ./test/demo all

.PHONY: demo-down
demo-down: ## Stop what make demo or demo-all has started
	go run ./test/demo down

# Any operator that localcluster knows, or several with commas between. There are
# no files of these names, and a pattern cannot be phony: build-localcluster, which
# is, has them made each time.
up-%: build-localcluster ## Start a local cluster with the operator NAME, such as jobset
	bin/localcluster up --data .cluster/$* --operators=$*
	@echo "  make down-$*"

down-%: build-localcluster ## Stop the cluster that make up-NAME has started
	bin/localcluster down --data .cluster/$*

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin

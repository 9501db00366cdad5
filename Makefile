# Needs Linux, Go, make and git; everything else comes as Go modules.

# Settings that do not depend on the environment. VCS stamping fails in a tree that belongs
# to another user, and nothing reads the stamp.
export GOFLAGS := -buildvcs=false
export GOWORK := off

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The commands below use all cores.
.NOTPARALLEL:

# A fixed length of the commit, so that a commit has the same version in every clone.
VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo devel)
LDFLAGS := -X kube-queue.dev/kube-queue/pkg/program/identity.linked=$(VERSION)

# Packages whose tests run in seconds, without a cluster.
UNIT := ./apis/... ./hack/... ./pkg/... ./extensions/... ./cmd/... ./test/acceptance/... ./test/audit/... ./test/demo/... \
	./test/docs ./test/faultproxy ./test/gangs ./test/podrunner ./test/rights/... ./test/standin/... \
	./test/e2e/random/plan ./test/e2e/random/oracle \
	$(addprefix ./test/perf/,jobs loadgen noopqueue pace report rig scenario trail wire)
# Each package starts its own cluster: more than two at a time are slower on 2 cores.
CLUSTER_TEST := go test -count=1 -p 2 -timeout 40m

# The last one runs the commands of the documentation.
E2E := ./test/e2e/... ./test/docs/cluster
INTEGRATION := ./test/clustertest/... ./test/integration/... ./test/examples ./test/perf
# These start first, so that none of them runs alone at the end.
LONGEST := ./test/e2e ./test/e2e/resourcequota ./test/e2e/install ./test/integration/admission

# Only the race detector needs a C compiler.
HAVE_CC := { [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null; }

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / {sub("%", "NAME", $$1); printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: build-localcluster ## Build the programs and the local cluster into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kube-queue-controller ./cmd/job-extensions ./cmd/kube-queue-simulator ./cmd/kubectl-kube_queue

.PHONY: build-localcluster
build-localcluster:
	go build -C test/localcluster -o $(CURDIR)/bin/ ./cmd/localcluster

.PHONY: images
images: ## Build images with bills of materials into bin/images/ (VERSION=v1.2.3)
	go build -C hack/images -o $(CURDIR)/bin/tools/ .
	bin/tools/images --version '$(VERSION)'

# A release has a version that somebody chose, and no default.
RELEASE := $(if $(filter file,$(origin VERSION)),,$(VERSION))
# The registry of the images and of the chart of a release; registry.example.com is a placeholder.
REGISTRY ?= registry.example.com
# The address of the repository, to which links of the release notes lead; the repository has none yet.
SOURCE_URL ?=
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64

.PHONY: release
release: RELEASE_FLAGS = --version '$(RELEASE)' --registry '$(REGISTRY)' --source-url '$(SOURCE_URL)' --platforms '$(PLATFORMS)'
release: ## Make everything that users install from into bin/release/ (VERSION=v1.2.3 REGISTRY=ghcr.io/owner)
	@mkdir -p bin/tools
	go build -C hack/images -o $(CURDIR)/bin/tools/ . ./release
	@bin/tools/release make $(RELEASE_FLAGS) --check
	@echo "release: building helm (2 to 4 minutes the first time, then seconds)"
	go build -C hack/helm -ldflags '-s -w' -o $(CURDIR)/bin/tools/ tool
	bin/tools/release make $(RELEASE_FLAGS)

.PHONY: generate
generate: ## Generate deep copies, clients, listers, informers, CRDs, deploy/ and pages of docs/
	hack/update-codegen.sh

.PHONY: verify
verify: ## Check formatting, vet, staticcheck, tidy modules and generated files
	hack/verify.sh

.PHONY: test
test: verify test-race test-chart test-alerts test-images test-localcluster test-cluster test-older ## Run all checks and tests

.PHONY: test-unit
test-unit: ## Run the unit tests (seconds)
	go test $(UNIT) ./test/traces

.PHONY: test-race
test-race: ## Run the unit tests with the race detector
	@$(HAVE_CC) || echo "No C compiler found ($$(go env CC)): running the tests without the race detector."
	go test $$($(HAVE_CC) && echo -race) -count=1 -timeout 20m $(UNIT)
	go test -count=1 ./test/traces

.PHONY: test-images
test-images: ## Make a release twice, compare the results, run the release workflow and the programs in the images
	cd hack/images && go test -count=1 -timeout 20m ./...

.PHONY: test-release-all
test-release-all: ## Run test-images for all platforms; test-images covers the platform of this machine
	cd hack/images && go test -count=1 -timeout 60m ./whole -v -platforms=linux/amd64,linux/arm64,darwin/amd64,darwin/arm64

.PHONY: test-chart
test-chart: ## Render the chart with helm and compare it with golden files (builds helm the first time)
	go test -count=1 ./test/chart

.PHONY: test-alerts
test-alerts: ## Test that each alert fires, with the rule engine of Prometheus
	go test -C test/alerts -count=1 ./...

.PHONY: test-localcluster
test-localcluster: ## Test the local cluster
	cd test/localcluster && $(CLUSTER_TEST) ./...

# Compares the rights that the roles grant with the rights that the tests have used.
.PHONY: test-cluster
test-cluster: ## Run test-integration, test-frameworks and test-e2e together (faster than separately)
	rm -rf bin/rights && mkdir -p bin/rights
	KUBE_QUEUE_RIGHTS=$(CURDIR)/bin/rights $(CLUSTER_TEST) $(LONGEST) $(INTEGRATION) ./test/frameworks/... $(E2E)
	go run ./test/rights/cmd/rights-check bin/rights deploy/rbac

.PHONY: test-integration
test-integration: ## Run the tests that need a real API server
	$(CLUSTER_TEST) $(INTEGRATION)

.PHONY: test-frameworks
test-frameworks: ## Run one job of each kind from submission to end, with its real operator
	$(CLUSTER_TEST) ./test/frameworks/...

.PHONY: test-examples
test-examples: ## Release the examples of each operator and compare their pods with their units
	$(CLUSTER_TEST) ./test/examples/pods

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests with the real operators, and the commands of the documentation
	$(CLUSTER_TEST) $(E2E)

.PHONY: test-storm
test-storm: ## Run 200 jobs under ResourceQuotas in addition to pods outside of the queue (test-e2e: 60 jobs)
	go test -count=1 -v -timeout 20m ./test/e2e/resourcequota -run Storm -storm=200

.PHONY: test-failover
test-failover: ## Kill, freeze and disconnect 20 leaders while 500 jobs run (test-e2e: 4 leaders, 60 jobs)
	go test -count=1 -v -timeout 30m ./test/e2e/failover -faults=20 -jobs=500

# A version of Kubernetes without MutatingAdmissionPolicy, where a webhook holds the jobs.
OLDER := 1.34
# What holds jobs on a version: the admission tests, and the chart as it is rendered for the version. The
# skipped tests are about policies alone, or run on the default version.
HOLDING = KUBE_QUEUE_KUBERNETES=$(1) $(CLUSTER_TEST) -tags versions ./test/e2e/install ./test/integration/admission \
	-skip 'AnyOrderOfPolicies|^Test(TheRendered|TheManifests|TheChart|TheCommands|Edited|AnUpgrade|NoJobIsLost)'

.PHONY: test-older
test-older: ## Test what holds jobs on Kubernetes 1.34, where a webhook does
	$(call HOLDING,$(OLDER))

.PHONY: test-versions
test-versions: ## Test the local cluster, and what holds jobs, on Kubernetes 1.30, 1.34, 1.36 and 1.37 (test: 1.34 and 1.36)
	cd test/localcluster && go test -count=1 -v -timeout 60m -tags versions ./cmd/localcluster -run EachVersion
	for version in 1.30 1.34 1.36 1.37; do $(call HOLDING,$$version); done

.PHONY: test-native-gangs
test-native-gangs: ## Run a hundred gangs on Kubernetes 1.37 with its own gangs (test-e2e: the default version, without them)
	go test -count=1 -v -timeout 60m -tags native ./test/e2e/gangs

.PHONY: test-random
test-random: ## Edit, orphan, delete and copy 300 random jobs of twelve kinds while both programs are killed (test-e2e: 40 jobs)
	go test -count=1 -v -timeout 40m ./test/e2e/random -jobs=300 -seed=$(SEED)

# The commit that test-upgrade starts from: the last commit of 0.1.0.
FROM ?= 7fd85e2

.PHONY: test-upgrade
test-upgrade: ## Upgrade from commit FROM with 50 queued and running jobs, and roll back (test-e2e: from the current commit)
	go test -count=1 -v -timeout 20m ./test/e2e/install -run TestNoJobIsLostByUpgradeRollbackAndUninstall -from=$(FROM)

.PHONY: bench
bench: ## Benchmark the scheduling core: releases, passes and memory with up to a million units
	go test ./pkg/scheduler -run '^$$' -bench . -timeout 30m

# The scenario of perf-units: a name or the path of a file, see test/perf/scenario/files/units.
SCENARIO ?= baseline

.PHONY: perf
perf: perf-ceiling ## Run all measurements: perf-ceiling, perf-units with each scenario, perf-pods, perf-names, perf-reviews, perf-jobs (more than an hour)
	for scenario in baseline large deep wide; do $(MAKE) perf-units SCENARIO=$$scenario; done
	for policy in RoundRobin Block; do \
		go run ./test/perf units --scenario baseline --policy $$policy --json bin/perf/units-baseline-$$policy.json; done
	$(MAKE) perf-pods
	$(MAKE) perf-names
	$(MAKE) perf-reviews
	$(MAKE) perf-jobs

.PHONY: perf-ceiling
perf-ceiling: ## Measure the throughput of the API server without kube-queue
	go run ./test/perf ceiling --json bin/perf/ceiling.json

.PHONY: perf-units
perf-units: ## Measure kube-queue-controller with the units of a scenario (SCENARIO=baseline)
	go run ./test/perf units --scenario $(SCENARIO) --json bin/perf/units-$(notdir $(SCENARIO:.yaml=)).json

.PHONY: perf-pods
perf-pods: ## Measure kube-queue-controller in a cluster with 100,000 pods
	go run ./test/perf pods --json bin/perf/pods.json

.PHONY: perf-names
perf-names: ## Measure what is left of units with ever new names of resources
	go run ./test/perf names --json bin/perf/names.json

.PHONY: perf-reviews
perf-reviews: ## Measure reviews and the kubectl plugin with 100,000 units and 1,000 nodes, and releases meanwhile
	go run ./test/perf reviews --json bin/perf/reviews.json

# The scenarios of perf-jobs, run one after the other: see test/perf/scenario/files/jobs.
JOBS ?= steady ample waiting burst

.PHONY: perf-jobs
perf-jobs: ## Measure both programs with batch Jobs, compared with Jobs without a queue
	for name in $(JOBS); do go run ./test/perf jobs --scenario $$name --compare --json bin/perf/jobs-$$name.json; done

.PHONY: demo
demo: build ## Show three teams that share GPUs on a real control plane; the cluster stays up
	go run ./test/demo

.PHONY: demo-all
demo-all: build ## Show one job of each kind that queue in one quota; the cluster stays up
	go run ./test/demo all

.PHONY: demo-down
demo-down: ## Stop the cluster of make demo or make demo-all
	go run ./test/demo down

# NAME is an operator that localcluster supports, or several, separated by commas. A pattern
# rule cannot be phony, but its prerequisite build-localcluster is, so it always runs.
up-%: build-localcluster ## Start a local cluster with the operator NAME, such as jobset
	bin/localcluster up --data .cluster/$* --operators=$*
	@echo "To stop the cluster: make down-$*"

down-%: build-localcluster ## Stop the cluster of make up-NAME
	bin/localcluster down --data .cluster/$*

.PHONY: clean
clean: ## Remove all build results
	rm -rf bin

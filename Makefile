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

# make test runs the tests in Go's short mode: a test that only make test-all runs says where its proof is in
# make test. To run all of one target: make test-images SHORT=
SHORT := -short
# What the tests take is recorded here. The paths are absolute, because some modules are in folders.
export KUBE_QUEUE_PROFILE := $(CURDIR)/bin/profile
TOOLS := $(CURDIR)/bin/tools
# gotestsum repeats failures at the end; testprofile measures packages. hack/verify.sh runs go vet.
TEST = $(TOOLS)/gotestsum --format standard-quiet --hide-summary=skipped --jsonfile $(KUBE_QUEUE_PROFILE)/$@.events.jsonl -- \
	-exec '$(TOOLS)/testprofile exec' -vet=off -count=1
# Not for unit tests: in short mode, rapid makes fewer checks of properties.
SHORT_TEST = $(TEST) $(SHORT)

# Packages whose tests need no cluster.
UNIT := ./apis/... ./hack/... ./pkg/... ./extensions/... ./cmd/... ./test/acceptance/... ./test/audit/... ./test/demo/... \
	./test/docs ./test/faultproxy ./test/freeport ./test/gangs ./test/podrunner ./test/rights/... \
	./test/e2e/random/plan ./test/e2e/random/oracle \
	./test/perf/loadgen ./test/perf/rig
# The core and the adapters start no goroutine and take no lock, so the race detector finds nothing in their tests, and
# triples their time.
PURE := ./pkg/backoff ./pkg/bounds ./pkg/lifecycle ./pkg/migration/... ./pkg/pods ./pkg/preemption ./pkg/queue/... ./pkg/quota/... \
	./pkg/requests/... ./pkg/resources ./pkg/scheduler/... ./pkg/simulator/... \
	$(filter-out ./extensions/framework ./extensions/hold ./extensions/provisioning ./extensions/registry,$(patsubst %/,./%,$(wildcard extensions/*/)))
# Packages with a cluster wait for conditions half of the time.
CLUSTER_TEST = $(SHORT_TEST) -p 3 -timeout 40m

# The last one runs the commands of the documentation.
E2E = $(filter-out $(if $(SHORT),$(NOT_SHORT)),$(shell go list ./test/e2e/... ./test/docs/cluster))
# make demo is for eyes, and its story is that of test/e2e.
NOT_SHORT := kube-queue.dev/kube-queue/test/e2e/demo
INTEGRATION := ./test/clustertest/... ./test/integration/... ./test/examples ./test/perf
# It is run alone, because it measures times and memory.
FLOOD := TestAFloodOfSlowClientsStopsNothing
# These start first, so that none of them runs alone at the end.
LONGEST := ./test/e2e ./test/integration/jobextensions ./test/e2e/install ./test/e2e/resourcequota ./test/integration/admission

# Only the race detector needs a C compiler.
HAVE_CC := { [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null; }

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / {sub("%", "NAME", $$1); printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: build-localcluster ## Build the programs and the local cluster into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kube-queue-controller ./cmd/job-extensions ./cmd/kube-queue-web ./cmd/kube-queue-simulator ./cmd/kubectl-kube_queue

.PHONY: build-localcluster
build-localcluster:
	go build -o bin/ ./test/localcluster/cmd/localcluster

.PHONY: images
images: ## Build images with bills of materials into bin/images/ (VERSION=v1.2.3)
	go build -C hack/images -o $(CURDIR)/bin/tools/ ./release
	bin/tools/release images --version '$(VERSION)'

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
	go build -C hack/images -o $(CURDIR)/bin/tools/ ./release
	@bin/tools/release make $(RELEASE_FLAGS) --check
	@echo "release: building helm (2 to 4 minutes the first time, then seconds)"
	go build -C hack/helm -ldflags '-s -w' -o $(CURDIR)/bin/tools/ tool
	bin/tools/release make $(RELEASE_FLAGS)

.PHONY: generate
generate: ## Generate deep copies, CRDs, deploy/ and pages of docs/
	hack/update-codegen.sh

.PHONY: verify
verify: ## Check formatting, vet, staticcheck, tidy modules and generated files
	SHORT=$(SHORT) hack/verify.sh

# The targets without a cluster use what the others leave idle.
WITHOUT_CLUSTER := verify test-unit test-race test-chart test-alerts test-images
WITH_CLUSTER := test-cluster test-localcluster
ONLY_IN_ALL := test-examples test-failover test-upgrade test-storm test-pods test-growth test-versions test-native-gangs test-random test-flood
# Runs targets one after the other, and measures each.
RUN = run() { for target in "$$@"; do $(TOOLS)/testprofile step $$target $(MAKE) --no-print-directory SHORT=$(SHORT) $$target || failed=1; done; }; failed=0

.PHONY: test
test: profile-start ## Run all checks, every rule, and every user story once
	@$(RUN); (renice -n 19 $$BASHPID >/dev/null; run $(WITHOUT_CLUSTER); exit $$failed) & other=$$!; \
	run $(WITH_CLUSTER); wait $$other || failed=1; \
	$(TOOLS)/testprofile report; exit $$failed

.PHONY: test-all
test-all test-versions: SHORT :=
test-all: ## Run all tests in full, with all versions, storms, failovers and random jobs (hours)
	@$(RUN); $(MAKE) --no-print-directory SHORT= test || failed=1; \
	run $(ONLY_IN_ALL); $(TOOLS)/testprofile report; exit $$failed

.PHONY: test-profile
test-profile: tools ## Print all that the last make test or make test-all has measured
	@$(TOOLS)/testprofile report all

.PHONY: test-times
test-times: tools ## Write what the last make test or make test-all has measured into CONTRIBUTING.md (TARGET=test-from-empty: its total)
	$(TOOLS)/testprofile times CONTRIBUTING.md $(TARGET)

# The branch or commit since which test-changed tests.
BASE ?= main

.PHONY: test-changed
test-changed: ## Run what the change since BASE can break (at most 5 minutes)
	go run ./hack/testchanged --base '$(BASE)' -- $(UNIT)

.PHONY: test-from-empty
test-from-empty: ## Run make test like a new machine: with empty caches, in a folder that is removed
	@folder=$$(mktemp -d); trap 'chmod -R u+w '"$$folder"'; rm -rf '"$$folder" EXIT; \
	HOME=$$folder GOCACHE=$$folder/build GOMODCACHE=$$folder/modules XDG_CACHE_HOME=$$folder/cache $(MAKE) clean test

.PHONY: profile-start
profile-start: tools
	@rm -rf $(KUBE_QUEUE_PROFILE)
	@mkdir -p $(KUBE_QUEUE_PROFILE)

.PHONY: tools
tools:
	@mkdir -p $(TOOLS) $(KUBE_QUEUE_PROFILE)
	@go build -C hack/tools -o $(TOOLS)/ gotest.tools/gotestsum
	@go build -o $(TOOLS)/ ./hack/testprofile

.PHONY: test-unit
test-unit: export RAPID_SEED = $(if $(SHORT),1)
test-unit: tools ## Run the unit tests of the core and of the adapters, and a trace with all policies
	@failed=0; $(MAKE) --no-print-directory SHORT=$(SHORT) test-traces || failed=1; \
	$(TEST) -timeout 30m $(PURE) || failed=1; exit $$failed

# Apart from the unit tests, because it has a short form.
.PHONY: test-traces
test-traces: tools
	$(SHORT_TEST) -timeout 30m ./test/traces

.PHONY: test-race
test-race: tools ## Run the other unit tests with the race detector
	@$(HAVE_CC) || echo "No C compiler found ($$(go env CC)): running the tests without the race detector."
	$(TEST) $$($(HAVE_CC) && echo -race) -timeout 20m $$(go list $(UNIT) | grep -vxFf <(go list $(PURE)))

.PHONY: test-images
test-images: tools ## Run the release workflow and the programs in the images (test-all: for all platforms, and twice)
	cd hack/images && $(SHORT_TEST) -timeout 60m ./...

.PHONY: test-chart
test-chart: tools ## Render the chart with helm and compare it with golden files (builds helm the first time)
	$(TEST) -timeout 30m ./test/chart

.PHONY: test-alerts
test-alerts: tools ## Test that each alert fires, with the rule engine of Prometheus
	cd test/alerts && $(TEST) -timeout 30m ./...

.PHONY: test-localcluster
test-localcluster: tools ## Test the local cluster
	$(CLUSTER_TEST) ./test/localcluster/...

# Compares the rights that the roles grant with the rights that the tests have used.
.PHONY: test-cluster
test-cluster: export KUBE_QUEUE_RIGHTS = $(CURDIR)/bin/rights
test-cluster: tools ## Run test-frameworks, and test-integration and test-e2e together (faster than separately)
	@go run ./test/localcluster/cmd/localcluster build
	@rm -rf bin/rights && mkdir -p bin/rights
	@failed=0; $(MAKE) --no-print-directory SHORT=$(SHORT) test-frameworks || failed=1; \
	$(CLUSTER_TEST) -skip $(FLOOD) $(LONGEST) $(INTEGRATION) $(E2E) || failed=1; \
	go run ./test/rights/cmd/rights-check bin/rights deploy/rbac deploy/webhook/rbac deploy/pods/rbac && exit $$failed

.PHONY: test-integration
test-integration: tools ## Run the tests that need a real API server
	$(CLUSTER_TEST) -skip $(FLOOD) $(INTEGRATION)

# Runs alone: six operators and thirty stories at the same time are enough for two cores.
.PHONY: test-frameworks
test-frameworks: tools ## Run one job of each kind from submission to end, with its real operator
	$(CLUSTER_TEST) ./test/frameworks/...

.PHONY: test-examples
test-examples: tools ## Release the examples of each operator and compare their pods with their units
	$(CLUSTER_TEST) ./test/examples/pods

.PHONY: test-e2e
test-e2e: tools ## Run the end-to-end tests with the real operators, and the commands of the documentation
	$(CLUSTER_TEST) $(E2E)

.PHONY: test-storm
test-storm: ## Run 200 jobs under ResourceQuotas in addition to pods outside of the queue (make test: 36)
	go test -count=1 -v -timeout 20m ./test/e2e/resourcequota -run Storm -storm=200

.PHONY: test-pods
test-pods: ## Queue 1,000 pods and 100 groups through 3 quotas, with both backends (make test: 60 and 10)
	go test -count=1 -v -timeout 60m ./test/e2e/pods -run ManyPods -single=1000 -groups=100

.PHONY: test-growth
test-growth: ## Change the size of a growing job 200 times while both programs are killed (make test: 15)
	go test -count=1 -v -timeout 20m ./test/e2e/pods -run Growing -scales=200

.PHONY: test-failover
test-failover: ## Kill, freeze and disconnect 20 leaders while 500 jobs run (make test: 2 leaders, 16 jobs)
	go test -count=1 -v -timeout 30m ./test/e2e/failover -faults=20 -jobs=500

# What holds jobs on a version: the admission tests, and the chart as it is rendered for the version. The
# skipped tests are about policies alone, or run on the default version, where test-cluster has run the others.
HOLDING = KUBE_QUEUE_KUBERNETES=$(1) $(CLUSTER_TEST) -tags versions ./test/e2e/install ./test/integration/admission \
	-skip 'AnyOrderOfPolicies|^Test(TheRendered|TheManifests|TheChart|TheCommands|Edited|AnUpgrade|NoJobIsLost)'

.PHONY: test-versions
test-versions: tools ## Test the local cluster, and what holds jobs, on Kubernetes 1.30, 1.34, 1.36 and 1.37 (test: 1.36)
	go test -count=1 -v -timeout 60m -tags versions ./test/localcluster/cmd/localcluster -run EachVersion
	@failed=0; for version in 1.30 1.34 1.37; do $(call HOLDING,$$version) || failed=1; done; \
	$(CLUSTER_TEST) -tags versions ./test/e2e/install -run '^TestVersions' || failed=1; exit $$failed

.PHONY: test-native-gangs
test-native-gangs: ## Run a hundred gangs on Kubernetes 1.37 with its own gangs (make test: 30, without them)
	go test -count=1 -v -timeout 60m -tags native ./test/e2e/gangs

# What the steps of test-random are drawn from. If it is even, kube-queue-controller runs with --count-unqueued-pods.
SEED ?= 1
# How often users of managed namespaces attack; 0 for unmanaged namespaces.
ATTACKS ?= 400

.PHONY: test-random
test-random: ## Edit, orphan, delete, copy and attack 300 random jobs of fourteen kinds while both programs are killed (make test: 16)
	go test -count=1 -v -timeout 60m ./test/e2e/random -jobs=300 -attacks=$(ATTACKS) -seed=$(SEED)

.PHONY: test-flood
test-flood: ## Keep the webhooks of both programs busy with 200 slow clients for a minute
	go test -count=1 -v -timeout 10m ./test/perf -run $(FLOOD)

# The commit that test-upgrade starts from: the last commit of 0.1.0.
FROM ?= 7fd85e2

.PHONY: test-upgrade
test-upgrade: ## Upgrade from commit FROM with 50 queued and running jobs, and roll back (make test: from the current commit)
	go test -count=1 -v -timeout 20m ./test/e2e/install -run TestNoJobIsLostByUpgradeRollbackAndUninstall -from=$(FROM)

.PHONY: bench
bench: ## Benchmark the scheduling core: releases, passes and memory with up to a million units
	go test ./pkg/scheduler -run '^$$' -bench . -timeout 30m

# The scenario of perf-units: a name or the path of a file, see test/perf/loadgen/files.
SCENARIO ?= baseline

.PHONY: perf
perf: perf-ceiling ## Run all measurements: perf-ceiling, perf-units with each scenario, perf-pods, perf-gate, perf-reviews, perf-jobs (more than an hour)
	for scenario in baseline large deep wide; do $(MAKE) perf-units SCENARIO=$$scenario; done
	for policy in RoundRobin Block; do \
		go run ./test/perf units --scenario baseline --policy $$policy --json bin/perf/units-baseline-$$policy.json; done
	$(MAKE) perf-pods
	$(MAKE) perf-gate
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

.PHONY: perf-gate
perf-gate: ## Measure pods at the scheduling gate, and the creation of other pods with and without its policies
	go run ./test/perf gate --json bin/perf/gate.json

.PHONY: perf-reviews
perf-reviews: ## Measure reviews and the kubectl plugin with 100,000 units and 1,000 nodes, and releases meanwhile
	go run ./test/perf reviews --json bin/perf/reviews.json

# The scenarios of perf-jobs, run one after the other: see test/perf/jobs.go.
JOBS ?= steady ample waiting burst

.PHONY: perf-jobs
perf-jobs: ## Measure both programs with batch Jobs, compared with Jobs without a queue
	for name in $(JOBS); do go run ./test/perf jobs --scenario $$name --compare --json bin/perf/jobs-$$name.json; done

.PHONY: demo
demo: build ## Show three teams that share GPUs on a real control plane; the cluster stays up
	go run ./test/demo

.PHONY: pictures
pictures: demo ## Take the pictures of the documentation in the cluster of make demo (needs Chromium)
	go run ./test/demo pictures

.PHONY: dashboard
dashboard: build ## Record metrics in a cluster for five minutes, and draw the pictures of the dashboard from them
	go run ./test/demo record
	cd test/alerts && go test -count=1 -update .
	go run ./test/demo down

.PHONY: demo-down
demo-down: ## Stop the cluster of make demo
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

package migration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// kueueKinds are the resources of Kueue, as kubectl names them. Only LocalQueues are namespaced.
var kueueKinds = map[string]string{"clusterqueues": "ClusterQueue", "cohorts": "Cohort", "localqueues": "LocalQueue", "resourceflavors": "ResourceFlavor",
	"workloadpriorityclasses": "WorkloadPriorityClass", "admissionchecks": "AdmissionCheck", "provisioningrequestconfigs": "ProvisioningRequestConfig", "topologies": "Topology"}

// installKueueKinds creates CustomResourceDefinitions, so that the API server stores objects of Kueue.
func installKueueKinds(t *testing.T) {
	t.Helper()
	var manifests []string
	for plural, kind := range kueueKinds {
		scope := "Cluster"
		if kind == "LocalQueue" {
			scope = "Namespaced"
		}
		version := func(name string, stored bool) string {
			return fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", name, stored)
		}
		manifests = append(manifests, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.kueue.x-k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for tests"}}
spec: {group: kueue.x-k8s.io, scope: %[2]s, names: {plural: %[1]s, kind: %[3]s}, versions: [%[4]s, %[5]s]}
`, plural, scope, kind, version("v1beta1", false), version("v1beta2", true)))
	}
	slices.Sort(manifests)
	_, err := suite.KubectlWith(t.Context(), strings.Join(manifests, "---\n"), "apply", "-f", "-")
	harness.Must(t, err)
	_, err = suite.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	harness.Must(t, err)
}

// withoutEqual are the settings of the setup that kube-queue cannot express.
var withoutEqual = []string{
	"ClusterQueue infra: spec.resourceGroups: flavor default: pods",
	"ClusterQueue nlp: spec.resourceGroups",
	"ClusterQueue robotics: spec.fairSharing.weight",
	"ClusterQueue robotics: spec.preemption.reclaimWithinCohort",
	"ClusterQueue search: spec.preemption.withinClusterQueue",
	"ClusterQueue search: spec.resourceGroups: flavor default: cpu: lendingLimit",
	"ClusterQueue vision: spec.flavorFungibility",
	"ClusterQueue vision: spec.resourceGroups",
	"Cohort ads: spec.fairSharing.weight",
	"ResourceFlavor a100: spec.nodeLabels",
	"ResourceFlavor a100: spec.nodeTaints",
	"ResourceFlavor a100: spec.tolerations",
	"ResourceFlavor h100: spec.nodeLabels",
	"ResourceFlavor h100: spec.topologyName",
	"Topology racks: spec",
}

// listed returns the settings that a report lists as without an equivalent.
func listed(report string) []string {
	var found []string
	section, _, _ := strings.Cut(report, "By hand")
	for line := range strings.Lines(section) {
		if setting, is := strings.CutPrefix(line, "- "); is {
			found = append(found, strings.TrimSpace(setting))
		}
	}
	slices.Sort(found)
	return found
}

// The promises are those of Kueue's documentation, https://kueue.sigs.k8s.io/docs/concepts, for version 0.20.
func TestAConvertedSetupOfKueueKeepsItsPromises(t *testing.T) {
	installKueueKinds(t)
	sh := newShell(t)
	sh.copy("kueue/setup.yaml", "setup.yaml")
	sh.copy("kueue/jobs.yaml", "jobs", "jobs.yaml")
	for _, namespace := range []string{"nlp", "vision", "speech", "robotics", "search", "mail", "bidding", "ranking", "reporting", "infra", "sandbox", "legacy"} {
		suite.Part(t, namespace)
	}
	sh.run("kubectl apply -f setup.yaml", 0)
	t.Cleanup(func() {
		if out, err := suite.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", filepath.Join(sh.folder, "setup.yaml")); err != nil {
			t.Error(err, out)
		}
	})
	for _, command := range commandsOf(t, "docs/migration/from-kueue.md", "kubectl get ", "kubectl kube-queue convert ") {
		status := 0
		if strings.Contains(command, " convert ") {
			status = 1
		}
		_, report := sh.run(command, status)
		if found := listed(report); status == 1 && !slices.Equal(found, withoutEqual) {
			t.Errorf("%s lists as without an equivalent:\n%s\nwant\n%s", command, strings.Join(found, "\n"), strings.Join(withoutEqual, "\n"))
		}
	}
	manifests, objects := sh.split("kube-queue.yaml", "kube-queue-jobs.yaml")
	suite.Both(t, "job")
	s := newStory(t, "sandbox", manifests, objects)
	s.main.WaitForTree()

	// ClusterQueue, Queueing strategy: with StrictFIFO, older workloads that cannot be admitted block newer ones, even if
	// these fit in the available quota.
	s.submit("strict-1")
	s.starts("strict-1")
	s.submit("strict-2", "strict-3")
	s.waits("strict-2", wellknown.ReasonQuotaExceeded, "root/sandbox")
	s.waits("strict-3", wellknown.ReasonNotAtFront, "")
	s.finish("strict-1")
	s.starts("strict-2")
	s.neverReleased("strict-3")
	s.finish("strict-2")
	s.starts("strict-3")
	s.finish("strict-3")

	// Preemption, withinClusterQueue LowerPriority: workloads of the same ClusterQueue with a lower priority are preempted.
	// The priorities are those of WorkloadPriorityClasses.
	s.submit("night")
	s.starts("night")
	s.submit("incident")
	s.in("night").WaitForEvent("night", "Preempted")
	s.starts("incident")
	s.waitsAgain("night")
	s.finish("incident")
	s.starts("night")
	s.finish("night")

	// Queueing strategy: with BestEffortFIFO, older workloads that cannot be admitted do not block newer ones that fit.
	// Cohort: the members of ads use their own nominal quota of 4, and what the borrowingLimit of 1 allows.
	s.submit("best-1")
	s.starts("best-1")
	s.submit("best-2", "best-3")
	s.starts("best-3")
	s.waits("best-2", wellknown.ReasonQuotaExceeded, "of max 5") // used are 3 or 4: the figures date from when the reason was written
	s.finish("best-1")
	s.starts("best-2")
	s.finish("best-2", "best-3")

	// Cohort: mail has no nominal quota, and uses that of the Cohort and of its siblings. ClusterQueue, LendingLimit:
	// search keeps 2 of its 4, so 8 of the 10 are left. Queueing strategy: higher priorities go first, then earlier
	// creation.
	s.submit("digest")
	s.starts("digest")
	s.submit("later", "pressing", "too-large", "kept")
	s.starts("kept")
	s.waits("too-large", wellknown.ReasonExceedsMaxQuota, "root/products/mail")
	s.waits("later", wellknown.ReasonQuotaExceeded, "")
	s.waits("pressing", wellknown.ReasonQuotaExceeded, "")
	s.finish("digest")
	s.starts("pressing")
	s.neverReleased("later")
	s.finish("pressing")
	s.starts("later")
	s.finish("later", "kept")

	// BorrowingLimit: a ClusterQueue uses at most its nominal quota and its borrowingLimit, 2 and 1, although the cohort
	// has 9 more.
	s.submit("limit-1", "limit-2")
	s.starts("limit-1", "limit-2")
	s.submit("limit-3")
	s.waits("limit-3", wellknown.ReasonQuotaExceeded, "used 3 of max 3")

	// LocalQueue: a job is charged to the ClusterQueue of its LocalQueue. Preemption, reclaimWithinCohort Any: a workload within the
	// nominal quota gets it back from ClusterQueues that borrow; the most recently admitted go first.
	s.submit("borrow-1")
	s.starts("borrow-1")
	s.submit("borrow-2")
	s.starts("borrow-2")
	s.usesQuota("borrow-2", "root/research/robotics")
	s.usesQuota("limit-1", "root/research/speech")
	s.submit("owner")
	s.in("borrow-2").WaitForEvent("borrow-2", "Reclaimed")
	s.starts("owner")
	s.waitsAgain("borrow-2")
	for _, name := range []string{"borrow-1", "limit-1", "limit-2"} {
		if unit := s.in(name).Unit("Job", name); unit.Status.Phase == "Enqueued" || unit.Status.Attempts != 1 {
			t.Errorf("%s is %s", name, unit.Status.Phase)
		}
	}
	s.finish("owner")
	s.starts("borrow-2")
	s.finish("limit-1")
	s.starts("limit-3")
	s.finish("limit-2", "limit-3", "borrow-1", "borrow-2")

	// StopPolicy: Hold and HoldAndDrain admit no new workloads; without it, admission is normal again.
	s.submit("held", "drained")
	s.waits("held", wellknown.ReasonQueueStopped, "")
	s.waits("drained", wellknown.ReasonQueueStopped, "")
	s.main.PatchQueue("root-infra", `{"spec":{"stop":"None"}}`)
	s.starts("held")
	s.finish("held")
	s.neverReleased("drained")
	s.in("drained").Delete(harness.Jobs, "drained")
	s.in("too-large").Delete(harness.Jobs, "too-large")
	s.main.ExpectFree()
}

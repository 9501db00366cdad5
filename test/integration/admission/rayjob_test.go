package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const shutdownNote = "kube-queue/shutdown-after-job-finishes"

// wantShutdown checks shutdownAfterJobFinishes and the annotation with its previous value.
func wantShutdown(t *testing.T, job *unstructured.Unstructured, want bool, note string) {
	t.Helper()
	got, _, _ := unstructured.NestedBool(job.Object, "spec", "shutdownAfterJobFinishes")
	if got != want {
		t.Errorf("shutdownAfterJobFinishes %v, want %v", got, want)
	}
	if got := job.GetAnnotations()[shutdownNote]; got != note {
		t.Errorf("note %q, want %q", got, note)
	}
}

// forRayJobs runs a test for each version.
func forRayJobs(t *testing.T, test func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface)) {
	for _, kind := range heldKinds(t) {
		if kind.isRayJob() {
			t.Run(kind.title, func(t *testing.T) {
				test(t, kind, objects(t).Resource(kind.resource).Namespace(namespace(t)))
			})
		}
	}
}

func TestARayJobThatIsSuspendedShutsDown(t *testing.T) {
	const (
		suspended = `{spec: {suspend: true}}`
		shuts     = `{spec: {shutdownAfterJobFinishes: true}}`
		shutsNot  = `{spec: {shutdownAfterJobFinishes: false}}`
		no        = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`
		other     = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "True"}}}`
		selector  = `{spec: {clusterSelector: {ray.io/cluster: a}}}`
		rules     = `{spec: {deletionStrategy: {deletionRules: [{policy: DeleteCluster, condition: {jobStatus: SUCCEEDED}}]}}}`
		keeps     = `{spec: {deletionStrategy: {onSuccess: {policy: DeleteNone}, onFailure: {policy: DeleteCluster}}}}`
		keepsToo  = `{spec: {deletionStrategy: {onSuccess: {policy: DeleteCluster}, onFailure: {policy: DeleteNone}}}}`
		deletes   = `{spec: {deletionStrategy: {onSuccess: {policy: DeleteWorkers}, onFailure: {policy: DeleteSelf}}}}`
	)
	type test struct {
		name     string
		merged   []string
		suspend  bool
		shutdown bool
		note     string
	}
	tests := []test{
		{"unmarked", nil, false, false, ""},
		{"unmarked, shuts down", []string{shuts}, false, true, ""},
		{"marked", []string{marked}, true, true, "false"},
		{"marked, says it does not", []string{marked, shutsNot}, true, true, "false"},
		{"marked, shuts down", []string{marked, shuts}, true, true, ""},
		{"marked, suspended", []string{marked, suspended}, true, true, "false"},
		{"suspended", []string{suspended}, true, true, "false"},
		{"suspended, no annotations", []string{suspended, `{metadata: {annotations: null}}`}, true, true, "false"},
		{"suspended, other annotations", []string{suspended, `{metadata: {annotations: {a: b}}}`}, true, true, "false"},
		{"suspended, shuts down", []string{suspended, shuts}, true, true, ""},
		{"suspended, marked false", []string{suspended, no}, true, false, ""},
		{"suspended, marked with another word", []string{suspended, other}, true, false, ""},
		{"suspended, of a RayCronJob", []string{suspended, ownedBy("ray.io/v1", "RayCronJob", "true")}, true, true, "false"},
		{"suspended, of something else", []string{suspended, ownedBy("example.com/v1", "Thing", "true")}, true, true, "false"},
		{"suspended, with Kueue's label", []string{suspended, `{metadata: {labels: {kueue.x-k8s.io/queue-name: a}}}`}, true, false, ""},
		{"marked, with a cluster of others", []string{marked, selector}, false, false, ""},
		{"suspended, with a cluster of others", []string{suspended, selector}, true, false, ""},
		{"marked, with an empty selector", []string{marked, `{spec: {clusterSelector: {}}}`}, true, true, "false"},
	}
	// v1alpha1 has no deletion rules and no managedBy.
	ofV1 := []test{
		{"suspended, of another manager", []string{suspended, `{spec: {managedBy: kueue.x-k8s.io/multikueue}}`}, true, false, ""},
		{"marked, with deletion rules", []string{marked, rules}, false, false, ""},
		{"suspended, with deletion rules", []string{suspended, rules}, true, false, ""},
		{"marked, keeps its cluster on success", []string{marked, keeps}, false, false, ""},
		{"suspended, keeps its cluster on failure", []string{suspended, keepsToo}, true, false, ""},
		{"marked, deletes something either way", []string{marked, deletes}, true, true, "false"},
	}
	forRayJobs(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		all := tests
		if kind.resource.Version == "v1" {
			all = append(all[:len(all):len(all)], ofV1...)
		}
		managed := objects(t).Resource(kind.resource).Namespace(managedNamespace(t))
		for _, test := range all {
			t.Run(test.name, func(t *testing.T) {
				job := create(t, jobs, kind.job(t, test.merged...), metav1.DryRunAll)
				kind.wantSuspended(t, job, test.suspend)
				wantShutdown(t, job, test.shutdown, test.note)
			})
		}
		t.Run("one that cannot be suspended does not run in a managed namespace", func(t *testing.T) {
			for _, merged := range []string{selector, rules, keeps, keepsToo} {
				if kind.resource.Version != "v1" && merged != selector {
					continue
				}
				_, err := managed.Create(t.Context(), kind.job(t, merged), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				refused(t, err, "A RayJob that cannot be suspended cannot run here")
			}
		})
	})
}

// The operator would refuse the job forever if only suspend were set.
func TestARayJobSuspendedByHandShutsDown(t *testing.T) {
	forRayJobs(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, marked))
		wantShutdown(t, kind.release(t, jobs), false, "")
		t.Run("after its release", func(t *testing.T) {
			wantShutdown(t, patch(t, jobs, `{spec: {suspend: true}}`), true, "false")
			wantShutdown(t, kind.release(t, jobs), false, "")
		})
		t.Run("while its manifest is applied again", func(t *testing.T) {
			patch(t, jobs, marked)
			wantShutdown(t, patch(t, jobs, `{spec: {suspend: true, shutdownAfterJobFinishes: false}}`), true, "false")
			wantShutdown(t, patch(t, jobs, `{spec: {shutdownAfterJobFinishes: null}}`), true, "false")
			wantShutdown(t, kind.release(t, jobs), false, "")
		})
	})
	forRayJobs(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`))
		t.Run("but not one that was never queued, and says so", func(t *testing.T) {
			wantShutdown(t, patch(t, jobs, `{spec: {suspend: true}}`), false, "")
		})
	})
}

// If the suspend field is the mark, applying the manifest again suspends the job.
func TestARayJobMarkedBySuspendShutsDownWhenItsManifestIsAppliedAgain(t *testing.T) {
	for how, apply := range map[string][]string{
		"by the client": {"apply"},
		"by the server": {"apply", "--server-side", "--force-conflicts"},
	} {
		t.Run(how, func(t *testing.T) {
			forRayJobs(t, func(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
				ns := namespace(t)
				jobs := objects(t).Resource(kind.resource).Namespace(ns)
				for range 2 {
					for range 2 {
						kind.wantHeld(t, kind.apply(t, ns, kind.job(t, `{spec: {suspend: true}}`), apply...))
					}
					released := patch(t, jobs, `{metadata: {annotations: {kube-queue/released: "1", kube-queue/shutdown-after-job-finishes: null}},
						spec: {suspend: false, shutdownAfterJobFinishes: false}}`)
					kind.wantSuspended(t, released, false)
					wantShutdown(t, released, false, "")
				}
			})
		})
	}
}

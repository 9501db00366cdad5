package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

func damageTests() []kindTest {
	return []kindTest{
		{"no policy is in the way of a damaged new job", damagedNewJobs},
		{"no policy is in the way of damage to a job", damagedLater},
	}
}

// damages are invalid parts of manifests. Most CRDs refuse most of them. The policies must not. Argo's CRD accepts
// nearly all.
func damages(kind heldKind) []string {
	wrong := []string{"text", `""`, "5", "1.5", "true", "[]", "[1, a]", "{}", "{a: {b: c}}", "null"}
	var all []string
	for _, value := range wrong {
		all = append(all, "{spec: "+value+"}", "{status: "+value+"}")
		fields := []string{"suspend", "managedBy", "runPolicy", "cleanPodPolicy", "templates", "template"}
		if kind.isRayJob() {
			fields = append(fields, "shutdownAfterJobFinishes", "clusterSelector", "deletionStrategy", "rayClusterSpec")
			for _, field := range []string{"deletionRules", "onSuccess", "onFailure"} {
				all = append(all, "{spec: {deletionStrategy: {"+field+": "+value+"}}}")
			}
			all = append(all, "{spec: {deletionStrategy: {onSuccess: {policy: "+value+"}}}}")
		}
		for _, field := range fields {
			all = append(all, "{spec: {"+field+": "+value+"}}")
		}
		if kind.hasRunPolicy() {
			for _, field := range []string{"suspend", "managedBy", "cleanPodPolicy"} {
				all = append(all, "{spec: {runPolicy: {"+field+": "+value+"}}}")
			}
		}
	}
	return append(all,
		"{metadata: {annotations: {a: b}, labels: null}}",
		"{metadata: {ownerReferences: []}}",
	)
}

// wantNoPolicy checks that an object was not refused by a policy of kube-queue.
func wantNoPolicy(t *testing.T, err error) {
	t.Helper()
	if err != nil && (strings.Contains(err.Error(), "polic") && strings.Contains(err.Error(), "kube-queue") || !strings.Contains(err.Error(), "invalid")) {
		t.Errorf("refused by a policy: %v", err)
	}
}

func damagedNewJobs(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	if kind.Native {
		// The API server cannot even decode it.
		return
	}
	managed := objects(t).Resource(kind.resource).Namespace(managedNamespace(t))
	for _, damage := range damages(kind) {
		for _, test := range []struct {
			jobs   dynamic.ResourceInterface
			merged []string
			held   bool
		}{
			{jobs, []string{damage}, false},
			{jobs, []string{damage, marked}, true},
			{managed, []string{damage}, true},
		} {
			created, err := test.jobs.Create(t.Context(), kind.job(t, test.merged...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			// In a managed namespace, no other controller may run the job.
			if test.jobs != managed || err == nil || !strings.Contains(err.Error(), fenceSays+"only kube-queue starts") {
				wantNoPolicy(t, err)
			}
			if err == nil && kind.title == "Workflow" && test.held {
				kind.wantSuspended(t, created, true)
			}
			if t.Failed() {
				t.Fatalf("%v", test.merged)
			}
		}
	}
}

func damagedLater(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	if kind.Native {
		// The API server cannot even decode it.
		return
	}
	for name, merged := range map[string]string{"free": `{}`, "held": marked, "suspended": kind.suspend("true")} {
		create(t, jobs, kind.job(t, merged, `{metadata: {name: `+name+`}}`))
		for _, damage := range damages(kind) {
			job, err := jobs.Patch(t.Context(), name, types.MergePatchType, toJSON(t, damage), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			wantNoPolicy(t, err)
			if err == nil && kind.title == "Workflow" && name == "held" {
				kind.wantSuspended(t, job, true)
			}
			if t.Failed() {
				t.Fatalf("a %s job patched with %s", name, damage)
			}
		}
	}
}

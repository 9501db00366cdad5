package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

func holdTests() []kindTest {
	return []kindTest{
		{"which new jobs are held", whichNewJobsAreHeld},
		{"a copy of a released job is a new job", copyIsANewJob},
		{"pods of a held kubeflow job end with it unless configured otherwise", podsEndWithTheirJob},
		{"a held kubeflow job may be instructed to leave its pods", mayLeaveItsPods},
		{"a held job stays held until its release", heldUntilItsRelease},
		{"a released job is not stopped by its mark alone", notStoppedByItsMarkAlone},
		{"a mark put on a running job does not stop it", markDoesNotStop},
		{"a job suspended without a mark is free", freeWithoutAMark},
		{"a job whose mark is taken away is free", freeOnceUnmarked},
		{"a job handed to another queue is free", freeInAnotherQueue},
		{"a job that bypasses the queue is free", freeOnceItBypasses},
	}
}

func whichNewJobsAreHeld(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	type test struct {
		name   string
		merged []string
		held   bool
	}
	tests := []test{
		{"an unmarked one", nil, false},
		{"one with null for every map", []string{`{metadata: {annotations: null, labels: null, ownerReferences: null}}`}, false},
		{"one with other annotations", []string{`{metadata: {annotations: {a: b}, labels: {c: d}}}`}, false},
		{"one marked false", []string{`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`}, false},
		{"one marked with another word", []string{`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "True"}}}`}, false},
		{"one marked by a label", []string{`{metadata: {labels: {scheduling.x-k8s.io/suspend: "true"}}}`}, false},
		{"a marked one", []string{marked}, true},
		{"a marked one that says it is not suspended", []string{marked, kind.suspend("false")}, true},
		{"a marked one with null beside suspend", []string{marked, kind.suspend("null"), kind.field("managedBy", "null")}, true},
		{"a marked one with null for labels and owners", []string{marked, `{metadata: {labels: null, ownerReferences: null}}`}, true},
		{"a marked one with a controller", []string{marked, ownedBy("example.com/v1", "Thing", "true")}, true},
		{"a marked one of a ScaledJob", []string{marked, ownedBy("keda.sh/v1alpha1", "ScaledJob", "true")}, true},
		{"a marked one of a step of a Workflow", []string{marked, ownedBy("v1", "Pod", "true")}, true},
		{"a marked one of a CronJob", []string{marked, ownedBy("batch/v1", "CronJob", "true")}, true},
		{"a marked one with an owner that is no controller", []string{marked, ownedBy("example.com/v1", "Thing", "false")}, true},
		{"a marked one with an owner of null", []string{marked, ownedBy("example.com/v1", "Thing", "null")}, true},
		{"a marked one that Kueue manages", []string{marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`}, false},
		{"a marked one with Kueue's label left empty", []string{marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: ""}}}`}, false},
		{"a suspended one", []string{kind.suspend("true")}, true},
		{"a suspended and marked one", []string{kind.suspend("true"), marked}, true},
		{"a suspended one marked false", []string{kind.suspend("true"), `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`}, true},
		{"a suspended and marked one that Kueue manages", []string{kind.suspend("true"), marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`}, true},
	}
	for _, owner := range heldKinds(t) {
		name := owner.Kind.Kind
		tests = append(tests,
			test{"a marked one of a " + name, []string{marked, ownedBy(owner.resource.GroupVersion().String(), name, "true")}, !kind.isPartOf(owner)},
			test{"a marked one of a foreign " + name, []string{marked, ownedBy("example.com/v1", name, "true")}, true})
	}
	if kind.manager != "" {
		tests = append(tests,
			test{"a marked one of its controller by name", []string{marked, kind.field("managedBy", kind.manager)}, true},
			test{"a marked one of another controller", []string{marked, kind.field("managedBy", "kueue.x-k8s.io/multikueue")}, false})
	}
	if kind.hasRunPolicy() {
		tests = append(tests, test{"a marked one with null for runPolicy", []string{marked, `{spec: {runPolicy: null}}`}, true})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			created := create(t, jobs, kind.job(t, test.merged...), metav1.DryRunAll)
			kind.wantSuspended(t, created, test.held)
		})
	}
	for name, merged := range map[string][]string{
		"a marked one with no spec":    {marked, `{spec: null}`},
		"an unmarked one with no spec": {`{spec: null}`},
	} {
		t.Run(name, func(t *testing.T) {
			created, err := jobs.Create(t.Context(), kind.job(t, merged...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil { // some kinds must have one
				wantNoPolicy(t, err)
				return
			}
			kind.wantSuspended(t, created, false)
		})
	}
}

// Tools that resubmit a job copy its annotations from after the release.
func copyIsANewJob(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	const copied, unmarked = `{metadata: {annotations: {kube-queue/released: "1", scheduling.x-k8s.io/suspend: "false"}}}`, `{metadata: {annotations: {kube-queue/released: "2"}}}`
	for name, test := range map[string]struct {
		merged []string
		held   bool
	}{
		"marked by the annotation":  {[]string{copied}, true},
		"marked by its own suspend": {[]string{unmarked, kind.suspend("false")}, true},
		"with a controller":         {[]string{copied, ownedBy("example.com/v1", "Thing", "true")}, true},
		"in another queue":          {[]string{copied, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			created := create(t, jobs, kind.job(t, test.merged...), metav1.DryRunAll)
			kind.wantSuspended(t, created, test.held)
			annotations := created.GetAnnotations()
			if _, has := annotations["kube-queue/released"]; has == test.held || (annotations[mark] == "true") != test.held {
				t.Errorf("the annotations are %v", annotations)
			}
		})
	}
}

func podsEndWithTheirJob(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	if !kind.hasRunPolicy() {
		return
	}
	type test struct {
		merged []string
		want   string
	}
	tests := map[string]test{
		"held, no runPolicy":              {[]string{marked}, "Running"},
		"held, other fields in runPolicy": {[]string{marked, `{spec: {runPolicy: {backoffLimit: 3}}}`}, "Running"},
		"held by its own suspend too":     {[]string{marked, `{spec: {runPolicy: {suspend: true}}}`}, "Running"},
		"held, reported null":             {[]string{marked, `{spec: {runPolicy: {cleanPodPolicy: null}}}`}, "Running"},
		"held, reported None":             {[]string{marked, `{spec: {runPolicy: {cleanPodPolicy: None}}}`}, "None"},
		"held, reported All":              {[]string{marked, `{spec: {runPolicy: {cleanPodPolicy: All}}}`}, "All"},
		"not held":                        {[]string{`{spec: {runPolicy: {suspend: true}}}`}, ""},
	}
	if kind.title == "MPIJob v1" {
		tests["held, reported All in the older place"] = test{[]string{marked, `{spec: {cleanPodPolicy: All}}`}, ""}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			created := create(t, jobs, kind.job(t, test.merged...), metav1.DryRunAll)
			got, _, _ := unstructured.NestedString(created.Object, "spec", "runPolicy", "cleanPodPolicy")
			if got != test.want {
				t.Errorf("cleanPodPolicy %q, want %q", got, test.want)
			}
			if limit, found, _ := unstructured.NestedInt64(created.Object, "spec", "runPolicy", "backoffLimit"); strings.Contains(name, "other fields") && (!found || limit != 3) {
				t.Errorf("backoffLimit %d", limit)
			}
		})
	}
}

func mayLeaveItsPods(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	if !kind.hasRunPolicy() {
		return
	}
	create(t, jobs, kind.job(t, marked))
	job := patch(t, jobs, `{spec: {runPolicy: {cleanPodPolicy: null}}}`)
	kind.wantSuspended(t, job, true)
	if policy, found, _ := unstructured.NestedString(job.Object, "spec", "runPolicy", "cleanPodPolicy"); found {
		t.Errorf("cleanPodPolicy is %q again", policy)
	}
}

func heldUntilItsRelease(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	kind.wantSuspended(t, create(t, jobs, kind.job(t, marked)), true)

	kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), true)
	kind.wantSuspended(t, patch(t, jobs, kind.suspend("null")), true)
	if kind.hasRunPolicy() {
		kind.wantSuspended(t, patch(t, jobs, `{spec: {runPolicy: null}}`), true)
	}
	kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), true)

	kind.release(t, jobs)
}

func notStoppedByItsMarkAlone(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	create(t, jobs, kind.job(t, marked))
	kind.release(t, jobs)
	kind.wantSuspended(t, patch(t, jobs, marked), false)
	kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), false)
	// An eviction sets both, and the next release clears both.
	kind.wantSuspended(t, patch(t, jobs, kind.suspend("true")), true)
	kind.release(t, jobs)
}

func markDoesNotStop(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	kind.wantSuspended(t, create(t, jobs, kind.job(t)), false)
	kind.wantSuspended(t, patch(t, jobs, marked), false)
	kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), false)
}

func freeWithoutAMark(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	create(t, jobs, kind.job(t, kind.suspend("true")))
	// A mark that is set in the write that unsuspends the job does not hold it.
	both := strings.TrimSuffix(kind.suspend("false"), "}") + ", " + strings.TrimPrefix(marked, "{")
	kind.wantSuspended(t, patch(t, jobs, both), false)
}

func freeOnceUnmarked(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	create(t, jobs, kind.job(t, marked))
	kind.wantSuspended(t, patch(t, jobs, `{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`), true)
	kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), false)
}

// Kueue releases its own jobs. kube-queue must not prevent this.
func freeOnceItBypasses(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	create(t, jobs, kind.job(t, marked))
	patch(t, jobs, `{metadata: {annotations: {kube-queue/bypass: "true"}}}`)
	kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), false)
}

func freeInAnotherQueue(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	create(t, jobs, kind.job(t, marked))
	patch(t, jobs, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`)
	kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), false)
}

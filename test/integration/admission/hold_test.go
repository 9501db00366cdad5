package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const mark = "scheduling.x-k8s.io/suspend"

// heldKind is a kind of job that a policy holds.
type heldKind struct {
	resource schema.GroupVersionResource
	// manifest is the least that a job of the kind may be, without a mark.
	manifest string
	// holder is the path of the field that the suspend field is in.
	holder []string
}

const podTemplate = `{spec: {restartPolicy: Never, containers: [{name: tensorflow, image: main}, {name: pytorch, image: main}]}}`

var heldKinds = map[string]heldKind{
	"Job": {
		resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		manifest: `{apiVersion: batch/v1, kind: Job, metadata: {name: held}, spec: {template: ` + podTemplate + `}}`,
		holder:   []string{"spec"},
	},
	"TFJob": {
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"},
		manifest: `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: held}, spec: {tfReplicaSpecs: {Worker: {replicas: 1, template: ` + podTemplate + `}}}}`,
		holder:   []string{"spec", "runPolicy"},
	},
	"PyTorchJob": {
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
		manifest: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: held}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, template: ` + podTemplate + `}}}}`,
		holder:   []string{"spec", "runPolicy"},
	},
}

// forEachKind runs a test for each kind, in a namespace of its own.
func forEachKind(t *testing.T, test func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface)) {
	for name, kind := range heldKinds {
		t.Run(name, func(t *testing.T) {
			test(t, kind, objects(t).Resource(kind.resource).Namespace(namespace(t)))
		})
	}
}

// job is the kind's manifest with values merged in, written in YAML.
func (k heldKind) job(t *testing.T, merged ...string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	for _, text := range append([]string{k.manifest}, merged...) {
		var part map[string]any
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			t.Fatal(err)
		}
		job.Object = merge(job.Object, part)
	}
	return job
}

// merge puts the values of part into object; null stays null, as in a manifest.
func merge(object, part map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range part {
		inner, isMap := value.(map[string]any)
		old, wasMap := object[key].(map[string]any)
		if isMap && wasMap {
			value = merge(old, inner)
		}
		object[key] = value
	}
	return object
}

// suspend is a patch, or a part of a manifest, that sets the suspend field.
func (k heldKind) suspend(value string) string {
	return nested(k.holder, "{suspend: "+value+"}")
}

func nested(path []string, value string) string {
	for i := len(path) - 1; i >= 0; i-- {
		value = "{" + path[i] + ": " + value + "}"
	}
	return value
}

func (k heldKind) suspended(job *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(job.Object, append(k.holder, "suspend")...)
	return value
}

func (k heldKind) wantSuspended(t *testing.T, job *unstructured.Unstructured, want bool) {
	t.Helper()
	if got := k.suspended(job); got != want {
		spec, _ := yaml.Marshal(job.Object["spec"])
		t.Errorf("suspended %v, want %v\n%s", got, want, spec)
	}
}

const marked = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

func ownedBy(apiVersion, kind, controller string) string {
	return fmt.Sprintf(`{metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: owner, uid: u, controller: %s}]}}`, apiVersion, kind, controller)
}

func create(t *testing.T, jobs dynamic.ResourceInterface, job *unstructured.Unstructured, dryRun ...string) *unstructured.Unstructured {
	t.Helper()
	created, err := jobs.Create(t.Context(), job, metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func patch(t *testing.T, jobs dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := jobs.Patch(t.Context(), "held", types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// release is the one patch by which job-extensions releases a job.
func (k heldKind) release(t *testing.T, jobs dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	unmark := `metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}`
	released := patch(t, jobs, "{"+unmark+", "+strings.TrimPrefix(k.suspend("false"), "{"))
	k.wantSuspended(t, released, false)
	if value := released.GetAnnotations()[mark]; value != "false" {
		t.Errorf("the mark is %q after the release", value)
	}
	return released
}

func TestWhichNewJobsAreHeld(t *testing.T) {
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
		{"a marked one with null for labels and owners", []string{marked, `{metadata: {labels: null, ownerReferences: null}}`}, true},
		{"a marked one with a controller", []string{marked, ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "true")}, false},
		{"a marked one with an owner that is no controller", []string{marked, ownedBy("example.com/v1", "Thing", "false")}, true},
		{"a marked one with an owner of null", []string{marked, ownedBy("example.com/v1", "Thing", "null")}, true},
		{"a marked one of a foreign CronJob", []string{marked, ownedBy("example.com/v1", "CronJob", "true")}, false},
		{"a marked one that Kueue manages", []string{marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`}, false},
		{"a marked one with Kueue's label left empty", []string{marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: ""}}}`}, false},
	}
	more := map[string][]test{
		"Job": {
			{"a marked one of a CronJob", []string{marked, ownedBy("batch/v1", "CronJob", "true")}, true},
			{"a marked one of the Job controller by name", []string{marked, `{spec: {managedBy: kubernetes.io/job-controller}}`}, true},
			{"a marked one of another controller", []string{marked, `{spec: {managedBy: example.com/other}}`}, false},
		},
		"kubeflow": {
			{"a marked one of a CronJob", []string{marked, ownedBy("batch/v1", "CronJob", "true")}, false},
			{"a marked one of the operator by name", []string{marked, `{spec: {runPolicy: {managedBy: kubeflow.org/training-operator}}}`}, true},
			{"a marked one of another operator", []string{marked, `{spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}}`}, false},
			{"a marked one with null for runPolicy", []string{marked, `{spec: {runPolicy: null}}`}, true},
			{"a marked one with null in runPolicy", []string{marked, `{spec: {runPolicy: {suspend: null, managedBy: null, cleanPodPolicy: null}}}`}, true},
			{"a marked one with no spec", []string{marked, `{spec: null}`}, false},
			{"an unmarked one with no spec", []string{`{spec: null}`}, false},
		},
	}
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		extra := more["kubeflow"]
		if kind.resource.Group == "batch" {
			extra = more["Job"]
		}
		for _, test := range append(tests, extra...) {
			t.Run(test.name, func(t *testing.T) {
				created := create(t, jobs, kind.job(t, test.merged...), metav1.DryRunAll)
				kind.wantSuspended(t, created, test.held)
			})
		}
	})
}

func TestASuspendedJobStaysSuspendedWithAndWithoutAMark(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		for name, merged := range map[string][]string{
			"unmarked":              {kind.suspend("true")},
			"marked":                {kind.suspend("true"), marked},
			"marked false":          {kind.suspend("true"), `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`},
			"marked, another queue": {kind.suspend("true"), marked, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`},
		} {
			t.Run(name, func(t *testing.T) {
				kind.wantSuspended(t, create(t, jobs, kind.job(t, merged...), metav1.DryRunAll), true)
			})
		}
	})
}

func TestPodsOfAHeldKubeflowJobEndWithItUnlessToldOtherwise(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		if kind.resource.Group != "kubeflow.org" {
			return
		}
		for name, test := range map[string]struct {
			merged []string
			want   string
		}{
			"held, no runPolicy":              {[]string{marked}, "Running"},
			"held, other fields in runPolicy": {[]string{marked, `{spec: {runPolicy: {backoffLimit: 3}}}`}, "Running"},
			"held by its own suspend too":     {[]string{marked, `{spec: {runPolicy: {suspend: true}}}`}, "Running"},
			"held, told None":                 {[]string{marked, `{spec: {runPolicy: {cleanPodPolicy: None}}}`}, "None"},
			"held, told All":                  {[]string{marked, `{spec: {runPolicy: {cleanPodPolicy: All}}}`}, "All"},
			"not held":                        {[]string{`{spec: {runPolicy: {suspend: true}}}`}, ""},
		} {
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
	})
}

func TestAHeldKubeflowJobMayBeToldToLeaveItsPods(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		if kind.resource.Group != "kubeflow.org" {
			return
		}
		create(t, jobs, kind.job(t, marked))
		job := patch(t, jobs, `{spec: {runPolicy: {cleanPodPolicy: null}}}`)
		kind.wantSuspended(t, job, true)
		if policy, found, _ := unstructured.NestedString(job.Object, "spec", "runPolicy", "cleanPodPolicy"); found {
			t.Errorf("cleanPodPolicy is %q again", policy)
		}
	})
}

func TestAHeldJobStaysHeldUntilItsRelease(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		kind.wantSuspended(t, create(t, jobs, kind.job(t, marked)), true)

		kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), true)
		kind.wantSuspended(t, patch(t, jobs, kind.suspend("null")), true)
		if kind.resource.Group == "kubeflow.org" {
			kind.wantSuspended(t, patch(t, jobs, `{spec: {runPolicy: null}}`), true)
		}
		kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), true)

		kind.release(t, jobs)
	})
}

func TestAReleasedJobIsNotStoppedByItsMarkAlone(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, marked))
		kind.release(t, jobs)
		kind.wantSuspended(t, patch(t, jobs, marked), false)
		kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), false)
		// An eviction sets both, and the next release clears both.
		kind.wantSuspended(t, patch(t, jobs, kind.suspend("true")), true)
		kind.release(t, jobs)
	})
}

func TestAMarkPutOnARunningJobDoesNotStopIt(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		kind.wantSuspended(t, create(t, jobs, kind.job(t)), false)
		kind.wantSuspended(t, patch(t, jobs, marked), false)
		kind.wantSuspended(t, patch(t, jobs, `{metadata: {labels: {a: b}}}`), false)
	})
}

func TestAJobSuspendedWithoutAMarkIsFree(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, kind.suspend("true")))
		// A mark that comes together with the end of the suspension holds nothing.
		both := strings.TrimSuffix(kind.suspend("false"), "}") + ", " + strings.TrimPrefix(marked, "{")
		kind.wantSuspended(t, patch(t, jobs, both), false)
	})
}

func TestAJobWhoseMarkIsTakenAwayIsFree(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, marked))
		kind.wantSuspended(t, patch(t, jobs, `{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`), true)
		kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), false)
	})
}

// Kueue releases its own jobs, and nothing of ours may stand against it.
func TestAJobHandedToAnotherQueueIsFree(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
		create(t, jobs, kind.job(t, marked))
		patch(t, jobs, `{metadata: {labels: {kueue.x-k8s.io/queue-name: main}}}`)
		kind.wantSuspended(t, patch(t, jobs, kind.suspend("false")), false)
	})
}

func TestTheSameManifestAppliedAgainChangesNothing(t *testing.T) {
	for how, apply := range map[string][]string{
		"by the client": {"apply"},
		"by the server": {"apply", "--server-side", "--force-conflicts"},
		"replaced":      {"replace"},
	} {
		t.Run(how, func(t *testing.T) {
			for name, kind := range heldKinds {
				if how == "replaced" && name == "Job" {
					// A Job made by the server has a selector, which a replacement lacks.
					continue
				}
				t.Run(name, func(t *testing.T) {
					ns := namespace(t)
					jobs := objects(t).Resource(kind.resource).Namespace(ns)
					manifest, err := json.Marshal(kind.job(t, marked).Object)
					if err != nil {
						t.Fatal(err)
					}
					do := func() *unstructured.Unstructured {
						kubectl(t, string(manifest), append(apply, "-n", ns, "-f", "-")...)
						job, err := jobs.Get(t.Context(), "held", metav1.GetOptions{})
						if err != nil {
							t.Fatal(err)
						}
						return job
					}
					if how == "replaced" {
						create(t, jobs, kind.job(t, marked))
					}
					kind.wantSuspended(t, do(), true)
					kind.wantSuspended(t, do(), true)
					kind.release(t, jobs)
					if job := do(); job.GetAnnotations()[mark] != "true" {
						t.Error("the manifest did not put the mark back, so this test shows nothing")
					} else {
						kind.wantSuspended(t, job, false)
					}
					kind.wantSuspended(t, do(), false)
				})
			}
		})
	}
}

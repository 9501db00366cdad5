package decision

import (
	"encoding/json"
	"fmt"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

func TestFollows(t *testing.T) {
	dequeued, running := phase(v1alpha1.PhaseDequeued), phase(v1alpha1.PhaseRunning)
	tests := []struct {
		name string
		unit *v1alpha1.QueueUnit
		job  State
		want bool
	}{
		{"a released job", unit(dequeued), job(released), true},
		{"a running job", unit(running), job(released, runs), true},
		{"a job without a unit", nil, job(released), false},
		{"a job that waits", unit(), job(), false},
		{"a job that is not released yet", unit(dequeued), job(), false},
		{"a job that was released for an attempt before", unit(dequeued), job(released, was("0")), false},
		{"a job that is suspended", unit(running), job(released, suspended), false},
		{"a job that is evicted", unit(running, condition(metav1.ConditionTrue, "Preempted")), job(released), false},
		{"a job that has stopped", unit(running, condition(metav1.ConditionTrue, wellknown.ReasonStopped)), job(released), false},
		{"a job that was requeued before", unit(running, condition(metav1.ConditionFalse, wellknown.ReasonRequeued)), job(released), true},
		{"a job that has ended", unit(running), job(released, ended), false},
		{"an ended unit", unit(phase(v1alpha1.PhaseSucceeded)), job(released), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Follows(test.unit, test.job); got != test.want {
				t.Errorf("its unit follows it: %v", got)
			}
		})
	}
}

func TestLowered(t *testing.T) {
	tests := []struct {
		name string
		// have and want are specs; lowered is the spec after the patch, empty for no patch.
		have, want, lowered string
	}{
		{"the same is not patched",
			`{"resource": {"cpu": "2"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1"}}]}`,
			`{"resource": {"cpu": "2000m"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1000m"}}]}`, ""},
		{"more is not patched",
			`{"resource": {"cpu": "2"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1"}}]}`,
			`{"resource": {"cpu": "4", "memory": "1"}, "podSets": [{"name": "main", "count": 4, "requests": {"cpu": "1", "memory": "1"}}, {"name": "more", "count": 1}]}`, ""},
		{"fewer pods",
			`{"resource": {"cpu": "4"}, "podSets": [{"name": "main", "count": 4, "requests": {"cpu": "1"}, "priorityClassName": "high"}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}, "priorityClassName": "low"}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}, "priorityClassName": "high"}]}`},
		{"fewer pods that request nothing",
			`{"podSets": [{"name": "main", "count": 4}]}`, `{"podSets": [{"name": "main", "count": 1}]}`, `{"podSets": [{"name": "main", "count": 1}]}`},
		{"a resource that grows next to one that shrinks",
			`{"resource": {"cpu": "2", "memory": "4"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1", "memory": "2"}}]}`,
			`{"resource": {"cpu": "6", "memory": "2"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "3", "memory": "1"}}]}`,
			`{"resource": {"cpu": "2", "memory": "2"}, "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1", "memory": "1"}}]}`},
		{"a resource that is no longer requested",
			`{"resource": {"cpu": "2", "gpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "2", "gpu": "1"}, "limits": {"gpu": "1"}}]}`,
			`{"resource": {"cpu": "2"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "2"}}]}`,
			`{"resource": {"cpu": "2"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "2"}}]}`},
		{"nothing of a resource that is no longer requested is no less",
			`{"resource": {"cpu": "0"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "0"}}]}`, `{"podSets": [{"name": "main", "count": 1}]}`, ""},
		{"a limit alone",
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}, "limits": {"cpu": "4"}}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}, "limits": {"cpu": "2"}}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}, "limits": {"cpu": "2"}}]}`},
		{"pods that are gone altogether keep their place",
			`{"resource": {"cpu": "3"}, "podSets": [{"name": "head", "count": 1, "requests": {"cpu": "1"}}, {"name": "worker", "count": 2, "minCount": 1, "requests": {"cpu": "1"}}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "head", "count": 1, "requests": {"cpu": "1"}}]}`,
			`{"resource": {"cpu": "1"}, "podSets": [{"name": "head", "count": 1, "requests": {"cpu": "1"}}, {"name": "worker", "count": 0, "requests": {"cpu": "1"}}]}`},
		{"no more pods at least than there are",
			`{"podSets": [{"name": "main", "count": 4, "minCount": 3}]}`, `{"podSets": [{"name": "main", "count": 2}]}`,
			`{"podSets": [{"name": "main", "count": 2, "minCount": 2}]}`},
		{"a unit without pod sets", `{"resource": {"cpu": "3"}}`, `{"resource": {"cpu": "1"}, "podSets": [{"name": "main", "count": 1}]}`, `{"resource": {"cpu": "1"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			have, want := specOf(t, test.have), specOf(t, test.want)
			fields := lowered(&have, want.PodSets, want.Resource)
			if test.lowered == "" {
				if fields != nil {
					t.Errorf("it is patched: %v", fields)
				}
				return
			}
			got, lowered := merged(t, have, fields), specOf(t, test.lowered)
			if !equality.Semantic.DeepEqual(got.Resource, lowered.Resource) || !equality.Semantic.DeepEqual(got.PodSets, lowered.PodSets) {
				t.Errorf("it becomes %+v, not %+v", got, lowered)
			}
		})
	}
}

// failer is a test of either library.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func specOf(t failer, text string) (spec v1alpha1.QueueUnitSpec) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &spec))
	return spec
}

// merged is the spec after the patch, as in the API server.
func merged(t failer, spec v1alpha1.QueueUnitSpec, fields map[string]any) v1alpha1.QueueUnitSpec {
	t.Helper()
	if fields == nil {
		return *spec.DeepCopy()
	}
	before, err := json.Marshal(spec)
	require.NoError(t, err)
	patch, err := json.Marshal(fields)
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	return specOf(t, string(after))
}

// For any admitted and current requests: each number becomes the lower of both, nothing else changes, and the same
// patch is not written twice.
func TestPropertyEachNumberBecomesTheLowerOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawSpec(t, "admitted"), drawSpec(t, "requested")
		before := *have.DeepCopy()
		fields := lowered(&have, want.PodSets, want.Resource)
		if !equality.Semantic.DeepEqual(have, before) {
			t.Fatalf("the cached spec was changed to %+v", have)
		}
		got := merged(t, have, fields)
		checkLeast(t, "the total", got.Resource, have.Resource, want.Resource)
		if len(got.PodSets) != len(have.PodSets) {
			t.Fatalf("it has %d pod sets, not %d", len(got.PodSets), len(have.PodSets))
		}
		for i, set := range got.PodSets {
			was, wanted := have.PodSets[i], setOf(want.PodSets, set.Name)
			if wanted == nil {
				wanted = &v1alpha1.PodSet{Requests: was.Requests, Limits: was.Limits}
			}
			if set.Count != min(was.Count, wanted.Count) {
				t.Fatalf("%s has %d pods, was %d, requested %d", set.Name, set.Count, was.Count, wanted.Count)
			}
			checkLeast(t, "requests of "+set.Name, set.Requests, was.Requests, wanted.Requests)
			checkLeast(t, "limits of "+set.Name, set.Limits, was.Limits, wanted.Limits)
			if set.MinCount != nil && (*set.MinCount > set.Count || *set.MinCount < 1 || *set.MinCount > *was.MinCount) {
				t.Fatalf("%s has minCount %d of %d", set.Name, *set.MinCount, set.Count)
			}
			set.Count, set.Requests, set.Limits, set.MinCount = was.Count, was.Requests, was.Limits, was.MinCount
			if !equality.Semantic.DeepEqual(set, was) {
				t.Fatalf("something else of %+v was changed: %+v", was, set)
			}
		}
		if again := lowered(&got, want.PodSets, want.Resource); again != nil {
			t.Fatalf("it is patched twice, the second time %v", again)
		}
		if (fields == nil) != equality.Semantic.DeepEqual(got, have) {
			t.Fatalf("a patch that changes nothing, or none that does: %v", fields)
		}
	})
}

// checkLeast checks that unwanted resources become 0 and that no resources are added.
func checkLeast(t *rapid.T, what string, got, have, want corev1.ResourceList) {
	for name, amount := range have {
		least := min(amount.MilliValue(), want.Name(name, resource.DecimalSI).MilliValue())
		if now := got.Name(name, resource.DecimalSI).MilliValue(); now != least {
			t.Fatalf("%s: %s is %dm, not %dm", what, name, now, least)
		}
	}
	for name := range got {
		if _, was := have[name]; !was {
			t.Fatalf("%s: %s was added", what, name)
		}
	}
}

func setOf(sets []v1alpha1.PodSet, name string) *v1alpha1.PodSet {
	for i := range sets {
		if sets[i].Name == name {
			return &sets[i]
		}
	}
	return nil
}

func drawSpec(t *rapid.T, label string) v1alpha1.QueueUnitSpec {
	list := func(of string) corev1.ResourceList {
		var list corev1.ResourceList
		for _, name := range []corev1.ResourceName{"cpu", "memory", "gpu"} {
			if rapid.Bool().Draw(t, fmt.Sprint(label, " ", of, " has ", name)) {
				if list == nil {
					list = corev1.ResourceList{}
				}
				list[name] = *resource.NewMilliQuantity(rapid.Int64Range(0, 2500).Draw(t, fmt.Sprint(label, " ", of, " ", name)), resource.DecimalSI)
			}
		}
		return list
	}
	spec := v1alpha1.QueueUnitSpec{Active: ptr.To(true), Resource: list("total")}
	for _, name := range []string{"head", "worker", "submitter"} {
		if !rapid.Bool().Draw(t, label+" has "+name) {
			continue
		}
		set := v1alpha1.PodSet{Name: name, Count: rapid.Int32Range(0, 4).Draw(t, label+" pods"), Requests: list(name), Limits: list(name + " limits"),
			PriorityClassName: rapid.SampledFrom([]string{"", "high"}).Draw(t, label+" class")}
		if set.Count > 0 && rapid.Bool().Draw(t, label+" has a minimum") {
			set.MinCount = ptr.To(rapid.Int32Range(1, set.Count).Draw(t, label+" minimum"))
		}
		spec.PodSets = append(spec.PodSets, set)
	}
	return spec
}

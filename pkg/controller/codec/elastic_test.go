package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestReadingHowManyPodsOfAUnitMustStart(t *testing.T) {
	const sets = `{name: head, count: 1, requests: {cpu: 2}}, {name: worker, count: 8, minCount: 4, requests: {cpu: 500m, memory: 1}}`
	for _, c := range []struct {
		name, spec, status string
		// want has the pod set, its minimum and full number of pods, and the grant; empty if all pods must start.
		want string
		// cpu is the request of each pod, in milli-CPU.
		cpu int64
	}{
		{"a unit that must start with all its pods", `resource: {cpu: 4}, podSets: [{name: main, count: 4, requests: {cpu: 1}}]`, ``, "", 0},
		{"a unit without pod sets", `resource: {cpu: 4}`, ``, "", 0},
		{"a minimum that is the full number", `resource: {cpu: 4}, podSets: [{name: main, count: 4, minCount: 4, requests: {cpu: 1}}]`, ``, "", 0},
		{"a unit that may start with fewer", `resource: {cpu: 6, memory: 8}, podSets: [` + sets + `]`, ``, "worker 4 8 0", 500},
		{"one that was admitted with fewer", `resource: {cpu: 6, memory: 8}, podSets: [` + sets + `]`,
			`phase: Running, admittedPodSets: [{name: worker, count: 5}]`, "worker 4 8 5", 500},
		{"one that waits again", `resource: {cpu: 6, memory: 8}, podSets: [` + sets + `]`,
			`phase: Enqueued, admittedPodSets: [{name: worker, count: 5}]`, "worker 4 8 0", 500},
		{"one that has no minimum any more", `resource: {cpu: 4}, podSets: [{name: main, count: 4, requests: {cpu: 1}}]`,
			`phase: Dequeued, admittedPodSets: [{name: main, count: 3}]`, "main 4 4 3", 1000},
		{"one that was lowered below that", `resource: {cpu: 2}, podSets: [{name: main, count: 2, requests: {cpu: 1}}]`,
			`phase: Dequeued, admittedPodSets: [{name: main, count: 3}]`, "", 0},
		{"a request that is less than the sum", `resource: {cpu: 2}, podSets: [{name: main, count: 4, minCount: 1, requests: {cpu: 1}}]`, ``, "main 1 4 0", 500},
		{"pods that request less than a base unit", `resource: {cpu: 2m}, podSets: [{name: main, count: 4, minCount: 1, requests: {cpu: 500u}}]`, ``, "main 1 4 0", 0},
		{"a resource that is not in the request", `resource: {}, podSets: [{name: main, count: 4, minCount: 1, requests: {cpu: 1}}]`, ``, "main 1 4 0", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := resources.NewNames()
			unit := unitObject(func(u *schedulingv1alpha1.QueueUnit) {
				require.NoError(t, yaml.UnmarshalStrict([]byte(`{spec: {`+c.spec+`}, status: {`+c.status+`}}`), u))
				u.UID = types.UID("uid")
			})
			got, err := newTestReader(names).Read(Compactor{}.unit(unit))
			if err != nil || got.Held != nil {
				t.Fatal(err, got.Held)
			}
			e := got.Elastic
			if e == nil {
				if c.want != "" {
					t.Fatalf("all must start, want %s", c.want)
				}
				return
			}
			if text := strings.Join([]string{e.PodSet, number(e.Min), number(e.Count), number(e.Granted)}, " "); text != c.want {
				t.Errorf("it is %s, want %s", text, c.want)
			}
			if cpu, _ := e.Pod.Get(names.ID("cpu")); cpu != c.cpu {
				t.Errorf("each pod requests %d, want %d", cpu, c.cpu)
			}
		})
	}
}

func number(n int32) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func TestAUnitMayStartWithFewerPodsOfOnePodSetOnly(t *testing.T) {
	unit := unitObject(func(u *schedulingv1alpha1.QueueUnit) {
		if err := yaml.Unmarshal([]byte(`{spec: {resource: {cpu: 8}, podSets: [
			{name: a, count: 4, minCount: 1, requests: {cpu: 1}}, {name: b, count: 4, minCount: 2, requests: {cpu: 1}}]}}`), u); err != nil {
			t.Fatal(err)
		}
	})
	got, err := newTestReader(resources.NewNames()).Read(Compactor{}.unit(unit))
	if err != nil || got.Held == nil || got.Held.Reason != wellknown.ReasonInvalidRequest || !strings.Contains(got.Held.Message(), `pod sets "a" and "b"`) {
		t.Fatalf("it is held with %+v: %v", got.Held, err)
	}
}

package loadgen

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

func run(t *testing.T, s *Scenario, server string) *Run {
	t.Helper()
	r, err := New(&rest.Config{Host: server}, s)
	require.NoError(t, err)
	return r
}

func shapes() *Scenario {
	s := Uniform("c", 2, 6)
	s.Classes[0].Shapes, s.Classes[0].Priority, s.Classes[0].Requests = 2, 7, cpu(2)
	return s
}

func TestAUnitIsLikeThatOfJobExtensions(t *testing.T) {
	var unit v1alpha1.QueueUnit
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&unit); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
	}))
	defer server.Close()
	s := run(t, shapes(), server.URL)
	s.start = s.start.Truncate(time.Microsecond)
	require.NoError(t, s.Create(t.Context(), 3)) // the second unit of the second leaf
	ref := unit.Spec.ConsumerRef
	if unit.Name != "c-1-1-job-0000000003" || unit.APIVersion != "scheduling.x-k8s.io/v1alpha1" || ref.Namespace != "perf-0-1" || ref.Name != "c-1-1" ||
		ref.Kind != "Job" || ref.UID != "00000000-0000-4000-8000-000000000003" {
		t.Errorf("it is %+v of %+v", unit, ref)
	}
	if unit.Spec.Resource.Cpu().Value() != 4 || unit.Spec.Priority != 7 || !unit.Spec.SubmissionTime.Time.Equal(s.start.Add(3*time.Microsecond)) || len(unit.Spec.PodSets) != 1 {
		t.Errorf("it requests %+v", unit.Spec)
	}
	if created := s.Counts().Created; created != 1 {
		t.Errorf("%d are created", created)
	}
}

func TestEachEventIsCountedOnce(t *testing.T) {
	s := run(t, shapes(), "")
	see := func(name string, phase v1alpha1.QueueUnitPhase, reason wellknown.Reason) {
		s.see(&v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"}, Status: v1alpha1.QueueUnitStatus{Phase: phase, Reason: reason}})
	}
	name := s.units[2].Name
	see(name, "", "")
	see(name, "Enqueued", "NoQuota")
	see(name, "Enqueued", "MaxJobs")
	see(name, "Dequeued", "")
	see(name, "Dequeued", "")
	see("somebody-else", "Dequeued", "")
	if c := s.Counts(); c.Reported != 1 || c.Released != 1 {
		t.Errorf("counted %+v", c)
	}
	see(name, "Enqueued", "NoQuota")
	see(name, "Dequeued", "")
	if c := s.Counts(); c.Released != 1 || c.Again != 1 {
		t.Errorf("after another release, %+v are counted", c)
	}
}

// A fake API server refuses the first requests.
func TestAnEndIsThatOfAVersionAndIsRepeatedIfThatCanHelp(t *testing.T) {
	for code, want := range map[int]int{http.StatusServiceUnavailable: 2, http.StatusConflict: 2, http.StatusForbidden: 1, http.StatusOK: 1} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				code = http.StatusOK
			}
			var end v1alpha1.QueueUnit
			if err := json.NewDecoder(r.Body).Decode(&end); err != nil || end.ResourceVersion != "5" || end.Status.Phase != v1alpha1.PhaseSucceeded {
				t.Errorf("the end is %+v: %v", end, err)
			}
			if r.Method != http.MethodPatch || r.URL.Path != "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/perf-0-1/queueunits/c-1-1-job-0000000003/status" ||
				r.Header.Get("Content-Type") != "application/merge-patch+json" {
				t.Errorf("it requests %s %s", r.Method, r.URL)
			}
			w.WriteHeader(code)
		}))
		s := run(t, shapes(), server.URL)
		s.units[3].version = "5"
		if err := s.End(t.Context(), 3); (err == nil) != (code == http.StatusOK) || asked != want || s.Counts().Ended != map[bool]int{true: 1}[err == nil] {
			t.Errorf("%d: %v after %d requests", code, err, asked)
		}
		server.Close()
	}
}

func TestTheTreeOfATurnoverHasTheNodesAndTheUnits(t *testing.T) {
	for _, c := range []struct{ nodes, units int }{{3, 1}, {20, 300}, {21, 300}, {1000, 100_000}} {
		s := TurnoverScenario("unit", c.nodes, c.units)
		nodes := 1 + s.Parents.Count + s.LeafCount()
		if nodes != c.nodes || s.Units() < c.units || s.Units() >= c.units+s.LeafCount() {
			t.Errorf("%d nodes and %d units: %d and %d", c.nodes, c.units, nodes, s.Units())
		}
		if held := float64(run(t, s, "").Held()); held != s.Capacity() {
			t.Errorf("%d nodes: the quota is that of %v units, not %v", c.nodes, s.Capacity(), held)
		}
	}
	if last := run(t, TurnoverScenario("unit", 20, 90), "").Last(3); last.Namespace != "perf-0-3" || last.Job != "unit-3-4" {
		t.Errorf("the last unit of a leaf is that of %s in %s", last.Job, last.Namespace)
	}
}

package loadgen

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/require"
)

func run(t *testing.T, s *scenario.Scenario) *Run {
	t.Helper()
	r, err := New(&rest.Config{}, s)
	require.NoError(t, err)
	return r
}

func shapes(t *testing.T) *Run {
	s := Uniform("c", 2, 6)
	s.Classes[0].Shapes, s.Classes[0].Priority, s.Classes[0].Requests = 2, 7, cpu(2)
	return run(t, s)
}

// read decodes a unit without unknown fields.
func read(t *testing.T, body []byte, err error) *v1alpha1.QueueUnit {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	unit := &v1alpha1.QueueUnit{}
	if err != nil || decoder.Decode(unit) != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return unit
}

func TestUnitIsLikeThatOfJobExtensions(t *testing.T) {
	s := shapes(t)
	s.start = s.start.Truncate(time.Microsecond)
	const index = 3 // the second of the second leaf
	body, err := s.body(index)
	unit := read(t, body, err)
	ref := unit.Spec.ConsumerRef
	if unit.Name != "c-1-1-job-0000000003" || unit.Namespace != "perf-0-1" || ref.Namespace != "perf-0-1" || ref.Name != "c-1-1" ||
		ref.Kind != "Job" || ref.UID != "00000000-0000-4000-8000-000000000003" {
		t.Errorf("it is %+v of %+v", unit.ObjectMeta, ref)
	}
	if unit.Spec.Resource.Cpu().Value() != 4 || unit.Spec.Priority != 7 || !unit.Spec.SubmissionTime.Time.Equal(s.start.Add(3*time.Microsecond)) || len(unit.Spec.PodSets) != 1 {
		t.Errorf("it requests %+v", unit.Spec)
	}
	if found, ok := s.Index(unit.Name); !ok || found != index {
		t.Errorf("its name is that of %d, %v", found, ok)
	}
	for _, name := range []string{"somebody", "c-1-1-job-000000zzzz", "c-1-1-job-00000000ff", "0000000003"} {
		if found, ok := s.Index(name); ok {
			t.Errorf("%s is parsed as %d", name, found)
		}
	}
}

func TestAnEndIsThatOfAVersion(t *testing.T) {
	for _, version := range []string{"17", ""} {
		patch, err := endPatch(version, time.Now())
		if end := read(t, patch, err); end.ResourceVersion != version || end.Status.Phase != v1alpha1.PhaseSucceeded || len(end.Status.Conditions) != 1 {
			t.Errorf("the end of version %q is %+v", version, end)
		}
	}
	patch, err := releasePatch("root/a", time.Now())
	if s := read(t, patch, err).Status; s.Phase != v1alpha1.PhaseDequeued || s.Quota != "root/a" || s.Queue != "root-a" || s.Attempts != 1 {
		t.Errorf("the release is %+v", s)
	}
}

func TestEachEventIsCountedOnce(t *testing.T) {
	s := shapes(t)
	see := func(name string, phase v1alpha1.QueueUnitPhase, reason wellknown.Reason) {
		s.see(&v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"}, Status: v1alpha1.QueueUnitStatus{Phase: phase, Reason: reason}})
	}
	name := s.identityOf(2).unit
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
	if s.units[2].Releases != 2 || s.Counts().Released != 1 || s.Counts().Again != 1 {
		t.Errorf("a unit that was released again is %+v, and %+v are counted", s.units[2], s.Counts())
	}
}

// A fake API server refuses the first requests.
func TestARequestIsRepeatedIfThatCanHelp(t *testing.T) {
	for code, want := range map[int]int{http.StatusServiceUnavailable: 2, http.StatusConflict: 2, http.StatusForbidden: 1, http.StatusOK: 1} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				code = http.StatusOK
			}
			if r.Method != http.MethodPatch || r.URL.Path != "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/perf-0-1/queueunits/c-1-1-job-0000000003/status" ||
				r.Header.Get("Content-Type") != "application/merge-patch+json" {
				t.Errorf("it requests %s %s", r.Method, r.URL)
			}
			w.WriteHeader(code)
		}))
		s, err := New(&rest.Config{Host: server.URL}, shapes(t).Scenario)
		require.NoError(t, err)
		if err := s.End(t.Context(), 3); (err == nil) != (code == http.StatusOK) || asked != want || s.Counts().Ended != map[bool]int{true: 1}[err == nil] {
			t.Errorf("%d: %v after %d requests", code, err, asked)
		}
		server.Close()
	}
}

package loadgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

func shapes() *Run {
	s := NewRun(nil, &scenario.Scenario{
		Name: "shapes", Kind: scenario.Backlog,
		Parents: scenario.Group{Count: 1}, Leaves: scenario.Group{Count: 2},
		Classes: []scenario.Class{{Name: "c", Count: 3, Shapes: 2, Priority: 7, Requests: cpu(2)}},
	})
	s.start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return s
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
	s := shapes()
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
	s := shapes()
	s.start = time.Now()
	see := func(name, phase, reason string) {
		event := &Event{}
		event.Object.Metadata.Name, event.Object.Metadata.ResourceVersion = name, "5"
		event.Object.Status.Phase, event.Object.Status.Reason = phase, reason
		s.see(event)
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
	if s.units[2].Releases != 2 || s.Counts().Released != 1 || s.again() != 1 {
		t.Errorf("a unit that was released again is %+v, and %+v are counted", s.units[2], s.Counts())
	}
}

func TestAWatchGoesOnAfterItsLastEvent(t *testing.T) {
	answers := []string{
		`{"type":"ADDED","object":{"metadata":{"name":"u","resourceVersion":"2"},"status":{"phase":"Enqueued","reason":"NoQuota"}}}` + "\n" +
			`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}` + "\n",
		`{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","message":"too old","code":410}}` + "\n",
		"404 page not found\n",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers[r.URL.Query().Get("resourceVersion")[0]-'0'])
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var seen []string
	visit := func(e *Event) {
		seen = append(seen, e.Object.Metadata.Name+" "+e.Object.Status.Phase+" "+e.Object.Status.Reason)
	}
	if version, err := client.Watch(t.Context(), "0", visit); err != nil || version != "9" || !slices.Equal(seen, []string{"u Enqueued NoQuota"}) {
		t.Errorf("seen are %q until %s: %v", seen, version, err)
	}
	for _, version := range []string{"1", "2"} {
		if _, err := client.Watch(t.Context(), version, visit); err == nil || len(seen) != 1 {
			t.Errorf("version %s: seen are %q, %v", version, seen, err)
		}
	}
}

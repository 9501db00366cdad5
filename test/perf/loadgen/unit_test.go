package loadgen

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

func stageOf(t *testing.T, s *scenario.Scenario) *Run {
	t.Helper()
	stage, err := NewRun(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

func shapes() *scenario.Scenario {
	return &scenario.Scenario{
		Name: "shapes", Kind: scenario.Backlog,
		Parents: scenario.Group{Count: 1}, Leaves: scenario.Group{Count: 2},
		Classes: []scenario.Class{{Name: "c", Count: 3, Shapes: 2, Priority: 7, Requests: scenario.Amounts{"cpu": "500m"}}},
	}
}

func TestUnitIsLikeThatOfJobExtensions(t *testing.T) {
	s := stageOf(t, shapes())
	const index = 3 // the second of the second leaf
	id := s.identityOf(index)
	submitted := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	body := s.patterns[0][1].body(id, submitted)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	unit := &v1alpha1.QueueUnit{}
	if err := decoder.Decode(unit); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	ref := unit.Spec.ConsumerRef
	if unit.Name != "c-1-1-job-0000000003" || unit.Namespace != "perf-0-1" || ref.Namespace != "perf-0-1" || ref.Name != "c-1-1" ||
		ref.Kind != "Job" || ref.UID != "00000000-0000-4000-8000-000000000003" {
		t.Errorf("it is %+v of %+v", unit.ObjectMeta, ref)
	}
	cpu := unit.Spec.Resource["cpu"]
	if cpu.String() != "1" || unit.Spec.Priority != 7 || !unit.Spec.SubmissionTime.Time.Equal(submitted) || len(unit.Spec.PodSets) != 1 {
		t.Errorf("it requests %+v", unit.Spec)
	}
	if found, ok := s.Index(id.unit); !ok || found != index {
		t.Errorf("its name is that of %d, %v", found, ok)
	}
	for _, name := range []string{"somebody", "c-1-1-job-000000zzzz", "c-1-1-job-00000000ff", "0000000003"} {
		if found, ok := s.Index(name); ok {
			t.Errorf("%s is parsed as %d", name, found)
		}
	}
}

func TestPatchesAreThoseOfThePrograms(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := func(patch []byte) *v1alpha1.QueueUnit {
		t.Helper()
		decoder := json.NewDecoder(bytes.NewReader(patch))
		decoder.DisallowUnknownFields()
		unit := &v1alpha1.QueueUnit{}
		if err := decoder.Decode(unit); err != nil {
			t.Fatalf("%v in %s", err, patch)
		}
		return unit
	}
	end := read(endPatch("17", at))
	if end.ResourceVersion != "17" || end.Status.Phase != v1alpha1.PhaseSucceeded || len(end.Status.Conditions) != 1 {
		t.Errorf("the end is %+v", end)
	}
	if loose := read(endPatch("", at)); loose.ResourceVersion != "" || loose.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the end of any version is %+v", loose)
	}
	written := func(status lifecycle.Status) *v1alpha1.QueueUnit {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			t.Fatal(err)
		}
		return read(patch)
	}
	const reached = "Reached expected number of succeeded pods"
	if want := written(lifecycle.Finished(&v1alpha1.QueueUnit{}, true, "CompletionsReached", reached, metav1.NewTime(at))); !equality.Semantic.DeepEqual(end.Status, want.Status) {
		t.Errorf("the end is %+v, not %+v", end.Status, want.Status)
	}
	release := read(releasePatch("root/a", at))
	if want := written(lifecycle.Dequeued(lifecycle.Place{Quota: "root/a", Queue: "root-a"}, 1, metav1.NewMicroTime(at))); !equality.Semantic.DeepEqual(release.Status, want.Status) {
		t.Errorf("the release is %+v, not %+v", release.Status, want.Status)
	}
	if s := release.Status; s.Phase != v1alpha1.PhaseDequeued || s.Quota != "root/a" || s.Queue != "root-a" || s.Attempts != 1 || !s.DequeueTime.Time.Equal(at) {
		t.Errorf("the release is %+v", s)
	}
}

func TestEachEventIsCountedOnce(t *testing.T) {
	s := stageOf(t, shapes())
	s.start = time.Now()
	name := s.identityOf(2).unit
	see := func(phase, reason string) {
		s.see(&Event{Name: []byte(name), Version: []byte("5"), Phase: []byte(phase), Reason: []byte(reason)})
	}
	see("", "")
	see("Enqueued", "NoQuota")
	see("Enqueued", "MaxJobs")
	see("Dequeued", "")
	see("Dequeued", "")
	s.see(&Event{Name: []byte("somebody-else"), Phase: []byte("Dequeued")})
	if c := s.Counts(); c.Reported != 1 || c.Released != 1 {
		t.Errorf("counted %+v", c)
	}
	see("Enqueued", "NoQuota")
	see("Dequeued", "")
	if unit := s.units[2]; unit.Releases != 2 || s.Counts().Released != 1 {
		t.Errorf("a unit that was released again is %+v, and %+v are counted", unit, s.Counts())
	}
}

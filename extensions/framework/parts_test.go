package framework

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func TestUnitNamesAreValidAndTellJobsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,240}[a-z0-9])?`).Draw(t, "job")
		name := UnitName("TFJob", job, types.UID(rapid.String().Draw(t, "uid")))
		if len(job) < 200 && len(validation.IsDNS1123Subdomain(job)) > 0 {
			t.Skip("no name of a job")
		}
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 && len(validation.IsDNS1123Subdomain(job)) == 0 {
			t.Fatalf("%s: %v", name, errs)
		}
	})
	names := map[string]bool{}
	for _, kind := range []string{"Job", "TFJob"} {
		for _, uid := range []types.UID{"1", "2"} {
			names[UnitName(kind, "train", uid)] = true
		}
	}
	if len(names) != 4 {
		t.Errorf("names are %v", names)
	}
	if name := UnitName("TFJob", "train", "1"); !strings.HasPrefix(name, "train-tfjob-") {
		t.Errorf("the name is %s", name)
	}
}

func TestSubmissionStaysInTheSecondOfCreation(t *testing.T) {
	tests := []struct {
		name       string
		seen, want time.Duration
	}{
		{"a job seen at once keeps the time", 120 * time.Millisecond, 120 * time.Millisecond},
		{"one seen late comes last of its second", time.Hour, time.Second - time.Microsecond},
		{"one seen before it was created, by clocks that differ, comes first", -time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := submission(noon, noon.Add(test.seen)); !got.Time.Equal(noon.Add(test.want)) {
				t.Errorf("it is %v", got)
			}
		})
	}
}

// suspender is an adapter of Jobs with two ways to be marked.
type suspender struct {
	Adapter
	bySuspend bool
}

func (s suspender) Kind() Kind { return Kind{MarkedBySuspend: s.bySuspend} }

func (suspender) SuspendPatch(_ Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}

func TestPatches(t *testing.T) {
	meta := func(annotation string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7"}}
		if annotation != "" {
			job.Annotations = map[string]string{SuspendAnnotation: annotation}
		}
		return job
	}
	tests := []struct {
		name  string
		patch func() ([]byte, error)
		want  string
	}{
		{"a release clears annotation and suspend field together", func() ([]byte, error) { return releasePatch(suspender{}, meta("true"), "2") },
			`{"metadata":{"annotations":{"kube-queue/released":"2","scheduling.x-k8s.io/suspend":"false"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a job marked by its suspend field gets no annotation", func() ([]byte, error) { return releasePatch(suspender{bySuspend: true}, meta(""), "1") },
			`{"metadata":{"annotations":{"kube-queue/released":"1"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a suspension puts the annotation back", func() ([]byte, error) { return suspendPatch(suspender{bySuspend: true}, meta("false"), false) },
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one of a kind marked by annotation puts it back though it was removed", func() ([]byte, error) { return suspendPatch(suspender{}, meta(""), false) },
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one of a job marked by its suspend field does not", func() ([]byte, error) { return suspendPatch(suspender{bySuspend: true}, meta(""), false) },
			`{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one for good deactivates in the same patch", func() ([]byte, error) { return suspendPatch(suspender{}, meta("false"), true) },
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false","scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := test.patch()
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != test.want {
				t.Errorf("the patch is\n%s, not\n%s", data, test.want)
			}
		})
	}
}

func TestFinishedStatus(t *testing.T) {
	u := unit(phase(v1alpha1.PhaseRunning), because("Old", "old"))
	u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted"}}
	fields := finishedStatus(u, &End{Reason: "not a reason!", Message: strings.Repeat("é", 2000)}, metav1.NewTime(noon))
	data, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.QueueUnit
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Status.Phase != v1alpha1.PhaseFailed || len(got.Status.Conditions) != 2 {
		t.Fatalf("the status is %s", data)
	}
	admitted, finished := got.Status.Conditions[0], got.Status.Conditions[1]
	if admitted.Status != metav1.ConditionFalse || finished.Status != metav1.ConditionTrue {
		t.Errorf("conditions are %s", data)
	}
	if finished.Reason != "JobFailed" || len(finished.Message) > maxMessage || !strings.HasSuffix(finished.Message, "é...") {
		t.Errorf("Finished is %s: %s", finished.Reason, finished.Message)
	}
	if u.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("the cached unit was changed")
	}
}

func TestOursAndMarked(t *testing.T) {
	kind := Kind{MarkedBySuspend: true, ManagedBy: "own/operator"}
	byAnnotation := Kind{ManagedBy: "own/operator"}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Thing", Name: "t", Controller: ptr.To(true)}}
	helper := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Thing", Name: "t"}}
	tests := []struct {
		name           string
		kind           Kind
		meta           metav1.ObjectMeta
		sight          Sight
		ours, isMarked bool
	}{
		{"a suspended job of a kind marked by it", kind, metav1.ObjectMeta{}, Sight{Suspended: true}, true, true},
		{"the same without suspend", kind, metav1.ObjectMeta{}, Sight{}, true, false},
		{"a suspended job of a kind marked by annotation", byAnnotation, metav1.ObjectMeta{}, Sight{Suspended: true}, true, false},
		{"an annotation", byAnnotation, metav1.ObjectMeta{Annotations: map[string]string{SuspendAnnotation: "true"}}, Sight{}, true, true},
		{"an annotation that says no", kind, metav1.ObjectMeta{Annotations: map[string]string{SuspendAnnotation: "false"}}, Sight{Suspended: true}, true, false},
		{"a job of another queue", kind, metav1.ObjectMeta{Labels: map[string]string{KueueLabel: ""}}, Sight{Suspended: true}, false, true},
		{"a job of another operator", kind, metav1.ObjectMeta{}, Sight{Suspended: true, ManagedBy: "another"}, false, true},
		{"a job that names its own operator", kind, metav1.ObjectMeta{}, Sight{Suspended: true, ManagedBy: "own/operator"}, true, true},
		{"a part of a larger job", kind, metav1.ObjectMeta{OwnerReferences: owner}, Sight{Suspended: true}, false, true},
		{"a job that somebody owns but does not control", kind, metav1.ObjectMeta{OwnerReferences: helper}, Sight{Suspended: true}, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := &batchv1.Job{ObjectMeta: test.meta}
			if why := foreign(test.kind, object, test.sight); (why == "") != test.ours {
				t.Errorf("foreign: %q", why)
			}
			if got := marked(test.kind, object, test.sight); got != test.isMarked {
				t.Errorf("marked: %v", got)
			}
		})
	}
}

func TestMemoryAwaitsWhatWasWritten(t *testing.T) {
	key := types.NamespacedName{Name: "a"}
	tests := []struct {
		name      string
		await     awaited
		job, unit string
		uid       types.UID
		later     time.Duration
		waits     bool
	}{
		{"nothing", awaited{}, "1", "1", "u", 0, false},
		{"an older job", awaited{job: version{value: "10"}}, "9", "", "", 0, true},
		{"the job as written", awaited{job: version{value: "10"}}, "10", "", "", 0, false},
		{"a newer job", awaited{job: version{value: "10"}}, "11", "", "", 0, false},
		{"the job that met a conflict", awaited{job: version{value: "10", pass: true}}, "10", "", "", 0, true},
		{"a unit not seen yet", awaited{unit: version{value: "10"}}, "1", "", "", 0, true},
		{"a unit not seen for long, so it is gone again", awaited{unit: version{value: "10"}}, "1", "", "", catchUp, false},
		{"a deleted unit that still shows", awaited{deleted: "u"}, "1", "1", "u", 0, true},
		{"another unit in its place", awaited{deleted: "u"}, "1", "1", "v", 0, false},
		{"versions that are no numbers", awaited{job: version{value: "a"}}, "b", "", "", 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newMemory()
			m.await(key, noon, func(a *awaited) { *a = test.await })
			if wait := m.behind(key, test.job, test.unit, test.uid, noon.Add(test.later)); (wait > 0) != test.waits {
				t.Errorf("it waits %v", wait)
			}
		})
	}
}

package reconciler

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
)

var queuedKey = types.NamespacedName{Namespace: "n", Name: "a"}

// changingJob is the reconciler of a held job that its owner changes repeatedly.
type changingJob struct {
	*reconciler
	clock *clocktesting.FakeClock
	job   *batchv1.Job
}

func newChangingJob(t *testing.T) *changingJob {
	t.Helper()
	f := frameworkOf(t, Options{Adapters: []framework.Adapter{job.New()}})
	held := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: queuedKey.Namespace, Name: queuedKey.Name, UID: "j", ResourceVersion: "1",
		Annotations: map[string]string{wellknown.SuspendAnnotation: "true"}}, Spec: batchv1.JobSpec{Suspend: new(true), Parallelism: new(int32(0))}}
	r := &changingJob{reconciler: f.reconcilers[0], clock: f.Clock.(*clocktesting.FakeClock), job: held}
	cached(t, r.cached, held)
	return r
}

func (r *changingJob) unit() *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: queuedKey.Namespace, Name: decision.UnitName("Job", "a", "j"), UID: "u", ResourceVersion: "2"},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "j"}}}
}

func (r *changingJob) next(unit *v1alpha1.QueueUnit) decision.Decision {
	_, decided, _ := r.decide(queuedKey, r.job, unit, r.clock.Now())
	return decided
}

func TestTheUnitOfAJobThatLeavesAndEntersTheQueueAgainAndAgainIsCreatedRarely(t *testing.T) {
	r := newChangingJob(t)
	var created []time.Duration
	for range 3600 {
		switch decided := r.next(nil); {
		case decided.Action == decision.CreateUnit:
			created = append(created, r.clock.Now().Sub(noon))
			r.unitGone(r.unit())
		case decided.Action != decision.Nothing || decided.After <= 0:
			t.Fatalf("the decision is %+v", decided)
		}
		r.clock.Step(time.Second)
	}
	if first := created[:min(len(created), 10)]; !slices.Equal(first, seconds(10)) {
		t.Errorf("the first units are created after %v", first)
	}
	if len(created) > 50 {
		t.Errorf("in an hour %d units are created", len(created))
	}
	r.clock.Step(answering.Max + answering.Quiet)
	r.next(nil)
	if len(r.memory.answers.all()) != 0 {
		t.Error("it is remembered forever")
	}
}

func TestTheOwnerOfAJobThatIsQueuedAgainLaterIsToldWhen(t *testing.T) {
	for released, action := range map[string]decision.Action{"": decision.CreateUnit, "1": decision.ForgetRelease} {
		r, said := newChangingJob(t), &spoken{}
		r.Events = said
		if released != "" {
			r.job.Annotations[wellknown.ReleasedAnnotation] = released
		}
		if decided := r.next(nil); decided.Action != action {
			t.Fatalf("the decision is %+v", decided)
		}
		for range 100 {
			r.memory.answered("j", r.clock.Now())
		}
		for _, want := range []string{"12:02:00Z", "12:02:00Z", "12:04:00Z"} { // two minutes after the last answer
			if want == "12:04:00Z" {
				r.memory.answered("j", r.clock.Now())
			}
			o, decided, err := r.decide(queuedKey, r.job, nil, r.clock.Now())
			if err != nil || decided.Action != decision.Nothing {
				t.Fatal(decided, err)
			}
			r.explain(t.Context(), o, decided)
			if says := said.says(); !strings.HasPrefix(says, "Queued The job is queued again at 2026-01-02T"+want) || said.kept.Revision != said.kept.Message {
				t.Errorf("%s: the event is %+v", action, said.kept)
			}
			r.clock.Step(time.Minute)
		}
	}
}

func seconds(n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(i) * time.Second
	}
	return all
}

func TestAJobThatWasUnsuspendedOftenIsStillSuspendedAtOnce(t *testing.T) {
	r := newChangingJob(t)
	for range 100 {
		r.memory.answered("j", r.clock.Now())
	}
	unit := r.unit()
	unit.Spec.Priority = 7
	if decided := r.next(unit); decided.Action != decision.Nothing || decided.After != answering.Max {
		t.Errorf("the spec of its unit is not updated later, but %+v", decided)
	}
	r.job.Spec.Suspend = new(false)
	if decided := r.next(unit); decided.Action != decision.HoldAgain {
		t.Errorf("it is not suspended at once, but %+v", decided)
	}
}

func TestTheUnitsOfDeletedJobsAreNotRemembered(t *testing.T) {
	r := newChangingJob(t)
	for _, other := range []string{"its job is gone", "its job has another UID"} {
		unit := r.unit()
		if other == "its job is gone" {
			unit.Spec.ConsumerRef.Name = "gone"
		} else {
			unit.Spec.ConsumerRef.UID = "former"
		}
		r.unitGone(unit)
		if len(r.memory.answers.all()) != 0 {
			t.Errorf("%s, but it counts", other)
		}
	}
	r.unitGone(r.unit())
	if len(r.memory.answers.all()) != 1 {
		t.Error("the unit of a job that exists does not count")
	}
	r.jobGone(r.job)
	if len(r.memory.answers.all()) != 0 {
		t.Error("it is remembered after its job is gone")
	}
}

func TestAnInvalidChangeIsReportedOnceUntilItChanges(t *testing.T) {
	r, got := newChangingJob(t), &spoken{}
	r.Events = got
	unit := r.unit()
	unit.Status.Phase = v1alpha1.PhaseRunning
	r.job.Annotations[wellknown.SuspendAnnotation] = "false"
	r.job.Spec.Suspend = new(false)
	for _, value := range []string{"soon", "soon", "later", "60", "later"} {
		r.job.Annotations[wellknown.MaxExecTimeAnnotation] = value
		for range 3 {
			o, _, _ := r.decide(queuedKey, r.job, unit, noon)
			r.recordUnreadable(o)
		}
	}
	if len(got.repeated) != 3 {
		t.Errorf("it was reported %d times: %+v", len(got.repeated), got.repeated)
	}
	for _, e := range got.repeated {
		if e.Name() != got.repeated[0].Name() {
			t.Errorf("event %s is another one than %s", e.Name(), got.repeated[0].Name())
		}
	}
}

// Only the controller decides what an admitted unit is charged.
func TestAnAdmittedUnitWhoseJobIsDeactivatedAndEnlargedKeepsItsRequest(t *testing.T) {
	var patch struct{ Spec map[string]any }
	config := jsonServer(t, func(req *http.Request) any {
		if err := json.NewDecoder(req.Body).Decode(&patch); err != nil {
			t.Error(err)
		}
		return waitingUnit("")
	})
	r := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New()}}).reconcilers[0]
	object, unit := marked(), waitingUnit("")
	object.Annotations[wellknown.ActiveAnnotation], object.Spec.Parallelism = "false", new(int32(1000))
	unit.Status.Phase = v1alpha1.PhaseDequeued
	o, decided, err := r.decide(queuedKey, object, unit, noon)
	if err != nil || decided.Action != decision.UpdateSpec {
		t.Fatalf("the decision is %+v (%v)", decided, err)
	}
	if _, err := r.act(t.Context(), o, decided.Action); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"active": false, "maximumExecutionTimeSeconds": nil}; !maps.Equal(patch.Spec, want) {
		t.Errorf("its spec is patched with %v", patch.Spec)
	}
}

package reconciler

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
)

// The webhook of an operator is unreachable, so the API server answers every change of its jobs with 500.
func TestAJobThatCannotBeReleasedIsReportedAndGivesItsQuotaBack(t *testing.T) {
	var given []string
	config := jsonServer(t, func(req *http.Request) any {
		switch {
		case req.Method == http.MethodGet:
			live := marked()
			live.APIVersion, live.Kind = "batch/v1", "Job"
			return live
		case strings.Contains(req.URL.Path, "/queueunits/"):
			body, _ := io.ReadAll(req.Body)
			given = append(given, string(body))
			return &v1alpha1.QueueUnit{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit"},
				ObjectMeta: metav1.ObjectMeta{Namespace: queuedKey.Namespace, ResourceVersion: "9"}}
		default:
			return apierrors.NewInternalError(errors.New(`failed calling webhook "x"`))
		}
	})
	said := &spoken{}
	r := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New()}, Events: said}).reconcilers[0]
	clock := r.Clock.(*clocktesting.FakeClock)
	held := marked()
	cached(t, r.cached, held)
	o, decided, err := r.decide(queuedKey, held, nil, noon)
	if err != nil || decided.Action != decision.CreateUnit {
		t.Fatalf("decided is %+v, %v", decided, err)
	}
	unit := newUnit(r.servedKind(), o)
	unit.UID, unit.ResourceVersion, unit.Status.Phase, unit.Status.Attempts = "u", "2", v1alpha1.PhaseDequeued, 1
	cached(t, r.units, unit)
	for tries := range 100 {
		turn := r.arrivals.Enter()
		_, err := r.reconcile(t.Context(), turn, queuedKey, clock.Now())
		turn.End()
		since := clock.Since(noon)
		if reported := len(said.repeated) > 0; reported != (since >= 2*time.Second) {
			t.Fatalf("after %v reported is %v", since, said.repeated)
		}
		if len(given) > 0 {
			if since < time.Minute || !strings.Contains(given[0], `"reason":"Stopped"`) || err != nil || r.memory.is(held.UID, isRefused) {
				t.Fatalf("after %v it gives its quota back with %s, %v", since, given[0], err)
			}
			if e := said.repeated[0]; e.Reason != wellknown.EventReleaseRefused || !strings.Contains(e.Message, "failed calling webhook") {
				t.Errorf("reported is %+v", e)
			}
			return
		}
		if err == nil || tries == 99 {
			t.Fatalf("after %v it does not give its quota back: %v", since, err)
		}
		clock.Step(time.Second)
	}
}

// The same webhook rejects the write before the release, which ends showing that the job is queued.
func TestAJobThatCannotStopShowingThatItIsQueuedGivesItsQuotaBack(t *testing.T) {
	d, said := &deletion{t: t, job: "j", version: "3"}, &spoken{}
	r := d.reconciler(job.New())
	r.Events = said
	unit := waitingUnit("")
	unit.Status.Phase = v1alpha1.PhaseDequeued
	o := &observation{key: queuedKey, job: marked(), unit: unit, now: noon}
	refusal := apierrors.NewInternalError(errors.New(`failed calling webhook "x"`))
	for range 2 {
		_, _ = r.record(t.Context(), o, decision.Decision{Action: decision.HideQueuing}, false, refusal)
		r.Clock.(*clocktesting.FakeClock).Step(giveBackAfter)
	}
	if len(said.repeated) != 1 || said.repeated[0].Reason != wellknown.EventReleaseRefused || !slices.Equal(d.patches, []string{" : Stopped"}) {
		t.Errorf("the events are %+v, and the unit is patched with %q", said.repeated, d.patches)
	}
}

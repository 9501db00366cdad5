package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/test/require"
)

func explaining(t *testing.T) (*reconciler, *spoken) {
	t.Helper()
	said := &spoken{}
	f := frameworkOf(t, Options{Adapters: []framework.Adapter{job.New()}, Events: said})
	f.kueue.asked.Store(noon.UnixNano()) // the API server serves Kueue
	return f.reconcilers[0], said
}

// explained decides about the job as a step does, and returns when to check again.
func (r *reconciler) explained(t *testing.T, object *batchv1.Job, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	t.Helper()
	o, decided, err := r.decide(queuedKey, object, unit, now)
	if err != nil || o == nil {
		t.Fatal(o, err)
	}
	return r.explain(t.Context(), o, decided)
}

func marked() *batchv1.Job { return jobWith(map[string]string{wellknown.SuspendAnnotation: "true"}) }

func waitingUnit(reason wellknown.Reason) *v1alpha1.QueueUnit {
	unit := (&changingJob{}).unit()
	unit.Status.Phase, unit.Status.Reason = v1alpha1.PhaseEnqueued, reason
	return unit
}

func TestAJobThatIsHeldWithoutAUnitIsNotified(t *testing.T) {
	labelled := map[string]string{wellknown.KueueLabel: "q"}
	owned := []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "o", UID: "o", Controller: new(true)}}
	for _, test := range []struct {
		name    string
		change  func(*batchv1.Job)
		missing bool // Kueue
		says    string
	}{
		{"one of Kueue, which is missing", func(j *batchv1.Job) { j.Labels = labelled }, true, "KueueNotInstalled Not queued: label kueue.x-k8s.io/queue-name"},
		{"one of Kueue, which is missing, that runs", func(j *batchv1.Job) { j.Labels, j.Spec.Suspend = labelled, nil }, true, "KueueNotInstalled Not queued, and it runs without quota: label kueue.x-k8s.io/queue-name"},
		{"one of Kueue, which is there", func(j *batchv1.Job) { j.Labels = labelled }, false, ""},
		{"a part of one of Kueue", func(j *batchv1.Job) { j.Labels, j.OwnerReferences = labelled, owned }, true, ""},
		{"one of Kueue that has ended", func(j *batchv1.Job) {
			j.Labels = labelled
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		}, true, ""},
		{"one of Kueue that nobody held", func(j *batchv1.Job) { j.Labels, j.Annotations, j.Spec.Suspend = labelled, nil, nil }, true, ""},
		{"one whose annotation is misspelled", func(j *batchv1.Job) { j.Annotations[wellknown.SuspendAnnotation], j.Spec.Suspend = "True", nil }, false,
			`NotQueued Not queued: annotation scheduling.x-k8s.io/suspend is "True", which means "false"; only "true" queues the job`},
		{"one whose annotation is misspelled, suspended", func(j *batchv1.Job) { j.Annotations[wellknown.SuspendAnnotation] = "yes" }, false, `NotQueued Not queued: annotation scheduling.x-k8s.io/suspend is "yes"`},
		{"one whose mark has another key", func(j *batchv1.Job) {
			j.Annotations, j.Spec.Suspend = map[string]string{"scheduling.x-k8s.io/suspended": "true"}, nil
		}, false,
			"NotQueued Not queued: annotation scheduling.x-k8s.io/suspended has no effect; did you mean annotation scheduling.x-k8s.io/suspend?"},
		{"one whose mark is a label", func(j *batchv1.Job) {
			j.Annotations, j.Spec.Suspend, j.Labels = nil, nil, map[string]string{wellknown.SuspendAnnotation: "true"}
		}, false,
			"NotQueued Not queued: label scheduling.x-k8s.io/suspend has no effect; set it as an annotation instead"},
		{"a part of another job whose mark is a label", func(j *batchv1.Job) {
			j.Annotations, j.OwnerReferences, j.Labels = nil, owned, map[string]string{wellknown.SuspendAnnotation: "true"}
		}, false, ""},
		{"one whose mark is a label, and that is suspended, which marks it", func(j *batchv1.Job) {
			j.Annotations, j.Labels = nil, map[string]string{wellknown.SuspendAnnotation: "true"}
		}, false, ""},
		{"one with a misspelled key, that nobody queues", func(j *batchv1.Job) {
			j.Annotations, j.Spec.Suspend = map[string]string{"kube-queue/priorty": "1"}, nil
		}, false, ""},
		{"one that opts out", func(j *batchv1.Job) { j.Annotations[wellknown.SuspendAnnotation] = "false" }, false, ""},
		{"one with bypass", func(j *batchv1.Job) { j.Annotations[wellknown.BypassAnnotation] = "true" }, false, "NotQueued Not queued: annotation kube-queue/bypass"},
		{"one with bypass that runs", func(j *batchv1.Job) { j.Annotations[wellknown.BypassAnnotation], j.Spec.Suspend = "true", nil }, false, ""},
		{"one of another controller", func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/other") }, false, "NotQueued Not queued: managedBy assigns the job to example.com/other"},
		{"a part of another job", func(j *batchv1.Job) { j.OwnerReferences = owned }, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, said := explaining(t)
			r.kueue.missing.Store(test.missing)
			object := marked()
			test.change(object)
			r.explained(t, object, nil, noon)
			if got := said.says(); test.says == "" && got != "" || !strings.HasPrefix(got, test.says) {
				t.Errorf("the event is %q", got)
			}
		})
	}
}

// The creation of the unit may succeed although its request times out. The warning then comes with the unit.
func TestTheOwnerIsWarnedOnceOfAJobWhoseUnitWasCreatedByARequestThatTimedOut(t *testing.T) {
	r, said := explaining(t)
	object := marked()
	step := func(unit *v1alpha1.QueueUnit, want ...string) {
		t.Helper()
		said.written = nil
		o, decided, err := r.decide(queuedKey, object, unit, noon)
		if err != nil || o == nil {
			t.Fatal(o, err)
		}
		if decided.Action != decision.CreateUnit {
			decided.Action = decision.Nothing
		}
		_, err = r.record(t.Context(), o, decided, false, nil)
		require.NoError(t, err)
		var got []string
		for _, e := range said.written {
			got = append(got, string(e.Reason))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are %q, want %q", got, want)
		}
	}
	unit := waitingUnit(wellknown.ReasonQuotaExceeded)
	step(nil)
	step(unit, "NoRequests")
	step(unit)
	pods := &object.Spec.Template.Spec
	pods.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	step(unit)
	pods.Containers = nil
	step(unit, "NoRequests")
	r.memory.forgetJob(object.UID)
	if len(r.memory.warned.all()) != 0 {
		t.Errorf("of a job that is gone it remembers %v", r.memory.warned.all())
	}
}

func TestEachIgnoredKeyOfAQueuedJobIsReportedOnce(t *testing.T) {
	r, said := explaining(t)
	object := marked()
	step := func(unit *v1alpha1.QueueUnit, want ...string) {
		t.Helper()
		said.written = nil
		for range 2 {
			o, _, err := r.decide(queuedKey, object, unit, noon)
			if err != nil || o == nil {
				t.Fatal(o, err)
			}
			r.recordIgnoredKeys(o)
		}
		var got []string
		for _, e := range said.written {
			got = append(got, string(e.Reason)+" "+e.Type+" "+e.Message)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are %q, want %q", got, want)
		}
	}
	step(nil)
	object.Annotations["kube-queue/priorty"] = "7"
	const priority = "annotation kube-queue/priorty has no effect; did you mean annotation scheduling.x-k8s.io/priority?"
	step(nil, "KeyIgnored Warning Ignored: "+priority)
	unit := waitingUnit(wellknown.ReasonQuotaExceeded)
	step(unit)
	object.Labels = map[string]string{wellknown.SuspendAnnotation: "true"}
	step(unit, "KeyIgnored Warning Ignored: "+priority+"; label scheduling.x-k8s.io/suspend has no effect; set it as an annotation instead")
	delete(object.Annotations, "kube-queue/priorty")
	object.Labels = nil
	step(unit)
	if len(r.memory.ignored.all()) != 0 {
		t.Errorf("it remembers %v", r.memory.ignored.all())
	}
	object.Annotations["kube-queue/priorty"] = "7"
	step(unit, "KeyIgnored Warning Ignored: "+priority)
	r.memory.forgetJob(object.UID)
	if len(r.memory.ignored.all()) != 0 {
		t.Errorf("of a job that is gone it remembers %v", r.memory.ignored.all())
	}

	// There is no event on a job in another queue.
	object.Labels = map[string]string{wellknown.KueueLabel: "q"}
	step(nil)
}

func TestTheEventOfAJobThatLeftTheQueueSaysThatItStaysSuspended(t *testing.T) {
	for _, test := range []struct {
		name, says string
		change     func(*batchv1.Job)
	}{
		{"suspended", ": it has no mark; it stays suspended until someone unsuspends it, or queues it with annotation scheduling.x-k8s.io/suspend: \"true\"", func(*batchv1.Job) {}},
		{"running", ": its mark was removed", func(j *batchv1.Job) { j.Spec.Suspend = nil }},
		{"of Kueue", ": label kueue.x-k8s.io/queue-name assigns the job to another queue", func(j *batchv1.Job) { j.Labels = map[string]string{wellknown.KueueLabel: "q"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, said := explaining(t)
			object := jobWith(map[string]string{wellknown.SuspendAnnotation: "false"})
			test.change(object)
			o, _, err := r.decide(queuedKey, object, waitingUnit(wellknown.ReasonQuotaExceeded), noon)
			require.NoError(t, err)
			r.recordLeft(o)
			if len(said.repeated) != 1 || said.repeated[0].Reason != wellknown.EventLeftQueue || !strings.HasSuffix(said.repeated[0].Message, "left the queue"+test.says) {
				t.Errorf("the events are %v", said.repeated)
			}
		})
	}
}

func TestAUnitThatFinalizersKeepIsNamed(t *testing.T) {
	r, said := explaining(t)
	unit := waitingUnit(wellknown.ReasonExceedsMaxQuota)
	unit.DeletionTimestamp, unit.Finalizers = new(metav1.NewTime(noon)), []string{"example.com/keeps"}
	r.explained(t, marked(), unit, noon)
	require.Says(t, "the event", said.says(), "finalizers keep it: example.com/keeps")
}

func TestANewJobIsNotifiedOfAnOutageAfterThreeSecondsAndOthersWhenItIsTheirTurn(t *testing.T) {
	r, said := explaining(t)
	down := &outage{since: "2026", message: "the controller is down"}
	r.controller.now.Store(down)
	silent := waitingUnit("")
	if after := r.explained(t, marked(), silent, noon); after != silentAfter || said.kept != nil {
		t.Errorf("at first it is notified %q, and looked at after %v", said.says(), after)
	}
	r.explained(t, marked(), silent, noon.Add(silentAfter))
	if !strings.HasPrefix(said.says(), "ControllerDown ") {
		t.Errorf("then it is notified %q", said.says())
	}
	r.controller.now.Store(nil)
	r.explained(t, marked(), waitingUnit("QuotaExceeded"), noon.Add(time.Minute))
	if said.kept.Reason != wellknown.EventQueued || !strings.Contains(said.kept.Key, "2026") {
		t.Errorf("afterwards it is notified %q with key %q", said.says(), said.kept.Key)
	}

	r, said = explaining(t)
	r.controller.now.Store(down)
	r.explained(t, marked(), waitingUnit("QuotaExceeded"), noon)
	if said.kept.Reason != wellknown.EventQueued {
		t.Errorf("one that knows what it waits for is notified %q before its turn", said.says())
	}
	r.memory.outages.set("j", notified{queuedKey, down.since})
	r.explained(t, marked(), waitingUnit("QuotaExceeded"), noon)
	if said.kept.Reason != wellknown.EventControllerDown {
		t.Errorf("in its turn it is notified %q", said.says())
	}
	r.controller.now.Store(&outage{since: "2026", absent: true})
	r.explained(t, marked(), waitingUnit("QuotaExceeded"), noon)
	if said.kept.Reason != wellknown.EventQueued {
		t.Errorf("of a controller without a Lease, which writes reasons, it is notified %q", said.says())
	}
	r.memory.forgetJob("j")
	if len(r.memory.outages.all()) != 0 || len(r.memory.began.all()) != 0 {
		t.Error("a job that is gone is remembered")
	}
}

func TestAJobIsNotifiedWhenARunningControllerDoesNotSayWhyItWaits(t *testing.T) {
	r, said := explaining(t)
	for _, step := range []struct{ at, after time.Duration }{{0, silentAfter}, {silentAfter, muteAfter - silentAfter}, {muteAfter, 0}} {
		if after := r.explained(t, marked(), waitingUnit(""), noon.Add(step.at)); after != step.after {
			t.Errorf("after %v it is looked at again after %v", step.at, after)
		}
		if says := strings.Contains(said.says(), "kube-queue-controller has not written why"); says != (step.at == muteAfter) {
			t.Errorf("after %v it is notified %q", step.at, said.says())
		}
	}
	r.explained(t, marked(), waitingUnit("QuotaExceeded"), noon.Add(muteAfter))
	require.Says(t, "the event", said.says(), "is waiting: QuotaExceeded")
}

func TestAJobIsNotifiedWhenNobodyHasToDoAnythingAnyMore(t *testing.T) {
	r, said := explaining(t)
	last, written := "", 0
	for _, test := range []struct {
		reason  wellknown.Reason
		message string
		written bool
	}{
		{wellknown.ReasonQuotaExceeded, "used 3", true},
		{wellknown.ReasonMaxJobs, "used 2", false},
		{wellknown.ReasonQueueStopped, "queue root is stopped", true},
		{wellknown.ReasonQuotaExceeded, "used 4", true},
		{wellknown.ReasonExceedsMaxQuota, "max is 4", true},
		{wellknown.ReasonExceedsMaxQuota, "max is 4", false},
		{wellknown.ReasonExceedsMaxQuota, "max is 5", true},
		{wellknown.ReasonNotAtFront, "another unit is ahead", true},
		{wellknown.ReasonInactive, "spec.active is false", true},
		{wellknown.ReasonBackoff, "later", true},
		{wellknown.ReasonAdmissionCheckPending, "c", false},
	} {
		unit := waitingUnit(test.reason)
		unit.Status.Message = test.message
		r.explained(t, marked(), unit, noon)
		now := said.kept.Name() + "/" + said.kept.Revision
		if got := now != last || written == 0; got != test.written {
			t.Errorf("%s, %s: it is written: %v", test.reason, test.message, got)
		}
		if kind := said.kept.Type == "Warning"; kind != test.reason.NeedsAction() {
			t.Errorf("%s: the event has type %s", test.reason, said.kept.Type)
		}
		last, written = now, written+1
	}
}

func TestOthersAreNotifiedOfAnOutageAFewAtATime(t *testing.T) {
	r, _ := explaining(t)
	f := &Framework{reconcilers: []*reconciler{r}, controller: r.controller}
	for i := range 3 * notifyEach {
		unit := waitingUnit("QuotaExceeded")
		name := fmt.Sprintf("w%d", i)
		unit.Name, unit.Spec.ConsumerRef.Name, unit.Spec.ConsumerRef.UID = name, name, types.UID(name)
		cached(t, r.units, unit)
		object := marked()
		object.Name, object.UID = name, types.UID(name)
		cached(t, r.cached, object)
	}
	cached(t, r.units, waitingUnit(""))
	down := &outage{since: "2026"}
	others := f.notifyNew(down)
	if len(others) != 3*notifyEach || r.queue.Len() != 1 {
		t.Fatalf("%d jobs are notified later, and %d at once", len(others), r.queue.Len())
	}
	others = f.notifySome(others, down)
	if len(others) != 2*notifyEach || r.queue.Len() != 1+notifyEach || len(r.memory.outages.all()) != notifyEach {
		t.Errorf("then %d are left, %d are queued, and %d were notified", len(others), r.queue.Len(), len(r.memory.outages.all()))
	}
	back := f.notifyNew(nil)
	if len(back) != notifyEach {
		t.Errorf("of its end %d are notified", len(back))
	}
	require.NoError(t, r.cached.GetIndexer().Replace(nil, ""))
	if f.notifySome(back, nil); len(r.memory.outages.all()) != 0 {
		t.Errorf("remembered are %v, which are gone", r.memory.outages.all())
	}
	if absent := f.notifyNew(&outage{since: "absent", absent: true}); len(absent) != 0 {
		t.Errorf("without a Lease %d are notified that know what they wait for", len(absent))
	}
}

func TestARefusalIsReportedInTheWordsOfTheAPIServer(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	forbidden, broken := apierrors.NewForbidden(jobs, "a", errors.New("the policy says no")), apierrors.NewInternalError(errors.New("the policy says no"))
	silent := fmt.Errorf("patching a: %w", &url.Error{Op: "Patch", URL: "a", Err: context.DeadlineExceeded})
	const says, noAnswer = "the policy says no", "the API server did not answer in time"
	for _, test := range []struct {
		action decision.Action
		err    error
		lasts  time.Duration
		reason wellknown.EventReason
		says   string
	}{
		{decision.Release, forbidden, 0, wellknown.EventReleaseRefused, says},
		{decision.Release, apierrors.NewConflict(jobs, "a", errors.New("changed")), 0, "", ""},
		{decision.Release, apierrors.NewConflict(jobs, "a", errors.New(`admission webhook "w" denied the request: no`)), refusedAfter, wellknown.EventReleaseRefused, "denied the request"},
		{decision.Release, errors.New("no answer"), time.Minute, "", ""},
		{decision.Release, broken, refusedAfter - 1, "", ""},
		{decision.Release, silent, refusedAfter, wellknown.EventReleaseRefused, noAnswer},
		{decision.Evict, broken, refusedAfter, wellknown.EventSuspendRefused, says},
		{decision.HoldAgain, forbidden, 0, wellknown.EventSuspendRefused, says},
		{decision.HoldLate, forbidden, 0, wellknown.EventSuspendRefused, says},
		{decision.MarkRunning, forbidden, 0, "", ""},
		{decision.CreateUnit, broken, refusedAfter - 1, "", ""},
		{decision.CreateUnit, broken, refusedAfter, wellknown.EventUnitRefused, "or webhook that refuses it: Internal error occurred: the policy says no"},
		{decision.CreateUnit, silent, refusedAfter, wellknown.EventUnitRefused, noAnswer},
		{decision.RestoreUnit, forbidden, 0, wellknown.EventUnitRefused, "The job runs, but"},
		{decision.ForgetRelease, forbidden, 0, wellknown.EventUnitRefused, "remove its annotation kube-queue/released"},
	} {
		r, said := explaining(t)
		o := &observation{key: queuedKey, job: marked(), unit: waitingUnit("")}
		switch test.action {
		case decision.CreateUnit, decision.RestoreUnit, decision.ForgetRelease:
			o.unit = nil
		}
		r.recordRefusal(o, test.action, test.lasts, test.err)
		switch {
		case test.reason == "" && len(said.repeated) > 0:
			t.Errorf("%s, %v: it is reported: %v", test.action, test.err, said.repeated)
		case test.reason != "" && (len(said.repeated) != 1 || said.repeated[0].Reason != test.reason || !strings.Contains(said.repeated[0].Message, test.says)):
			t.Errorf("%s, %v: reported is %v", test.action, test.err, said.repeated)
		}
	}
}

func TestAWebhookThatDoesNotRespondRefusesAsLongAsItDoesNot(t *testing.T) {
	r, _ := explaining(t)
	o := &observation{key: queuedKey, job: marked(), now: noon}
	silent := fmt.Errorf("patching a: %w", &url.Error{Op: "Patch", URL: "a", Err: context.DeadlineExceeded})
	r.refusedFor(o, silent)
	r.Clock.(*clocktesting.FakeClock).Step(giveBackAfter)
	if lasts := r.refusedFor(o, silent); lasts != giveBackAfter {
		t.Errorf("it lasts %v", lasts)
	}
}

func TestARefusalOfGrowthIsReported(t *testing.T) {
	r, said := explaining(t)
	o := &observation{key: queuedKey, job: marked(), unit: waitingUnit("")}
	r.recordGrowthRefusal(o, nil)
	r.recordGrowthRefusal(o, errors.New("no answer"))
	r.recordGrowthRefusal(o, failed([]error{nil, fmt.Errorf("creating a unit: %w", apierrors.NewForbidden(v1alpha1.Resource("queueunits"), "a", errors.New("the quota is full")))}))
	if len(said.repeated) != 1 || said.repeated[0].Reason != wellknown.EventUnitRefused || !strings.HasSuffix(said.repeated[0].Message, "the quota is full") {
		t.Errorf("reported is %v", said.repeated)
	}
}

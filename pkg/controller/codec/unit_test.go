package codec

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

func unitObject(change func(*schedulingv1alpha1.QueueUnit)) *schedulingv1alpha1.QueueUnit {
	unit := &schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "u", UID: "uid", ResourceVersion: "12",
			CreationTimestamp: metav1.Unix(100, 0)},
	}
	change(unit)
	return unit
}

func newTestReader(names *resources.Names) Reader {
	return Reader{Kinds: &Kinds{}, Demand: func(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) { return Requests(names, unit) }}
}

// read reads a unit from its compacted form, which must be enough.
func read(t *testing.T, change func(*schedulingv1alpha1.QueueUnit)) scheduler.Unit {
	t.Helper()
	compact, err := Compactor{}.compact(unitObject(change))
	require.NoError(t, err)
	u, err := newTestReader(resources.NewNames()).Read(compact.(*schedulingv1alpha1.QueueUnit))
	require.NoError(t, err)
	return u
}

// Anyone may create a unit for a kind that is not queued, with any submissionTime.
func TestAUnitThatWasCreatedByHandWaitsFromItsCreationAndIsRenewed(t *testing.T) {
	early, late, renewed := metav1.NewMicroTime(time.Unix(1, 0)), metav1.NewMicroTime(time.Unix(200, 0)), metav1.NewMicroTime(time.Unix(300, 0))
	for _, c := range []struct {
		apiVersion, kind string
		submitted        *metav1.MicroTime
		want             int64
		byHand           bool
	}{
		{"batch/v1", "Job", &early, 1, false},
		{"batch/v1", "Job", nil, 100, false},
		{"kubeflow.org/v9", "TFJob", &early, 1, false},
		{"example.com/v1", "Job", &early, 100, true},
		{"batch/v1", "CronJob", &early, 100, true},
		{"v1", "Pod", &early, 1, false},
		{"v1", "ConfigMap", &early, 100, true},
		{"example.com/v1", "Thing", &late, 200, true},
		{"example.com/v1", "Thing", nil, 100, true},
	} {
		for _, timeout := range []time.Duration{0, time.Hour} {
			reader := newTestReader(resources.NewNames())
			reader.Renewal.Timeout = timeout
			u, err := reader.ReadComplete(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
				u.Spec.ConsumerRef, u.Spec.SubmissionTime = schedulingv1alpha1.ConsumerReference{APIVersion: c.apiVersion, Kind: c.kind, Name: "n"}, c.submitted
				u.Status.RenewTime = &renewed
			}))
			if err != nil || u.Submitted != c.want*1e6 {
				t.Errorf("%s %s, submitted %v: %d (%v), not %d s", c.apiVersion, c.kind, c.submitted, u.Submitted, err, c.want)
			}
			if limited := u.Renewal != nil; limited != (c.byHand && timeout > 0) || limited && (u.Renewal.Timeout != timeout || !u.Renewal.At.Equal(renewed.Time)) {
				t.Errorf("%s %s, timeout %v: %+v", c.apiVersion, c.kind, timeout, u.Renewal)
			}
		}
	}
}

// Its owner could otherwise keep borrowed quota forever.
func TestAUnitThatWasCreatedByHandCanBeEvicted(t *testing.T) {
	for kind, byHand := range map[string]bool{"Job": false, "Thing": true} {
		reader := newTestReader(resources.NewNames())
		reader.Renewal.Timeout = time.Hour
		u, err := reader.ReadComplete(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.ConsumerRef, u.Spec.Unstoppable = schedulingv1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: kind, Name: "n"}, "it continues"
			u.Status.Phase, u.Status.RenewTime = schedulingv1alpha1.PhaseRunning, &metav1.MicroTime{Time: time.Unix(300, 0)}
			u.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue,
				Reason: string(wellknown.ReasonPreempted), LastTransitionTime: metav1.Unix(200, 0)}}
		}))
		require.NoError(t, err)
		if u.Unstoppable == byHand || byHand && !u.Renewal.At.Equal(time.Unix(200, 0)) {
			t.Errorf("%s: unstoppable %t, renewal %+v", kind, u.Unstoppable, u.Renewal)
		}
	}
}

func TestAUnitShowsWhenItsEvictionEnded(t *testing.T) {
	u := read(t, func(u *schedulingv1alpha1.QueueUnit) {
		u.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionFalse,
			Reason: string(wellknown.ReasonRequeued), LastTransitionTime: metav1.Unix(200, 0)}}
	})
	if u.Evicted || !u.Eviction.At.Equal(time.Unix(200, 0)) {
		t.Errorf("evicted %t, %+v", u.Evicted, u.Eviction)
	}
}

func TestAUnitThatReplacesALostOneIsReadWithTheAttemptOfItsJob(t *testing.T) {
	read := func(apiVersion string, phase schedulingv1alpha1.QueueUnitPhase, attempts int32) scheduler.Unit {
		u, err := newTestReader(resources.NewNames()).ReadComplete(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Annotations = map[string]string{wellknown.ReleasedAnnotation: "3", "a": "b"}
			u.Spec.ConsumerRef = schedulingv1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: "Job", Name: "n", UID: "job"}
			u.Status.Phase, u.Status.Attempts = phase, attempts
		}))
		require.NoError(t, err)
		return u
	}
	if u := read("batch/v1", schedulingv1alpha1.PhaseEnqueued, 0); !u.Restored || u.Attempts != 2 || u.Owner != "job" {
		t.Errorf("%+v", u)
	}
	if u := read("batch/v1", schedulingv1alpha1.PhaseRunning, 3); u.Restored || u.Attempts != 3 {
		t.Errorf("%+v", u)
	}
	if u := read("batch/v1", schedulingv1alpha1.PhaseBackoff, 3); u.Restored || u.Attempts != 3 {
		t.Errorf("%+v", u)
	}
	if u := read("example.com/v1", "", 0); u.Restored || u.Attempts != 0 {
		t.Errorf("created by hand: %+v", u)
	}
}

func TestTheJobOfAUnitIsIdentifiedForItsPods(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, owner, label string }{
		{"batch/v1", "Job", "u", ""},
		{"ray.io/v1", "RayCluster", "u", "ray.io/cluster=n"},
		{"v1", "Pod", "u", ""},
		{"kube-queue.dev/v1", "PodGroup", "kube-queue/pod-group=n", ""},
	} {
		ref := schedulingv1alpha1.ConsumerReference{APIVersion: c.apiVersion, Kind: c.kind, Name: "n", UID: "u"}
		u, err := newTestReader(resources.NewNames()).ReadComplete(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.ConsumerRef, u.Status.Phase = ref, schedulingv1alpha1.PhaseRunning
		}))
		if err != nil || u.Owner != c.owner || u.Label != c.label {
			t.Errorf("%s: %q with label %q (%v), want %q and %q", c.kind, u.Owner, u.Label, err, c.owner, c.label)
		}
	}
}

// A unit in backoff can show another reason for a while, and then is not in phase Backoff.
func TestABackoffIsReadInEachPhase(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(500, 0))
	for _, phase := range []schedulingv1alpha1.QueueUnitPhase{"", schedulingv1alpha1.PhaseEnqueued, schedulingv1alpha1.PhaseBackoff, schedulingv1alpha1.PhaseRunning} {
		unit := Compactor{}.unit(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase, u.Status.RequeueState = phase, &schedulingv1alpha1.RequeueState{Count: 4, RequeueAt: &at}
		}))
		got, err := newTestReader(resources.NewNames()).Read(unit)
		if err != nil || got.Requeues != 4 || !got.RequeueAt.Equal(at.Time) {
			t.Errorf("phase %q: it was requeued %d times, until %v (%v)", phase, got.Requeues, got.RequeueAt, err)
		}
	}
}

func TestAUnitInBackoffIsReadWithTheCause(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(500, 0))
	for reason, want := range map[wellknown.Reason]string{wellknown.ReasonBackoff: "Backoff: a check failed", wellknown.ReasonInactive: ""} {
		unit := Compactor{}.unit(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.RequeueState = &schedulingv1alpha1.RequeueState{Count: 1, RequeueAt: &at}
			u.Status.Reason, u.Status.Message = reason, "a check failed"
		}))
		u, err := newTestReader(resources.NewNames()).Read(unit)
		got := ""
		if u.Backoff != nil {
			got = string(u.Backoff.Reason) + ": " + u.Backoff.Message()
		}
		if err != nil || got != want {
			t.Errorf("reason %s is read as %q (%v), want %q", reason, got, err, want)
		}
	}
}

func TestReadingAUnit(t *testing.T) {
	evicted := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: reason}}
	}
	for _, c := range []struct {
		name     string
		change   func(*schedulingv1alpha1.QueueUnit)
		phase    scheduler.Phase
		held     wellknown.Reason
		reported bool
		stopped  bool
		evicted  bool
	}{
		{"an absent phase reads as Enqueued", func(*schedulingv1alpha1.QueueUnit) {}, scheduler.Waiting, "", false, false, false},
		{"an unknown phase waits", func(u *schedulingv1alpha1.QueueUnit) { u.Status.Phase = "Nonsense" }, scheduler.Waiting, "", false, false, false},
		{"an inactive unit is held", func(u *schedulingv1alpha1.QueueUnit) { u.Spec.Active = ptr.To(false) }, scheduler.Waiting, wellknown.ReasonInactive, false, false, false},
		{"an invalid request is reported by job-extensions", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Active = ptr.To(false)
			u.Status.Reason, u.Status.Message, u.Status.Quota = "InvalidRequest", "wrong", "root/a"
		}, scheduler.Waiting, wellknown.ReasonInvalidRequest, true, false, false},
		{"an invalid request that job-extensions reported without the queue is reported again", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Active = ptr.To(false)
			u.Status.Reason, u.Status.Message = "InvalidRequest", "wrong"
		}, scheduler.Waiting, wellknown.ReasonInvalidRequest, false, false, false},
		{"nobody else reports what was wrong with an inactive unit made by hand", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Active, u.Spec.ConsumerRef.APIVersion, u.Spec.ConsumerRef.Kind = ptr.To(false), "example.com/v1", "Thing"
			u.Status.Reason, u.Status.Message, u.Status.Quota = "InvalidRequest", "wrong", "root/a"
		}, scheduler.Waiting, wellknown.ReasonInactive, false, false, false},
		{"an inactive unit with an invalid request is held as inactive, or job-extensions would remove the reason again and again", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Active, u.Spec.Resource = ptr.To(false), map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("-1")}
		}, scheduler.Waiting, wellknown.ReasonInactive, false, false, false},
		{"a negative request is invalid", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Resource = map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("-1")}
		}, scheduler.Waiting, wellknown.ReasonInvalidRequest, false, false, false},
		{"an overflowing request is invalid", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Resource = map[corev1.ResourceName]resource.Quantity{"memory": resource.MustParse("1e30")}
		}, scheduler.Waiting, wellknown.ReasonInvalidRequest, false, false, false},
		{"max-jobs cannot be requested", func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Resource = map[corev1.ResourceName]resource.Quantity{quota.JobsResource: resource.MustParse("0")}
		}, scheduler.Waiting, wellknown.ReasonInvalidRequest, false, false, false},
		{"a stopped unit gives its quota back", func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase, u.Status.Conditions = "Running", evicted(string(wellknown.ReasonStopped))
		}, scheduler.Running, "", false, true, false},
		{"one suspended by hand stays out as well", func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase, u.Status.Conditions = "Running", evicted(string(wellknown.ReasonSuspendedByUser))
		}, scheduler.Running, wellknown.ReasonSuspendedByUser, false, true, false},
		{"one whose queue is drained keeps its quota for now", func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase, u.Status.Conditions = "Running", evicted(string(wellknown.ReasonQueueStopped))
		}, scheduler.Running, "", false, false, true},
		{"one that is being evicted keeps its quota", func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase, u.Status.Conditions = "Running", evicted("Preempted")
		}, scheduler.Running, "", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := read(t, c.change)
			var held wellknown.Reason
			if u.Held != nil {
				held = u.Held.Reason
			}
			if u.Phase != c.phase || held != c.held || u.HeldReported != c.reported || u.Stopped != c.stopped || u.Evicted != c.evicted {
				t.Errorf("phase %v held %q reported %t stopped %t evicted %t", u.Phase, held, u.HeldReported, u.Stopped, u.Evicted)
			}
			if u.Version != 12 || u.Key != "a/u" || u.Submitted != 100_000_000 {
				t.Errorf("version %d, key %s, submitted %d", u.Version, u.Key, u.Submitted)
			}
		})
	}
}

func TestWhatEndsARunIsReadFromTheUnit(t *testing.T) {
	released := time.Unix(200, 5000)
	u := read(t, func(u *schedulingv1alpha1.QueueUnit) {
		u.Spec.Active, u.Spec.MaximumExecutionTimeSeconds = ptr.To(false), ptr.To[int32](90)
		u.Status.Phase, u.Status.Quota, u.Status.DequeueTime = "Running", "root/a", &metav1.MicroTime{Time: released}
		u.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue,
			Reason: string(wellknown.ReasonStopped), Message: "the job exceeded its maximum execution time"}}
	})
	if !u.Inactive || u.MaxSeconds != 90 || !u.DequeuedAt.Equal(released) {
		t.Errorf("inactive %t, may run for %d s, released %v", u.Inactive, u.MaxSeconds, u.DequeuedAt)
	}
	if u.Quota != "root/a" { // it stays charged there even if the group is gone
		t.Errorf("it holds quota of %q", u.Quota)
	}
	// Once requeued, it reports both why it was stopped and what to do.
	if says := u.Held.Message(); !strings.HasPrefix(says, "the job exceeded its maximum execution time; spec.active is false; run kubectl kube-queue unpause, or set annotation ") {
		t.Errorf("it says %q", says)
	}
}

func TestWhatAUnitShowsOfItsPodsIsRead(t *testing.T) {
	for _, c := range []struct {
		condition              string
		phase                  schedulingv1alpha1.QueueUnitPhase
		status                 metav1.ConditionStatus
		unscheduled, overQuota bool
	}{
		{wellknown.ConditionPodsScheduled, "Running", metav1.ConditionFalse, true, false},
		{wellknown.ConditionPodsScheduled, "Dequeued", metav1.ConditionFalse, true, false},
		{wellknown.ConditionPodsScheduled, "Enqueued", metav1.ConditionFalse, false, false},
		{wellknown.ConditionOverQuota, "Running", metav1.ConditionTrue, false, true},
		{wellknown.ConditionOverQuota, "Dequeued", metav1.ConditionTrue, false, true},
		{wellknown.ConditionOverQuota, "Running", metav1.ConditionFalse, false, false},
		{wellknown.ConditionOverQuota, "Enqueued", metav1.ConditionTrue, false, false},
	} {
		u := read(t, func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Phase = c.phase
			u.Status.Conditions = []metav1.Condition{{Type: c.condition, Status: c.status, Reason: "PodsUnschedulable", Message: "m"}}
		})
		if u.Unscheduled != c.unscheduled || u.OverQuota != c.overQuota {
			t.Errorf("%+v: Unscheduled is %t, OverQuota is %t", c, u.Unscheduled, u.OverQuota)
		}
	}
}

func TestAUnitWhosePodsRemainIsOver(t *testing.T) {
	u, err := newTestReader(resources.NewNames()).Read(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
		u.Spec.Active, u.Spec.MaximumExecutionTimeSeconds = ptr.To(false), ptr.To[int32](90)
		u.Status.Phase, u.Status.Reason = "Running", wellknown.ReasonPodsRemain
	}))
	require.NoError(t, err)
	if !u.Over || u.Evicted {
		t.Errorf("over %t, evicted %t", u.Over, u.Evicted)
	}
}

func TestAUnitWhosePodsRemainIsChargedAsAJobAndItsPods(t *testing.T) {
	names := resources.NewNames()
	jobs := resources.Vector(nil).With(names.ID(quota.JobsResource), 1)
	for reason, want := range map[wellknown.Reason]bool{wellknown.ReasonPodsRemain: true, "": false} {
		u, err := newTestReader(names).Read(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.Resource = corev1.ResourceList{"cpu": resource.MustParse("2")}
			u.Status.Phase, u.Status.Reason = "Running", reason
		}))
		require.NoError(t, err)
		if got := u.Demand.Requests.Equal(jobs); got != want {
			t.Errorf("reason %q: the demand is %v", reason, u.Demand.Requests)
		}
	}
}

// The compacted unit keeps everything that the core reads of the spec.
func TestAUnitInTheCacheIsReadLikeACompleteOne(t *testing.T) {
	unit := unitObject(func(u *schedulingv1alpha1.QueueUnit) {
		u.Spec = schedulingv1alpha1.QueueUnitSpec{
			ConsumerRef: schedulingv1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "a", Name: "n", UID: "job"},
			Priority:    3, PriorityClassName: "high", QuotaName: "quota", SubmissionTime: new(metav1.NewMicroTime(time.Unix(50, 0))),
			Resource: corev1.ResourceList{"cpu": resource.MustParse("4")},
			PodSets:  []schedulingv1alpha1.PodSet{{Name: "main", Count: 4, MinCount: ptr.To[int32](2), Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}},
			Active:   ptr.To(false), Preemptible: ptr.To(false), Unstoppable: "it continues", Growth: true,
			MaximumExecutionTimeSeconds: ptr.To[int32](600), ExpectedRunTimeSeconds: ptr.To[int32](60),
		}
		u.Status.Phase, u.Status.Attempts = schedulingv1alpha1.PhaseRunning, 1
	})
	for spec, i := reflect.ValueOf(unit.Spec), 0; i < spec.NumField(); i++ {
		if spec.Field(i).IsZero() {
			t.Errorf("the test does not set spec.%s", spec.Type().Field(i).Name)
		}
	}
	reader := newTestReader(resources.NewNames())
	want, err := reader.Read(unit)
	require.NoError(t, err)
	got, err := reader.ReadComplete(unit)
	require.NoError(t, err)
	if !reflect.DeepEqual(got, want) || got.Expected == 0 {
		t.Errorf("it is read as\n%+v, want\n%+v", got, want)
	}
}

func TestAFinishedUnitIsKeptByKeyAndPhaseAlone(t *testing.T) {
	compact, err := Compactor{}.compact(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
		u.Status.Phase = "Succeeded"
		u.Spec.SubmissionTime = &metav1.MicroTime{Time: time.Unix(5, 0)}
		u.Spec.Resource = map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("1")}
	}))
	require.NoError(t, err)
	if unit := compact.(*schedulingv1alpha1.QueueUnit); unit.Spec.Resource != nil || unit.Spec.SubmissionTime != nil || unit.Status.Phase != "Succeeded" {
		t.Errorf("kept %+v", unit)
	}
}

func TestOfAUnitIsKeptWhatTheSourceReads(t *testing.T) {
	keep := func(unit, kept *schedulingv1alpha1.QueueUnitSpec) { kept.PodSets = unit.PodSets }
	for _, c := range []struct {
		name string
		keep func(unit, kept *schedulingv1alpha1.QueueUnitSpec)
		sets int
	}{{"pod sets", keep, 1}, {"nothing", nil, 0}} {
		kept := Compactor{c.keep}.unit(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Spec.PodSets = []schedulingv1alpha1.PodSet{{Name: "worker"}}
		}))
		if len(kept.Spec.PodSets) != c.sets {
			t.Errorf("%s: kept are %+v", c.name, kept.Spec.PodSets)
		}
	}
}

func TestTheJobOfAUnitIsKeptThatMayHavePods(t *testing.T) {
	for _, c := range []struct {
		name     string
		phase    schedulingv1alpha1.QueueUnitPhase
		attempts int32
		owner    string
	}{
		{"one that never was admitted", "Enqueued", 0, ""},
		{"one that was requeued", "Enqueued", 1, "job"},
		{"one that is reserved", "Reserved", 0, "job"},
		{"one that runs", "Running", 1, "job"},
		{"one that has ended", "Succeeded", 1, "job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := Compactor{}.unit(unitObject(func(u *schedulingv1alpha1.QueueUnit) {
				u.Spec.ConsumerRef = schedulingv1alpha1.ConsumerReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "name", UID: "job"}
				u.Spec.QuotaName = "quota"
				u.Status.Phase, u.Status.Attempts, u.Status.Quota = c.phase, c.attempts, "root/quota"
			}))
			u, err := newTestReader(resources.NewNames()).Read(kept)
			label := ""
			if c.owner != "" {
				label = "training.kubeflow.org/job-name=name"
			}
			if err != nil || u.Owner != c.owner || u.Label != label || u.QuotaName != "quota" || u.Quota != "root/quota" {
				t.Errorf("what is read is %+v, error %v", u, err)
			}
		})
	}
}

func TestOfAUnitThatWasTakenInTheCacheKeepsItsNameAlone(t *testing.T) {
	transform := Compactor{}.Transform
	object := any(unitObject(func(*schedulingv1alpha1.QueueUnit) {}))
	for range 2 { // informers may do it twice
		var err error
		object, err = transform(object)
		require.NoError(t, err)
	}
	cached := object.(*Cached)
	if unit, is := cached.Take().(*schedulingv1alpha1.QueueUnit); !is || unit.Name != "u" {
		t.Errorf("what is taken is %+v", unit)
	}
	if cached.Take() != nil || cached.GetNamespace() != "a" || cached.GetName() != "u" || cached.GetUID() != "uid" || cached.GetResourceVersion() != "12" {
		t.Errorf("what stays is %+v", cached)
	}
}

func TestAReasonWithTheNoteOfAnInvalidTreeIsWrittenAgain(t *testing.T) {
	for message, want := range map[string]wellknown.Reason{
		"no quota lists it": wellknown.ReasonNoQuota,
		"no quota lists it; " + quota.LastValidNote + "ElasticQuotaTree kube-system/t is invalid since today": "",
	} {
		unit := unitObject(func(u *schedulingv1alpha1.QueueUnit) {
			u.Status.Reason, u.Status.Message = wellknown.ReasonNoQuota, message
		})
		if got, err := newTestReader(resources.NewNames()).Read(Compactor{}.unit(unit)); err != nil || got.Reason != want {
			t.Errorf("%s: the unit shows reason %q, want %q: %v", message, got.Reason, want, err)
		}
	}
}

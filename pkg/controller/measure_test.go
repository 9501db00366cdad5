package controller

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// measured is a loop whose metrics are checked.
type measured struct {
	*deciding
	registry *metrics.Registry
}

func measure(t *testing.T) *measured {
	t.Helper()
	m := &measured{decide(t, tree.Options{}), metrics.New(metrics.ControllerProgram, "")}
	m.measures = newMeasures(metrics.NewController(m.registry))
	m.auditor.on = true
	m.auditor.start = func(func(context.Context)) {} // there is no API server to read from
	m.publishEvery = PublishInterval
	m.publishAt = m.clock.Now().Add(PublishInterval)
	return m
}

// turns advances the clock and runs a turn of the loop.
func (m *measured) turns(passed time.Duration, inputs ...input) {
	m.Helper()
	m.loop.clock.(*clocktesting.FakeClock).Step(passed)
	for _, i := range inputs {
		m.inbox.put(i)
	}
	m.turn()
	if m.broken != nil {
		m.Fatal(m.broken)
	}
}

// write returns the only write that is planned now.
func (m *measured) write(passed time.Duration, inputs ...input) *scheduler.Write {
	m.Helper()
	m.loop.clock.(*clocktesting.FakeClock).Step(passed)
	plan, _ := m.decide(inputs)
	if len(plan) != 1 {
		m.Fatalf("%d writes, want 1: %v", len(plan), plan)
	}
	return &plan[0]
}

func (m *measured) shown() []string {
	m.Helper()
	w := httptest.NewRecorder()
	m.registry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return strings.Split(w.Body.String(), "\n")
}

func (m *measured) shows(lines ...string) {
	m.Helper()
	shown := m.shown()
	for _, line := range lines {
		if !slices.Contains(shown, "kube_queue_"+line) {
			name, _, _ := strings.Cut(line, "{")
			m.Errorf("it does not show %s but %q", line, slices.DeleteFunc(slices.Clone(shown), func(l string) bool {
				return !strings.HasPrefix(l, "kube_queue_"+strings.Fields(name)[0])
			}))
		}
	}
}

// jobUnit returns the unit of a batch Job.
func jobUnit(name, version string, status schedulingv1alpha1.QueueUnitStatus) *schedulingv1alpha1.QueueUnit {
	return &schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name + "-job-0123456789", UID: types.UID(name), ResourceVersion: version},
		Spec: schedulingv1alpha1.QueueUnitSpec{
			SubmissionTime: &metav1.MicroTime{Time: time.Unix(940, 0)},
			Resource:       corev1.ResourceList{"cpu": resource.MustParse("3")}},
		Status: status,
	}
}

func seen(unit *schedulingv1alpha1.QueueUnit) input {
	return unitSeen(codec.Compactor{}.Compacted(unit))
}

func TestAReleaseIsCountedOnceItIsWritten(t *testing.T) {
	m := measure(t)
	w := m.write(0, quotaListed, m.tree(goodRoot), seen(jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})))
	if slices.ContainsFunc(m.shown(), func(line string) bool { return strings.HasPrefix(line, "kube_queue_dequeues_total{") }) {
		t.Error("it is counted before it is written")
	}
	m.after(0, written(w, "8", m.clock.Now()))
	m.shows(`dequeues_total{queue="root"} 1`,
		`admission_attempts_total{reason="",result="admitted"} 1`,
		`wait_seconds_sum{framework="Job",queue="root"} 60`,
		`wait_seconds_count{framework="Job",queue="root"} 1`)
}

func TestGrowthHasNoWait(t *testing.T) {
	m := measure(t)
	unit := jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})
	unit.Spec.Growth = true // its submission is that of the job
	m.after(0, written(m.write(0, quotaListed, m.tree(goodRoot), seen(unit)), "8", m.clock.Now()))
	m.shows(`dequeues_total{queue="root"} 1`)
	if slices.ContainsFunc(m.shown(), func(line string) bool {
		return strings.HasPrefix(line, "kube_queue_wait_seconds_count{") && !strings.HasSuffix(line, " 0")
	}) {
		t.Error("the age of the job is recorded")
	}
}

func TestAReleaseOfAUnitThatHasChangedIsRolledBack(t *testing.T) {
	m := measure(t)
	w := m.write(0, quotaListed, m.tree(goodRoot), seen(jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})))
	w = m.write(0, refused(w, jobUnit("u", "8", schedulingv1alpha1.QueueUnitStatus{})))
	m.after(0, refused(w, nil))
	m.shows(`rollbacks_total{write="Dequeue"} 2`, `admission_attempts_total{reason="",result="conflict"} 2`)
}

func TestARefusalIsCountedWithItsReason(t *testing.T) {
	m := measure(t)
	m.after(0, quotaListed, m.tree(`{name: root, namespaces: [a], max: {cpu: 2}}`), seen(jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})))
	w := m.write(0, seen(jobUnit("v", "7", schedulingv1alpha1.QueueUnitStatus{})))
	m.after(0, written(w, "8", m.clock.Now()))
	m.shows(`admission_attempts_total{reason="ExceedsMaxQuota",result="refused"} 1`)
}

func TestAnAdmissionBySomebodyElseIsTakenBackCountedAndReported(t *testing.T) {
	m := measure(t)
	var notices []backend.Notice
	m.emit = func(n backend.Notice) { notices = append(notices, n) }
	before := jobUnit("before", "6", schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseRunning}) // admitted by an earlier leader
	m.after(0, seen(before), unitsListed, quotaListed, m.tree(`{name: root, namespaces: [a], max: {cpu: 4}}`), seen(jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})))
	w := m.write(0, seen(jobUnit("u", "8", schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseDequeued, Attempts: 1})))
	if w.Kind != scheduler.Evict || w.Reason != wellknown.ReasonNotAdmitted || w.UID != "u" || len(notices) != 0 {
		t.Fatalf("it writes %+v, and reports %v before", w, notices)
	}
	m.after(0, written(w, "9", m.clock.Now()))
	m.shows(`evictions_total{queue="root",reason="NotAdmitted"} 1`)
	const said = "The unit was not admitted: something other than kube-queue-controller set its phase. "
	if len(notices) != 1 || notices[0].Reason != wellknown.EventNotAdmitted || !strings.HasPrefix(notices[0].Message, said) || notices[0].Type != corev1.EventTypeWarning ||
		notices[0].About.GetUID() != "u" || notices[0].About.GetName() != "u-job-0123456789" || notices[0].About.GetKind() != "QueueUnit" {
		t.Errorf("it reports %+v", notices)
	}
}

func TestAnEvictionAndItsEndAreCounted(t *testing.T) {
	m := measure(t)
	inactive := jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseRunning})
	inactive.Spec.Active = new(false)
	w := m.write(0, quotaListed, m.tree(goodRoot), seen(inactive))
	stopped := inactive.DeepCopy()
	stopped.ResourceVersion = "9"
	stopped.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(wellknown.ReasonStopped)}}
	w = m.write(0, written(w, "8", m.clock.Now()), seen(stopped))
	m.after(0, written(w, "10", m.clock.Now()))
	m.shows(`evictions_total{queue="root",reason="Deactivated"} 1`, `requeues_total{reason="Inactive"} 1`)
}

func TestQueuesAndQuotaAreShownWithTheirStatus(t *testing.T) {
	m := measure(t)
	m.turns(0, quotaListed, m.tree(`{name: root, max: {cpu: 10}, children: [
		{name: x, namespaces: [a], min: {cpu: 500m, memory: 1Gi, kube-queue/max-jobs: 1}, max: {cpu: 1.5, kube-queue/max-jobs: 9}},
		{name: idle, namespaces: [b], min: {cpu: 1}}]}`),
		unitOf("waits", "", "1", ""), unitOf("released", "", "500m", schedulingv1alpha1.PhaseDequeued),
		unitOf("reserved", "", "250m", schedulingv1alpha1.PhaseReserved), unitOf("runs", "", "250m", schedulingv1alpha1.PhaseRunning),
		queueOf("root-idle", schedulingv1alpha1.StopHold))
	m.turns(PublishInterval)
	m.shows(`pending_units{queue="root-x"} 1`, `reserved_units{queue="root-x"} 1`, `dequeued_units{queue="root-x"} 1`, `running_units{queue="root-x"} 1`,
		`queue_waiting{queue="root-x"} 1`, `queue_waiting{queue="root-idle"} 0`, `dequeues_total{queue="root-idle"} 0`,
		`queue_stopped{queue="root-x"} 0`, `queue_stopped{queue="root-idle"} 1`, `pending_units{queue="root-idle"} 0`,
		`quota_used{node="root",resource="cpu"} 1`, `quota_max{node="root",resource="cpu"} 10`,
		`quota_used{node="root/x",resource="cpu"} 1`, `quota_min{node="root/x",resource="cpu"} 0.5`, `quota_max{node="root/x",resource="cpu"} 1.5`,
		`quota_borrowed{node="root/x",resource="cpu"} 0.5`, `quota_used{node="root/x",resource="memory"} 0`, `quota_min{node="root/x",resource="memory"} 1.073741824e+09`,
		`quota_lent{node="root/idle",resource="cpu"} 0.5`, `quota_lent{node="root/x",resource="cpu"} 0`,
		`quota_pending{node="root/x",resource="cpu"} 1`, `quota_pending{node="root",resource="cpu"} 1`, `quota_pending{node="root/x",resource="kube-queue/max-jobs"} 1`,
		`quota_used{node="root/x",resource="kube-queue/max-jobs"} 3`, `quota_max{node="root/x",resource="kube-queue/max-jobs"} 9`)

	m.turns(PublishInterval, m.tree(`{name: root, namespaces: [a]}`))
	m.shows(`running_units{queue="root"} 1`, `quota_used{node="root",resource="cpu"} 2`)
	for _, line := range m.shown() {
		if strings.Contains(line, "root-x") || strings.Contains(line, "root/x") || strings.Contains(line, `quota_max{`) {
			t.Errorf("it still shows %s", line)
		}
	}
}

// Consumption is exact at each scrape, even after a while without events, and does not decrease.
func TestUseIsAddedUpByNamespace(t *testing.T) {
	m := measure(t)
	step := func(d time.Duration) { m.loop.clock.(*clocktesting.FakeClock).Step(d) }
	root := m.tree(`{name: root, max: {cpu: 10}, children: [{name: x, namespaces: [a, b], max: {cpu: 9}}]}`)
	m.turns(0, quotaListed, root, unitOf("runs", "", "1500m", schedulingv1alpha1.PhaseRunning))
	m.turns(PublishInterval)
	m.shows(`quota_used_seconds_total{job_namespace="a",node="root/x",resource="cpu"} 7.5`,
		`quota_used_seconds_total{job_namespace="a",node="root/x",resource="kube-queue/max-jobs"} 5`)
	step(time.Hour)
	m.shows(`quota_used_seconds_total{job_namespace="a",node="root/x",resource="cpu"} 5407.5`)
	m.turns(0) // nothing has changed
	step(time.Second)
	m.shows(`quota_used_seconds_total{job_namespace="a",node="root/x",resource="cpu"} 5409`)
	m.turns(0, unitGone("a/runs", "runs"))
	step(time.Minute)
	m.shows(`quota_used_seconds_total{job_namespace="a",node="root/x",resource="cpu"} 5409`)
	m.turns(0)
	m.shows(`quota_used_seconds_total{job_namespace="a",node="root/x",resource="cpu"} 5409`)
	step(25 * time.Hour)
	m.turns(0, root) // something to publish
	if shown := strings.Join(m.shown(), "\n"); strings.Contains(shown, "quota_used_seconds_total{") {
		t.Error("a day after its last use the series is still there")
	}
}

func TestTheFirstAndTheMeanSubmissionOfQueuedUnitsAreShown(t *testing.T) {
	m := measure(t)
	second := jobUnit("second", "7", schedulingv1alpha1.QueueUnitStatus{})
	second.Spec.SubmissionTime = &metav1.MicroTime{Time: time.Unix(961, 0)}
	m.turns(0, quotaListed, m.tree(goodRoot), unitOf("runs", "", "4", schedulingv1alpha1.PhaseRunning),
		seen(jobUnit("first", "7", schedulingv1alpha1.QueueUnitStatus{})), seen(second))
	m.turns(PublishInterval)
	m.shows(`first_submission_timestamp_seconds{queue="root"} 940`, `mean_submission_timestamp_seconds{queue="root"} 950.5`)
}

// A queue does not wait if free quota would help none of its units.
func TestAQueueOfUnitsThatAreHeldDoesNotWait(t *testing.T) {
	m := measure(t)
	inactive := jobUnit("inactive", "7", schedulingv1alpha1.QueueUnitStatus{})
	inactive.Spec.Active = new(false)
	suspended := jobUnit("suspended", "7", schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseEnqueued, Conditions: []metav1.Condition{
		{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(wellknown.ReasonSuspendedByUser)}}})
	invalid := jobUnit("invalid", "7", schedulingv1alpha1.QueueUnitStatus{})
	invalid.Spec.Resource["cpu"] = resource.MustParse("-1")
	m.turns(0, quotaListed, m.tree(goodRoot), seen(inactive), seen(suspended), seen(invalid), unitOf("too-large", "", "99", ""))
	m.turns(PublishInterval)
	m.shows(`pending_units{queue="root"} 4`, `queue_waiting{queue="root"} 0`)
	m.turns(0, unitOf("runs", "", "4", schedulingv1alpha1.PhaseRunning), unitOf("waits", "", "1", ""))
	m.turns(PublishInterval)
	m.shows(`pending_units{queue="root"} 5`, `queue_waiting{queue="root"} 1`)
	m.turns(0, unitGone("a/waits", "waits"))
	m.turns(PublishInterval)
	m.shows(`pending_units{queue="root"} 4`, `queue_waiting{queue="root"} 0`)
}

// judged is a Source whose quota can be invalid.
type judged struct {
	drawn
	problem string
}

func (j *judged) Invalid() string { return j.problem }

func TestAnInvalidQuotaIsShown(t *testing.T) {
	m := measure(t)
	m.shows(`quota_invalid 0`)
	m.source = &judged{*m.drawn, "min above max"}
	m.turns(PublishInterval, quotaListed)
	m.shows(`quota_invalid 1`)
	m.source = &judged{*m.drawn, ""}
	m.turns(PublishInterval, quotaListed)
	m.shows(`quota_invalid 0`)
}

func TestAnAuditCountsWhatIsBrokenAndDoesNotEndTheProgram(t *testing.T) {
	m := measure(t)
	m.check = false
	m.turns(0, quotaListed, m.tree(goodRoot), unitOf("u", "", "1", schedulingv1alpha1.PhaseRunning))
	m.turns(AuditInterval)
	m.shows(`audits_total 1`, `invariant_violations_total 0`)

	group := m.drawn.backend.Groups()[0]
	group.Charge(&quota.Charge{Demand: quota.Demand{Requests: unitDemand(m, "2")}}) // behind the core's back
	m.turns(AuditInterval - time.Second)
	m.shows(`audits_total 1`)
	m.turns(time.Second)
	m.shows(`audits_total 2`, `invariant_violations_total 2`) // the jobs and the cpu of one node
	m.turns(AuditInterval)
	m.shows(`audits_total 3`, `invariant_violations_total 2`) // it was corrected
	if used := m.core.Usage()[0].Used; len(used) != 1 || used[0].Value != 1000 {
		t.Errorf("used is %v, want 1 CPU", used)
	}
}

func unitDemand(m *measured, cpu string) resources.Vector {
	demand, err := m.drawn.Demand(&schedulingv1alpha1.QueueUnit{Spec: schedulingv1alpha1.QueueUnitSpec{
		Resource: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}})
	require.NoError(m, err)
	return demand.Requests
}

func TestWhatASafetyFlushFindsIsCounted(t *testing.T) {
	m := measure(t)
	m.check = false
	m.turns(0, quotaListed, m.tree(goodRoot), unitOf("runs", "", "4", schedulingv1alpha1.PhaseRunning), unitOf("waits", "", "1", ""))
	m.turns(scheduler.FlushInterval)
	m.shows(`safety_flushes_total 1`, `safety_flush_rescues_total 0`)

	// Quota is freed without an event.
	m.drawn.backend.Groups()[0].Uncharge(&quota.Charge{Demand: quota.Demand{Preemptible: true, Requests: unitDemand(m, "4")}})
	m.turns(scheduler.FlushInterval)
	m.shows(`safety_flushes_total 2`, `safety_flush_rescues_total 1`)
}

func TestEachPassIsTimed(t *testing.T) {
	m := measure(t)
	m.turns(0, quotaListed)
	m.turns(0)
	m.shows(`decision_duration_seconds_count 2`)
}

func TestItIsReportedThatAllIsSeenOnceItHasBeenTakenIn(t *testing.T) {
	m := measure(t)
	reported := false
	m.turns(0, unitOf("u", "", "1", ""), quotaListed, allSeen(func() { reported = m.core.Knows("a/u") }))
	if !reported {
		t.Error("what was listed was not known then")
	}
}

func TestADeniedReleaseIsNotCountedAsAConflict(t *testing.T) {
	m := measure(t)
	w := m.write(0, quotaListed, m.tree(goodRoot), seen(jobUnit("u", "7", schedulingv1alpha1.QueueUnitStatus{})))
	m.after(0, denied(w, errors.New("a policy denies it"), m.clock.Now().Add(refusalPeriod)))
	m.shows(`admission_attempts_total{reason="",result="denied"} 1`)
	for _, line := range m.shown() {
		if strings.HasPrefix(line, "kube_queue_rollbacks_total{") || strings.Contains(line, `result="conflict"`) {
			t.Errorf("it shows %s", line)
		}
	}
}

func TestMetricsAreNotOlderThanTheDocumentationSays(t *testing.T) {
	client, err := clientset.NewForConfig(&rest.Config{Host: "http://nowhere"}) // it gets no requests
	require.NoError(t, err)
	for every, shown := range map[time.Duration]time.Duration{0: PublishInterval, time.Second: time.Second, time.Hour: PublishInterval} {
		cfg := Config{Client: client, Source: &drawn{}, Clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval: every}
		informers, err := newInformers(cfg)
		require.NoError(t, err)
		if l := informers.loop(cfg, klog.Background()); l.publishEvery != shown || l.publisher.every != cmp.Or(every, PublishInterval) {
			t.Errorf("with --status-interval=%v, metrics are shown every %v, and statuses are written every %v", every, l.publishEvery, l.publisher.every)
		}
	}
}

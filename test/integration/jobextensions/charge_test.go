package jobextensions

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// own returns a cluster whose job-extensions the test starts and stops itself.
func own(t *testing.T) (c *clustertest.Cluster, start func(...func(*rest.Config)) (stop func())) {
	t.Helper()
	c = inTurn(t)
	return c, func(options ...func(*rest.Config)) func() {
		t.Helper()
		stop, err := startExtensions(c, "job", options...)
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
}

func (s *story) requests(cpu string) func(*v1alpha1.QueueUnit) bool {
	return func(u *v1alpha1.QueueUnit) bool {
		quantity := u.Spec.Resource["cpu"]
		return quantity.String() == cpu
	}
}

// requeue takes the quota back as the controller does of a unit whose condition stays.
func (s *story) requeue(reason wellknown.Reason) {
	s.Helper()
	s.decide(map[string]any{"phase": "Enqueued", "reason": reason, "message": "m",
		"conditions": []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(reason), LastTransitionTime: metav1.Now()}}})
}

func TestAJobThatChangedAfterItsAdmissionIsAdmittedAgain(t *testing.T) {
	t.Parallel()
	c, start := own(t)
	stop := start()
	s := begin(t, c, batchJob, annotated, long, `{spec: {parallelism: 1, completions: 10}}`)
	s.hasUnit("of 1 cpu", s.requests("1"))
	stop()
	s.admit()
	s.change(`{spec: {parallelism: 10}}`)
	defer start()()

	s.evicted(metav1.ConditionTrue, wellknown.ReasonJobChanged)
	if !s.suspended() {
		t.Error("the job was released with 10 cpu, 1 was admitted")
	}
	s.requeue(wellknown.ReasonJobChanged)
	s.hasUnit("of 10 cpu", s.requests("10"))
	s.evicted(metav1.ConditionFalse, wellknown.ReasonRequeued)
	s.admit()
	s.becomesSuspended(false)
	if value := s.get().GetAnnotations()["kube-queue/released"]; value != "2" {
		t.Errorf("it was released for attempt %q, want 2", value)
	}
}

func TestAJobBeingDeletedLeavesTheQueue(t *testing.T) {
	t.Parallel()
	kept := `{metadata: {finalizers: [example.com/keep]}}`
	tests := map[string]func(*testing.T, *story, func() func()){
		"while it waits": func(t *testing.T, s *story, _ func() func()) { s.remove() },
		"between its admission and its release": func(t *testing.T, s *story, stopped func() func()) {
			start := stopped()
			s.admit()
			s.remove()
			start()
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, start := own(t)
			stop := start()
			defer func() { stop() }()
			s := begin(t, c, batchJob, annotated, kept)
			s.enqueued()
			test(t, s, func() func() {
				stop()
				return func() { stop = start() }
			})
			s.eventually("it has no unit", func() string {
				if s.unit() != nil {
					return "it has one"
				}
				return ""
			})
			s.stays("it has no unit and is suspended", func() string {
				if s.unit() != nil || !s.suspended() {
					return "it has a unit, or runs"
				}
				return ""
			})
			s.change(`{metadata: {finalizers: null}}`)
		})
	}
}

// remove deletes the job, which its finalizer keeps.
func (s *story) remove() {
	s.Helper()
	s.must(s.jobs.Delete(s.Context(), "a", metav1.DeleteOptions{}))
	if s.get().GetDeletionTimestamp() == nil {
		s.Fatal("the job is not being deleted")
	}
}

// A unit that somebody's finalizer keeps ends with its job, and so returns its quota.
func TestAFinalizerOnAUnitDoesNotKeepItsQuota(t *testing.T) {
	t.Parallel()
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, start := own(t)
			defer start()()
			s := begin(t, c, batchJob, annotated, long)
			s.finalize(c, `["example.com/keep"]`)
			s.admit()
			s.inPhase(v1alpha1.PhaseRunning)
			if propagation == metav1.DeletePropagationOrphan {
				pod := s.onlyPod()
				s.orphan()
				s.removePod(pod) // which would keep the unit
			} else {
				s.must(s.jobs.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &propagation}))
			}
			ended := s.inPhase(v1alpha1.PhaseFailed)
			if ended.Status.Conditions[0].Reason != string(wellknown.ReasonJobDeleted) {
				t.Errorf("the conditions are %s, want reason JobDeleted", asJSON(ended.Status.Conditions))
			}
			s.finalize(c, `null`)
		})
	}
}

// finalize sets the finalizers of the unit, as an older version let everybody do.
func (s *story) finalize(c *clustertest.Cluster, list string) {
	s.Helper()
	config, err := account(c, "job-extensions")
	s.must(err)
	client, err := versioned.NewForConfig(config)
	s.must(err)
	_, err = client.SchedulingV1alpha1().QueueUnits(s.ns).Patch(s.Context(), s.enqueued().Name, types.MergePatchType,
		[]byte(`{"metadata": {"finalizers": `+list+`}}`), metav1.PatchOptions{})
	s.must(err)
}

// A cache of jobs that lags shows a running job as it was before its release: suspended,
// without pods.
func TestACacheOfJobsThatLagsDoesNotFreeTheQuotaOfARunningJob(t *testing.T) {
	t.Parallel()
	c, start := own(t)
	stop := start()
	s := begin(t, c, batchJob, annotated, long)
	s.enqueued()
	s.becomes("Suspended=True")
	stop()

	watches := newGate()
	defer start(watches.delay("/jobs"))()
	s.refuse("QuotaExceeded", "full")
	s.eventually("it has read the job", func() string {
		for _, e := range s.events() {
			if e.Reason == "Queued" {
				return ""
			}
		}
		return "it has not reported why it waits"
	})
	watches.shut()
	defer watches.open()
	defer start()() // the one that does not lag
	s.admit()
	s.becomesSuspended(false)
	s.inPhase(v1alpha1.PhaseRunning)
	// The lagging one takes the job for suspended, after it has waited for its cache for a while.
	s.eventually("the lagging one compares the job with the API server", func() string {
		if unit := s.unit(); len(unit.Status.Conditions) > 0 {
			s.Fatalf("it frees the quota: %s", asJSON(unit.Status))
		}
		if watches.reads.Load() == 0 {
			return "it has not read the job"
		}
		return ""
	})
	s.stays("it keeps its quota", func() string {
		unit := s.unit()
		if len(unit.Status.Conditions) > 0 || unit.Status.Phase != v1alpha1.PhaseRunning {
			return asJSON(unit.Status)
		}
		return ""
	})
}

// gate holds up what watches report, and counts the reads of single objects.
type gate struct {
	reads  atomic.Int32
	mu     sync.Mutex
	opened chan struct{}
}

func newGate() *gate {
	g := &gate{}
	g.shut()
	g.open()
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
}

// delay applies the gate to watches of a resource.
func (g *gate) delay(resource string) func(*rest.Config) {
	return func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && path.Base(path.Dir(r.URL.Path)) == path.Base(resource) {
					g.reads.Add(1)
				}
				answer, err := next.RoundTrip(r)
				if err == nil && strings.HasSuffix(r.URL.Path, resource) && r.URL.Query().Get("watch") != "" {
					answer.Body = gated{answer.Body, g, r.Context().Done()}
				}
				return answer, err
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// gated is a watch behind a gate.
type gated struct {
	io.ReadCloser
	gate *gate
	done <-chan struct{}
}

func (b gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.Lock()
	opened := b.gate.opened
	b.gate.mu.Unlock()
	select {
	case <-opened:
	case <-b.done:
	}
	return n, err
}

// What a released job no longer requests is given back. What it requests in addition is not
// admitted: its pods are charged.
func TestTheUnitOfAReleasedJobFollowsItDownwardsOnly(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long, `{spec: {parallelism: 4}}`)
	s.hasUnit("of 4 cpu", s.requests("4"))
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	before := s.writes().Total()
	s.change(`{spec: {parallelism: 1}}`)
	unit := s.hasUnit("of 1 cpu", s.requests("1"))
	if sets := unit.Spec.PodSets; len(sets) != 1 || sets[0].Count != 1 || unit.Status.Phase != v1alpha1.PhaseRunning {
		t.Errorf("pod sets are %+v in phase %s", sets, unit.Status.Phase)
	}
	s.change(`{spec: {parallelism: 8}}`)
	s.eventually("8 pods", func() string {
		if active, _, _ := unstructured.NestedInt64(s.get().Object, "status", "active"); active != 8 {
			return fmt.Sprint(active)
		}
		return ""
	})
	s.stays("the unit requests 1 cpu", func() string {
		if unit := s.unit(); !s.requests("1")(unit) || unit.Spec.PodSets[0].Count != 1 {
			return asJSON(unit.Spec)
		}
		return ""
	})
	if wrote := s.writes().Total() - before; wrote != 1 {
		t.Errorf("it cost %d writes, not 1", wrote)
	}
}

func TestTheEndOfPodsLowersNoUnit(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{spec: {parallelism: 2, completions: 3, template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: 3s}}}}}`)
	s.hasUnit("of 2 cpu", s.requests("2"))
	s.admit()
	s.eventually("2 pods have ended", func() string {
		if succeeded, _, _ := unstructured.NestedInt64(s.get().Object, "status", "succeeded"); succeeded < 2 {
			return fmt.Sprint(succeeded)
		}
		return ""
	})
	s.stays("the unit requests 2 cpu", func() string {
		if unit := s.unit(); !unit.Status.Phase.Ended() && !s.requests("2")(unit) {
			return asJSON(unit.Spec)
		}
		return ""
	})
	s.inPhase(v1alpha1.PhaseSucceeded)
}

func TestTheOwnerOfAJobThatRequestsNothingIsWarnedOnce(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, short, `{spec: {template: {spec: {containers: [{name: main, image: main}]}}}}`)
	s.hasUnit("of no resources", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.Resource) == 0 && *u.Spec.Active })
	s.event(corev1.EventTypeWarning, "NoRequests", "set resources.requests")
	s.admit()
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(6)
}

func TestTheOwnerOfAQueuedJobThatNoLongerRequestsAnythingIsWarned(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.hasUnit("of 1 cpu", s.requests("1"))
	s.change(`{spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: main}]}}}}}}`)
	s.event(corev1.EventTypeWarning, "NoRequests", "")
}

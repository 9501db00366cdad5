package resourcequota

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// desk is a Source that the test drives in place of informers.
type desk struct {
	*Source
	clock *clocktesting.FakeClock

	mu    sync.Mutex
	taken []func() backend.Change
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Source: New(map[string]corev1.ResourceName{"gpu": "example.com/gpu"}), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	names := resources.NewNames()
	d.host = backend.Host{Clock: d.clock, Names: names, Take: func(do func() backend.Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.taken = append(d.taken, do)
	}}
	d.backend = resourcequota.New(names)
	return d
}

// work processes the observations.
func (d *desk) work() (reported []any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, take := range d.taken {
		if seen := take().Seen; seen != nil {
			reported = append(reported, seen)
		}
	}
	d.taken = nil
	return reported
}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
	return object
}

func TestThePodsOfAUnitAreWeighedByTheirScopes(t *testing.T) {
	d := newDesk(t)
	unit := read[schedulingv1alpha1.QueueUnit](t, `{spec: {consumerRef: {apiVersion: v1, kind: K, name: n, uid: job}, resource: {cpu: 1}, podSets: [
		{name: a, count: 2, requests: {cpu: 500m}},
		{name: b, count: 3, quotaScopes: [BestEffort], priorityClassName: high}]}}`)
	kept := &schedulingv1alpha1.QueueUnit{Spec: schedulingv1alpha1.QueueUnitSpec{Resource: unit.Spec.Resource}}
	d.Keep(&unit.Spec, &kept.Spec)
	for _, c := range []struct {
		scopes string
		want   wellknown.Reason
	}{
		{"scopes: [BestEffort]", wellknown.ReasonExceedsMaxQuota},
		{"scopes: [NotBestEffort]", ""},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", wellknown.ReasonExceedsMaxQuota},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}", ""},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", ""},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", wellknown.ReasonExceedsMaxQuota},
		{"scopes: [Terminating]", ""},
		{"scopes: [Terminating, BestEffort]", ""},
		{"scopes: []", wellknown.ReasonExceedsMaxQuota},
	} {
		d.quotaSeen(read[corev1.ResourceQuota](t, `{metadata: {namespace: a, name: two}, spec: {hard: {pods: 2}, `+c.scopes+`}, status: {hard: {pods: 2}, used: {pods: 0}}}`))
		d.work()
		names := d.host.Names.Clone()
		copied := d.backend.Clone(names)
		for _, of := range []struct {
			backend quota.Backend
			demand  func(*schedulingv1alpha1.QueueUnit) (quota.Demand, error)
		}{{copied, d.DemandIn(names, copied)}, {d.backend, d.Demand}} {
			demand, err := of.demand(kept)
			require.NoError(t, err)
			group, _ := of.backend.Place("a", "")
			got := wellknown.Reason("")
			if r := group.Fits(demand); r != nil {
				got = r.Reason
			}
			if got != c.want {
				t.Errorf("%s: refused for %q, want %q", c.scopes, got, c.want)
			}
		}
	}
	d.quotaGone(read[corev1.ResourceQuota](t, `{metadata: {namespace: a, name: two}}`))
	d.work()
	group, _ := d.backend.Place("a", "")
	if demand, _ := d.Demand(kept); group.Fits(demand) != nil {
		t.Error("refused without a quota")
	}
}

func TestMoreThanCanBeCountedIsAFaultOfTheUnit(t *testing.T) {
	d := newDesk(t)
	unit := read[schedulingv1alpha1.QueueUnit](t, `{spec: {podSets: [{name: a, count: 2000000000, requests: {memory: 1P}}]}}`)
	_, err := d.Demand(unit)
	require.ErrorSays(t, err, "spec.podSets of the QueueUnit: \"a\": requests.memory: 2000000000 times 1P exceeds the largest possible request")
}

func TestTheCoreIsReportedOnceEverythingHasBeenTakenIn(t *testing.T) {
	d := newDesk(t)
	d.quotaSeen(read[corev1.ResourceQuota](t, `{metadata: {namespace: a, name: two}, spec: {hard: {pods: 2}}, status: {hard: {pods: 2}, used: {pods: 0}}}`))
	if reported := d.work(); len(reported) > 0 {
		t.Errorf("reported %v before everything was there", reported)
	}
	if first := d.Listed().Quota; first == nil || first.Backend != quota.Backend(d.backend) {
		t.Errorf("the quota in force is %v", first)
	}
	d.quotaGone(read[corev1.ResourceQuota](t, `{metadata: {namespace: a, name: two}}`))
	if reported := d.work(); len(reported) != 1 || reported[0] != (resourcequota.QuotaGone{Namespace: "a", Name: "two"}) {
		t.Errorf("reported %v", reported)
	}
}

func TestAnEndedPodCountsOnlyAsAnObject(t *testing.T) {
	d := newDesk(t)
	rules := d.Pods()
	pod := read[corev1.Pod](t, `{metadata: {namespace: a, name: p, uid: p}, spec: {containers: [{name: main, resources: {requests: {cpu: 2}}}]}}`)
	for _, c := range []struct {
		ended bool
		want  string
	}{{false, "count/pods=1 pods=1 requests.cpu=2000"}, {true, "count/pods=1"}} {
		var got []string
		vector, _ := rules.Requests(rules.Weigh(pod, c.ended))
		for _, a := range vector {
			got = append(got, fmt.Sprintf("%s=%d", d.host.Names.Name(a.ID), a.Value))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("ended %t: it counts %v, want %s", c.ended, got, c.want)
		}
	}
}

// The API server counts a device under each name of its class. Units and pods count in the same way here, whatever name
// they request.
func TestEachNameOfADeviceIsLimitedByEachOtherName(t *testing.T) {
	for _, key := range []string{"requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/gpu", "gpu.deviceclass.resource.k8s.io/devices"} {
		d := newDesk(t)
		d.quotaSeen(read[corev1.ResourceQuota](t, fmt.Sprintf(`{metadata: {namespace: a, name: q}, spec: {hard: {%[1]q: 2}}, status: {hard: {%[1]q: 2}, used: {%[1]q: 0}}}`, key)))
		d.work()
		group, _ := d.backend.Place("a", "")
		for count, refused := range map[int]bool{2: false, 3: true} {
			// As job-extensions writes it.
			unit := read[schedulingv1alpha1.QueueUnit](t, fmt.Sprintf(`{spec: {podSets: [{name: a, count: 1, requests: {example.com/gpu: %d}}]}}`, count))
			demand, err := d.Demand(unit)
			if r := group.Fits(demand); err != nil || (r != nil) != refused {
				t.Errorf("%s: %d are refused for %v, error %v", key, count, r, err)
			}
		}
		for _, name := range []string{"example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"} {
			pod := read[corev1.Pod](t, fmt.Sprintf(`{metadata: {namespace: a, name: p, uid: p}, spec: {containers: [{name: main, resources: {requests: {%q: 2}}}]}}`, name))
			rules := d.Pods()
			used, _ := rules.Requests(rules.Weigh(pod, false))
			charge := &quota.Charge{Pods: used, Unqueued: true}
			group.Charge(charge)
			unit := read[schedulingv1alpha1.QueueUnit](t, `{spec: {podSets: [{name: a, count: 1, requests: {example.com/gpu: 1}}]}}`)
			demand, _ := d.Demand(unit)
			if r := group.Fits(demand); r == nil || r.Reason != wellknown.ReasonQuotaExceeded {
				t.Errorf("%s: one more beside a pod with 2 %s is refused for %v", key, name, r)
			}
			group.Uncharge(charge)
		}
	}
}

func TestAQuotaOfADeviceThatIsNotMappedIsLeftToTheAPIServer(t *testing.T) {
	d := newDesk(t)
	got := d.keysOf(read[corev1.ResourceQuota](t, `{spec: {hard: {other.deviceclass.resource.k8s.io/devices: 2, gpu.deviceclass.resource.k8s.io/devices: 2, pods: 1}}}`))
	if len(got) != 1 || got["gpu.deviceclass.resource.k8s.io/devices"] != "requests.example.com/gpu" {
		t.Errorf("keys are %v", got)
	}
}

func TestAUnitWhosePodsRemainCountsAsAJobAndNoPod(t *testing.T) {
	d := newDesk(t)
	reader := codec.Reader{Compactor: codec.Compactor{Keep: d.Keep}, Kinds: &codec.Kinds{}, Demand: d.Demand}
	u, err := reader.ReadComplete(read[schedulingv1alpha1.QueueUnit](t, `{metadata: {namespace: a, name: u, uid: u, resourceVersion: "1"},
		spec: {consumerRef: {apiVersion: batch/v1, kind: Job, namespace: a, name: n, uid: job}, resource: {cpu: 2}, podSets: [{name: a, count: 2, requests: {cpu: 1}}]},
		status: {phase: Running, reason: PodsRemain}}`))
	require.NoError(t, err)
	if want := resources.Vector(nil).With(d.host.Names.ID(quota.JobsResource), 1); !u.Over || !u.Demand.Requests.Equal(want) {
		t.Errorf("over %t, the demand is %v, want %v", u.Over, u.Demand.Requests, want)
	}
}

func TestGrowthIsNoJob(t *testing.T) {
	d := newDesk(t)
	demand, err := d.Demand(read[schedulingv1alpha1.QueueUnit](t, `{spec: {growth: true, consumerRef: {apiVersion: batch/v1, kind: Job, name: n, uid: job}, podSets: [{name: a, count: 1}]}}`))
	if jobs, counts := demand.Requests.Get(d.host.Names.ID(quota.JobsResource)); err != nil || counts {
		t.Errorf("it counts as %d jobs, error %v", jobs, err)
	}
}

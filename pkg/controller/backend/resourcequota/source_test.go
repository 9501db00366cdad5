package resourcequota

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// desk is a Source whose informers are the test itself.
type desk struct {
	*Source
	clock *clocktesting.FakeClock

	mu    sync.Mutex
	taken []func() backend.Change
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Source: New(), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	names := resources.NewNames()
	d.host = backend.Host{Clock: d.clock, Names: names, Take: func(do func() backend.Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.taken = append(d.taken, do)
	}}
	d.backend = resourcequota.New(names)
	d.ending = newEnding(d.clock, d.podEnded)
	go d.ending.run(t.Context())
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
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// fits reports whether the amount fits a quota of 10 of the key in namespace a, by observation.
func (d *desk) fits(amount int, key string) bool {
	ten := corev1.ResourceList{corev1.ResourceName(key): resource.MustParse("10")}
	none := corev1.ResourceList{corev1.ResourceName(key): resource.MustParse("0")}
	d.backend.Observe(resourcequota.QuotaSeen{Quota: &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ten"},
		Spec:       corev1.ResourceQuotaSpec{Hard: ten}, Status: corev1.ResourceQuotaStatus{Hard: ten, Used: none}}})
	g, _ := d.backend.Place("a", "")
	pods := resourcequota.Pods{Count: int64(amount), Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	use, err := resourcequota.Weigh(pods)
	if err != nil {
		return false
	}
	vector, err := d.backend.Vector(use)
	return err == nil && g.Fits(quota.Demand{Requests: vector}) == nil
}

// leaves reports how much of a quota of 10 is left, exactly.
func (d *desk) leaves(t *testing.T, key string, want int) {
	t.Helper()
	d.work()
	if want > 0 && !d.fits(want, key) || d.fits(want+1, key) {
		t.Errorf("not exactly %d of %s is left of 10", want, key)
	}
}

const podOfTwo = `{metadata: {namespace: a, name: p, uid: p}, spec: {containers: [{name: main, resources: {requests: {cpu: 2}}}]}}`

func seen(t *testing.T, text string, changes ...func(*corev1.Pod)) *pod {
	t.Helper()
	p := read[corev1.Pod](t, text)
	for _, change := range changes {
		change(p)
	}
	slim, err := slim(p)
	if err != nil {
		t.Fatal(err)
	}
	return slim.(*pod)
}

func TestAPodCountsUntilItHasEndedOrIsGone(t *testing.T) {
	d := newDesk(t)
	d.podSeen(seen(t, podOfTwo))
	d.leaves(t, "cpu", 8)
	d.leaves(t, "pods", 9)
	d.podSeen(seen(t, podOfTwo, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	d.leaves(t, "cpu", 10)
	d.leaves(t, "pods", 10)
	d.leaves(t, "count/pods", 9)
	d.podGone("a/p", seen(t, podOfTwo))
	d.leaves(t, "count/pods", 10)
}

func TestADeletedPodCountsNoLongerThanItsGracePeriod(t *testing.T) {
	d := newDesk(t)
	deleted := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: d.clock.Now().Add(30 * time.Second)}
		p.DeletionGracePeriodSeconds = ptr.To[int64](30)
	}
	d.podSeen(seen(t, podOfTwo, deleted))
	d.leaves(t, "cpu", 8)
	deadline := time.After(10 * time.Second)
	for !d.clock.HasWaiters() {
		select {
		case <-deadline:
			t.Fatal("nobody waits for the end of the grace period")
		case <-time.After(time.Millisecond):
		}
	}
	d.clock.Step(59 * time.Second)
	d.leaves(t, "cpu", 8)
	d.clock.Step(2 * time.Second)
	for len(d.pending()) == 0 {
		select {
		case <-deadline:
			t.Fatal("the end of the grace period was not reported")
		case <-time.After(time.Millisecond):
		}
	}
	d.leaves(t, "cpu", 10)
	// What is heard of it afterwards changes nothing.
	d.podSeen(seen(t, podOfTwo, deleted, func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: d.clock.Now().Add(-31 * time.Second)}
	}))
	d.leaves(t, "cpu", 10)
	d.podGone("a/p", seen(t, podOfTwo, deleted))
	d.work()
	if len(d.ending.pods) > 0 {
		t.Error("a pod that is gone is still watched")
	}
}

func (d *desk) pending() []func() backend.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.taken
}

func TestAPodIsFoundToBeItsJobsThroughIntermediateOwners(t *testing.T) {
	for _, c := range []struct {
		name    string
		between []string
		owner   string
	}{
		{"directly", nil, "[{uid: job, controller: true}]"},
		{"by the one who controls it, of several owners", nil, "[{uid: other}, {uid: job, controller: true}]"},
		{"by the only owner, though that does not control it", nil, "[{uid: job}]"},
		{"through a Job", []string{`{metadata: {namespace: a, name: j, uid: between, ownerReferences: [{uid: job, controller: true}]}}`}, "[{uid: between, controller: true}]"},
		{"through two objects", []string{
			`{metadata: {namespace: a, name: j, uid: middle, ownerReferences: [{uid: job, controller: true}]}}`,
			`{metadata: {namespace: a, name: k, uid: between, ownerReferences: [{uid: middle, controller: true}]}}`}, "[{uid: between, controller: true}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			group, _ := d.backend.Place("a", "")
			demand, err := d.Demand(&schedulingv1alpha1.QueueUnit{Spec: schedulingv1alpha1.QueueUnitSpec{
				Resource: corev1.ResourceList{"cpu": resource.MustParse("3")}}})
			if err != nil {
				t.Fatal(err)
			}
			group.Charge("job", demand)
			d.leaves(t, "cpu", 7)
			d.podSeen(seen(t, strings.Replace(podOfTwo, "uid: p}", "uid: p, ownerReferences: "+c.owner+"}", 1)))
			for _, text := range c.between {
				o, err := slimOwner(read[metav1.PartialObjectMetadata](t, text))
				if err != nil {
					t.Fatal(err)
				}
				d.ownerSeen(o)
			}
			d.leaves(t, "cpu", 7)
			if len(c.between) > 0 {
				for _, text := range c.between {
					d.ownerGone("", read[metav1.PartialObjectMetadata](t, text))
				}
				d.leaves(t, "cpu", 7) // it is known as long as the pod is there
			}
			group.Release("job", demand)
			d.leaves(t, "cpu", 8)
		})
	}
}

func TestThePodsOfAUnitAreWeighedByTheirScopes(t *testing.T) {
	d := newDesk(t)
	unit := read[schedulingv1alpha1.QueueUnit](t, `{spec: {consumerRef: {apiVersion: v1, kind: K, name: n, uid: job}, resource: {cpu: 1}, podSets: [
		{name: a, count: 2, requests: {cpu: 500m}},
		{name: b, count: 3, quotaScopes: [BestEffort], priorityClassName: high}]}}`)
	kept := &schedulingv1alpha1.QueueUnit{Spec: schedulingv1alpha1.QueueUnitSpec{Resource: unit.Spec.Resource}}
	d.Keep(&unit.Spec, &kept.Spec)
	if kept.Spec.ConsumerRef.UID != "job" {
		t.Error("whose the pods are was not kept")
	}
	for _, c := range []struct {
		scopes string
		want   wellknown.Reason
	}{
		{"scopes: [BestEffort]", wellknown.ReasonExceedsMaxQuota},
		{"scopes: [NotBestEffort]", ""},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", wellknown.ReasonExceedsMaxQuota},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}", ""},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", ""},
		{"scopes: [Terminating]", ""},
		{"scopes: []", wellknown.ReasonExceedsMaxQuota},
	} {
		d.quotaSeen(read[corev1.ResourceQuota](t, `{metadata: {namespace: a, name: two}, spec: {hard: {pods: 2}, `+c.scopes+`}, status: {hard: {pods: 2}, used: {pods: 0}}}`))
		d.work()
		demand, err := d.Demand(kept)
		if err != nil {
			t.Fatal(err)
		}
		group, _ := d.backend.Place("a", "")
		got := wellknown.Reason("")
		if r := group.Fits(demand); r != nil {
			got = r.Reason
		}
		if got != c.want {
			t.Errorf("%s: refused for %q, want %q", c.scopes, got, c.want)
		}
	}
	d.quotaGone("a/two", nil)
	d.work()
	group, _ := d.backend.Place("a", "")
	if demand, _ := d.Demand(kept); group.Fits(demand) != nil {
		t.Error("refused without a quota")
	}
}

func TestMoreThanCanBeCountedIsAFaultOfTheUnit(t *testing.T) {
	d := newDesk(t)
	unit := read[schedulingv1alpha1.QueueUnit](t, `{spec: {podSets: [{name: a, count: 2000000000, requests: {memory: 1P}}]}}`)
	if _, err := d.Demand(unit); err == nil || !strings.Contains(err.Error(), "spec.podSets of the QueueUnit: \"a\": requests.memory: 2000000000 times 1P exceeds the largest possible request") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheCoreIsReportedOnceEverythingHasBeenTakenIn(t *testing.T) {
	d := newDesk(t)
	d.podSeen(seen(t, podOfTwo))
	if reported := d.work(); len(reported) > 0 {
		t.Errorf("reported %v before everything was there", reported)
	}
	if first := d.Listed().Quota; first == nil || first.Backend != quota.Backend(d.backend) {
		t.Errorf("the quota in force is %v", first)
	}
	d.podGone("a/p", seen(t, podOfTwo))
	if reported := d.work(); len(reported) != 1 || reported[0] != (resourcequota.Gone{Namespace: "a", UID: "p"}) {
		t.Errorf("reported %v", reported)
	}
}

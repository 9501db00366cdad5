package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// namespaces is the core with a backend that changes in place: a group for each namespace, ResourceQuotas, and pods.
type namespaces struct {
	core    *scheduler.Scheduler
	names   *resources.Names
	policy  *queue.Policy
	backend *resourcequota.Backend
	now     time.Time
	version uint64
	units   map[string]*scheduler.Unit
	quotas  map[string]*corev1.ResourceQuota
	pods    map[string]bool
	// reported is the last reason of each waiting unit.
	reported map[string]wellknown.Reason
}

func newNamespaces(policy *queue.Policy) *namespaces {
	names := resources.NewNames()
	n := &namespaces{policy: policy, core: scheduler.New(scheduler.Options{Policy: policy}), names: names, backend: resourcequota.New(names),
		now: time.Unix(1e9, 0), units: map[string]*scheduler.Unit{}, quotas: map[string]*corev1.ResourceQuota{},
		pods: map[string]bool{}, reported: map[string]wellknown.Reason{}}
	n.core.Apply(n.now, scheduler.QuotaChanged{Backend: n.backend})
	return n
}

func cores(n int) corev1.ResourceList {
	return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

func (n *namespaces) use(count, each int) resources.Vector {
	requests := cores(each)
	// Few units and pods request the same resource of these, and no quota limits it.
	requests[corev1.ResourceName(fmt.Sprint("example.com/rare-", 5*count+each))] = resource.MustParse("1")
	use, _ := resourcequota.Weigh(resourcequota.Pods{Count: int64(count), Requests: requests})
	vector, _ := n.backend.Vector(use)
	return vector
}

func (n *namespaces) demand(count, each int) quota.Demand {
	return quota.Demand{Requests: n.use(count, each).With(0, 1)} // the backend has named JobsResource first
}

func (n *namespaces) submit(namespace, name string, count, each int) {
	n.version++
	u := &scheduler.Unit{Key: namespace + "/" + name, Facts: scheduler.Facts{
		UID: "unit-" + namespace + name, Owner: namespace + name,
		Version: n.version, Submitted: int64(n.version), Demand: n.demand(count, each)}}
	n.units[u.Key] = u
	n.core.Apply(n.now, scheduler.UnitChanged{Unit: *u})
}

func (n *namespaces) end(u *scheduler.Unit) {
	n.version++
	u.Version, u.Phase = n.version, scheduler.Ended
	bare := *u // no more is known of a unit that has ended
	bare.Owner, bare.Demand = "", quota.Demand{}
	n.core.Apply(n.now, scheduler.UnitChanged{Unit: bare})
}

func (n *namespaces) remove(u *scheduler.Unit) {
	delete(n.units, u.Key)
	n.core.Apply(n.now, scheduler.UnitGone{Key: u.Key, UID: u.UID})
}

func (n *namespaces) observe(seen any) { n.core.Apply(n.now, scheduler.Observed{Seen: seen}) }

func (n *namespaces) pod(namespace, uid, owner string, each int) {
	n.pods[namespace+"/"+uid] = true
	n.core.Apply(n.now, scheduler.PodChanged{Pod: pods.Pod{Namespace: namespace, UID: uid, Owner: owner, Requests: n.use(1, each), Stray: true}})
}

// quota returns a ResourceQuota with hard limits and the used amounts of its status.
func (n *namespaces) quota(namespace, name string, hard, used int) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:   corev1.ResourceQuotaSpec{Hard: cores(hard)},
		Status: corev1.ResourceQuotaStatus{Hard: cores(hard), Used: cores(used)}}
	n.quotas[namespace+"/"+name] = q
	n.observe(resourcequota.QuotaSeen{Quota: q})
}

// forget lets the core forget what is no longer used.
func (n *namespaces) forget() {
	used, _ := n.core.Uses()
	n.core.Forget(used)
	n.names.Forget(used)
}

// next lets the core decide, and all writes succeed.
func (n *namespaces) next() (released []string) {
	for {
		plan, _ := n.core.Next(n.now)
		if len(plan) == 0 {
			return released
		}
		for _, w := range plan {
			n.version++
			u := n.units[w.Key]
			if w.Kind == scheduler.Dequeue {
				released = append(released, w.Key)
				delete(n.reported, w.Key)
				u.Phase, u.Version, u.Quota = scheduler.Dequeued, n.version, w.Quota
				u.Attempts++
			} else {
				n.reported[w.Key] = w.Reason
			}
			n.core.Apply(n.now, scheduler.Written{Write: &w, Version: n.version, At: n.now})
		}
	}
}

func (n *namespaces) group(namespace string) quota.Group {
	g, _ := n.backend.Place(namespace, "")
	return g
}

func TestWhatCouldNeverRunDoesOnceTheQuotaIsRaisedAndTheOtherWayRound(t *testing.T) {
	n := newNamespaces(queue.Block)
	n.quota("a", "q", 2, 0)
	n.submit("a", "big", 3, 1)
	n.next()
	if n.reported["a/big"] != wellknown.ReasonExceedsMaxQuota {
		t.Fatalf("reported %v", n.reported)
	}
	n.submit("a", "small", 2, 1)
	if got := n.next(); len(got) != 1 || got[0] != "a/small" {
		t.Fatalf("released %v, not the one that can run", got)
	}
	n.quota("a", "q", 5, 0)
	if got := n.next(); len(got) != 1 || got[0] != "a/big" {
		t.Fatalf("released %v after the quota was raised", got)
	}
	n.submit("a", "next", 3, 1)
	n.now = n.now.Add(scheduler.ReasonDelay)
	n.next()
	if n.reported["a/next"] != wellknown.ReasonQuotaExceeded {
		t.Fatalf("reported %v", n.reported)
	}
	n.quota("a", "q", 2, 0)
	n.now = n.now.Add(scheduler.ReasonInterval)
	n.next()
	if n.reported["a/next"] != wellknown.ReasonExceedsMaxQuota {
		t.Fatalf("reported %v after the quota was lowered", n.reported)
	}
}

func TestANamespaceGetsThePlaceOfOneThatIsForgotten(t *testing.T) {
	n := newNamespaces(queue.RoundRobin)
	n.quota("d", "q", 2, 0)
	n.quota("e", "q", 2, 0)
	n.observe(resourcequota.QuotaGone{Namespace: "d", Name: "q"})
	n.forget()
	n.submit("f", "one", 1, 1)
	n.next()
	if usage := n.backend.Usage(); len(usage) != 2 || usage[0].Path != "f" || usage[0].Jobs != 1 || usage[1].Path != "e" {
		t.Fatalf("the namespaces are %+v, want f in the place of d, and e", usage)
	}
}

// No matter what happens to quotas, pods and units, nothing is released beyond a quota, and nothing that fits waits.
func TestPropertyNothingThatFitsWaitsWhateverTheQuotasAndPodsDo(t *testing.T) {
	law := judge(t, "nothing that fits waits")
	rapid.Check(t, func(t *rapid.T) {
		waited := false
		n := newNamespaces(rapid.SampledFrom(queue.Policies()).Draw(t, "policy"))
		space := rapid.SampledFrom([]string{"a", "b"})
		small := rapid.IntRange(0, 4)
		names := 0
		with := func(t *rapid.T, do func(*scheduler.Unit), phases ...scheduler.Phase) {
			var some []string
			for _, key := range slices.Sorted(maps.Keys(n.units)) {
				if slices.Contains(phases, n.units[key].Phase) {
					some = append(some, key)
				}
			}
			if len(some) > 0 {
				do(n.units[rapid.SampledFrom(some).Draw(t, "unit")])
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				names++
				n.submit(space.Draw(t, "namespace"), fmt.Sprint(names), small.Draw(t, "pods"), small.Draw(t, "each"))
			},
			"end":    func(t *rapid.T) { with(t, n.end, scheduler.Dequeued) },
			"remove": func(t *rapid.T) { with(t, n.remove, scheduler.Waiting, scheduler.Dequeued, scheduler.Ended) },
			"a pod of a released job": func(t *rapid.T) {
				names++
				with(t, func(u *scheduler.Unit) {
					n.pod(u.Namespace(), fmt.Sprint("pod", names), u.Owner, small.Draw(t, "each"))
				}, scheduler.Dequeued, scheduler.Ended)
			},
			"another pod": func(t *rapid.T) {
				names++
				n.pod(space.Draw(t, "namespace"), fmt.Sprint("pod", names), "", small.Draw(t, "each"))
			},
			"a pod goes": func(t *rapid.T) {
				if len(n.pods) == 0 {
					return // there is none
				}
				key := rapid.SampledFrom(slices.Sorted(maps.Keys(n.pods))).Draw(t, "pod")
				delete(n.pods, key)
				n.core.Apply(n.now, scheduler.PodGone{Namespace: key[:1], UID: key[2:]})
			},
			"a quota": func(t *rapid.T) {
				n.quota(space.Draw(t, "namespace"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
					rapid.IntRange(0, 12).Draw(t, "hard"), rapid.IntRange(0, 12).Draw(t, "used"))
			},
			"a status": func(t *rapid.T) {
				if len(n.quotas) == 0 {
					return // there is none
				}
				q := n.quotas[rapid.SampledFrom(slices.Sorted(maps.Keys(n.quotas))).Draw(t, "quota")]
				hard := q.Spec.Hard["cpu"]
				n.quota(q.Namespace, q.Name, int(hard.Value()), rapid.IntRange(0, 12).Draw(t, "used"))
			},
			"a quota goes": func(t *rapid.T) {
				if len(n.quotas) == 0 {
					return // there is none
				}
				q := n.quotas[rapid.SampledFrom(slices.Sorted(maps.Keys(n.quotas))).Draw(t, "quota")]
				delete(n.quotas, q.Namespace+"/"+q.Name)
				n.observe(resourcequota.QuotaGone{Namespace: q.Namespace, Name: q.Name})
			},
			"time": func(t *rapid.T) {
				n.now = n.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "passes"))
			},
			"forget": func(*rapid.T) { n.forget() },
			"": func(t *rapid.T) {
				n.expectWork(t)
				for _, u := range n.units {
					waited = waited || u.Phase == scheduler.Waiting
				}
			},
		})
		law.add(waited, nil)
		n.expectForgotten(t)
	})
}

// expectForgotten removes everything, and expects that nothing is left.
func (n *namespaces) expectForgotten(t *rapid.T) {
	for _, key := range slices.Sorted(maps.Keys(n.units)) {
		n.remove(n.units[key])
	}
	for _, key := range slices.Sorted(maps.Keys(n.pods)) {
		n.core.Apply(n.now, scheduler.PodGone{Namespace: key[:1], UID: key[2:]})
	}
	for _, key := range slices.Sorted(maps.Keys(n.quotas)) {
		n.observe(resourcequota.QuotaGone{Namespace: n.quotas[key].Namespace, Name: n.quotas[key].Name})
	}
	n.next()
	n.now = n.now.Add(time.Minute)
	n.next()
	if n.forget(); n.names.Len() != 1 || len(n.backend.Usage()) != 0 {
		t.Fatalf("%d names and the namespaces %+v are left, want only %s", n.names.Len(), n.backend.Usage(), quota.JobsResource)
	}
	if left := n.core.Stored(); left != (scheduler.Stored{}) {
		t.Fatalf("what is left is %+v", left)
	}
}

// expectWork lets the core decide, and checks the result.
func (n *namespaces) expectWork(t *rapid.T) {
	t.Helper()
	for _, key := range n.next() {
		// What was released last still fits when its own charge is left out.
		u := n.units[key]
		charged := n.core.ChargeOf(key)
		n.group(u.Namespace()).Uncharge(charged)
		pods := &quota.Charge{Pods: charged.Pods}
		n.group(u.Namespace()).Charge(pods)
		r := n.group(u.Namespace()).Fits(u.Demand)
		n.group(u.Namespace()).Uncharge(pods)
		n.group(u.Namespace()).Charge(charged)
		if r != nil {
			t.Fatalf("%s was released: %s", key, r.Message())
		}
	}
	require.NoError(t, n.core.Check())
	if n.core.Rescued() > 0 {
		t.Fatal("the safety net found something")
	}
	inFront := map[string]bool{}
	for _, u := range slices.SortedFunc(maps.Values(n.units), func(a, b *scheduler.Unit) int { return orderOf(n.policy, a, b) }) {
		r := n.group(u.Namespace()).Fits(u.Demand)
		if u.Phase != scheduler.Waiting || r != nil && r.Final() {
			continue
		}
		if r == nil && (!n.policy.FrontOnly || !inFront[u.Namespace()]) {
			t.Fatalf("%s waits though it fits", u.Key)
		}
		inFront[u.Namespace()] = true
	}
	want := map[string]bool{}
	for _, u := range n.units {
		want[u.Namespace()] = true
	}
	for _, q := range n.quotas {
		want[q.Namespace] = true
	}
	if got := n.core.QueueNames(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("queues %v, want %v", got, want)
	}
}

// Only the quota has named the resource that it limits.
func TestAViewHasTheNamesOfItsUsage(t *testing.T) {
	n := newNamespaces(queue.RoundRobin)
	n.quota("a", "q", 1, 0)
	v := n.core.View(n.now, n.names)
	if most := v.Usage[0].Max; len(most) != 1 || v.Names.Name(most[0].ID) != "requests.cpu" {
		t.Errorf("the limits are %v", most)
	}
}

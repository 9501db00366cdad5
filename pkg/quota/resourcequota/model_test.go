package resourcequota

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// model is the accounting by definition: it stores everything that is charged, and sums up each figure on request.
type model struct {
	b       *Backend
	quotas  map[string]*corev1.ResourceQuota
	charges []charge
}

// charge is what a unit was admitted with, and its pods.
type charge struct {
	admitted, pods []Pods
	charged        *quota.Charge
}

const namespace = "ns"

// weight returns how much pods count under a key of a quota, by the rules of the API server.
func weight(q *corev1.ResourceQuota, key string, pods Pods) *big.Int {
	sum := new(big.Int)
	if !counts(q, pods.Class) {
		return sum
	}
	one := int64(0)
	value := func(list corev1.ResourceList, name string) int64 {
		quantity := list[corev1.ResourceName(name)]
		if name == "cpu" {
			return quantity.MilliValue()
		}
		return quantity.Value()
	}
	switch {
	case key == "count/pods":
		one = 1
	case pods.Ended:
	case key == "pods":
		one = 1
	case key == "cpu", key == "requests.cpu":
		one = value(pods.Requests, "cpu")
	case key == "memory", key == "requests.memory":
		one = value(pods.Requests, "memory")
	case key == "limits.cpu":
		one = value(pods.Limits, "cpu")
	case key == "requests.example.com/gpu":
		one = value(pods.Requests, "example.com/gpu")
	}
	return sum.Mul(big.NewInt(one), big.NewInt(pods.Count))
}

func weights(q *corev1.ResourceQuota, key string, all []Pods) *big.Int {
	sum := new(big.Int)
	for _, pods := range all {
		sum.Add(sum, weight(q, key, pods))
	}
	return sum
}

func counts(q *corev1.ResourceQuota, class Class) bool {
	for _, scope := range q.Spec.Scopes {
		is := map[corev1.ResourceQuotaScope]bool{
			corev1.ResourceQuotaScopeBestEffort:    class.BestEffort,
			corev1.ResourceQuotaScopeNotBestEffort: !class.BestEffort,
			corev1.ResourceQuotaScopeTerminating:   class.Terminating,
			corev1.ResourceQuotaScopePriorityClass: class.PriorityClass != "",
		}
		if !is[scope] {
			return false
		}
	}
	return true
}

// room returns the room, by observation and by the status.
func (m *model) room(q *corev1.ResourceQuota, key string) *big.Int {
	held, coming := new(big.Int), new(big.Int)
	for _, c := range m.charges {
		admitted, used := weights(q, key, c.admitted), weights(q, key, c.pods)
		if admitted.Cmp(used) > 0 {
			coming.Add(coming, new(big.Int).Sub(admitted, used))
			held.Add(held, admitted)
		} else {
			held.Add(held, used)
		}
	}
	seen := new(big.Int).Sub(hard(q, key), held)
	byStatus := new(big.Int).Sub(hard(q, key), base(key, q.Status.Used[corev1.ResourceName(key)]))
	byStatus.Sub(byStatus, coming)
	if byStatus.Cmp(seen) < 0 {
		return byStatus
	}
	return seen
}

func base(key string, q resource.Quantity) *big.Int {
	if key == "cpu" || key == "requests.cpu" || key == "limits.cpu" {
		return big.NewInt(q.MilliValue())
	}
	return big.NewInt(q.Value())
}

func hard(q *corev1.ResourceQuota, key string) *big.Int {
	name := corev1.ResourceName(key)
	spec, inSpec := q.Spec.Hard[name]
	status, inStatus := q.Status.Hard[name]
	if !inStatus || inSpec && spec.Cmp(status) < 0 {
		return base(key, spec)
	}
	return base(key, status)
}

// refusal returns the reason that should refuse a unit with these pods; empty if none should.
func (m *model) refusal(all []Pods) wellknown.Reason {
	answer := wellknown.Reason("")
	rank := []wellknown.Reason{"", wellknown.ReasonQuotaExceeded, wellknown.ReasonExceedsMaxQuota, wellknown.ReasonNoQuota, wellknown.ReasonInvalidRequest}
	say := func(r wellknown.Reason) {
		if slices.Index(rank, r) > slices.Index(rank, answer) {
			answer = r
		}
	}
	for _, q := range m.quotas {
		unknown := false
		for _, key := range keys(q) {
			_, decided := q.Status.Hard[key]
			_, counted := q.Status.Used[key]
			unknown = unknown || !decided || !counted
		}
		for _, key := range keys(q) {
			requested := new(big.Int)
			for _, pods := range all {
				requested.Add(requested, weight(q, string(key), pods))
				for unset := range pods.Unset {
					if counts(q, pods.Class) && (key == unset || "requests."+key == unset) {
						say(wellknown.ReasonInvalidRequest)
					}
				}
			}
			switch {
			case requested.Sign() == 0:
			case unknown:
				say(wellknown.ReasonNoQuota)
			case requested.Cmp(hard(q, string(key))) > 0:
				say(wellknown.ReasonExceedsMaxQuota)
			case requested.Cmp(m.room(q, string(key))) > 0:
				say(wellknown.ReasonQuotaExceeded)
			}
		}
	}
	return answer
}

func keys(q *corev1.ResourceQuota) []corev1.ResourceName {
	all := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{q.Spec.Hard, q.Status.Hard} {
		for key := range list {
			all[key] = key != "services"
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key corev1.ResourceName) bool { return !all[key] })
}

// Random things.

func drawClass(t *rapid.T) Class {
	return Class{BestEffort: rapid.Bool().Draw(t, "best effort"), Terminating: rapid.Bool().Draw(t, "terminating"),
		PriorityClass: rapid.SampledFrom([]string{"", "", "high"}).Draw(t, "priority class")}
}

func drawPods(t *rapid.T, count int64) Pods {
	pods := Pods{Class: drawClass(t), Count: count, Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}, Name: "pods"}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "example.com/gpu", "example.com/other"} {
		if rapid.Bool().Draw(t, "requests "+string(name)) {
			pods.Requests[name] = *resource.NewQuantity(int64(rapid.IntRange(0, 3).Draw(t, "amount")), resource.DecimalSI)
		}
	}
	if rapid.Bool().Draw(t, "limits cpu") {
		pods.Limits["cpu"] = *resource.NewMilliQuantity(int64(rapid.IntRange(0, 3000).Draw(t, "amount")), resource.DecimalSI)
	}
	return pods
}

func drawQuota(t *rapid.T, name string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:   corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}},
		Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}}}
	amount := func(label string) resource.Quantity {
		return *resource.NewQuantity(int64(rapid.IntRange(0, 12).Draw(t, label)), resource.DecimalSI)
	}
	rarely := rapid.IntRange(0, 9)
	for _, key := range []corev1.ResourceName{"cpu", "requests.cpu", "requests.memory", "limits.cpu", "pods", "count/pods", "requests.example.com/gpu", "services"} {
		if rapid.IntRange(0, 2).Draw(t, "key "+string(key)) > 0 {
			continue
		}
		q.Spec.Hard[key], q.Status.Hard[key], q.Status.Used[key] = amount("spec"), amount("status"), amount("used")
		switch rarely.Draw(t, "lag") {
		case 0:
			delete(q.Spec.Hard, key)
		case 1:
			delete(q.Status.Hard, key)
		case 2:
			delete(q.Status.Used, key)
		}
	}
	for _, scope := range []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopePriorityClass} {
		if rarely.Draw(t, "scope") == 0 {
			q.Spec.Scopes = append(q.Spec.Scopes, scope)
		}
	}
	return q
}

func (m *model) demand(t *rapid.T, all []Pods) quota.Demand {
	return quota.Demand{Requests: m.vector(t, all...).With(m.b.jobs, 1)}
}

func (m *model) vector(t *rapid.T, all ...Pods) resources.Vector {
	var uses []Use
	for _, pods := range all {
		use, err := Weigh(pods)
		require.NoError(t, err)
		uses = append(uses, use)
	}
	vector, err := m.b.Vector(uses...)
	require.NoError(t, err)
	return vector
}

func (m *model) rooms() map[quota.Space]int64 {
	rooms := map[quota.Space]int64{}
	g := m.b.group(namespace)
	for _, s := range g.spaces {
		for _, bound := range bounds {
			rooms[g.name(s, bound)] = m.b.Room(g.name(s, bound))
		}
	}
	return rooms
}

func (m *model) charge(t *rapid.T, c charge) {
	c.charged = &quota.Charge{Pods: m.vector(t, c.pods...), Unqueued: c.admitted == nil}
	if c.admitted != nil {
		c.charged.Demand = m.demand(t, c.admitted)
	}
	m.charges = append(m.charges, c)
	m.b.group(namespace).Charge(c.charged)
}

func (m *model) release(i int) charge {
	c := m.charges[i]
	m.charges = slices.Delete(m.charges, i, i+1)
	m.b.group(namespace).Uncharge(c.charged)
	return c
}

func drawPodsOf(t *rapid.T) []Pods {
	pods := []Pods{drawPods(t, 1), drawPods(t, 1)}[:rapid.IntRange(0, 2).Draw(t, "pods")]
	for i := range pods {
		pods[i].Ended = rapid.Bool().Draw(t, "ended")
	}
	return pods
}

// No matter what happens to quotas, their status, units and pods, each room matches the model, refusals are as
// expected, and no room grows unnoticed.
func TestPropertyRoomIsWhatBothTruthsLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{b: New(resources.NewNames()), quotas: map[string]*corev1.ResourceQuota{}}
		m.b.names.ID("something else")
		names := rapid.SampledFrom([]string{"compute", "counts"})
		g := m.b.group(namespace)
		observe := func(seen any) {
			before := m.rooms()
			effect := m.b.Observe(seen)
			if effect.Changed != nil {
				return
			}
			for space, room := range m.rooms() {
				if grew := room > before[space]; grew != slices.Contains(effect.Freed, space) {
					t.Fatalf("after %+v room went from %d to %d, and freed is %v", seen, before[space], room, effect.Freed)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"a quota is seen": func(t *rapid.T) {
				q := drawQuota(t, names.Draw(t, "name"))
				m.quotas[q.Name] = q
				observe(QuotaSeen{Quota: q})
			},
			"a status is seen": func(t *rapid.T) {
				q := m.quotas[names.Draw(t, "name")]
				if q == nil {
					return // there is no such quota
				}
				q = q.DeepCopy()
				for key := range q.Status.Used {
					q.Status.Used[key] = *resource.NewQuantity(int64(rapid.IntRange(0, 12).Draw(t, "used")), resource.DecimalSI)
				}
				m.quotas[q.Name] = q
				observe(QuotaSeen{Quota: q})
			},
			"a quota is gone": func(t *rapid.T) {
				name := names.Draw(t, "name")
				delete(m.quotas, name)
				observe(QuotaGone{namespace, name})
			},
			"a unit is charged": func(t *rapid.T) {
				m.charge(t, charge{admitted: []Pods{drawPods(t, 1), drawPods(t, int64(rapid.IntRange(0, 3).Draw(t, "count")))}, pods: drawPodsOf(t)})
			},
			"pods outside of the queue are charged": func(t *rapid.T) { m.charge(t, charge{pods: drawPodsOf(t)}) },
			"the pods of a unit change": func(t *rapid.T) {
				if len(m.charges) == 0 {
					return // there is none
				}
				c := m.release(rapid.IntRange(0, len(m.charges)-1).Draw(t, "unit"))
				c.pods = drawPodsOf(t)
				m.charge(t, c)
			},
			"a unit is released": func(t *rapid.T) {
				if len(m.charges) == 0 {
					return // there is none
				}
				before := m.rooms()
				c := m.release(rapid.IntRange(0, len(m.charges)-1).Draw(t, "unit"))
				visited := map[quota.Space]bool{}
				g.Spaces(c.charged, func(s quota.Space) { visited[s] = true })
				for space, room := range m.rooms() {
					if room > before[space] && !visited[space] {
						t.Fatalf("room grew unnoticed")
					}
				}
			},
			"": func(t *rapid.T) { m.compare(t, g) },
		})
		for len(m.charges) > 0 {
			m.release(0)
		}
		if len(g.charged) > 0 || len(g.unqueued) > 0 || len(g.charges) > 0 {
			t.Fatalf("left over: %v charged, %v outside of the queue, %v", g.charged, g.unqueued, g.charges)
		}
		for _, s := range g.spaces {
			if s.held != (resources.Sum{}) || s.coming != (resources.Sum{}) {
				t.Fatalf("left over in %s of %s: %+v", s.key, s.quota.name, s)
			}
		}
	})
}

func (m *model) compare(t *rapid.T, g *group) {
	got := map[string]string{}
	for _, s := range g.spaces {
		got[s.quota.name+" "+s.key] = fmt.Sprint(s.room())
	}
	want := map[string]string{}
	for _, q := range m.quotas {
		for _, key := range keys(q) {
			want[q.Name+" "+string(key)] = m.room(q, string(key)).String()
		}
	}
	for space := range want {
		// A quota with unknown status refuses everything, no matter the figures.
		if unknown := g.quotas[firstWord(space)].unknown; unknown != "" {
			want[space], got[space] = "unknown", "unknown"
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("room is %v, want %v", got, want)
	}
	requested := []Pods{drawPods(t, 1), drawPods(t, 2)}
	if rapid.IntRange(0, 9).Draw(t, "unset") == 0 {
		requested[1].Unset = map[corev1.ResourceName]string{"limits.cpu": "main"}
	}
	refusal := wellknown.Reason("")
	if r := g.Fits(m.demand(t, requested)); r != nil {
		refusal = r.Reason
	}
	if want := m.refusal(requested); !plausible(refusal, want) {
		t.Fatalf("refused for %q, want %q", refusal, want)
	}
}

// plausible: of several reasons that do not wait for room, any may be reported.
func plausible(got, want wellknown.Reason) bool {
	final := []wellknown.Reason{wellknown.ReasonNoQuota, wellknown.ReasonExceedsMaxQuota}
	return got == want || slices.Contains(final, got) && slices.Contains(final, want)
}

func firstWord(s string) string {
	for i, r := range s {
		if r == ' ' {
			return s[:i]
		}
	}
	return s
}

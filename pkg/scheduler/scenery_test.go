package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func leaf(name string, max map[string]string, namespaces ...string) tree.Node {
	return tree.Node{Name: name, Namespaces: namespaces, Max: quantities(max)}
}

// owning is a leaf with a min.
func owning(name string, min, max map[string]string, children ...tree.Node) tree.Node {
	n := leaf(name, max)
	if children == nil {
		n.Namespaces = []string{name}
	}
	n.Min, n.Children = quantities(min), children
	return n
}

func quantities(list map[string]string) map[string]resource.Quantity {
	if list == nil {
		return nil
	}
	q := map[string]resource.Quantity{}
	for name, text := range list {
		q[name] = resource.MustParse(text)
	}
	return q
}

func cpu(n string) map[string]string { return map[string]string{"cpu": n} }

func maxTime(d time.Duration) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.MaxSeconds = int32(d / time.Second) }
}

// deactivate and activate change the unit's spec.
func deactivate(u *scheduler.Unit) {
	u.Inactive, u.Held = true, &quota.Refusal{Reason: wellknown.ReasonInactive, Sentence: "spec.active is false"}
}

func activate(u *scheduler.Unit) { u.Inactive, u.Held = false, nil }

// stop: the job has been suspended and has no pods left.
func stop(u *scheduler.Unit) { u.Stopped = holds(u) }

func preemptible(is bool) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Demand.Preemptible = is }
}

func unstoppable(is bool) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Unstoppable = is }
}

func quotaName(name string) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.QuotaName = name }
}

func priority(p int32) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Priority = p }
}

func expectReleased(t *testing.T, w *world, keys ...string) {
	t.Helper()
	if got := w.released(); !slices.Equal(got, keys) {
		t.Fatalf("released are %v, want %v", got, keys)
	}
}

func roundRobin() scheduler.Options { return scheduler.Options{Policy: queue.RoundRobin} }

func pausing(t *testing.T, root tree.Node) *world {
	w := newWorld(t, roundRobin(), root)
	w.treeOpts.PauseBorrowing = true
	w.plant(root)
	return w
}

func count(w *world, namespace string) (n int) {
	for _, key := range w.released() {
		if strings.HasPrefix(key, namespace+"/") {
			n++
		}
	}
	return n
}

func finishAll(w *world) {
	for _, key := range w.released() {
		w.finish(key)
	}
}

package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// expectUsed compares the use of a resource over time, in base units times milliseconds.
func (w *world) expectUsed(path, namespace, resource string, want int64) {
	w.t.Helper()
	got := resources.Sum{}
	for _, c := range w.core.Consumption(w.now) {
		for _, a := range c.Amounts {
			if c.Quota == path && c.Namespace == namespace && w.names.Name(a.ID) == resource {
				got = a.Total
			}
		}
	}
	if got.Clamp() != want*1000 {
		w.t.Fatalf("%s has used %v microseconds x %s of %s, want %d", namespace, got.Clamp(), resource, path, want*1000)
	}
}

// Check verifies that metered and charged amounts agree.
func TestWhatIsUsedIsMeteredThroughAllChanges(t *testing.T) {
	root := tree.Node{Name: "root", Max: quantities(cpu("8")), Children: []tree.Node{leaf("x", cpu("8"), "a", "b"), leaf("y", nil, "c")}}
	w := newWorld(t, scheduler.Options{}, root)
	w.submit("a/u", cpu("3"))
	w.submit("b/u", cpu("1"))
	w.submit("b/waits", cpu("5"))
	w.settle()
	w.now = w.now.Add(2 * time.Second)
	w.expectUsed("root/x", "a", "cpu", 3000*2000)
	w.expectUsed("root/x", "a", quota.JobsResource, 2000)
	w.expectUsed("root/x", "b", "cpu", 1000*2000)
	w.expectUsed("root", "a", "cpu", 0) // it is the sum of those below

	w.pod(w.podOf("a/u", "pod", 4000))
	w.settle()
	w.now = w.now.Add(time.Millisecond)
	w.expectUsed("root/x", "a", "cpu", 3000*2000+4000)

	w.plant(root) // the same quota again
	w.settle()
	w.now = w.now.Add(time.Millisecond)
	w.expectUsed("root/x", "a", "cpu", 3000*2000+2*4000)

	w.podGone("pod")
	w.delete("a/u")
	w.settle() // the waiting unit is admitted
	w.now = w.now.Add(time.Millisecond)
	w.expectUsed("root/x", "a", "cpu", 3000*2000+2*4000)
	w.expectUsed("root/x", "b", "cpu", 1000*2000+2*1000+6000)
}

func TestNamesThatNobodyUsesAreNotMeteredForever(t *testing.T) {
	w := newWorld(t, scheduler.Options{}, leaf("root", cpu("4"), "a"))
	w.enqueue("a/u", map[string]string{"cpu": "1", "example.com/odd": "1"})
	w.now = w.now.Add(time.Second)
	w.delete("a/u")
	w.settle()
	w.expectUsed("root", "a", "example.com/odd", 1000)
	used, _ := w.core.Uses()
	w.core.Forget(used)
	w.expectUsed("root", "a", "example.com/odd", 0)
	w.expectUsed("root", "a", "cpu", 1000*1000)
}

package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Without quota, nothing is charged. What a unit leaves behind then must be charged to the right node when there is
// quota again, even if its group is gone.
func TestPodsOfAUnitThatIsRequeuedWithoutQuotaStayWithItsNode(t *testing.T) {
	for name, deleted := range map[string]bool{"the unit waits": false, "the unit is deleted": true} {
		w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin}, tree.Node{Name: "root", Max: quantities(cpu("8")), Children: []tree.Node{
			{Name: "left", Children: []tree.Node{leaf("old", cpu("4"), "a")}}, leaf("right", cpu("4"), "b")}})
		w.enqueue("a/u", cpu("4"))
		w.pod(w.podOf("a/u", "pod", 3000))
		w.write("a/u", stop)
		w.core.Apply(w.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Sentence: "none is valid"}})
		w.settle()
		if deleted {
			w.delete("a/u")
			w.settle()
		}
		w.plant(tree.Node{Name: "root", Max: quantities(cpu("8")), Children: []tree.Node{
			{Name: "left", Children: []tree.Node{leaf("new", cpu("4"), "c")}}, leaf("right", cpu("4"), "b")}})
		w.settle()
		for _, usage := range w.tree.Usage() {
			want := usage.Path == "root" || usage.Path == "root/left"
			if got := len(usage.Used) > 0; got != want {
				t.Errorf("%s: node %s has %v used", name, usage.Path, usage.Used)
			}
		}
	}
}

func TestAUnitThatHoldsQuotaShowsItUnderItsNewName(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("8"), leaf("old", nil, "a"), leaf("other", nil, "b")))
	w.enqueue("a/job", cpu("4"))
	expectReleased(t, w, "a/job")
	for _, to := range []struct{ quota, queue string }{{"root/new", "root-new"}, {"root/other", "root-other"}} {
		if to.quota == "root/new" {
			w.plant(owning("root", nil, cpu("8"), leaf("new", nil, "a"), leaf("other", nil, "b")))
		} else {
			w.plant(owning("root", nil, cpu("8"), leaf("other", nil, "b", "a")))
		}
		w.after(time.Minute)
		w.restart()
		w.after(time.Minute)
		found := w.writes("a/job", scheduler.ShowPlace)
		if last := len(found) - 1; last < 0 || found[last].Quota != to.quota || found[last].Queue != to.queue {
			t.Errorf("it shows %+v, want %s", found, to.quota)
		}
	}
	w.expectCount("a/job", scheduler.ShowPlace, 2)
}

package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestTheUnitInFrontIsNotNamed(t *testing.T) {
	root := leaf("root", cpu("4"))
	root.Children = []tree.Node{leaf("team", nil, "blue", "red")}
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, root)
	w.enqueue("red/runs", cpu("4"))
	w.submit("red/front", cpu("4"))
	w.after(time.Millisecond)
	w.submit("red/second", cpu("1"))
	w.submit("blue/third", cpu("1"))
	w.after(2 * time.Second)
	for key, want := range map[string]string{
		"red/second": "another unit is ahead in queue root-team, and policy Block admits only the front unit",
		"blue/third": "another unit is ahead in queue root-team, and policy Block admits only the front unit",
	} {
		if found := w.writes(key, scheduler.Explain); len(found) != 1 || found[0].Message != want {
			t.Errorf("unit %s: want the message %q, got %+v", key, want, found)
		}
	}
}

// Users who can read a unit might not be able to read anything else. So its messages must not contain other namespaces
// or names of units in them, and the status of a queue must not contain any. The worlds cover all causes of messages:
// waiting, evictions for others and for other reasons, admission checks, pods that are not ready, and pods that exceed
// what was admitted.
func TestPropertyNoSentenceNamesUnitsOrNamespacesOfOthers(t *testing.T) {
	reasons := map[wellknown.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := namesWorld(t)
		for step := range 30 {
			namesStep(t, w, step)
			for _, stats := range w.core.ChangedQueues(w.now) {
				for _, name := range namesOfOthers(w, "") {
					if text := fmt.Sprintf("%+v", stats); strings.Contains(text, name) {
						t.Fatalf("the status of a queue contains %q: %s", name, text)
					}
				}
			}
		}
		w.after(40 * time.Second)
		for _, write := range w.landed {
			reasons[write.Reason]++
			for _, name := range namesOfOthers(w, write.Key) {
				if strings.Contains(write.Message, name) {
					t.Fatalf("the sentence of unit %s contains %q: %s", write.Key, name, write.Message)
				}
			}
		}
	})
	t.Log(reasons)
	for _, reason := range []wellknown.Reason{
		wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs, wellknown.ReasonBorrowingPaused, wellknown.ReasonNotAtFront,
		wellknown.ReasonExceedsMaxQuota, wellknown.ReasonExceedsMinQuota, wellknown.ReasonNoQuota, wellknown.ReasonQuotaNotAllowed,
		wellknown.ReasonQueueStopped, wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonLimitExceeded,
		wellknown.ReasonPreempting, wellknown.ReasonPreempted, wellknown.ReasonReclaimed, wellknown.ReasonBackoff,
		wellknown.ReasonWaitingForPods, wellknown.ReasonPodsReadyTimeout, wellknown.ReasonAdmissionCheckPending,
		wellknown.ReasonAdmissionCheckMissing, wellknown.ReasonAdmissionCheckRetry, wellknown.ReasonAdmissionCheckRejected,
	} {
		if reasons[reason] == 0 {
			t.Errorf("no world had a sentence of reason %s, so it is not tested", reason)
		}
	}
}

// namesWorld has names that are not part of any other word.
func namesWorld(t *rapid.T) *world {
	root := leaf("root", map[string]string{"cpu": "8", quota.JobsResource: "4"})
	root.Children = []tree.Node{
		leaf("shared", cpu("6"), "ns-red", "ns-blue"),
		leaf("lent", cpu("6"), "ns-green", "ns-blue"),
	}
	root.Children[0].Min, root.Children[1].Min = quantities(cpu("2")), quantities(cpu("4"))
	w := newWorld(t, scheduler.Options{Policy: rapid.SampledFrom([]*queue.Policy{queue.Block, queue.Block, queue.RoundRobin, queue.Priority}).Draw(t, "policy"),
		Requeues:     backoff.Policy{Initial: 30 * time.Second, Max: time.Minute, Quiet: 10 * time.Minute},
		CheckRetries: backoff.Policy{Initial: 30 * time.Second, Max: time.Minute, Quiet: 10 * time.Minute}}, root)
	w.exact = false // pods exceed what was admitted
	w.treeOpts.PauseBorrowing, w.treeOpts.Reclaim = true, rapid.Bool().Draw(t, "quota is reclaimed")
	w.plant(root)
	w.addCheck("asked", 0)
	for _, name := range []string{"root-shared", "root-lent"} {
		w.configure(drawNamesQueue(t, name, scheduler.NotStopped))
	}
	return w
}

func drawNamesQueue(t *rapid.T, name string, stop scheduler.Stop) scheduler.QueueChanged {
	return scheduler.QueueChanged{Queue: name, Stop: stop,
		Preemption: scheduler.Preemption{WithinQueue: rapid.Bool().Draw(t, "preempts")},
		Checks:     rapid.SampledFrom([]scheduler.Checks{"", "", "", "asked", "missing"}).Draw(t, "checks"),
		PodsReady: scheduler.PodsReady{Timeout: time.Duration(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "pods ready timeout")) * time.Second,
			Blocks: rapid.Bool().Draw(t, "blocks until pods are ready")}}
}

func namesStep(t *rapid.T, w *world, step int) {
	keys := slices.Sorted(maps.Keys(w.units))
	if len(keys) == 0 || rapid.IntRange(0, 2).Draw(t, "submit") > 0 {
		namespace := rapid.SampledFrom([]string{"ns-red", "ns-blue", "ns-green", "ns-nowhere"}).Draw(t, "namespace")
		limit := time.Duration(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "seconds it may run")) * time.Second
		w.submit(fmt.Sprintf("%s/unit-%03d", namespace, step), cpu(rapid.SampledFrom([]string{"1", "2", "4", "5", "9"}).Draw(t, "cpu")),
			maxTime(limit), preemptible(rapid.IntRange(0, 3).Draw(t, "preemptible") > 0), priority(int32(rapid.IntRange(0, 2).Draw(t, "priority"))),
			quotaName(rapid.SampledFrom([]string{"", "", "shared", "lent"}).Draw(t, "quota")))
		w.after(time.Second)
		return
	}
	key := rapid.SampledFrom(keys).Draw(t, "unit")
	switch rapid.IntRange(0, 7).Draw(t, "step") {
	case 0:
		w.finish(key)
	case 1:
		w.write(key, deactivate)
	case 2:
		w.write(key, stop)
	case 3:
		w.configure(drawNamesQueue(t, rapid.SampledFrom([]string{"root-shared", "root-lent"}).Draw(t, "queue"),
			rapid.SampledFrom([]scheduler.Stop{scheduler.NotStopped, scheduler.NotStopped, scheduler.Hold, scheduler.Drain}).Draw(t, "stop")))
	case 4:
		w.pod(w.podOf(key, fmt.Sprintf("pod-%03d", step), 9000))
	case 5:
		for _, evicted := range w.evicted() {
			w.write(evicted, stop)
		}
	case 6, 7: // even of a running unit
		if asked := drawUnit(t, w, func(u *scheduler.Unit) bool { return u.Checking != nil && len(u.Checking.States) > 0 }); asked != "" {
			verdicts := []scheduler.Verdict{scheduler.Retry, scheduler.Rejected}
			if w.units[asked].Phase == scheduler.Reserved {
				verdicts = append(verdicts, scheduler.Ready, scheduler.Ready, scheduler.Ready)
			}
			w.decide(asked, "asked", rapid.SampledFrom(verdicts).Draw(t, "verdict"), "it says")
		}
	}
	w.after(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
}

// namesOfOthers lists all other namespaces than the unit's, and the units in them.
func namesOfOthers(w *world, key string) (names []string) {
	own, _, _ := strings.Cut(key, "/")
	for _, namespace := range []string{"ns-red", "ns-blue", "ns-green", "ns-nowhere"} {
		if namespace != own {
			names = append(names, namespace)
		}
	}
	for other, u := range w.units {
		if u.Namespace() != own {
			_, name, _ := strings.Cut(other, "/")
			names = append(names, name)
		}
	}
	return names
}

package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func releases(plan scheduler.Plan) (keys []string) {
	for _, w := range plan {
		if w.Kind == scheduler.Dequeue {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

func TestAQueueCapsThePriorityOfItsUnits(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("1"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", MaxPriority: scheduler.Cap{Set: true, Value: 5}})
	w.enqueue("a/running", cpu("1"))
	for _, key := range []string{"a/5", "a/100"} { // equal here, in this order
		w.submit(key, cpu("1"), priority(map[string]int32{"a/5": 5, "a/100": 100}[key]))
		w.after(time.Second)
	}
	w.end("a/running")
	expectReleased(t, w, "a/5")
	w.configure(scheduler.QueueChanged{Queue: "root"})
	w.enqueue("a/7", cpu("1"), priority(7))
	w.end("a/5")
	expectReleased(t, w, "a/100") // no longer capped
}

func TestBackoffDoesNotCountOnceThePolicyIsAnother(t *testing.T) {
	for _, tried := range []bool{true, false} {
		w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
		if tried { // and refused, so it is in backoff
			w.enqueue("a/holder", cpu("4"))
		}
		w.submit("a/high", cpu("3"), priority(10))
		if tried {
			w.settle()
		} else {
			w.deliver()
		}
		w.now = w.now.Add(100 * time.Millisecond)
		w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.Priority})
		if tried {
			w.finish("a/holder")
		}
		w.enqueue("a/low", cpu("2"))
		expectReleased(t, w, "a/high")
	}
}

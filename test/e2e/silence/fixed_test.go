package silence

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/harness"
)

// inTime is how long the last event of a job may ask for what somebody has done.
const inTime = 2 * time.Second

// fixedInTime changes what holds a job, and proves that its last event follows each time, and that this costs one
// write of one Event.
func fixedInTime(t *testing.T, l *harness.Env) {
	const name = "waits"
	stop := func(value string) func() {
		return func() { queue(t, l, "root-stopped", `{"spec":{"stop":"`+value+`"}}`) }
	}
	tree := func(groups ...string) func() { return func() { l.TreeOf(groups...) } }
	with := func(group string) []string { return append([]string{group}, groups()[:1]...) }
	stop("None")()
	in := func(cpu string) held { return held{cpu: cpu, labels: "kube-queue/quota-name: stopped"} }
	l.Apply(in("4").job("uses"))
	l.WaitForPhase("Job", "uses", "Running")
	began := create(t, l, in("4").job(name))
	lastSays(t, l, name, "Normal", "QuotaExceeded", began.Add(deadline))
	steps := []struct {
		change     func()
		kind, says string
	}{
		{stop("Hold"), "Normal", "QueueStopped"},
		{stop("None"), "Normal", "QuotaExceeded"},
		{tree(with(`{name: stopped, namespaces: [silence], max: {cpu: "3"}}`)...), "Warning", "max is 3"},
		{tree(with(`{name: stopped, namespaces: [silence], max: {cpu: "2"}}`)...), "Warning", "max is 2"},
		{tree(groups()...), "Normal", "QuotaExceeded"},
		{tree(groups()[:1]...), "Warning", "QuotaNotAllowed"},
		{tree(groups()...), "Normal", "QuotaExceeded"},
		{func() {
			l.Patch(harness.Jobs, name, `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
		}, "Normal", "Inactive"},
		{func() {
			l.Patch(harness.Jobs, name, `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"true"}}}`)
		}, "Normal", "QuotaExceeded"},
	}
	for _, step := range steps {
		step.change()
		lastSays(t, l, name, step.kind, step.says, time.Now().Add(inTime))
	}
	events := l.Events(name, "Queued")
	if len(events) != 1 || events[0].Count != int32(len(steps)+1) {
		t.Errorf("%d events were written, the first %d times, want one, %d times", len(events), events[0].Count, len(steps)+1)
	}
}

// lastSays waits until the last event of the job has the type and contains the text.
func lastSays(t *testing.T, l *harness.Env, name, kind, text string, until time.Time) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the last event says "+text, func() (bool, string) {
		all := l.AllEvents(name)
		if len(all) == 0 {
			return false, "there is none"
		}
		slices.SortStableFunc(all, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		last := all[len(all)-1]
		return last.Type == kind && strings.Contains(last.Message, text), last.Type + " " + last.Message
	})
	if late := time.Since(until); late > 0 {
		t.Errorf("the event %q came %v too late", text, late)
	}
}

package silence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// inTime is how long the last event of a job may ask for a fix that has already been made.
const inTime = 2 * time.Second

// fixedInTime changes what holds a job, and proves that the job's last event follows each time, at the cost of one
// write of an Event.
func fixedInTime(t *testing.T, l *harness.Env) {
	const name = "waits"
	stop := func(value string) func() {
		return func() { l.PatchQueue("root-stopped", `{"spec":{"stop":"`+value+`"}}`) }
	}
	tree := func(groups ...string) func() { return func() { l.TreeOf(groups...) } }
	with := func(group string) []string { return append([]string{group}, groups()[:1]...) }
	stop("None")()
	in := func(cpu string) held { return held{cpu: cpu, labels: "kube-queue/quota-name: stopped"} }
	l.Apply(in("4").job("uses"))
	l.WaitForPhase("Job", "uses", "Running")
	began := create(l, in("4").job(name))
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
	l.Delete(harness.Jobs, name)
	l.Delete(harness.Jobs, "uses")
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

// withoutNode proves that the unit of a released job says that its pods have no node, until they have one.
func withoutNode(t *testing.T, l *harness.Env) {
	const name, label = "no-node", "silence"
	l.Apply(strings.Replace(held{spec: "parallelism: 2, completions: 2,"}.job(name), "restartPolicy: Never,", "restartPolicy: Never, nodeSelector: {"+label+": here},", 1))
	l.WaitForPhase("Job", name, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	harness.Eventually(t, time.Minute, "the unit says that the pods have no node", func() (bool, string) {
		c := podsScheduled(l, name)
		return c != nil && c.Status == metav1.ConditionFalse && strings.HasPrefix(c.Message, "2 of 2 pods cannot be scheduled: 0/"), fmt.Sprint(c)
	})
	nodes := l.Kube.CoreV1().Nodes()
	all, err := nodes.List(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	node := all.Items[0].Name
	patch := func(value string) {
		_, err := nodes.Patch(context.Background(), node, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+label+`":`+value+`}}}`), metav1.PatchOptions{})
		harness.Must(t, err)
	}
	patch(`"here"`)
	t.Cleanup(func() { patch("null") })
	l.WaitForPhase("Job", name, v1alpha1.PhaseRunning)
	harness.Eventually(t, time.Minute, "the unit no longer says so", func() (bool, string) {
		c := podsScheduled(l, name)
		return c == nil, fmt.Sprint(c)
	})
	l.Delete(harness.Jobs, name)
}

func podsScheduled(l *harness.Env, job string) *metav1.Condition {
	return apimeta.FindStatusCondition(l.WaitForUnit("Job", job).Status.Conditions, wellknown.ConditionPodsScheduled)
}

// withoutPods proves that the unit of a released job says that it has no pods. The API server refuses them, because
// their ServiceAccount does not exist.
func withoutPods(t *testing.T, l *harness.Env) {
	const name = "no-pods"
	l.Apply(strings.Replace(held{}.job(name), "restartPolicy: Never,", "restartPolicy: Never, serviceAccountName: nobody,", 1))
	harness.Eventually(t, time.Minute, "the unit says that the job has no pods", func() (bool, string) {
		c := podsScheduled(l, name)
		return c != nil && c.Status == metav1.ConditionFalse && strings.HasPrefix(c.Message, "no pod of the job exists "), fmt.Sprint(c)
	})
	l.Delete(harness.Jobs, name)
}

// withoutWebhook proves that a release that the API server answers with 500 is reported, and follows once the webhook
// that cannot be called is gone.
func withoutWebhook(t *testing.T, l *harness.Env) {
	const name, label = "no-webhook", "webhook"
	l.ApplyAsIs(unreachable(label))
	webhooks := l.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	remove := sync.OnceFunc(func() { harness.Must(t, webhooks.Delete(context.Background(), label, metav1.DeleteOptions{})) })
	t.Cleanup(remove)
	awaitRefusal(t, l, label, "failed calling webhook")
	began := create(l, held{labels: "refuse: " + label}.job(name))
	awaitWord(t, l, name, silence{reason: "ReleaseRefused", says: []string{"holds quota", "failed calling webhook"}}, began)
	remove()
	if unit := l.WaitForPhase("Job", name, v1alpha1.PhaseRunning); unit.Status.Attempts != 1 {
		t.Errorf("it was admitted %d times", unit.Status.Attempts)
	}
	l.Delete(harness.Jobs, name)
}

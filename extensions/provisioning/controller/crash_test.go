package controller

import (
	"errors"
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/provisioning"
)

// life is what happens to a unit whose first request fails and whose nodes are taken away once, before it ends. After
// each step, the controller works until it is done.
var life = []struct {
	name string
	does func(w *world)
}{
	{"quota is reserved", func(w *world) { w.reserve("budget", "nodes") }},
	{"the request fails", func(w *world) { w.report("Failed", "True", "NoStock", "none left") }},
	{"the unit gives its quota back", func(w *world) { w.move(v1alpha1.PhaseBackoff) }},
	{"quota is reserved again", func(w *world) { w.reserve("budget", "nodes") }},
	{"the second request is accepted", func(w *world) { w.report("Accepted", "True", "Accepted", "") }},
	{"and provisioned", func(w *world) { w.report("Provisioned", "True", "Provisioned", "") }},
	{"the job is released", func(w *world) { w.move(v1alpha1.PhaseDequeued) }},
	{"and runs", func(w *world) { w.move(v1alpha1.PhaseRunning) }},
	{"the booking expires", func(w *world) { w.report("BookingExpired", "True", "Expired", "") }},
	{"the nodes are taken away", func(w *world) { w.report("CapacityRevoked", "True", "Preempted", "") }},
	{"the unit is queued again", func(w *world) { w.move(v1alpha1.PhaseEnqueued) }},
	{"quota is reserved for the third time", func(w *world) { w.reserve("budget", "nodes") }},
	{"the third request is provisioned", func(w *world) { w.report("Provisioned", "True", "Provisioned", "") }},
	{"the job runs again", func(w *world) { w.move(v1alpha1.PhaseRunning) }},
	{"the job ends", func(w *world) { w.move(v1alpha1.PhaseSucceeded) }},
}

// live runs all steps of life. It kills the program after dieAfter writes, counted from the start. It returns the
// objects after each step.
func live(t *testing.T, dieAfter int) (dumps []string, w *world) {
	w = newWorld(t)
	w.pods = append(w.pods, framework.PodSet{Name: "ps", Count: 1, Template: template(t, "{containers: [{name: ps, image: train, resources: {requests: {cpu: 2}}}]}")})
	w.change(queueUnits, team, unitName, func(object map[string]any) {
		spec := object["spec"].(map[string]any)
		spec["podSets"] = append(spec["podSets"].([]any), map[string]any{"name": "ps", "count": int64(1), "requests": map[string]any{"cpu": "2"}})
	})
	w.dieAfter = dieAfter
	c := w.start()
	for _, step := range life {
		step.does(w)
		c = w.settle(c)
		w.owned()
		dumps = append(dumps, w.dump())
	}
	return dumps, w
}

func TestAProgramThatIsKilledAfterAnyWriteLeavesTheSameObjects(t *testing.T) {
	want, w := live(t, -1)
	for _, resource := range []string{"podtemplates", "provisioningrequests"} {
		if created, deleted := count(w.log, "create "+resource), count(w.log, "delete "+resource); created == 0 || created != deleted {
			t.Errorf("%d %s are created, and %d deleted", created, resource, deleted)
		}
	}
	if w.writes < 25 {
		t.Errorf("only %d writes are tried", w.writes)
	}
	for n := 1; n <= w.writes; n++ {
		got, _ := live(t, n)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("killed after write %d (%s): after step %q the objects are\n%snot\n%s", n, w.log[n-1], life[i].name, got[i], want[i])
				break
			}
		}
	}
}

func count(log []string, entry string) (n int) {
	for _, e := range log {
		if e == entry {
			n++
		}
	}
	return n
}

// killed returns a world in which a program was killed after a number of writes for a unit.
func killed(t *testing.T, after int) *world {
	t.Helper()
	w := newWorld(t)
	w.reserve("nodes")
	w.dieAfter = after
	c := w.start()
	key, _ := c.queue.Get()
	if _, err := c.reconcile(t.Context(), key); !errors.Is(err, errDead) {
		t.Fatalf("the program was not killed: %v", err)
	}
	w.dieAfter = -1
	return w
}

// A job that changes while the program is down gets templates of its new pods, and the old ones are deleted.
func TestTemplatesOfAChangedJobReplaceThoseOfBeforeACrash(t *testing.T) {
	w := killed(t, 1)
	if len(w.all(podTemplates)) != 1 || len(w.all(provisioning.RequestResource)) != 0 {
		t.Fatal("the program was not killed before the request")
	}
	before := w.names(podTemplates)[0]
	w.pods[0].Template.Spec.NodeSelector = map[string]string{"gpu": "b200"}
	w.settle(w.start())
	w.owned()
	if now := w.names(podTemplates); len(now) != 1 || now[0] == before {
		t.Errorf("the templates are %v, and were %s", now, before)
	}
}

// A request is immutable, so its templates stay with it. A change that the unit shows is a Retry.
func TestARequestOfBeforeACrashKeepsItsTemplates(t *testing.T) {
	w := killed(t, 2)
	before := w.names(podTemplates)
	w.pods[0].Template.Spec.NodeSelector = map[string]string{"gpu": "b200"}
	w.settle(w.start())
	w.owned()
	if now := w.names(podTemplates); !slices.Equal(now, before) {
		t.Errorf("the templates are %v, and were %v", now, before)
	}
	w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
	w = killed(t, 2)
	w.change(queueUnits, team, unitName, func(object map[string]any) {
		object["spec"].(map[string]any)["podSets"].([]any)[0].(map[string]any)["count"] = int64(9)
	})
	w.settle(w.start())
	w.is("nodes", v1alpha1.CheckRetry, "the pods of the job changed")
}

// The autoscaler may be faster than the next start of the program.
func TestARequestThatIsProvisionedBeforeItIsRecordedIsReady(t *testing.T) {
	w := killed(t, 2)
	w.report("Provisioned", "True", "Provisioned", "")
	w.settle(w.start())
	w.is("nodes", v1alpha1.CheckReady, "is provisioned")
	if len(w.events) > 0 {
		t.Errorf("the events are %v", w.events)
	}
}

// The unit may lose its quota while the program is down.
func TestTemplatesWithoutARequestAreFoundAfterACrash(t *testing.T) {
	for _, phase := range []v1alpha1.QueueUnitPhase{v1alpha1.PhaseEnqueued, v1alpha1.PhaseBackoff, v1alpha1.PhaseSucceeded} {
		w := killed(t, 1)
		w.move(phase)
		w.settle(w.start())
		if left := w.names(podTemplates); len(left) > 0 {
			t.Errorf("%s: %v are left", phase, left)
		}
	}
}

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

func TestWhatAQueueSets(t *testing.T) {
	for _, c := range []struct {
		name string
		spec schedulingv1alpha1.QueueSpec
		want scheduler.QueueChanged
	}{
		{"nothing", schedulingv1alpha1.QueueSpec{}, scheduler.QueueChanged{}},
		{"a policy", schedulingv1alpha1.QueueSpec{Policy: schedulingv1alpha1.PolicyBlock}, scheduler.QueueChanged{Policy: queue.Block}},
		{"preemption", schedulingv1alpha1.QueueSpec{Preemption: &schedulingv1alpha1.QueuePreemption{WithinQueue: schedulingv1alpha1.PreemptLowerPriority,
			MinRunTime: &metav1.Duration{Duration: time.Minute}, MaxPerMinute: 3}},
			scheduler.QueueChanged{Preemption: scheduler.Preemption{WithinQueue: true, MinRunTime: scheduler.Period{Set: true, Value: time.Minute}, MaxPerMinute: 3}}},
		{"preemption that is not configured", schedulingv1alpha1.QueueSpec{Preemption: &schedulingv1alpha1.QueuePreemption{}}, scheduler.QueueChanged{}},
		{"its rank among queues", schedulingv1alpha1.QueueSpec{Priority: -3}, scheduler.QueueChanged{Rank: -3}},
		{"a greatest priority", schedulingv1alpha1.QueueSpec{MaxPriority: ptr.To[int32](7)}, scheduler.QueueChanged{MaxPriority: scheduler.Cap{Set: true, Value: 7}}},
		{"zero as the greatest", schedulingv1alpha1.QueueSpec{MaxPriority: ptr.To[int32](0)}, scheduler.QueueChanged{MaxPriority: scheduler.Cap{Set: true}}},
		{"that it goes on", schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopNone}, scheduler.QueueChanged{}},
		{"that nothing more is released", schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopHold}, scheduler.QueueChanged{Stop: scheduler.Hold}},
		{"that all is taken back", schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopDrain}, scheduler.QueueChanged{Stop: scheduler.Drain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Queue = "q"
			got := codec.Settings(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: c.spec})
			if got != c.want {
				t.Errorf("it comes to %+v, want %+v", got, c.want)
			}
		})
	}
}

// deciding is a loop whose plans are checked but not carried out.
type deciding struct {
	*testing.T
	*loop
	drawn *drawn
	// wake is when to decide again.
	wake time.Time
}

func decide(t *testing.T, opts tree.Options) *deciding {
	t.Helper()
	client, err := clientset.NewForConfig(&rest.Config{Host: "http://nowhere"}) // it gets no requests
	require.NoError(t, err)
	drawn := &drawn{opts: opts}
	cfg := Config{Client: client, Source: drawn, Clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), Namespace: "kube-queue", CheckInvariants: true}
	informers, err := newInformers(cfg)
	require.NoError(t, err)
	loop := informers.loop(cfg, klog.Background())
	_, err = drawn.Start(t.Context(), loop.host(nil))
	require.NoError(t, err)
	return &deciding{T: t, loop: loop, drawn: drawn}
}

// after advances the clock, processes the inputs, and returns what is written to each unit.
func (d *deciding) after(passed time.Duration, inputs ...input) map[string]string {
	d.Helper()
	d.loop.clock.(*clocktesting.FakeClock).Step(passed)
	plan, wake := d.decide(inputs)
	if d.broken != nil {
		d.Fatal(d.broken)
	}
	d.wake = wake
	writes := map[string]string{}
	for _, w := range plan {
		writes[w.Key] = fmt.Sprint(w.Kind, " ", w.Reason)
	}
	return writes
}

func (d *deciding) expect(got map[string]string, want map[string]string) {
	d.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) { // maps are printed in order of their keys
		d.Fatalf("it writes %v, want %v", got, want)
	}
}

// tree returns an input that replaces the tree.
func (d *deciding) tree(root string) input {
	d.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(d, yaml.Unmarshal([]byte(`{spec: {root: `+root+`}}`), &object.Object))
	return quotaSeen(func() backend.Change {
		d.Helper()
		d.drawn.root = manifest.Root(object)
		built, _, err := tree.New(d.names, d.drawn.root, d.drawn.opts)
		require.NoError(d, err)
		d.drawn.backend = built
		return backend.Change{Quota: &backend.Quota{Backend: built}}
	})
}

func unitOf(name, quotaName, cpu string, phase schedulingv1alpha1.QueueUnitPhase) input {
	return unitSeen(codec.Compactor{}.Compacted(&schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7"},
		Spec: schedulingv1alpha1.QueueUnitSpec{QuotaName: quotaName,
			Resource: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		Status: schedulingv1alpha1.QueueUnitStatus{Phase: phase},
	}))
}

// unitWith returns an input with a unit of a Job of the apiVersion.
func unitWith(name, apiVersion string) input {
	return unitSeen(codec.Compactor{}.Compacted(&schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7"},
		Spec:       schedulingv1alpha1.QueueUnitSpec{ConsumerRef: schedulingv1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: "Job", Name: name}},
	}))
}

// podsRemain returns an input with a unit whose job has ended and keeps its quota.
func podsRemain(name string) input {
	return unitSeen(&schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7"},
		Status:     schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseRunning, Reason: wellknown.ReasonPodsRemain},
	})
}

func queueOf(name string, stop schedulingv1alpha1.QueueStop) input {
	return queueSeen(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1alpha1.QueueSpec{Stop: stop}})
}

func TestAQueueIsStoppedThoughItsGroupComesLater(t *testing.T) {
	d := decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, queueOf("root", schedulingv1alpha1.StopHold), unitOf("u", "", "1", "")), nil)
	d.expect(d.after(0, d.tree(goodRoot)), nil)
	d.expect(d.after(time.Second), map[string]string{"a/u": "Explain QueueStopped"})
}

func TestAStoppedQueueStaysStoppedWhenItsQuotaIsRenamed(t *testing.T) {
	const before = `{name: root, children: [{name: old, namespaces: [a]}, {name: b, namespaces: [b, c]}]}`
	for name, c := range map[string]struct {
		tree  string
		moves bool
	}{
		"renamed":                      {`{name: root, children: [{name: new, namespaces: [a]}, {name: b, namespaces: [b, c]}]}`, true},
		"renamed and moved":            {`{name: root, children: [{name: b, namespaces: [b, c], children: [{name: new, namespaces: [a]}]}]}`, true},
		"two have its namespaces":      {`{name: root, children: [{name: new, namespaces: [a]}, {name: other, namespaces: [a]}]}`, false},
		"its namespaces have changed":  {`{name: root, children: [{name: new, namespaces: [a, d]}]}`, false},
		"another Queue has settings":   {`{name: root, children: [{name: taken, namespaces: [a]}]}`, false},
		"a process was killed between": {`{name: root, children: [{name: moved, namespaces: [a]}]}`, true},
		"renamed while there was none": {"", true},
	} {
		d := decide(t, tree.Options{})
		for queue, stop := range map[string]schedulingv1alpha1.QueueStop{"root-old": schedulingv1alpha1.StopHold, "root-moved": schedulingv1alpha1.StopHold, "root-taken": schedulingv1alpha1.StopNone} {
			require.NoError(t, d.publisher.queues.Add(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: queue}, Spec: schedulingv1alpha1.QueueSpec{Stop: stop}}))
		}
		d.expect(d.after(0, quotaListed, d.tree(before), queueOf("root-old", schedulingv1alpha1.StopHold), queueOf("root-moved", schedulingv1alpha1.StopHold), unitOf("u", "", "1", "")), nil)
		if c.tree == "" {
			c.tree = `{name: root, children: [{name: new, namespaces: [a]}]}`
			d.after(0, quotaSeen(func() backend.Change { return backend.Change{Quota: &backend.Quota{Missing: &quota.Refusal{}}} }))
		}
		writes := d.after(0, d.tree(c.tree))
		if admitted := writes["a/u"] == "Dequeue "; admitted == c.moves {
			t.Errorf("%s: it writes %v", name, writes)
		}
		if moves := len(d.publisher.moves); (moves == 1) != c.moves || d.host(nil).Moving() != c.moves {
			t.Errorf("%s: the settings of %d Queues move", name, moves)
		}
	}
}

func TestAStoppedQueueStaysStoppedWhenItsQuotaIsRenamedWhileTheControllerIsDown(t *testing.T) {
	d := decide(t, tree.Options{})
	old := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "root-old"}, Spec: schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopHold}}
	require.NoError(t, d.publisher.queues.Add(old))
	built := func(name string) quota.Backend {
		built, _, err := tree.New(d.names, tree.Node{Name: "root", Children: []tree.Node{{Name: name, Namespaces: []string{"a"}}}}, tree.Options{})
		require.NoError(t, err)
		return built
	}
	writes := d.after(0, queueSeen(old), unitOf("u", "", "1", ""), unitsListed, quotaSeen(func() backend.Change {
		return backend.Change{Quota: &backend.Quota{Backend: built("new"), Last: built("old")}}
	}))
	if m := d.publisher.moveTo("root-new"); len(writes) > 0 || m == nil || m.from != old {
		t.Errorf("it writes %v and moves %v", writes, m)
	}
}

// Each change comes before the publisher has moved the settings of the renamed quota.
func TestAMoveOfSettingsIsDropped(t *testing.T) {
	const old, renamed = `{name: old, namespaces: [a]}`, `{name: new, namespaces: [a]}`
	root := func(children string) string { return `{name: root, children: [` + children + `]}` }
	for name, c := range map[string]struct {
		then  []string
		moves string
	}{
		"when the rename is reverted":            {[]string{old}, ""},
		"when the old quota is created again":    {[]string{renamed + "," + old}, ""},
		"when the new quota is gone":             {[]string{`{name: b, namespaces: [b]}`}, ""},
		"when the new quota is renamed":          {[]string{`{name: newer, namespaces: [a]}`}, "root-old to root-newer"},
		"when a second rename is reverted":       {[]string{`{name: newer, namespaces: [a]}`, renamed}, "root-old to root-new"},
		"when both of two renames are reverted":  {[]string{`{name: newer, namespaces: [a]}`, old}, ""},
		"but not when another quota is added":    {[]string{renamed + `,{name: b, namespaces: [b]}`}, "root-old to root-new"},
		"but not while there is no quota at all": {[]string{"", renamed}, "root-old to root-new"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tree.Options{})
			queue := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "root-old"}, Spec: schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopDrain}}
			require.NoError(t, d.publisher.queues.Add(queue))
			d.after(0, quotaListed, d.tree(root(old)), queueSeen(queue))
			d.publish()
			d.after(PublishInterval, d.tree(root(renamed)))
			d.publish()
			for _, then := range c.then {
				if then == "" {
					d.after(0, quotaSeen(func() backend.Change { return backend.Change{Quota: &backend.Quota{Missing: &quota.Refusal{}}} }))
				} else {
					d.after(0, d.tree(root(then)))
				}
			}
			var moves []string
			for _, m := range d.publisher.moves {
				moves = append(moves, m.from.Name+" to "+m.to.Name)
			}
			if got := strings.Join(moves, ", "); got != c.moves {
				t.Errorf("the settings move from %q, want %q", got, c.moves)
			}
			if slices.Contains(d.core.QueueNames(), "root-old") && d.publisher.stale["root-old"] {
				t.Error("the old Queue is retired although its quota exists again")
			}
			d.after(PublishInterval)
			if d.publish(); !d.publisher.stale["root-old"] {
				t.Error("the status of the old Queue stays as it is")
			}
			for _, later := range []string{"new", "newer"} { // another quota gets one of the names
				d.after(0, d.tree(root(`{name: other, namespaces: [c]}`)))
				writes := d.after(0, d.tree(root(`{name: `+later+`, namespaces: [a]}`)), unitOf(later, "", "1", ""))
				if writes["a/"+later] != "Dequeue " || d.publisher.moveTo("root-"+later) != nil {
					t.Errorf("the later quota %s has the settings: it writes %v", later, writes)
				}
			}
		})
	}
}

func TestAQueueThatIsDeletedSetsNothingAnyMore(t *testing.T) {
	d := decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, d.tree(goodRoot), queueOf("root", schedulingv1alpha1.StopHold), unitOf("u", "", "1", "")), nil)
	d.expect(d.after(0, queueGone("root")), map[string]string{"a/u": "Dequeue "})
	if !d.publisher.stale["root"] {
		t.Error("nobody makes it again")
	}
}

func TestADrainedQueueEvictsWhatItHasReleasedAndNothingElse(t *testing.T) {
	d := decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, d.tree(`{name: root, children: [{name: one, namespaces: [a]}, {name: two, namespaces: [a]}]}`),
		unitOf("runs", "one", "1", "Running"), unitOf("released", "one", "1", "Dequeued"), unitOf("ended", "one", "1", "Succeeded"), podsRemain("done"),
		unitOf("elsewhere", "two", "1", "Running")), nil)
	d.expect(d.after(0, queueOf("root-one", schedulingv1alpha1.StopHold)), nil)
	d.expect(d.after(0, queueOf("root-one", schedulingv1alpha1.StopDrain)),
		map[string]string{"a/runs": "Evict QueueStopped", "a/released": "Evict QueueStopped"})
}

// A unit waits for quota that others have borrowed, and another unit would borrow more.
func TestBorrowingIsPausedWhereThatIsRequested(t *testing.T) {
	for paused, want := range map[bool]string{false: "Dequeue ", true: "Explain " + string(wellknown.ReasonBorrowingPaused)} {
		d := decide(t, tree.Options{PauseBorrowing: paused})
		got := d.after(0, quotaListed, d.tree(`{name: root, max: {cpu: 4}, children: [
			{name: owner, namespaces: [a], min: {cpu: 2}}, {name: borrower, namespaces: [a]}]}`),
			unitOf("has-borrowed", "borrower", "3", "Running"), unitOf("owed", "owner", "2", ""), unitOf("more", "borrower", "1", ""))
		if got["a/more"] == "" {
			got = d.after(time.Second)
		}
		if got["a/more"] != want {
			t.Errorf("paused %t: it writes %v, want %s", paused, got, want)
		}
	}
}

// comesAfter returns an input with a unit that was created while another was being created.
func comesAfter(name, after, cpu string) input {
	return unitSeen(codec.Compactor{}.Compacted(&schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7",
			Annotations: arrival.Annotate(nil, after)},
		Spec: schedulingv1alpha1.QueueUnitSpec{Resource: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}))
}

func TestFreeQuotaGoesToTheUnitThatAnotherComesAfter(t *testing.T) {
	const root = `{name: root, max: {cpu: 4}, children: [{name: team, namespaces: [a]}]}`
	d := decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, d.tree(root), comesAfter("second", "first", "4")), nil)
	d.expect(d.after(arrival.Patience/2, unitOf("first", "", "4", "")), map[string]string{"a/first": "Dequeue "})
	d.expect(d.after(time.Second), map[string]string{"a/second": "Explain " + string(wellknown.ReasonQuotaExceeded)})

	// A unit does not wait long for one that never comes.
	d = decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, d.tree(root), comesAfter("second", "first", "4")), nil)
	if want := d.now.Add(arrival.Patience); !d.wake.Equal(want) {
		t.Errorf("it decides again at %v, not at %v", d.wake, want)
	}
	d.expect(d.after(arrival.Patience), map[string]string{"a/second": "Dequeue "})
}

func TestOnlyAUnitThatNothingWasDecidedAboutIsHeld(t *testing.T) {
	for _, test := range []struct {
		status schedulingv1alpha1.QueueUnitStatus
		held   bool
	}{
		{schedulingv1alpha1.QueueUnitStatus{}, true},
		{schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseEnqueued}, true},
		{schedulingv1alpha1.QueueUnitStatus{Reason: wellknown.ReasonQuotaExceeded}, false},
		{schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseRunning}, false},
		{schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseSucceeded}, false},
	} {
		d := decide(t, tree.Options{})
		d.after(0, quotaListed, unitSeen(&schedulingv1alpha1.QueueUnit{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "second", UID: "second", ResourceVersion: "7", Annotations: arrival.Annotate(nil, "first")},
			Status:     test.status,
		}))
		if held := !d.sequence.Next().IsZero(); held != test.held {
			t.Errorf("status %+v: held is %t", test.status, held)
		}
	}
}

func TestWhatWasReleasedOnAGroupThatIsGoneCountsWhereItWas(t *testing.T) {
	d := decide(t, tree.Options{})
	released := &schedulingv1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "u", UID: "u", ResourceVersion: "8"}}
	for _, take := range []input{quotaListed, unitOf("u", "", "1", ""),
		d.tree(`{name: root, children: [{name: dept, children: [{name: team, namespaces: [a]}]}]}`)} {
		take(d.loop)
	}
	plan, _ := d.core.Next(time.Unix(1000, 0))
	if len(plan) != 1 || plan[0].Kind != scheduler.Dequeue {
		t.Fatalf("it plans %+v", plan)
	}
	d.expect(d.after(0, written(&plan[0], released.ResourceVersion, time.Unix(1000, 0)),
		d.tree(`{name: root, children: [{name: dept, children: [{name: other, namespaces: [b]}]}]}`)), nil)
	used := map[string]string{}
	for _, node := range d.drawn.backend.Usage() {
		cpu := resources.Quantities[string](d.names, node.Used)["cpu"]
		used[node.Path] = cpu.String()
	}
	d.expect(used, map[string]string{"root": "1", "root/dept": "1", "root/dept/other": "0"})
}

func TestAnInvalidJobShowsTheQueueItWouldWaitIn(t *testing.T) {
	d := decide(t, tree.Options{})
	invalid := func(quota string) input {
		return unitSeen(&schedulingv1alpha1.QueueUnit{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "u", UID: "uid", ResourceVersion: "12", CreationTimestamp: metav1.Unix(100, 0)},
			Spec:       schedulingv1alpha1.QueueUnitSpec{Active: ptr.To(false)},
			Status:     schedulingv1alpha1.QueueUnitStatus{Reason: wellknown.ReasonInvalidRequest, Message: "the priority is no number", Quota: quota},
		})
	}
	d.expect(d.after(0, quotaListed, d.tree(goodRoot), invalid(""), unitsListed), nil)
	d.loop.clock.(*clocktesting.FakeClock).Step(scheduler.ReasonDelay)
	plan, _ := d.decide(nil)
	if len(plan) != 1 || plan[0].Kind != scheduler.Explain || plan[0].Reason != wellknown.ReasonInvalidRequest || plan[0].Message != "the priority is no number" ||
		plan[0].Queue != "root" || plan[0].Quota != "root" {
		t.Fatalf("it writes %+v", plan)
	}
	d = decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, d.tree(goodRoot), invalid("root"), unitsListed), nil)
	d.expect(d.after(time.Minute), nil)
}

package podwatch

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// desk is a Watch that the test drives in place of informers. A pod uses 1 until it has ended.
type desk struct {
	*Watch
	t      *testing.T
	clock  *clocktesting.FakeClock
	ledger *pods.Ledger

	mu    sync.Mutex
	taken []func() scheduler.Event
}

func newDesk(t *testing.T, strays backend.Strays) *desk {
	t.Helper()
	d := &desk{t: t, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), ledger: pods.New()}
	rules := backend.PodRules{Strays: strays,
		Weigh: func(_ *corev1.Pod, ended bool) backend.PodUse { return !ended },
		Requests: func(use backend.PodUse) (resources.Vector, []pods.Shared) {
			if use != true {
				return nil, nil
			}
			return resources.Vector{{ID: 1, Value: 1}}, nil
		}}
	w, err := New(&rest.Config{Host: "http://nowhere"}, rules, d.clock, func(event func() scheduler.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.taken = append(d.taken, event)
	})
	require.NoError(t, err)
	d.Watch = w
	go d.ending.run(t.Context())
	return d
}

// uses fails unless the pods of the holder, or the strays, use this much.
func (d *desk) uses(holder string, want int64) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, take := range d.taken {
		switch e := take().(type) {
		case scheduler.PodChanged:
			d.ledger.Pod(e.Pod)
		case scheduler.PodGone:
			d.ledger.Gone(e.Namespace, e.UID)
		case scheduler.OwnerChanged:
			d.ledger.Object(e.Namespace, e.UID, e.Owner)
			d.ledger.Label(e.Namespace, e.Label, e.UID)
			d.ledger.Exempt(e.Namespace, e.UID, e.Exempt)
		case scheduler.OwnerGone:
			d.ledger.Gone(e.Namespace, e.UID)
			d.ledger.Unlabel(e.Namespace, e.Label)
		}
	}
	d.taken = nil
	if got, _ := d.ledger.Requested(pods.Holder{Namespace: "a", UID: holder}).Get(1); got != want {
		d.t.Errorf("the pods of %q use %d, want %d", holder, got, want)
	}
}

// busy fails unless this many pods without a holder are busy.
func (d *desk) busy(want int) {
	d.t.Helper()
	if n := d.ledger.Busy(pods.Holder{Namespace: "a"}); n != want {
		d.t.Errorf("%d pods are busy, want %d", n, want)
	}
}

func (d *desk) pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.taken)
}

// pod returns a pod as it is stored.
func (d *desk) pod(metadata string, changes ...func(*corev1.Pod)) *pod {
	d.t.Helper()
	p := new(corev1.Pod)
	require.NoError(d.t, yaml.UnmarshalStrict([]byte(`{metadata: {namespace: a, name: p, uid: p, `+metadata+`}}`), p))
	for _, change := range changes {
		change(p)
	}
	return stored[*pod](d.t, d.slim, p)
}

// owner returns an object between a pod and its job as it is stored.
func (d *desk) owner(kind *ownerKind, text string) *slim {
	d.t.Helper()
	o := new(metav1.PartialObjectMetadata)
	require.NoError(d.t, yaml.UnmarshalStrict([]byte(text), o))
	return stored[*slim](d.t, kind.slim, o)
}

// stored returns the object as the informer stores it.
func stored[T any](t *testing.T, transform func(any) (any, error), object any) T {
	t.Helper()
	reduced, err := transform(object)
	require.NoError(t, err)
	return reduced.(T)
}

// claiming is the use of a pod that has claims. A pod uses each of them once.
type claiming struct {
	keys   []string
	amount *int64
}

func (c claiming) ClaimKeys() []string { return c.keys }

func TestAPodIsCountedAgainWhenItsDevicesChange(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	amount := int64(1)
	d.rules.Weigh = func(p *corev1.Pod, _ bool) backend.PodUse {
		if p.Name == "p" {
			return claiming{[]string{"a/c"}, &amount}
		}
		return nil
	}
	d.rules.Requests = func(use backend.PodUse) (resources.Vector, []pods.Shared) {
		if c, is := use.(claiming); is {
			return resources.Vector{{ID: 1, Value: *c.amount}}, nil
		}
		return nil, nil
	}
	first := d.pod("")
	for _, p := range []*pod{first, d.pod("", func(p *corev1.Pod) { p.Name, p.UID = "other", "other" })} {
		require.NoError(t, d.pods.GetStore().Add(p))
		d.podSeen(p)
	}
	d.uses("", 1)
	for _, c := range []struct {
		devices string
		to      int64
		counted int
	}{{"a/c", 5, 1}, {"a/d", 5, 0}, {anyDevice, 7, 1}} {
		amount = c.to
		d.countAgain(c.devices)
		if d.countAgain(c.devices); d.pending() != c.counted {
			t.Errorf("%s: pods are counted again %d times, want %d", c.devices, d.pending(), c.counted)
		}
		d.uses("", c.to)
	}
	// It is deleted before it is counted again.
	d.countAgain("a/c")
	d.podGone(first)
	d.mu.Lock()
	slices.Reverse(d.taken)
	d.mu.Unlock()
	require.NoError(t, d.pods.GetStore().Delete(first))
	d.uses("", 0)
}

func (d *desk) hold(uid string) { d.ledger.Hold(pods.Holder{Namespace: "a", UID: uid}) }

func TestAPodCountsUntilItHasEndedOrIsGone(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	d.podSeen(d.pod(""))
	d.uses("", 1)
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		d.podSeen(d.pod("", func(p *corev1.Pod) { p.Status.Phase = phase }))
		d.uses("", 0)
		d.busy(0)
		d.podSeen(d.pod(""))
		d.uses("", 1)
		d.busy(1)
	}
	d.podGone(d.pod(""))
	d.uses("", 0)
}

func TestAPodWhoseGracePeriodOverflowsIsCharged(t *testing.T) {
	for _, grace := range []int64{1<<31 + 1, 10_000_000_000, 18_446_744_074, math.MaxInt64} {
		d := newDesk(t, backend.AllPods)
		follow.Changes(samePod, d.podSeen, d.podGone).OnAdd(d.pod(`resourceVersion: "1"`, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: d.clock.Now().Add(time.Second * time.Duration(grace))} // as the API server computes it
			p.DeletionGracePeriodSeconds = ptr.To(grace)
		}), false)
		d.uses("", 1)
	}
}

func TestAChangeThatMakesNoDifferenceIsNotReported(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	handler := follow.Changes(samePod, d.podSeen, d.podGone)
	first := d.pod(`resourceVersion: "1"`)
	handler.OnAdd(first, false)
	d.uses("", 1)
	for _, c := range []struct {
		name     string
		now      *pod
		reported int
		uses     int64
	}{
		{"a status", d.pod(`resourceVersion: "2"`, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), 0, 1},
		{"a label", d.pod(`resourceVersion: "2", labels: {a: b}`), 0, 1},
		{"an owner", d.pod(`resourceVersion: "2", ownerReferences: [{uid: job, controller: true}]`), 1, 1},
		{"a deletion", d.pod(`resourceVersion: "2"`, d.deleted), 1, 1},
		{"an end", d.pod(`resourceVersion: "2"`, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), 1, 0},
		{"another pod of the name", d.pod(`resourceVersion: "2"`, func(p *corev1.Pod) { p.UID = "other" }), 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler.OnUpdate(first, c.now)
			if n := d.pending(); n != c.reported {
				t.Errorf("%d reports, want %d", n, c.reported)
			}
			d.uses("", c.uses)
			handler.OnUpdate(c.now, first)
			d.uses("", 1)
		})
	}
	handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: first})
	d.uses("", 0)
	handler.OnDelete("no pod")
}

func TestAnOwnerIsReportedWhenItsOwnOwnerChanges(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	kind := d.kinds[0]
	handler := follow.Changes(sameOwner, func(o *slim) { d.ownerSeen(kind, o) }, func(o *slim) { d.ownerGone(kind, o) })
	owned := d.owner(kind, `{metadata: {namespace: a, name: j, uid: j, resourceVersion: "1", ownerReferences: [{uid: job, controller: true}]}}`)
	handler.OnUpdate(owned, d.owner(kind, `{metadata: {namespace: a, name: j, uid: j, resourceVersion: "2", labels: {a: b}, ownerReferences: [{uid: job, controller: true}]}}`))
	if n := d.pending(); n != 0 {
		t.Errorf("%d reports of a label, want 0", n)
	}
	handler.OnUpdate(owned, d.owner(kind, `{metadata: {namespace: a, name: j, uid: j, resourceVersion: "2"}}`))
	if n := d.pending(); n != 1 {
		t.Errorf("%d reports of an orphan, want 1", n)
	}
}

// deleted makes a pod one that was just deleted, with a grace period of 30 s.
func (d *desk) deleted(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: d.clock.Now().Add(30 * time.Second)}
	p.DeletionGracePeriodSeconds = ptr.To[int64](30)
}

func TestADeletedPodCountsNoLongerThanItsGracePeriod(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	d.podSeen(d.pod("", d.deleted))
	d.uses("", 1)
	require.Becomes(t, "somebody waits for the end of the grace period", d.clock.HasWaiters)
	d.clock.Step(59 * time.Second)
	d.uses("", 1)
	d.clock.Step(2 * time.Second)
	require.Becomes(t, "the end of the grace period is reported", func() bool { return d.pending() > 0 })
	d.clock.SetTime(d.clock.Now().Add(-10 * time.Second))
	d.uses("", 1)
	require.Becomes(t, "the end of the grace period is reported after the clock was set back", func() bool {
		d.clock.Step(time.Second)
		return d.pending() > 0
	})
	d.uses("", 0)
	d.busy(0) // it may exist forever
	// Later observations of the pod change nothing.
	d.podSeen(d.pod("", func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: d.clock.Now().Add(-31 * time.Second)}
		p.DeletionGracePeriodSeconds = ptr.To[int64](30)
	}))
	d.uses("", 0)
	d.podGone(d.pod("", d.deleted))
	d.uses("", 0)
	if len(d.ending.pods) > 0 {
		t.Error("a pod that is gone is still watched")
	}
}

// A finalizer can keep a deleted pod after it has ended.
func TestTheEndOfAGracePeriodDoesNotBringBackWhatAPodWasBefore(t *testing.T) {
	d := newDesk(t, backend.AllPods)
	d.podSeen(d.pod("", d.deleted))
	ended := d.pod(`resourceVersion: "2"`, d.deleted, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	require.NoError(t, d.Watch.pods.GetStore().Add(ended))
	d.podSeen(ended)
	d.uses("", 0)
	d.clock.Step(2 * time.Minute)
	d.podEnded("p")
	d.uses("", 0)
	d.expect()
}

func TestAPodIsFoundToBeItsJobsThroughIntermediateOwners(t *testing.T) {
	for _, c := range []struct {
		name    string
		between []string
		owner   string
	}{
		{"directly", nil, "[{uid: job, controller: true}]"},
		{"by the one who controls it, of several owners", nil, "[{uid: other}, {uid: job, controller: true}]"},
		{"by the only owner, though that does not control it", nil, "[{uid: job}]"},
		{"through a Job", []string{`{metadata: {namespace: a, name: j, uid: between, ownerReferences: [{uid: job, controller: true}]}}`}, "[{uid: between, controller: true}]"},
		{"through two objects", []string{
			`{metadata: {namespace: a, name: j, uid: middle, ownerReferences: [{uid: job, controller: true}]}}`,
			`{metadata: {namespace: a, name: k, uid: between, ownerReferences: [{uid: middle, controller: true}]}}`}, "[{uid: between, controller: true}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, backend.AllPods)
			d.hold("job")
			d.podSeen(d.pod("ownerReferences: " + c.owner))
			for _, text := range c.between {
				d.ownerSeen(d.kinds[0], d.owner(d.kinds[0], text))
			}
			d.uses("job", 1)
			d.uses("", 0)
			for _, text := range c.between {
				d.ownerGone(d.kinds[0], d.owner(d.kinds[0], text))
			}
			d.uses("job", 1) // it is known as long as the pod is there
		})
	}
}

func TestAPodThatLostItsControllerIsFoundByItsLabels(t *testing.T) {
	for _, c := range []struct {
		name, labels, between string
		job                   string
	}{
		{"of a Job", "{batch.kubernetes.io/controller-uid: job}", "", "job"},
		{"of a JobSet", "{batch.kubernetes.io/controller-uid: between, jobset.sigs.k8s.io/jobset-uid: job}", "", "job"},
		{"of a training job", "{training.kubeflow.org/job-name: name}", "", "training.kubeflow.org/job-name=name"},
		{"of a RayCluster", "{ray.io/cluster: name}", "", "ray.io/cluster=name"},
		{"of the RayCluster of a RayJob", "{ray.io/cluster: between}", `{metadata: {namespace: a, name: between, uid: between, ownerReferences: [{uid: job, controller: true}]}}`, "job"},
		{"of an orphaned RayCluster", "{ray.io/cluster: between}", `{metadata: {namespace: a, name: between, uid: between, labels: {ray.io/originated-from-cr-name: name}}}`, "ray.io/originated-from-cr-name=name"},
		{"of a SparkApplication", "{sparkoperator.k8s.io/app-name: name}", "", "sparkoperator.k8s.io/app-name=name"},
		{"of a Workflow", "{workflows.argoproj.io/workflow: name}", "", "workflows.argoproj.io/workflow=name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, backend.Orphans)
			d.podSeen(d.pod("labels: " + c.labels))
			if c.between != "" {
				d.ownerSeen(d.kinds[1], d.owner(d.kinds[1], c.between))
			}
			d.uses("", 1)
			d.hold("job")
			if strings.Contains(c.job, "=") {
				d.ledger.Label("a", c.job, "job")
			}
			d.uses("job", 1)
			d.uses("", 0)
		})
	}
}

// The JobSet of a TrainJob has its name, and no label.
func TestAPodOfAJobSetThatLostItsTrainJobIsFoundByTheNameOfTheJobSet(t *testing.T) {
	d := newDesk(t, backend.Orphans)
	d.podSeen(d.pod("ownerReferences: [{uid: between, controller: true}]"))
	d.ownerSeen(d.kinds[0], d.owner(d.kinds[0], `{metadata: {namespace: a, name: name-0, uid: between, ownerReferences: [{uid: set, controller: true}]}}`))
	owned := `{metadata: {namespace: a, name: name, uid: set, ownerReferences: [{uid: job, controller: true}]}}`
	d.ownerSeen(d.kinds[2], d.owner(d.kinds[2], owned))
	d.hold("job")
	label := codec.LabelOf("TrainJob", "name")
	d.ledger.Label("a", label, "job")
	d.uses("job", 1)
	orphan := d.owner(d.kinds[2], `{metadata: {namespace: a, name: name, uid: set}}`)
	d.ownerSeen(d.kinds[2], orphan)
	d.uses("job", 1)
	d.hold("set") // a JobSet that is queued itself
	d.uses("set", 1)

	d.ledger = pods.New() // after a restart
	d.hold("job")
	d.ledger.Label("a", label, "job")
	d.podSeen(d.pod("ownerReferences: [{uid: set, controller: true}]"))
	d.ownerSeen(d.kinds[2], orphan)
	d.uses("job", 1)
}

// A user who owns pods can change all of their metadata.
func TestAPodStaysWithItsJob(t *testing.T) {
	for _, forged := range []string{"", "ownerReferences: [{uid: nothing, controller: true}]", "labels: {ray.io/cluster: nothing}",
		"ownerReferences: [{kind: DaemonSet, uid: daemons, controller: true}]"} {
		d := newDesk(t, backend.UnqueuedPods)
		d.namespaceSeen(d.namespace("a", ""))
		d.daemonSet("a", "daemons")
		d.hold("job")
		d.ownerSeen(d.kinds[1], d.owner(d.kinds[1], `{metadata: {namespace: a, name: c, uid: cluster, ownerReferences: [{uid: job, controller: true}]}}`))
		d.podSeen(d.pod("ownerReferences: [{uid: cluster, controller: true}]"))
		d.uses("job", 1)
		d.podSeen(d.pod(forged))
		d.uses("job", 1)
		d.ownerSeen(d.kinds[1], d.owner(d.kinds[1], `{metadata: {namespace: a, name: c, uid: cluster, `+forged+`}}`))
		d.podSeen(d.pod(""))
		d.uses("job", 1)
		d.uses("", 0)
		require.NoError(t, d.Watch.pods.GetStore().Add(d.pod("")))
		d.expect() // the current owners are known
		d.podGone(d.pod(""))
		d.uses("job", 0)
	}
}

func TestWhyAPodHasNoNode(t *testing.T) {
	d := newDesk(t, backend.Orphans)
	condition := func(status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "of another condition"},
				{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message}}
		}
	}
	onNode := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	none := d.pod(`resourceVersion: "1"`)
	for _, test := range []struct {
		name    string
		changes []func(*corev1.Pod)
		want    string
	}{
		{"it was not tried", nil, ""},
		{"no node fits", []func(*corev1.Pod){condition("False", "Unschedulable", "0/5 nodes are available")}, "0/5 nodes are available"},
		{"a gate holds it", []func(*corev1.Pod){condition("False", "SchedulingGated", "gated")}, ""},
		{"it has a node", []func(*corev1.Pod){condition("True", "", "")}, ""},
		{"it has got one just now", []func(*corev1.Pod){condition("False", "Unschedulable", "0/5 nodes are available"), onNode}, ""},
		{"without a reason", []func(*corev1.Pod){condition("False", "Unschedulable", "")}, "the scheduler gives no reason"},
		{"a long message", []func(*corev1.Pod){condition("False", "Unschedulable", strings.Repeat("x", 5000))}, strings.Repeat("x", maxUnschedulable) + "..."},
	} {
		p := d.pod(`resourceVersion: "2"`, test.changes...)
		if got := d.current(p).Unschedulable; got != test.want {
			t.Errorf("%s: it says %q, want %q", test.name, got, test.want)
		}
		if same := samePod(none, p); same != (test.want == "") {
			t.Errorf("%s: it counts the same: %v", test.name, same)
		}
	}
}

func TestWhichPodsWithoutAUnitCount(t *testing.T) {
	for _, c := range []struct {
		name, metadata     string
		orphan, other, all int64
	}{
		{"a notebook", "ownerReferences: [{kind: StatefulSet, uid: s, controller: true}]", 0, 1, 1},
		{"a pod without an owner", "", 0, 1, 1},
		{"an orphan", "labels: {ray.io/cluster: gone}", 1, 1, 1},
		{"one that claims to be of a DaemonSet", "ownerReferences: [{kind: DaemonSet, uid: s, controller: true}]", 0, 1, 1},
		{"one that claims to be of a node", "ownerReferences: [{kind: Node, uid: s, controller: true}]", 0, 1, 1},
		{"one that claims to be static", "annotations: {kubernetes.io/config.mirror: x}, ownerReferences: [{kind: Node, uid: s, controller: true}]", 0, 1, 1},
	} {
		for strays, want := range map[backend.Strays]int64{backend.Orphans: c.orphan, backend.UnqueuedPods: c.other, backend.AllPods: c.all} {
			t.Run(c.name, func(t *testing.T) {
				d := newDesk(t, strays)
				d.podSeen(d.pod(c.metadata))
				d.uses("", want)
			})
		}
	}
}

// namespace returns a namespace as it is stored.
func (d *desk) namespace(name, labels string) *namespace {
	d.t.Helper()
	o := new(metav1.PartialObjectMetadata)
	require.NoError(d.t, yaml.UnmarshalStrict([]byte(`{metadata: {name: `+name+`, labels: {`+labels+`}}}`), o))
	return stored[*namespace](d.t, slimNamespace, o)
}

// daemonSet makes the informer see a DaemonSet that an object without a namespace controls.
func (d *desk) daemonSet(namespace, uid string) *slim {
	d.t.Helper()
	kind := d.kinds[3]
	o := d.owner(kind, `{metadata: {namespace: `+namespace+`, name: daemons, uid: `+uid+`, ownerReferences: [{uid: operator, controller: true}]}}`)
	require.NoError(d.t, kind.informer.GetStore().Add(o))
	d.ownerSeen(kind, o)
	return o
}

func (d *desk) daemonSetGone(o *slim) {
	d.t.Helper()
	require.NoError(d.t, d.kinds[3].informer.GetStore().Delete(o))
	d.ownerGone(d.kinds[3], o)
}

func TestOnlyPodsThatAreKnownToServeANodeAreNotCharged(t *testing.T) {
	const managed = `kube-queue/managed: "true"`
	d := newDesk(t, backend.UnqueuedPods)
	d.podSeen(d.pod("ownerReferences: [{kind: DaemonSet, uid: one, controller: true}]"))
	d.uses("", 1) // there is no such DaemonSet
	d.daemonSet("b", "one")
	d.namespaceSeen(d.namespace("b", ""))
	d.uses("", 1) // it is in another namespace
	daemons := d.daemonSet("a", "one")
	d.uses("", 1) // the namespace is not known
	d.namespaceSeen(d.namespace("a", ""))
	d.uses("", 0)
	d.namespaceSeen(d.namespace("a", managed))
	d.uses("", 1)
	d.namespaceSeen(d.namespace("a", `kube-queue/managed: "false"`))
	d.uses("", 0)
	d.namespaceGone(d.namespace("a", ""))
	d.uses("", 1)
	d.namespaceSeen(d.namespace("a", ""))
	d.uses("", 0)

	stale := d.kinds[3]
	d.daemonSetGone(daemons)
	d.ownerSeen(stale, daemons) // a change of its namespace caused this before the deletion
	d.uses("", 1)
	d.daemonSet("a", "two") // with the same name
	d.ownerSeen(stale, daemons)
	d.uses("", 1)
	d.podSeen(d.pod("ownerReferences: [{kind: DaemonSet, uid: two, controller: true}]")) // it was adopted
	d.uses("", 0)
	d.podSeen(d.pod("")) // it no longer belongs to it
	d.uses("", 1)

	d.podSeen(d.pod("ownerReferences: [{kind: ReplicaSet, uid: set, controller: true}]"))
	d.podSeen(d.pod("ownerReferences: [{kind: DaemonSet, uid: two, controller: true}]"))
	d.uses("", 1)
	d.podGone(d.pod(""))
	d.uses("", 0)

	if problems, _ := d.differences(); len(problems) > 0 {
		t.Errorf("differences are %q", problems)
	}
	d.ledger.Exempt("a", "two", false)
	d.expect("daemonsets a/daemons : the owner of the object is not known, or whether its pods are charged")()
	d.uses("", 0)
	d.expect()
}

func TestAStaticPodOfTheClusterIsNotCharged(t *testing.T) {
	d := newDesk(t, backend.UnqueuedPods)
	system := func(p *corev1.Pod) { p.Namespace = metav1.NamespaceSystem }
	mirror := "annotations: {kubernetes.io/config.mirror: x}, ownerReferences: [{kind: Node, uid: s, controller: true}]"
	if d.pod(mirror, system).stray || !d.pod("", system).stray || !d.pod(mirror).stray {
		t.Error("in kube-system, and nowhere else, a static pod is not charged")
	}
}

// differences compares what is stored with what is known.
func (d *desk) differences() (problems []string, heal func()) {
	var heals []func()
	d.Compare(d.ledger, func(found Difference) {
		problems = append(problems, found.Object+" "+found.Version+": "+found.Problem)
		heals = append(heals, found.Heal)
	})
	return problems, func() {
		for _, heal := range heals {
			heal()
		}
	}
}

func (d *desk) expect(want ...string) (heal func()) {
	d.t.Helper()
	problems, heal := d.differences()
	if !slices.Equal(problems, want) {
		d.t.Errorf("differences are %q, want %q", problems, want)
	}
	return heal
}

func TestWhatDiffersFromTheCachesIsFoundAndHealed(t *testing.T) {
	d := newDesk(t, backend.Orphans)
	d.hold("job")
	store := func(change func(any) error, object any) {
		t.Helper()
		require.NoError(t, change(object))
	}
	pods := d.Watch.pods.GetStore()
	p := d.pod(`resourceVersion: "5", ownerReferences: [{kind: RayCluster, name: c, uid: cluster, controller: true}]`)
	store(pods.Add, p)
	d.expect("Pod a/p 5: the pod is not counted")()
	d.uses("", 0)
	d.expect()

	cluster := d.owner(d.kinds[1], `{metadata: {namespace: a, name: c, uid: cluster, resourceVersion: "6", ownerReferences: [{kind: RayJob, name: j, uid: job, controller: true}]}}`)
	store(d.kinds[1].informer.GetStore().Add, cluster)
	d.expect("rayclusters a/c 6: the owner of the object is not known, or whether its pods are charged")()
	d.uses("job", 1)
	d.expect()

	ended := d.pod(`resourceVersion: "7", ownerReferences: [{kind: RayCluster, name: c, uid: cluster, controller: true}]`,
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	store(pods.Update, ended)
	d.expect("Pod a/p 7: the pod is counted with other requests or another owner")()
	d.uses("job", 0)

	store(pods.Delete, ended)
	d.expect("Pod a/p : the pod is counted but does not exist")()
	d.uses("job", 0)
	d.expect()
}

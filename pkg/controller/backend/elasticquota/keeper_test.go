package elasticquota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// cluster is an API server with ControllerRevisions, and the tree that a controller reads.
type cluster struct {
	*testing.T
	client *fake.FakeDynamicClient
	tree   *unstructured.Unstructured
	// writes is how many more writes succeed before the process ends; -1 means all.
	writes  int
	refused error
	uids    int
}

var errKilled = errors.New("the process has ended")

func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, writes: -1}
	c.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{revisionResource: "ControllerRevisionList"})
	c.client.PrependReactor("*", "controllerrevisions", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "list" || action.GetVerb() == "watch" {
			return false, nil, nil
		}
		if c.refused != nil {
			return true, nil, c.refused
		}
		if c.writes == 0 {
			return true, nil, errKilled
		}
		c.writes--
		if create, is := action.(clientgotesting.CreateAction); is {
			c.uids++
			object := create.GetObject().(*unstructured.Unstructured)
			object.SetUID(types.UID(fmt.Sprint("uid-", c.uids)))
		}
		return false, nil, nil
	})
	return c
}

func (c *cluster) revisions() dynamic.ResourceInterface {
	return c.client.Resource(revisionResource).Namespace("kube-queue")
}

// stored returns all ControllerRevisions from the newest to the oldest, with or without the label.
func (c *cluster) stored() []*unstructured.Unstructured {
	c.Helper()
	list, err := c.revisions().List(c.Context(), metav1.ListOptions{})
	require.NoError(c, err)
	var stored []*unstructured.Unstructured
	for i := range list.Items {
		stored = append(stored, &list.Items[i])
	}
	sortRevisions(stored)
	return stored
}

// put stores a ControllerRevision by hand.
func (c *cluster) put(u *unstructured.Unstructured) {
	c.Helper()
	require.NoError(c, c.client.Tracker().Create(revisionResource, u, "kube-queue"))
}

// process is a controller that has just started, without its goroutines.
type process struct {
	*Source
	cluster *cluster
	failed  []error
	moving  bool
}

// starts starts a controller that reads everything, and returns the first change.
func (c *cluster) starts() (*process, backend.Change) {
	c.Helper()
	p := &process{Source: New(tree.Options{}, PodOptions{}), cluster: c}
	p.names = resources.NewNames()
	p.forest = newForest(p.names, tree.Options{}, atNoon)
	p.keeper = newKeeper(c.revisions(), "kube-queue", clocktesting.NewFakeClock(noon), func() bool { return p.moving }, func(err error) { p.failed = append(p.failed, err) })
	p.inventory = newInventory(clocktesting.NewFakeClock(noon), requests.Rules{}, func(tree.Cluster) {})
	list, err := c.revisions().List(c.Context(), metav1.ListOptions{LabelSelector: revisionSelector})
	require.NoError(c, err)
	for i := range list.Items {
		p.forest.found(&list.Items[i])
	}
	if c.tree != nil {
		p.set("kube-system/t", c.tree)
	}
	return p, p.Listed()
}

// apply stores a version of the tree; nil deletes it. The process sees the change.
func (p *process) apply(object *unstructured.Unstructured) backend.Change {
	p.cluster.tree = object
	return p.set("kube-system/t", object)
}

// keeps makes one attempt to keep what is wanted.
func (p *process) keeps() error { return p.keeper.keep(p.cluster.Context()) }

func (p *process) mustKeep() {
	p.cluster.Helper()
	require.NoError(p.cluster, p.keeps())
}

// version returns the tree with a limit; a negative limit makes it invalid.
func version(t testing.TB, generation int64, cpu int) *unstructured.Unstructured {
	return treeObject(t, "kube-system", "t", time.Hour, generation, fmt.Sprintf(`{name: root, namespaces: [a], max: {cpu: %d}}`, cpu))
}

func TestTheLastValidTreeIsInForceAfterARestart(t *testing.T) {
	c := newCluster(t)
	c.tree = version(t, 1, 4)
	p, change := c.starts()
	if limitOf(change) != 4000 {
		t.Fatalf("at first: %+v", change)
	}
	p.mustKeep()
	stored := c.stored()
	if len(stored) != 1 || stored[0].GetLabels()[wellknown.LastValidTreeLabel] != "true" || stored[0].GetAnnotations()[wellknown.TreeGenerationAnnotation] != "1" {
		t.Fatalf("kept are %v", stored)
	}
	if root, _, _ := unstructured.NestedMap(stored[0].Object, "data", "spec", "root"); root["name"] != "root" {
		t.Errorf("it holds %v", stored[0].Object["data"])
	}

	p.apply(version(t, 2, 8))
	p.mustKeep()
	p.apply(version(t, 3, -1))
	p.mustKeep()
	for range 3 { // restarts
		p, change = c.starts()
		if limitOf(change) != 8000 || reasonsOf(change.Notices) != "InvalidQuotaTree t" {
			t.Fatalf("after a restart with an invalid tree: %+v", change)
		}
		if !strings.Contains(p.Invalid(), "the last valid tree stays in force (generation 2 of kube-system/t, kept as last-valid-tree-") {
			t.Errorf("the problem is %q", p.Invalid())
		}
		p.mustKeep()
	}
	if change = p.apply(version(t, 4, 16)); limitOf(change) != 16000 || p.Invalid() != "" {
		t.Fatalf("with the tree fixed: %+v", change)
	}
	p.mustKeep()
	if _, change = c.starts(); limitOf(change) != 16000 {
		t.Fatalf("after a restart with the tree fixed: %+v", change)
	}
}

func TestTheTreeBeforeARestartIsKnownAfterIt(t *testing.T) {
	c := newCluster(t)
	c.tree = version(t, 1, 4)
	p, change := c.starts()
	if change.Quota.Last != nil {
		t.Errorf("at first the last quota is %v", change.Quota.Last)
	}
	p.mustKeep()
	renamed := treeObject(t, "kube-system", "t", time.Hour, 3, `{name: renamed, namespaces: [a]}`)
	p.moving = true
	p.apply(renamed)
	if err := p.keeps(); !errors.Is(err, errMoving) {
		t.Errorf("a tree is kept before the settings of Queues have moved: %v", err)
	}
	for _, next := range []*unstructured.Unstructured{nil, version(t, 2, -1), renamed} {
		c.tree = next
		_, change = c.starts()
		last, _ := change.Quota.Last.(*tree.Tree)
		if last == nil || fmt.Sprint(last.Members()) != "map[root:[a]]" {
			t.Errorf("with tree %v, the last quota is %v", next, change.Quota.Last)
		}
	}
	p.moving = false
	p.mustKeep()
	if _, change = c.starts(); fmt.Sprint(change.Quota.Last.(*tree.Tree).Members()) != "map[renamed:[a]]" {
		t.Errorf("with the settings moved, the last quota is %v", change.Quota.Last)
	}
}

func TestWithTheTreeDeletedNothingIsKept(t *testing.T) {
	for _, running := range []bool{true, false} {
		c := newCluster(t)
		c.tree = version(t, 1, 4)
		p, _ := c.starts()
		p.mustKeep()
		var change backend.Change
		if running {
			p.moving = true // until there is a tree again
			change = p.apply(nil)
		} else {
			c.tree = nil
			p, change = c.starts()
		}
		if change.Quota == nil || change.Quota.Missing == nil || change.Quota.Missing.Reason != wellknown.ReasonNoQuota {
			t.Errorf("running %v: with the tree deleted: %+v", running, change)
		}
		p.mustKeep()
		if left := c.stored(); len(left) != 0 {
			t.Errorf("running %v: kept are %v", running, left)
		}
	}
}

func TestATreeWithTheSameContentIsNotKeptAgain(t *testing.T) {
	c := newCluster(t)
	c.tree = version(t, 1, 4)
	p, _ := c.starts()
	p.mustKeep()
	writes := func() (n int) {
		for _, a := range c.client.Actions() {
			if a.GetVerb() != "list" && a.GetVerb() != "watch" {
				n++
			}
		}
		return n
	}
	before := writes()
	for i, object := range []*unstructured.Unstructured{version(t, 2, -1), version(t, 3, 4), version(t, 3, 4)} {
		p.apply(object)
		p.mustKeep()
		if writes() != before {
			t.Fatalf("step %d: something was written", i)
		}
	}
	p, _ = c.starts()
	p.mustKeep()
	if writes() != before {
		t.Error("a restart wrote something")
	}
}

func TestWhatPeopleDoToTheRevision(t *testing.T) {
	edit := func(do func(*unstructured.Unstructured)) func(*cluster) {
		return func(c *cluster) {
			u := c.stored()[0].DeepCopy()
			do(u)
			require.NoError(c, c.client.Tracker().Update(revisionResource, u, "kube-queue"))
		}
	}
	set := func(value any, path ...string) func(*cluster) {
		return edit(func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(u.Object, value, path...))
		})
	}
	for _, c := range []struct {
		name string
		do   func(*cluster)
		// lost is whether the last valid tree is unknown to a controller that starts while the tree is invalid.
		lost string
	}{
		{"it is deleted", func(c *cluster) {
			require.NoError(c, c.client.Tracker().Delete(revisionResource, "kube-queue", c.stored()[0].GetName()))
		}, "no earlier valid tree is known, so no job is released: root: max: cpu: -1 is negative; set it to 0 or more"},
		{"its data is edited", set("100", "data", "spec", "root", "max", "cpu"), "its data does not have the hash that its name contains"},
		{"its data is removed", edit(func(u *unstructured.Unstructured) { delete(u.Object, "data") }), "it has no data"},
		{"its label is removed", edit(func(u *unstructured.Unstructured) { u.SetLabels(nil) }), "no earlier valid tree is known"},
		{"its annotation is damaged", edit(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{wellknown.TreeGenerationAnnotation: "many"})
		}), ""},
		{"its number is removed", edit(func(u *unstructured.Unstructured) { delete(u.Object, "revision") }), ""},
		{"a damaged one is newer", func(c *cluster) {
			u := c.stored()[0].DeepCopy()
			u.SetName(revisionPrefix + "0")
			u.SetUID("by-hand")
			u.Object["revision"] = int64(99)
			c.put(u)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newCluster(t)
			api.tree = version(t, 1, 4)
			p, _ := api.starts()
			p.mustKeep()
			p.apply(version(t, 2, -1))
			c.do(api)

			other, change := api.starts()
			if c.lost == "" && limitOf(change) != 4000 || c.lost != "" && (change.Quota.Missing == nil || !strings.Contains(other.Invalid(), c.lost)) {
				t.Errorf("after a restart: %+v, problem %q", change.Quota, other.Invalid())
			}
			before := len(api.stored())
			if err := other.keeps(); err != nil || c.lost != "" && len(api.stored()) != before {
				t.Errorf("a controller that knows no valid tree changed what is kept: %v", err)
			}

			// The controller that was running repairs it.
			p.mustKeep()
			if stored := api.stored(); len(stored) != 1 {
				t.Errorf("kept are %v", stored)
			} else if read, err := readKept(stored[0]); err != nil || read.revision != p.forest.inForce.revision || stored[0].GetLabels()[wellknown.LastValidTreeLabel] == "" {
				t.Errorf("kept is %v: %v", stored[0], err)
			}
			if _, change := api.starts(); limitOf(change) != 4000 {
				t.Errorf("after the repair and a restart: %+v", change.Quota)
			}
		})
	}
}

func TestARevisionThatHoldsNoValidTreeIsNotUsed(t *testing.T) {
	for name, data := range map[string]map[string]any{
		"another object": {"apiVersion": "v1", "kind": "ConfigMap"},
		"a tree that is invalid": {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree",
			"spec": map[string]any{"root": map[string]any{"name": "root", "max": map[string]any{"cpu": "-1"}}}},
	} {
		c := newCluster(t)
		revision, err := revisionOf(data)
		require.NoError(t, err)
		c.put((&kept{revision: revision, data: data}).object("kube-queue", 1))
		c.tree = version(t, 2, -1)
		if p, change := c.starts(); change.Quota.Missing == nil || !strings.Contains(p.Invalid(), "ControllerRevision kube-queue/"+revision) {
			t.Errorf("%s: %+v, problem %q", name, change.Quota, p.Invalid())
		}
	}
}

// Rule 11: a process can end at any of its writes, whatever happens to the tree.
func TestAProcessThatIsKilledAtAnyWriteLosesNoValidTree(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(t)
		p, _ := c.starts()
		generation := int64(0)
		// may are the limits that may be in force while the tree is invalid: the limit of the last valid tree and,
		// until that tree is kept, those of earlier ones.
		var may []int64
		// ghosts are the limits of deleted trees, until the deletion is known to have reached the kept tree.
		var ghosts []int64
		for step := range 40 {
			var change backend.Change
			switch generation++; r.IntN(8) {
			case 0:
				ghosts = append(ghosts, may...)
				change, may = p.apply(nil), nil
			case 1, 2, 3:
				change = p.apply(version(t, generation, -1))
			default:
				cpu := 1 + r.IntN(4)
				change = p.apply(version(t, generation, cpu))
				may = append(slices.DeleteFunc(may, func(v int64) bool { return v == int64(cpu)*1000 }), int64(cpu)*1000)
			}
			if len(may) > 0 && limitOf(change) != may[len(may)-1] {
				t.Fatalf("seed %d, step %d: the limit is %d, want the last of %v", seed, step, limitOf(change), may)
			}
			kept := len(may) > 0 && len(c.stored()) > 0
			c.writes = r.IntN(4) - 1
			err := p.keeps()
			c.writes = -1
			if kept && len(c.stored()) == 0 {
				t.Fatalf("seed %d, step %d: one of %v was kept, and none is now", seed, step, append(may, ghosts...))
			}
			if err == nil {
				may, ghosts = may[max(len(may)-1, 0):], nil
			}
			if err == nil && r.IntN(3) > 0 {
				continue
			}
			p, change = c.starts()
			got := limitOf(change)
			switch valid := c.tree != nil && p.Invalid() == ""; {
			case c.tree == nil && got != -1:
				t.Fatalf("seed %d, step %d: no tree exists, and the limit is %d", seed, step, got)
			case valid && got != may[len(may)-1]:
				t.Fatalf("seed %d, step %d: the limit is %d, want that of the tree, the last of %v", seed, step, got, may)
			case c.tree != nil && !valid && len(may) == 1 && err == nil && got != may[0]:
				t.Fatalf("seed %d, step %d: the limit is %d, want %v", seed, step, got, may)
			case c.tree != nil && !valid && got != -1 && !slices.Contains(may, got) && !slices.Contains(ghosts, got):
				t.Fatalf("seed %d, step %d: the limit is %d, want one of %v", seed, step, got, may)
			}
			// The recalled tree is the kept one.
			if p.Invalid() != "" {
				may = slices.DeleteFunc(append(may, ghosts...), func(v int64) bool { return v != got })
				may = may[:min(len(may), 1)]
			}
		}
	}
}

func TestAWriteThatIsRefusedIsReportedOnceAndTriedAgain(t *testing.T) {
	c := newCluster(t)
	c.tree = version(t, 1, 4)
	c.refused = apierrors.NewForbidden(revisionResource.GroupResource(), "x", errors.New("no rights"))
	p, change := c.starts()
	if limitOf(change) != 4000 {
		t.Fatal("the tree is not in force, because it cannot be kept")
	}
	clock := clocktesting.NewFakeClock(noon)
	failed := make(chan error, 10)
	p.keeper = newKeeper(c.revisions(), "kube-queue", clock, func() bool { return false }, func(err error) { failed <- err })
	attempts := make(chan bool, 100)
	c.client.PrependReactor("create", "controllerrevisions", func(clientgotesting.Action) (bool, runtime.Object, error) {
		attempts <- true
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.keeper.run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	p.keeper.want(p.forest.wanted())
	<-attempts
	err := <-failed
	if notice := p.forest.notKept(err).Notices; reasonsOf(notice) != "QuotaTreeNotKept t" || !strings.Contains(notice[0].Message, "no rights") {
		t.Errorf("it says %+v", notice)
	}
	for _, after := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
		waitFor(t, clock.HasWaiters)
		clock.Step(after - time.Millisecond)
		if len(attempts) > 0 {
			t.Fatalf("it is tried again before %v", after)
		}
		clock.Step(time.Millisecond)
		<-attempts
	}
	if len(failed) != 0 {
		t.Error("it is reported again")
	}
}

func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	(&started{}).await(t, "the keeper waits", is)
}

func TestAControllerThatMayNotReadRevisionsWorksWithout(t *testing.T) {
	config := serve(t, nil, treeObject(t, "kube-system", "t", time.Hour, 1, goodRoot))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "controllerrevisions") {
				r = r.Clone(r.Context())
				r.URL.Path = "/forbidden"
			}
			return next.RoundTrip(r)
		})
	})
	s := start(t, tree.Options{}, config)
	s.next(t)
	if c := s.Listed(); c.Quota == nil || c.Quota.Backend == nil {
		t.Errorf("with all listed: %+v", c)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheConditionKeepsTheTimeSinceWhenTheTreeIsInvalid(t *testing.T) {
	c := newCluster(t)
	c.tree = version(t, 1, 4)
	p, _ := c.starts()
	p.mustKeep()
	invalid := version(t, 2, -1)
	since := noon.Add(-time.Hour)
	invalid.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "False", "reason": "InvalidQuotaTree",
		"message": "", "lastTransitionTime": since.Format(time.RFC3339)}}}
	c.tree = invalid
	p, _ = c.starts()
	if _, refusal := p.forest.backend.Place("b", ""); refusal == nil || !strings.Contains(refusal.Message(), "is invalid since 2026-11-25T11:00:00Z: root: max: cpu: -1 is negative") {
		t.Errorf("a unit shows %+v", refusal)
	}
	for _, condition := range p.forest.validity(manifest.Status(invalid).Conditions) {
		if !condition.LastTransitionTime.Time.Equal(since) || condition.Status != metav1.ConditionFalse {
			t.Errorf("the condition is %+v", condition)
		}
	}
	if conditions := p.forest.validity(nil); !conditions[0].LastTransitionTime.Time.Equal(since) {
		t.Errorf("a condition that was lost is %+v", conditions[0])
	}
}

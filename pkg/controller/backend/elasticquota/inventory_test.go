package elasticquota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

func TestAWarningAboutTheClusterComesAndGoesWithWhatItSays(t *testing.T) {
	f := newTestForest(t)
	f.start()
	object := treeObject(t, "kube-system", "t", time.Hour, 1, `{name: root, max: {cpu: 4}, children: [{name: a, namespaces: [team, gone], max: {example.com/fpga: 1}}]}`)
	if c := f.set("kube-system/t", object); len(c.Notices) != 0 {
		t.Fatalf("without the cluster: %+v", c.Notices)
	}
	message := func() string { return f.validity(nil)[0].Message }
	know := func(has tree.Cluster) string { t.Helper(); return reasonsOf(f.know(has).Notices) }
	names := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}

	if is := know(tree.Cluster{HasNamespace: names("team"), HasResource: names("cpu")}); is != "QuotaTreeWarning t" {
		t.Errorf("it reports %q", is)
	}
	require.Says(t, "the condition", message(), `root/a: namespace "gone" does not exist`, `root/a: max: no node of the cluster has resource "example.com/fpga"`)
	if is := know(tree.Cluster{HasNamespace: names("team"), HasResource: names("cpu")}); is != "" {
		t.Errorf("it reports again %q", is)
	}
	if is := know(tree.Cluster{HasNamespace: names("team", "gone"), HasResource: names("example.com/fpga")}); is != "" || message() != "The tree is in force." {
		t.Errorf("it reports %q, and the condition says %s", is, message())
	}

	// A new warning is reported alone.
	know(tree.Cluster{HasNamespace: names("team")})
	c := f.know(tree.Cluster{})
	if len(c.Notices) != 0 || message() != "The tree is in force." {
		t.Errorf("with nothing known: %+v, %s", c.Notices, message())
	}
	know(tree.Cluster{HasNamespace: names("team")})
	c = f.know(tree.Cluster{HasNamespace: names()})
	if len(c.Notices) != 1 || strings.Count(c.Notices[0].Message, "root/a") != 1 || !strings.Contains(c.Notices[0].Message, `"team", "gone"`) {
		t.Errorf("with another namespace gone: %+v", c.Notices)
	}
}

func TestAResourceThatSomethingUsesIsKnown(t *testing.T) {
	f := newTestForest(t)
	f.start()
	f.set("kube-system/t", treeObject(t, "kube-system", "t", time.Hour, 1, `{name: root, children: [{name: a, namespaces: [a], max: {example.com/claimed: 1}}]}`))
	none := tree.Cluster{HasResource: func(string) bool { return false }}
	if c := f.know(none); reasonsOf(c.Notices) != "QuotaTreeWarning t" {
		t.Fatalf("it reports %+v", c.Notices)
	}
	group, refusal := f.backend.Place("a", "")
	if refusal != nil {
		t.Fatal(refusal)
	}
	group.Charge(&quota.Charge{Demand: quota.Demand{Requests: resources.Vector{{ID: f.names.ID("example.com/claimed"), Value: 1}}}})
	f.know(none)
	if f.warnings != nil {
		t.Errorf("warnings %q", f.warnings)
	}
}

func TestAnInvalidTreeIsNotWarnedOf(t *testing.T) {
	f := newTestForest(t)
	f.start()
	f.set("kube-system/t", treeObject(t, "kube-system", "t", time.Hour, 1, `{name: "", namespaces: [gone]}`))
	if c := f.know(tree.Cluster{HasNamespace: func(string) bool { return false }}); len(c.Notices) != 0 {
		t.Errorf("it reports %+v", c.Notices)
	}
}

// asked is an inventory with a cluster that tests change.
type asked struct {
	*inventory
	clock      *clocktesting.FakeClock
	reported   chan tree.Cluster
	nodes      chan map[string]bool
	namespaces map[string]bool
}

func ask(t *testing.T) *asked {
	a := &asked{clock: clocktesting.NewFakeClock(noon), reported: make(chan tree.Cluster, 10), nodes: make(chan map[string]bool, 10), namespaces: set("team")}
	a.inventory = newInventory(a.clock, requests.Rules{Types: map[corev1.ResourceName]requests.Types{
		"nvidia.com/gpu": {Default: "example.com/other", Names: map[string]map[string]corev1.ResourceName{"type": {"a100": "example.com/a100"}}}}},
		func(c tree.Cluster) { a.reported <- c })
	a.inventory.nodes = func(context.Context) (map[string]bool, error) {
		select {
		case names := <-a.nodes:
			if names == nil {
				return nil, errors.New("forbidden")
			}
			return maps.Clone(names), nil
		default:
			return nil, errors.New("nodes are read once too often")
		}
	}
	a.inventory.namespaces = func() func(string) bool {
		known := maps.Clone(a.namespaces)
		return func(name string) bool { return known[name] }
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { a.run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return a
}

func (a *asked) next(t *testing.T) tree.Cluster {
	t.Helper()
	select {
	case c := <-a.reported:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is reported")
		return tree.Cluster{}
	}
}

// pass advances the clock once the inventory waits for it.
func (a *asked) pass(t *testing.T, d time.Duration) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return a.clock.HasWaiters(), nil })
	if err != nil {
		t.Fatal("the inventory does not wait")
	}
	a.clock.Step(d - time.Millisecond)
	if len(a.reported) > 0 {
		t.Errorf("something is reported before %v have passed", d)
	}
	a.clock.Step(time.Millisecond)
}

func TestTheClusterIsLookedAtWhenTheTreeHasSettled(t *testing.T) {
	a := ask(t)
	a.follow(&tree.Node{Name: "root", Namespaces: []string{"team", "gone"}})
	a.pass(t, settleTime)
	if c := a.next(t); !c.HasNamespace("team") || c.HasNamespace("gone") || c.HasResource != nil {
		t.Error("it does not know the namespaces, or has read nodes")
	}
	if a.clock.HasWaiters() {
		t.Error("it looks again though nothing can change")
	}

	a.namespaces = set("team", "gone")
	a.see("unrelated")
	a.see("gone")
	if c := a.next(t); !c.HasNamespace("gone") {
		t.Error("it does not know the new namespace")
	}
	if len(a.reported) > 0 {
		t.Error("a namespace that the tree does not list is of interest")
	}
}

func TestNodesAreReadOnlyWhileAResourceIsUnusual(t *testing.T) {
	a := ask(t)
	limit := func(names ...string) *tree.Node {
		root := &tree.Node{Name: "root", Max: map[string]resource.Quantity{}}
		for _, name := range names {
			root.Max[name] = resource.MustParse("1")
		}
		return root
	}
	a.follow(limit("cpu", "nvidia.com/gpu"))
	a.pass(t, settleTime)
	if c := a.next(t); c.HasResource != nil {
		t.Error("nodes are read for common resources")
	}

	a.nodes <- set("cpu", "example.com/fpga")
	a.follow(limit("cpu", "example.com/fpga", "example.com/a100", "example.com/other"))
	a.pass(t, settleTime)
	if c := a.next(t); !c.HasResource("example.com/fpga") || !c.HasResource("example.com/a100") || !c.HasResource("example.com/other") || c.HasResource("example.com/x") {
		t.Error("it does not know the resources")
	}
	if a.clock.HasWaiters() {
		t.Error("it looks again though all resources are known")
	}

	a.nodes <- set("cpu")
	a.follow(limit("example.com/fpga"))
	a.pass(t, settleTime)
	if c := a.next(t); c.HasResource("example.com/fpga") {
		t.Error("it knows a resource that no node has")
	}
	a.see("team") // the tree does not list it
	follow.Wake(a.moved)
	if c := a.next(t); c.HasResource == nil || c.HasResource("example.com/fpga") {
		t.Error("with another namespace it forgets the resources, or reads nodes")
	}
	a.nodes <- set("cpu", "example.com/fpga")
	a.pass(t, askAgain)
	if c := a.next(t); !c.HasResource("example.com/fpga") {
		t.Error("it does not know the resource of a new node")
	}

	for _, none := range []map[string]bool{nil, {}} { // nodes may not be read, or there are none
		a := ask(t)
		a.nodes <- none
		a.follow(limit("example.com/x"))
		a.pass(t, settleTime)
		if c := a.next(t); c.HasResource != nil {
			t.Errorf("with nodes %v it claims to know resources", none)
		}
		a.nodes <- set("cpu")
		a.pass(t, askAgain)
		if c := a.next(t); c.HasResource == nil || c.HasResource("example.com/x") {
			t.Errorf("after nodes %v it does not read them again", none)
		}
	}
}

func TestTheResourcesOfAllNodesAreReadInPages(t *testing.T) {
	const pages = 3
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		asked = append(asked, query.Get("limit")+" "+query.Get("continue"))
		page := len(asked)
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{{
			Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("1"), corev1.ResourceName(fmt.Sprint("example.com/", page)): resource.MustParse("1")}}}}}
		if page < pages {
			list.Continue = fmt.Sprint("after-", page)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	names, err := resourcesOfNodes(t.Context(), kube)
	if err != nil || !maps.Equal(names, set("cpu", "example.com/1", "example.com/2", "example.com/3")) {
		t.Errorf("%v, %v", names, err)
	}
	if !slices.Equal(asked, []string{"100 ", "100 after-1", "100 after-2"}) {
		t.Errorf("requested %q", asked)
	}
}

func TestTheEventOfAWarningNamesTheReason(t *testing.T) {
	f := newTestForest(t)
	f.start()
	c := f.set("kube-system/t", treeObject(t, "kube-system", "t", time.Hour, 1, `{name: root, max: {kube-queue/maxjobs: 1, nvidia.com/gpus: 1}}`))
	if len(c.Notices) != 1 || c.Notices[0].Reason != wellknown.EventQuotaTreeWarning ||
		!strings.Contains(c.Notices[0].Message, `did you mean "kube-queue/max-jobs"?`) || !strings.Contains(c.Notices[0].Message, `did you mean "nvidia.com/gpu"?`) {
		t.Errorf("%+v", c.Notices)
	}
}

package visibility

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/web"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// trees draws valid trees.
var trees = rapid.Custom(drawTree).Filter(func(root tree.Node) bool {
	_, _, err := tree.New(resources.NewNames(), root, tree.Options{})
	return err == nil
})

// namespaces are the namespaces in drawTree.
var namespaces = []string{"t0", "t1", "t2", "t3", "d0", "d1"}

// drawTree returns a tree of two departments with two teams each, some with limits and guarantees. Departments have
// their own units.
func drawTree(t *rapid.T) tree.Node {
	amountsOf := func(label string, most int) map[string]resource.Quantity {
		list := map[string]resource.Quantity{}
		for _, name := range []string{"cpu", "nvidia.com/gpu", "kube-queue/max-jobs"} {
			if n := rapid.IntRange(most/2-3, most).Draw(t, label+" "+name); n > most/2 {
				list[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
			}
		}
		return list
	}
	guaranteed := func(most map[string]resource.Quantity, greatest int) map[string]resource.Quantity {
		list := map[string]resource.Quantity{}
		for _, name := range []string{"cpu", "nvidia.com/gpu"} {
			if limit, named := most[name]; named && rapid.Bool().Draw(t, "guaranteed") {
				list[name] = *resource.NewQuantity(min(limit.Value(), int64(rapid.IntRange(0, greatest).Draw(t, "min"))), resource.DecimalSI)
			}
		}
		return list
	}
	root := tree.Node{Name: "root", Max: amountsOf("root", 20)}
	for d := range 2 {
		department := tree.Node{Name: fmt.Sprint("d", d), Namespaces: []string{fmt.Sprint("d", d)}, Max: amountsOf("department", 16)}
		department.Min = guaranteed(department.Max, 6)
		for i := range 2 {
			name := fmt.Sprint("t", 2*d+i)
			team := tree.Node{Name: name, Namespaces: []string{name}, Max: amountsOf("team", 12)}
			team.Min = guaranteed(team.Max, 4)
			department.Children = append(department.Children, team)
		}
		root.Children = append(root.Children, department)
	}
	return root
}

// without returns the node without the named one, and the namespaces that no longer have a quota.
func without(n tree.Node, name string) (rest tree.Node, namespaces []string) {
	children := n.Children
	n.Children = nil
	for _, child := range children {
		below, gone := without(child, name)
		namespaces = append(namespaces, gone...)
		if child.Name != name {
			n.Children = append(n.Children, below)
			continue
		}
		for _, c := range append([]tree.Node{child}, child.Children...) {
			namespaces = append(namespaces, c.Namespaces...)
		}
	}
	return n, namespaces
}

// A remedy of a review admits the unit in the core, whether an administrator changes the tree or the named units end.
// In these worlds there is always a raise, because every limit can be raised and few units compete.
func TestPropertyWhatWouldAdmitAUnitAdmitsIt(t *testing.T) {
	done, asked, left := map[visibilityv1alpha1.RemedyType]int{}, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		options := tree.Options{Reclaim: false, PauseBorrowing: rapid.Bool().Draw(rt, "pause")}
		if rapid.Bool().Draw(rt, "oversell") {
			options.Oversell, _ = resources.ParseRate("1.3")
		}
		root := trees.Draw(rt, "tree")
		type submission struct {
			key       string
			cpu, gpu  int
			priority  int32
			preempted bool
		}
		amount := func(most int) *rapid.Generator[int] { // sometimes more than a quota has
			return rapid.OneOf(rapid.IntRange(0, most), rapid.IntRange(0, most), rapid.IntRange(0, 5*most))
		}
		var all []submission
		for i := range rapid.IntRange(2, 25).Draw(rt, "units") {
			all = append(all, submission{fmt.Sprintf("%s/u%d", rapid.SampledFrom(namespaces).Draw(rt, "namespace"), i),
				amount(5).Draw(rt, "cpu") * 1000, amount(4).Draw(rt, "gpu"),
				int32(rapid.IntRange(0, 2).Draw(rt, "priority")), rapid.IntRange(0, 5).Draw(rt, "preemptible") > 0})
		}
		policies := queue.Policies()
		var chosen []*queue.Policy
		for range namespaces {
			chosen = append(chosen, rapid.SampledFrom(policies).Draw(rt, "policy"))
		}
		deletion := rapid.IntRange(0, 2*len(all)).Draw(rt, "deletion") // before this unit is submitted, if there is one
		rest, deleted := without(root, rapid.SampledFrom(namespaces).Draw(rt, "deleted"))
		ends := rapid.SliceOfN(rapid.IntRange(0, 24), 0, 4).Draw(rt, "ends")
		build := func() *cluster {
			c := newCluster(rt, root, options)
			for i, q := range c.core.QueueNames() {
				c.core.Apply(c.now, scheduler.QueueChanged{Queue: q, Policy: chosen[i]})
			}
			for i, s := range all {
				if i == deletion {
					c.setTree(rest)
				}
				c.submit(s.key, c.request("cpu", s.cpu, "nvidia.com/gpu", s.gpu), func(u *scheduler.Unit) {
					u.Priority, u.Demand.Preemptible = s.priority, s.preempted
				})
			}
			for _, i := range ends {
				if i < len(all) && c.units[all[i].key] != nil && c.runs(all[i].key) {
					c.end(all[i].key)
				}
			}
			return c
		}
		c := build()
		var waiting []string
		for key, u := range c.units {
			namespace, _ := split(key)
			if u.Phase == scheduler.Waiting && (deletion >= len(all) || !slices.Contains(deleted, namespace)) {
				waiting = append(waiting, key)
			}
		}
		if len(waiting) == 0 {
			return
		}
		slices.Sort(waiting)
		unit := rapid.SampledFrom(waiting).Draw(rt, "unit")
		answer := c.why(unit, everything())
		if answer.Reason == "" {
			rt.Fatalf("%s waits without a reason", unit)
		}
		asked++
		for _, u := range c.model().view.Units {
			left += asInt(u.Remains)
		}
		if !slices.ContainsFunc(answer.WouldAdmit, func(r visibilityv1alpha1.Remedy) bool { return r.Type == visibilityv1alpha1.RaiseQuota }) {
			rt.Fatalf("%s waits for %s: %s\nand no raise was found, but: %+v", unit, answer.Reason, answer.Message, answer.WouldAdmit)
		}
		for i, remedy := range answer.WouldAdmit {
			if remedy.Type == visibilityv1alpha1.LowerRequest && answer.Reason != wellknown.ReasonBorrowingPaused {
				expectGreatestThatFits(rt, c, unit, remedy)
				done[remedy.Type]++
			}
			if remedy.Type != visibilityv1alpha1.RaiseQuota && remedy.Type != visibilityv1alpha1.EndUnits {
				continue
			}
			again := build()
			again.now = again.now.Add(30 * time.Second) // with policy RoundRobin, others pass a unit in backoff
			again.do(answer.WouldAdmit[i])
			if !again.runs(unit) {
				rt.Fatalf("%s waits for %s: %s\nand is not admitted by: %s\nbut then waits for: %+v", unit, answer.Reason, answer.Message, remedy.Message,
					again.why(unit, everything()))
			}
			done[remedy.Type]++
		}
	})
	for _, kind := range []visibilityv1alpha1.RemedyType{visibilityv1alpha1.RaiseQuota, visibilityv1alpha1.EndUnits, visibilityv1alpha1.LowerRequest} {
		if done[kind] == 0 {
			t.Errorf("no unit was admitted by %s", kind)
		}
	}
	if left == 0 {
		t.Error("no unit held quota of a node that was deleted")
	}
	t.Logf("of %d units that waited, what was found and done: %v; %d units held quota of deleted nodes", asked, done, left)
}

// expectGreatestThatFits submits the unit with its lowered request to a core in which nothing holds quota. It must be
// admitted, but not if it requests more of any lowered resource.
func expectGreatestThatFits(t *rapid.T, c *cluster, unit string, remedy visibilityv1alpha1.Remedy) {
	demand := c.units[unit].Demand
	for _, change := range remedy.Changes {
		amount := func(text string) int64 {
			value, err := resources.LimitValue(change.Resource, resource.MustParse(text))
			if err != nil {
				t.Fatalf("%s of %s: %v", text, change.Resource, err)
			}
			return value
		}
		if asked, _ := demand.Requests.Get(c.names.ID(change.Resource)); asked != amount(change.From) || amount(change.To) >= asked {
			t.Fatalf("%s: %d of %s is requested", remedy.Message, asked, change.Resource)
		}
		demand.Requests = demand.Requests.With(c.names.ID(change.Resource), amount(change.To))
	}
	fits := func(requests resources.Vector) bool {
		empty := &cluster{t: t, core: scheduler.New(scheduler.Options{}), names: c.names, options: c.options, now: c.now, units: map[string]*scheduler.Unit{}}
		empty.setTree(c.root)
		empty.core.Apply(empty.now, scheduler.Listed{})
		empty.submit(unit, requests, func(u *scheduler.Unit) { u.Demand.Preemptible = demand.Preemptible })
		return empty.runs(unit)
	}
	if !fits(demand.Requests) {
		t.Fatalf("%s, and it does not fit without others", remedy.Message)
	}
	for _, change := range remedy.Changes {
		id := c.names.ID(change.Resource)
		lowered, _ := demand.Requests.Get(id)
		if fits(demand.Requests.With(id, lowered+1)) {
			t.Fatalf("%s, and more of %s fits", remedy.Message, change.Resource)
		}
	}
}

// reader reads the pages of a caller from a model.
type reader struct {
	web.Reader // simulations and actions ask no model
	model      *Model
	access     Access
}

func (r reader) Units(_ context.Context, namespace string, spec visibilityv1alpha1.QueueReviewSpec) (*visibilityv1alpha1.QueueReviewStatus, error) {
	return r.model.Queues(namespace, spec, r.access)
}

func (r reader) Job(_ context.Context, namespace, unit string) (*web.Job, error) {
	status, err := r.model.Why(namespace, unit, r.access)
	return &web.Job{Unit: &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: unit}}, Status: status}, err
}

func (r reader) Quotas(_ context.Context, namespace string) (*visibilityv1alpha1.QuotaReviewStatus, error) {
	return r.model.Quotas(namespace, visibilityv1alpha1.QuotaReviewSpec{}, r.access)
}

func (reader) May(context.Context, web.Action) bool { return true }

func (reader) Warnings() []string { return nil }

// htmlOf returns a page of a caller as a browser receives it.
func htmlOf(t *rapid.T, r reader, namespace, path string) string {
	server := web.New(web.Options{Open: func(string) (web.Reader, error) { return r, nil }, ByToken: true, Namespace: namespace, Hosts: []string{"example.com"},
		Now: func() time.Time { return r.model.view.At }})
	request, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	request.Header.Set("Authorization", "Bearer x")
	server.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// A caller who may list the units of one namespace finds no name of another namespace or its units in any answer, and on
// any page.
func TestPropertyNoAnswerNamesWhatTheCallerMayNotList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt, teams(), tree.Options{PauseBorrowing: rapid.Bool().Draw(rt, "pause borrowing")})
		for _, queue := range []string{"root-a", "root-b"} { // units wait for others that are evicted, or until the queue is resumed
			stop := rapid.SampledFrom([]scheduler.Stop{scheduler.NotStopped, scheduler.NotStopped, scheduler.Hold}).Draw(rt, "stop")
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: queue, Stop: stop, Preemption: scheduler.Preemption{
				WithinQueue: rapid.Bool().Draw(rt, "preempt"), MinRunTime: scheduler.Period{Set: true}}})
		}
		for i := range rapid.IntRange(1, 15).Draw(rt, "units") {
			namespace := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "namespace")
			name := fmt.Sprintf("private-%s-%d", namespace, i)
			priority := rapid.Int32Range(0, 2).Draw(rt, "priority")
			c.submit(namespace+"/"+name, c.request("cpu", rapid.IntRange(1, 9).Draw(rt, "cpu")*1000), func(u *scheduler.Unit) { u.Priority = priority })
		}
		caller := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "caller")
		model, access := c.model(), only(caller)
		var answers []any
		pages, own := []string{"/", "/?all=1", "/?all=1&job=private", "/quotas", "/queues", "/queues/root-a", "/queues/root-b?show=units"}, 0
		for key := range c.units {
			namespace, name := split(key)
			answer, err := model.Why(namespace, name, access)
			if (err == nil) != (namespace == caller) {
				rt.Fatalf("a caller of %s asks about %s: %v", caller, key, err)
			}
			answers = append(answers, answer, fmt.Sprint(err))
			if namespace == caller {
				pages, own = append(pages, "/jobs/"+key), own+1
			}
		}
		for _, path := range pages {
			body := htmlOf(rt, reader{model: model, access: access}, caller, path)
			if shown := strings.Contains(body, "private-"+caller); path == "/?all=1" && shown != (own > 0) {
				rt.Fatalf("a caller of %s with %d units reads %s", caller, own, body)
			}
			answers = append(answers, body)
		}
		for _, spec := range []visibilityv1alpha1.QueueReviewSpec{{AllNamespaces: true}, {}, {Queue: "root-b", AllNamespaces: true, Limit: 5}} {
			spec.Show = rapid.SampledFrom([]visibilityv1alpha1.QueueReviewContent{"", visibilityv1alpha1.ShowQueues, visibilityv1alpha1.ShowGroups, visibilityv1alpha1.ShowUnits}).Draw(rt, "show")
			answer, err := model.Queues(caller, spec, access)
			if err != nil {
				rt.Fatalf("queues: %v", err)
			}
			answers = append(answers, answer)
		}
		quotas, err := model.Quotas(caller, visibilityv1alpha1.QuotaReviewSpec{}, access)
		if err != nil {
			rt.Fatalf("quotas: %v", err)
		}
		answers = append(answers, quotas)
		for _, answer := range answers {
			if text, is := answer.(string); is && strings.HasPrefix(text, "you may not list") {
				continue
			}
			text, _ := json.Marshal(answer)
			for _, namespace := range []string{"a", "b", "c"} {
				if namespace != caller && strings.Contains(string(text), "private-"+namespace) {
					rt.Fatalf("a caller of %s reads %s", caller, text)
				}
			}
		}
	})
}

package visibility

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// failer is a test or a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// cluster is a core with a tree. Its writes succeed immediately.
type cluster struct {
	t       failer
	core    *scheduler.Scheduler
	names   *resources.Names
	root    tree.Node
	options tree.Options
	now     time.Time
	units   map[string]*scheduler.Unit
	version uint64
}

func newCluster(t failer, root tree.Node, options tree.Options) *cluster {
	c := &cluster{t: t, core: scheduler.New(scheduler.Options{}), names: resources.NewNames(), root: root, options: options,
		now: time.Unix(1_000_000, 0), units: map[string]*scheduler.Unit{}}
	c.setTree(root)
	c.core.Apply(c.now, scheduler.Listed{})
	return c
}

func (c *cluster) setTree(root tree.Node) {
	c.t.Helper()
	backend, _, err := tree.New(c.names, root, c.options)
	if err != nil {
		c.t.Fatalf("tree: %v", err)
	}
	c.root = root
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: backend})
}

// request returns a demand for one job and for pairs of a resource name and an amount in base units.
func (c *cluster) request(pairs ...any) resources.Vector {
	var v resources.Vector
	for i := 0; i < len(pairs); i += 2 {
		v = v.With(c.names.ID(pairs[i].(string)), int64(pairs[i+1].(int)))
	}
	return v.With(c.names.ID(quota.JobsResource), 1)
}

// maxTime sets the maximum execution time.
func maxTime(d time.Duration) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.MaxSeconds = int32(d / time.Second) }
}

// submit adds a unit a second after the last one.
func (c *cluster) submit(key string, requests resources.Vector, change ...func(*scheduler.Unit)) {
	c.now = c.now.Add(time.Second)
	u := &scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Submitted: c.now.UnixMicro(),
		Demand: quota.Demand{Requests: requests, Preemptible: true}}}
	for _, do := range change {
		do(u)
	}
	c.units[key] = u
	c.apply(u)
	c.settle()
}

func (c *cluster) apply(u *scheduler.Unit) {
	c.version++
	u.Version = c.version
	c.core.Apply(c.now, scheduler.UnitChanged{Unit: *u})
}

// settle runs the core until nothing happens for two minutes.
func (c *cluster) settle() {
	for end := c.now.Add(2 * time.Minute); ; {
		plan, wake := c.core.Next(c.now)
		for _, w := range plan {
			c.land(w)
		}
		if len(plan) > 0 {
			continue
		}
		if wake.IsZero() || wake.After(end) {
			return
		}
		c.now = wake
	}
}

func (c *cluster) land(w scheduler.Write) {
	u := c.units[w.Key]
	c.version++
	u.Version, u.Reason = c.version, w.Reason
	switch w.Kind {
	case scheduler.Dequeue:
		u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Dequeued, w.Attempt, c.now, w.Quota
	case scheduler.Explain:
		u.Quota = w.Quota
	case scheduler.Evict:
		u.Evicted, u.Eviction = true, scheduler.Eviction{At: c.now, For: w.EvictedFor}
	default:
		c.t.Fatalf("unexpected write %v of %s", w.Kind, w.Key)
	}
	c.core.Apply(c.now, scheduler.Written{Write: &w, Version: u.Version, At: u.DequeuedAt})
}

// end ends units at the same time.
func (c *cluster) end(keys ...string) {
	for _, key := range keys {
		u := c.units[key]
		u.Phase = scheduler.Ended
		c.apply(u)
		c.core.Apply(c.now, scheduler.UnitGone{Key: key, UID: u.UID})
		delete(c.units, key)
	}
	c.settle()
}

func (c *cluster) runs(key string) bool { return c.units[key].Phase == scheduler.Dequeued }

func (c *cluster) model() *Model {
	return New(c.core.View(c.now, c.names), []string{"", "Job"}, "kube-queue")
}

func everything() Access {
	yes := func() bool { return true }
	return Access{Units: func(string) bool { return true }, Queues: yes, Trees: yes}
}

// only permits to list the units of one namespace, and nothing else.
func only(namespace string) Access {
	no := func() bool { return false }
	return Access{Units: func(n string) bool { return n == namespace }, Queues: no, Trees: no}
}

func (c *cluster) why(key string, access Access) *visibilityv1alpha1.QueueUnitReviewStatus {
	c.t.Helper()
	namespace, name := split(key)
	answer, err := c.model().Why(namespace, name, access)
	if err != nil {
		c.t.Fatalf("why %s: %v", key, err)
	}
	return answer
}

// do carries out a remedy.
func (c *cluster) do(r visibilityv1alpha1.Remedy) {
	c.t.Helper()
	switch r.Type {
	case visibilityv1alpha1.RaiseQuota:
		root := c.root
		for _, change := range r.Changes {
			found := false
			root = changed(c.t, root, "", change, &found)
			if !found {
				c.t.Fatalf("no node has path %s", change.Quota)
			}
		}
		c.setTree(root)
		c.settle()
	case visibilityv1alpha1.EndUnits:
		var keys []string
		for _, u := range r.Units {
			keys = append(keys, u.Namespace+"/"+u.Name)
		}
		c.end(keys...)
	default:
		c.t.Fatalf("cannot do %s", r.Message)
	}
}

// changed returns the node with a changed amount, without code of the backend.
func changed(t failer, n tree.Node, above string, change visibilityv1alpha1.QuotaChange, found *bool) tree.Node {
	t.Helper()
	path := n.Name
	if above != "" {
		path = above + "/" + n.Name
	}
	if path == change.Quota {
		*found = true
		list := map[string]resource.Quantity{}
		field := &n.Max
		if change.Field == "min" {
			field = &n.Min
		}
		for name, q := range *field {
			list[name] = q
		}
		before, wanted := list[change.Resource], resource.MustParse(change.From)
		if before.Cmp(wanted) != 0 {
			t.Fatalf("%s of %s in %s is %s, and not %s", change.Field, change.Resource, path, before.String(), change.From)
		}
		list[change.Resource] = resource.MustParse(change.To)
		*field = list
		return n
	}
	n.Children = slices.Clone(n.Children)
	for i := range n.Children {
		n.Children[i] = changed(t, n.Children[i], path, change, found)
	}
	return n
}

func amounts(pairs ...string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		list[pairs[i]] = resource.MustParse(pairs[i+1])
	}
	return list
}

// teams is a tree of two teams that share 10 cpu: a has min 4 and max 8, b min 4 and max 10.
func teams() tree.Node {
	return tree.Node{Name: "root", Max: amounts("cpu", "10"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}, Min: amounts("cpu", "4"), Max: amounts("cpu", "8", quota.JobsResource, "3")},
		{Name: "b", Namespaces: []string{"b", "c"}, Min: amounts("cpu", "4"), Max: amounts("cpu", "10")},
	}}
}

func messages(answer *visibilityv1alpha1.QueueUnitReviewStatus) string {
	var all []string
	for _, r := range answer.WouldAdmit {
		all = append(all, fmt.Sprintf("%s: %s", r.Type, r.Message))
	}
	return strings.Join(all, "\n")
}

func TestWhyAndWhatWouldAdmit(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(*cluster)
		unit   string
		reason wellknown.Reason
		want   string
	}{
		{"the own quota is full", func(c *cluster) {
			c.submit("a/one", c.request("cpu", 6000))
			c.submit("a/two", c.request("cpu", 4000))
		}, "a/two", wellknown.ReasonQuotaExceeded,
			"RaiseQuota: an administrator raises max of cpu in quota root/a from 8 to 10\nEndUnits: a/one ends"},
		{"the own quota and the root are full", func(c *cluster) {
			c.submit("a/one", c.request("cpu", 6000))
			c.submit("b/one", c.request("cpu", 4000))
			c.submit("a/two", c.request("cpu", 4000))
		}, "a/two", wellknown.ReasonQuotaExceeded,
			"RaiseQuota: an administrator raises max of cpu in quota root/a from 8 to 10, and max of cpu in quota root from 10 to 14\nEndUnits: a/one ends"},
		{"the number of jobs", func(c *cluster) {
			for _, name := range []string{"one", "two", "three", "four"} {
				c.submit("a/"+name, c.request("cpu", 1000))
			}
		}, "a/four", wellknown.ReasonMaxJobs,
			"RaiseQuota: an administrator raises max of kube-queue/max-jobs in quota root/a from 3 to 4\nEndUnits: a/one ends"},
		{"more than the quota", func(c *cluster) { c.submit("a/one", c.request("cpu", 9000)) }, "a/one", wellknown.ReasonExceedsMaxQuota,
			"LowerRequest: request at most 8 cpu, so that the unit can fit once enough quota is unused\nRaiseQuota: an administrator raises max of cpu in quota root/a from 8 to 9"},
		{"another unit is in front", func(c *cluster) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Policy: queue.Block})
			c.submit("a/one", c.request("cpu", 4000))
			c.submit("a/two", c.request("cpu", 6000))
			c.submit("a/three", c.request("cpu", 1000))
		}, "a/three", wellknown.ReasonNotAtFront,
			"RaiseQuota: an administrator raises max of cpu in quota root/a from 8 to 11, and max of cpu in quota root from 10 to 11; that is enough for the unit ahead as well\nEndUnits: a/one ends; that is enough for the unit ahead as well"},
		{"a unit ahead takes the room", func(c *cluster) {
			c.submit("b/one", c.request("cpu", 10000))
			c.submit("b/two", c.request("cpu", 1000))
			c.submit("b/three", c.request("cpu", 1000))
		}, "b/three", wellknown.ReasonQuotaExceeded,
			"RaiseQuota: an administrator raises max of cpu in quota root/b from 10 to 12, and max of cpu in quota root from 10 to 12; that is enough for the unit ahead as well\nEndUnits: b/one ends; that is enough for the unit ahead as well"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, teams(), tree.Options{})
			c.build(cl)
			answer := cl.why(c.unit, everything())
			if answer.Reason != c.reason || messages(answer) != c.want {
				t.Fatalf("reason %s, would admit:\n%s\nwant %s:\n%s", answer.Reason, messages(answer), c.reason, c.want)
			}
		})
	}
}

func TestAUnitThatCanNeverFitLacksWhatEachQuotaUpToTheRootRefuses(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.submit("a/one", cl.request("cpu", 11000))
	answer := cl.why("a/one", everything())
	if lacks := answer.Lacks; len(lacks) != 2 || lacks[0].Quota != "root/a" || lacks[0].Missing != "3" || lacks[1].Quota != "root" || lacks[1].Missing != "1" {
		t.Errorf("it lacks %+v", lacks)
	}
}

func TestWhatAUnitLacksIsMoreIfTheLimitIsExceeded(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.submit("b/one", cl.request("cpu", 10000))
	lowered := teams()
	lowered.Max, lowered.Children[1].Max = amounts("cpu", "9"), amounts("cpu", "6")
	backend, _, err := tree.New(cl.names, lowered, tree.Options{})
	require.NoError(t, err)
	cl.core.Apply(cl.now, scheduler.QuotaChanged{Backend: backend})
	cl.submit("b/two", cl.request("cpu", 1000))
	lacks := cl.why("b/two", everything()).Lacks
	if len(lacks) != 2 || lacks[0].Quota != "root/b" || lacks[0].Used != "10" || lacks[0].Limit != "6" || lacks[0].Missing != "5" || lacks[1].Missing != "2" {
		t.Errorf("it lacks %+v", lacks)
	}
}

// Units of 36 queues compete below a full parent. Each queue takes what its own max allows before the last unit of one
// of them gets anything.
func TestTheLastOfManyUnitsIsAdmittedByARaiseForAllThatCompete(t *testing.T) {
	for _, c := range []struct {
		policy     *queue.Policy
		root, want string
	}{
		{queue.RoundRobin, "", ""},
		{queue.Block, "1944", ", and max of cpu in quota root from 1944 to 2120"},
	} {
		t.Run(c.policy.Name, func(t *testing.T) {
			cl := turnover(t, c.policy, c.root)
			answer := cl.why("team3-20/unit-107", everything())
			want := "RaiseQuota: an administrator raises max of cpu in quota root/department3/team3-20 from 4 to 108, and max of cpu in quota root/department3 from 72 to 248" +
				c.want + "; that is enough for the 105 units ahead and 70 units of other queues as well"
			if answer.Position != 106 || messages(answer) != want {
				t.Fatalf("position %d, would admit:\n%s", answer.Position, messages(answer))
			}
			cl.do(answer.WouldAdmit[0])
			if !cl.runs("team3-20/unit-107") {
				t.Error("it still waits")
			}
			if others := cl.why("team3-21/unit-107", everything()); others.Position != 104 {
				t.Errorf("another queue got more than its max, its last unit has position %d", others.Position)
			}
		})
	}
}

// Only the hard limits of lacking keys are raised.
func TestAHardLimitOfAResourceQuotaIsRaised(t *testing.T) {
	names := resources.NewNames()
	backend := resourcequota.New(names)
	hard, used := corev1.ResourceList{}, corev1.ResourceList{}
	for key, amount := range map[corev1.ResourceName]string{"cpu": "4", "memory": "8", "pods": "1"} {
		hard[key], used[key] = resource.MustParse(amount), resource.Quantity{}
	}
	backend.Observe(resourcequota.QuotaSeen{Quota: &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}})
	c := &cluster{t: t, core: scheduler.New(scheduler.Options{}), names: names, now: time.Unix(1_000_000, 0), units: map[string]*scheduler.Unit{}}
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: backend})
	c.core.Apply(c.now, scheduler.Listed{})
	for _, name := range []string{"one", "two", "three"} {
		use, err := resourcequota.Weigh(resourcequota.Pods{Count: 1, Requests: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("1")}})
		require.NoError(t, err)
		requests, err := backend.Vector(use)
		require.NoError(t, err)
		c.submit("a/"+name, requests.With(names.ID(quota.JobsResource), 1))
	}
	want := "RaiseQuota: an administrator raises hard of cpu in quota a/q from 4 to 9, and hard of pods in quota a/q from 1 to 3; that is enough for the unit ahead as well"
	if got := messages(c.why("a/three", everything())); got != want {
		t.Errorf("would admit: %s, want %s", got, want)
	}
	if got, want := messages(c.why("a/two", everything())), "an administrator raises hard of cpu in quota a/q from 4 to 6, and hard of pods in quota a/q from 1 to 2\nEndUnits: a/one ends"; !strings.HasSuffix(got, want) {
		t.Errorf("would admit: %s, want %s", got, want)
	}
}

// A namespace that has no quota any more leaves a gap in the nodes, but not in the usage.
func TestUnitsOfOtherNamespacesDoNotCompeteForAResourceQuota(t *testing.T) {
	names := resources.NewNames()
	backend := resourcequota.New(names)
	hard := corev1.ResourceList{"cpu": resource.MustParse("4")}
	for _, namespace := range []string{"gone", "a", "b"} {
		backend.Observe(resourcequota.QuotaSeen{Quota: &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"},
			Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"cpu": {}}}}})
	}
	backend.Observe(resourcequota.QuotaGone{Namespace: "gone", Name: "q"})
	var used resources.IDs
	backend.Uses(&used)
	backend.Forget(used, func(quota.NodeID) bool { return false })
	c := &cluster{t: t, core: scheduler.New(scheduler.Options{}), names: names, now: time.Unix(1_000_000, 0), units: map[string]*scheduler.Unit{}}
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: backend})
	c.core.Apply(c.now, scheduler.Listed{})
	for _, key := range []string{"a/runs", "b/runs", "a/waits", "b/waits"} {
		use, err := resourcequota.Weigh(resourcequota.Pods{Count: 1, Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}})
		require.NoError(t, err)
		requests, err := backend.Vector(use)
		require.NoError(t, err)
		c.submit(key, requests.With(names.ID(quota.JobsResource), 1))
	}
	m := c.model()
	s := &search{Model: m, unit: m.index()["a/waits"]}
	if !s.prepare() {
		t.Fatal("the unit has no quota")
	}
	for _, i := range s.competitors() {
		t.Errorf("%s competes", m.view.Units[i].Key)
	}
}

func TestWhyForUnitsThatWaitForSomethingElseThanQuota(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cluster, *scheduler.Unit)
		want   string
		until  bool
	}{
		{"a backoff", func(c *cluster, u *scheduler.Unit) { u.RequeueAt = c.now.Add(time.Hour) }, "Wait: the unit is tried again at 1970-01-12T14:46:41Z", true},
		{"a changed job", func(_ *cluster, u *scheduler.Unit) {
			u.Held = &quota.Refusal{Reason: wellknown.ReasonJobChanged, Sentence: "the job changed"}
		}, "Wait: job-extensions writes the new request into the unit, which takes a moment; the unit is then tried with it, and may lack quota", false},
		{"a backoff in a queue with demands", func(c *cluster, u *scheduler.Unit) {
			u.RequeueAt = c.now.Add(time.Hour)
			c.core.Apply(c.now, scheduler.CheckChanged{Name: "nodes"})
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Checks: scheduler.ChecksOf([]string{"nodes"}), PodsReady: scheduler.PodsReady{Timeout: time.Minute}})
		}, "Wait: the unit is tried again at 1970-01-12T14:46:41Z; its admission checks (nodes) then decide again; " +
			"after its release, all its pods must be ready within 1m0s, or it is stopped again", true},
		{"a check that does not exist", func(c *cluster, u *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Checks: scheduler.ChecksOf([]string{"absent"})})
		}, "ChangeObject: an administrator creates AdmissionCheck absent, or removes it from spec.admissionChecks of queue root-a", false},
		{"a check that does not exist, and quota", func(c *cluster, u *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Checks: scheduler.ChecksOf([]string{"absent"})})
			u.Demand.Requests = c.request("cpu", 9000)
		}, "RaiseQuota: an administrator creates AdmissionCheck absent, or removes it from spec.admissionChecks of queue root-a, and " +
			"an administrator raises max of cpu in quota root/a from 8 to 9", false},
		{"two checks that do not exist", func(c *cluster, _ *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Checks: scheduler.ChecksOf([]string{"absent", "gone"})})
		}, "ChangeObject: an administrator creates AdmissionChecks absent, gone, or removes them from spec.admissionChecks of queue root-a", false},
		{"a stopped queue, and a check that does not exist", func(c *cluster, _ *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold, Checks: scheduler.ChecksOf([]string{"absent"})})
		}, "ChangeObject: an administrator resumes queue root-a: sets its spec.stop to None, and an administrator creates AdmissionCheck absent, " +
			"or removes it from spec.admissionChecks of queue root-a", false},
		{"a stopped queue, and a backoff", func(c *cluster, u *scheduler.Unit) {
			u.RequeueAt = c.now.Add(time.Hour)
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold})
		}, "ChangeObject: an administrator resumes queue root-a: sets its spec.stop to None, and the unit is tried again at 1970-01-12T14:46:41Z", true},
		{"an inactive unit in a stopped queue", func(c *cluster, u *scheduler.Unit) {
			u.Held = &quota.Refusal{Reason: wellknown.ReasonInactive, Sentence: "spec.active is false"}
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold})
		}, "ChangeObject: set spec.active of the unit to true, and an administrator resumes queue root-a: sets its spec.stop to None", false},
		{"a stopped queue, and more than one that is not preemptible can get", func(c *cluster, u *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold})
			u.Demand.Preemptible, u.Demand.Requests = false, c.request("memory", 1, "cpu", 7000)
		}, "RaiseQuota: an administrator resumes queue root-a: sets its spec.stop to None, and an administrator raises min of cpu in quota root/a from 4 to 7, " +
			"and max of cpu in quota root from 10 to 11", false},
		{"an invalid tree", func(c *cluster, _ *scheduler.Unit) {
			c.core.Apply(c.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Node: "kube-system/tree",
				Detail: "root: max: cpu: -4 is negative; set it to 0 or more", Sentence: "ElasticQuotaTree kube-system/tree is invalid"}})
		}, "ChangeObject: an administrator corrects ElasticQuotaTree kube-system/tree: root: max: cpu: -4 is negative; set it to 0 or more; " +
			"the unit is then tried, and needs a quota that lists its namespace and has room", false},
		{"an inactive unit", func(_ *cluster, u *scheduler.Unit) {
			u.Held = &quota.Refusal{Reason: wellknown.ReasonInactive, Sentence: "spec.active is false"}
		}, "ChangeObject: set spec.active of the unit to true", false},
		{"a namespace without quota", func(_ *cluster, u *scheduler.Unit) { u.Key = "other/unit" },
			"ChangeObject: ask an administrator to add the namespace to a node of the ElasticQuotaTree", false},
		{"an invalid job", func(_ *cluster, u *scheduler.Unit) {
			u.Held = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: "the priority is no number"}
		}, "ChangeObject: change the job as the message says", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, teams(), tree.Options{})
			u := &scheduler.Unit{Key: "a/unit", Facts: scheduler.Facts{UID: "unit", Demand: quota.Demand{Requests: cl.request("cpu", 1000), Preemptible: true}}}
			cl.now = cl.now.Add(time.Second)
			c.change(cl, u)
			cl.units[u.Key] = u
			cl.apply(u)
			cl.core.Next(cl.now)
			answer := cl.why(u.Key, everything())
			if messages(answer) != c.want || (answer.Until != nil) != c.until {
				t.Errorf("it would be admitted by %s, until %v", messages(answer), answer.Until)
			}
		})
	}
}

// There is no search for a unit that is far behind, so the answer claims nothing about it.
func TestWhatWouldAdmitAUnitThatIsFarBehindIsNotKnown(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.core.Apply(cl.now, scheduler.QueueChanged{Queue: "root-b", Stop: scheduler.Hold})
	for i := range mostOfQueue + 1 {
		cl.submit(fmt.Sprintf("b/unit-%04d", i), cl.request("memory", 1))
	}
	m := cl.model()
	for unit, want := range map[int]string{
		mostOfQueue - 1: "ChangeObject: an administrator resumes queue root-b: sets its spec.stop to None",
		mostOfQueue:     "ChangeObject: an administrator resumes queue root-b: sets its spec.stop to None; after that, the unit may wait for quota",
	} {
		answer, err := m.Why("b", fmt.Sprintf("unit-%04d", unit), everything())
		if err != nil || messages(answer) != want {
			t.Errorf("unit %d would be admitted by %s, %v", unit, messages(answer), err)
		}
	}
}

// The time follows from the maximum execution times of the units that hold the quota.
func TestAUnitIsAdmittedAtTheLatestWhenOthersMustHaveEnded(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.submit("a/one", cl.request("cpu", 4000), maxTime(time.Hour))
	cl.submit("a/two", cl.request("cpu", 4000), maxTime(2*time.Hour))
	first := cl.units["a/one"].DequeuedAt
	cl.submit("a/three", cl.request("cpu", 2000))
	if until := cl.why("a/three", everything()).Until; until == nil || !until.Equal(&metav1.Time{Time: first.Add(time.Hour)}) {
		t.Errorf("it is admitted until %v, want an hour after %v", until, first)
	}
	cl.submit("a/four", cl.request("cpu", 6000))
	if until := cl.why("a/four", everything()).Until; until == nil || until.Time.Before(first.Add(2*time.Hour)) {
		t.Errorf("both must end, and it is admitted until %v", until)
	}
	cl.submit("a/five", cl.request("cpu", 2000))
	if until := cl.why("a/four", everything()).Until; until != nil {
		t.Errorf("another unit passes it when the first one ends, and it is admitted until %v", until)
	}
}

func TestQueuesAndQuotasAreSelected(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.submit("a/one", cl.request("cpu", 6000), func(u *scheduler.Unit) { u.Kind = 1 })
	for i := range 3 {
		cl.submit(fmt.Sprint("a/same", i), cl.request("cpu", 4000), func(u *scheduler.Unit) { u.Kind = 1 })
	}
	cl.submit("b/one", cl.request("cpu", 4000))
	m := cl.model()
	ask := func(spec visibilityv1alpha1.QueueReviewSpec) *visibilityv1alpha1.QueueReviewStatus {
		t.Helper()
		spec.AllNamespaces = true
		answer, err := m.Queues("a", spec, everything())
		if err != nil || answer.Selected != 5 {
			t.Fatalf("%+v: %+v, %v", spec, answer, err)
		}
		return answer
	}
	units := ask(visibilityv1alpha1.QueueReviewSpec{Show: visibilityv1alpha1.ShowUnits, Limit: 2})
	if u := units.Units; len(u) != 2 || u[0].Name != "same0" || u[0].Position != 1 || units.Total != 5 || units.Queues != nil || units.Groups != nil {
		t.Errorf("the units are %+v", units)
	}
	groups := ask(visibilityv1alpha1.QueueReviewSpec{Show: visibilityv1alpha1.ShowGroups})
	if g := groups.Groups; len(g) != 3 || g[0].Units != 3 || g[0].First.Name != "same0" || g[0].First.Kind != "Job" || groups.Total != 3 || groups.Queues != nil || groups.Units != nil {
		t.Errorf("the groups are %+v", groups)
	}
	queues := ask(visibilityv1alpha1.QueueReviewSpec{})
	if queues.Total != 2 || len(queues.Queues) != 2 || queues.Groups != nil || queues.Units != nil {
		t.Errorf("the queues are %+v", queues)
	}
	if q := queues.Queues[0]; q.Pending != 3 || q.Dequeued != 1 || q.Requested.Cpu().String() != "12" || q.Held.Cpu().String() != "6" {
		t.Errorf("queue a is %+v", q)
	}
	for _, spec := range []visibilityv1alpha1.QueueReviewSpec{{Phases: []string{"enqueued"}}, {Reasons: []string{"QuotaExceeded"}}, {Queue: "root-a", Phases: []string{"Enqueued"}}} {
		some, err := m.Queues("a", spec, only("a"))
		if err != nil || some.Selected != 3 || len(some.Queues) != 1 {
			t.Errorf("%+v selects %+v, %v", spec, some, err)
		}
	}
	one, err := m.Queues("a", visibilityv1alpha1.QueueReviewSpec{Queue: "root-a", Show: visibilityv1alpha1.ShowUnits, AllNamespaces: true}, everything())
	if err != nil || len(one.Queues) != 1 || one.Queues[0].Name != "root-a" || len(one.Units) != 4 {
		t.Errorf("one queue is %+v, %v", one, err)
	}
	if none, err := m.Queues("a", visibilityv1alpha1.QueueReviewSpec{Kinds: []string{"TFJob"}}, everything()); err != nil || none.Selected != 0 {
		t.Errorf("kind TFJob selects %+v, %v", none, err)
	}
	_, err = m.Queues("a", visibilityv1alpha1.QueueReviewSpec{Queue: "root-aa"}, everything())
	require.ErrorSays(t, err, `did you mean "root-a"`)
	quotas, err := m.Quotas("a", visibilityv1alpha1.QuotaReviewSpec{}, everything())
	if err != nil || len(quotas.Quotas) != 3 {
		t.Fatalf("%+v, %v", quotas, err)
	}
	if root, a, b := quotas.Quotas[0], quotas.Quotas[1], quotas.Quotas[2]; root.Waiting != 3 || root.Holding != 2 || a.Queue != "root-a" ||
		a.Borrowed.Cpu().String() != "2" || !b.Lent.Cpu().IsZero() || a.Requested.Cpu().String() != "12" {
		t.Errorf("the quotas are %+v", quotas.Quotas)
	}
	own, err := m.Quotas("a", visibilityv1alpha1.QuotaReviewSpec{}, only("a"))
	if err != nil || len(own.Quotas) != 2 || own.Hidden != 1 {
		t.Errorf("a tenant sees %+v, %v", own, err)
	}
	if _, err := m.Quotas("a", visibilityv1alpha1.QuotaReviewSpec{Quota: "root/c"}, everything()); err == nil {
		t.Error("a quota that does not exist is answered")
	}
	_, err = m.Quotas("a", visibilityv1alpha1.QuotaReviewSpec{Quota: "b"}, everything())
	require.ErrorSays(t, err, `did you mean "root/b"`)
}

// The API server validates a question only after it was answered.
func TestAQuestionThatTheCRDsForbidIsRefused(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.submit("a/unit", cl.request("cpu", 1000))
	m := cl.model()
	long, many := strings.Repeat("x", 5000), make([]string, 51)
	for want, spec := range map[string]visibilityv1alpha1.QueueReviewSpec{
		"spec.offset must be 0 or more, not -1":        {Offset: -1},
		"spec.limit must be from 0 to 1000, not -1":    {Limit: -1},
		"spec.limit must be from 0 to 1000, not 1001":  {Limit: 1001},
		"spec.queue has 5000 bytes, and may have 253":  {Queue: long},
		"spec.kinds has 51 entries, and may have 50":   {Kinds: many},
		"spec.reasons has 51 entries, and may have 50": {Reasons: many},
		"spec.phases has 51 entries, and may have 10":  {Phases: many},
	} {
		if _, err := m.Queues("a", spec, everything()); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	for want, spec := range map[string]visibilityv1alpha1.QuotaReviewSpec{
		"spec.offset must be 0 or more, not -1":        {Offset: -1},
		"spec.limit must be from 0 to 1000, not 1001":  {Limit: 1001},
		"spec.quota has 5000 bytes, and may have 4096": {Quota: long},
	} {
		if _, err := m.Quotas("a", spec, everything()); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if _, err := m.Why("a", long, everything()); err == nil || err.Error() != "spec.unit has 5000 bytes, and may have 253" {
		t.Errorf("the error is %v", err)
	}
}

// Together, the pages of an answer are complete.
func TestAnswersHavePages(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	for i := range 8 {
		cl.submit(fmt.Sprint("a/unit", i), cl.request("cpu", 1000*(i+1)))
	}
	m := cl.model()
	for _, show := range []visibilityv1alpha1.QueueReviewContent{visibilityv1alpha1.ShowQueues, visibilityv1alpha1.ShowGroups, visibilityv1alpha1.ShowUnits} {
		page := func(limit, offset int32) *visibilityv1alpha1.QueueReviewStatus {
			answer, err := m.Queues("a", visibilityv1alpha1.QueueReviewSpec{AllNamespaces: true, Show: show, Limit: limit, Offset: offset}, everything())
			require.NoError(t, err)
			return answer
		}
		all, parts := page(0, 0), &visibilityv1alpha1.QueueReviewStatus{}
		for ; len(parts.Queues)+len(parts.Groups)+len(parts.Units) < int(all.Total); parts.Total++ {
			next := page(3, parts.Total*3)
			if next.Total != all.Total {
				t.Fatalf("%s: the total of page %d is %d, want %d", show, parts.Total, next.Total, all.Total)
			}
			parts.Queues, parts.Groups, parts.Units = append(parts.Queues, next.Queues...), append(parts.Groups, next.Groups...), append(parts.Units, next.Units...)
		}
		if !reflect.DeepEqual(parts.Queues, all.Queues) || !reflect.DeepEqual(parts.Groups, all.Groups) || !reflect.DeepEqual(parts.Units, all.Units) {
			t.Errorf("%s: the pages are %+v, want %+v", show, parts, all)
		}
		if beyond := page(3, 100); beyond.Total != all.Total || len(beyond.Queues)+len(beyond.Groups)+len(beyond.Units) > 0 {
			t.Errorf("%s: after the end is %+v", show, beyond)
		}
	}
	quotas, err := m.Quotas("a", visibilityv1alpha1.QuotaReviewSpec{Limit: 1, Offset: 2}, everything())
	if err != nil || quotas.Total != 3 || len(quotas.Quotas) != 1 || quotas.Quotas[0].Path != "root/b" {
		t.Errorf("the last quota is %+v, %v", quotas, err)
	}
}

func TestTheQuotasSayWhyTheirTreeIsNotTheCurrentOne(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{Note: quota.LastValidNote + "ElasticQuotaTree kube-system/t is invalid"})
	for want, access := range map[string]Access{"The last valid quota tree is in force, because ElasticQuotaTree kube-system/t is invalid": everything(), "": only("a")} {
		if got, err := c.model().Quotas("a", visibilityv1alpha1.QuotaReviewSpec{}, access); err != nil || got.Message != want {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
}

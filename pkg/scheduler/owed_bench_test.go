package scheduler_test

import (
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// creditors returns a core where units wait for what they are owed: one unit has borrowed half of the cluster, and
// units of one cpu each use the rest. No two units request the same memory.
func creditors(t testing.TB, waiting, leaves int, policy *queue.Policy) *crowd {
	t.Helper()
	c := &crowd{crowdOf: crowdOf{waiting: waiting, leaves: leaves, shapes: waiting, policy: policy}, names: resources.NewNames()}
	request := func(cpu, memory int) quota.Demand {
		requests, err := resources.Request(c.names, map[string]resource.Quantity{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI),
			"memory": *resource.NewQuantity(int64(memory), resource.DecimalSI), quota.JobsResource: resource.MustParse("1")})
		require.NoError(t, err)
		return quota.Demand{Requests: requests, Preemptible: true}
	}
	for shape := range c.shapes {
		c.demands = append(c.demands, request(1, shape+1))
	}
	c.now = newWorld(t, scheduler.Options{}, leaf("root", nil)).now
	c.core = scheduler.New(scheduler.Options{Policy: policy})
	each := 2 * runningPerLeaf
	cores := func(n int) map[string]resource.Quantity {
		return map[string]resource.Quantity{"cpu": *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
	root := tree.Node{Name: "root", Max: cores(each * leaves), Children: []tree.Node{{Name: "borrower", Namespaces: []string{"borrower"}}}}
	for leaf := range leaves {
		root.Children = append(root.Children, tree.Node{Name: strconv.Itoa(leaf), Namespaces: []string{namespaceOf(leaf)}, Min: cores(each)})
	}
	planted, _, err := tree.New(c.names, root, tree.Options{PauseBorrowing: true})
	require.NoError(t, err)
	c.backend = &countingBackend{Tree: planted}
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: planted})
	c.version++
	c.core.Apply(c.now, scheduler.UnitChanged{Unit: scheduler.Unit{Key: "borrower/half", Facts: scheduler.Facts{UID: "half", Version: 1, Demand: request(runningPerLeaf*leaves, 1)}}})
	if released := c.turn(); released != 1 {
		t.Fatalf("the borrower was not released")
	}
	c.running = nil
	return c
}

// BenchmarkReleaseOwed measures one release while units wait for what they are owed: a unit ends, one that is owed its
// room gets it, and a new unit arrives.
func BenchmarkReleaseOwed(b *testing.B) {
	for _, of := range []struct {
		waiting, leaves int
		policy          *queue.Policy
	}{
		{10, 10, queue.RoundRobin},
		{1000, 1, queue.RoundRobin},
		{1000, 10, queue.RoundRobin},
		{1000, 10, queue.Block},
		{10_000, 10, queue.Priority},
	} {
		b.Run(fmt.Sprintf("owed=%d/leaves=%d/%s", of.waiting, of.leaves, of.policy), func(b *testing.B) {
			creditors(b, of.waiting, of.leaves, of.policy).benchmarkReleases(b)
		})
	}
}

// BenchmarkAdmitOthers measures an admission that uses nothing that waiting units are owed.
func BenchmarkAdmitOthers(b *testing.B) {
	for _, waiting := range []int{10, 1000, 4000} {
		b.Run(fmt.Sprintf("owed=%d", waiting), func(b *testing.B) {
			c := creditors(b, waiting, 10, queue.RoundRobin)
			c.fill(b)
			requests, _ := resources.Request(c.names, map[string]resource.Quantity{"memory": resource.MustParse("1"), quota.JobsResource: resource.MustParse("1")})
			b.ReportAllocs()
			for b.Loop() {
				c.version++
				u := scheduler.Unit{Key: "borrower/small", Facts: scheduler.Facts{UID: fmt.Sprint(c.version), Version: c.version, Demand: quota.Demand{Requests: requests, Preemptible: true}}}
				c.core.Apply(c.now, scheduler.UnitChanged{Unit: u})
				c.running = nil
				if released := c.turn(); released != 1 {
					b.Fatalf("%d units were released", released)
				}
				c.endOne()
			}
		})
	}
}

package visibility

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// crowd is a cluster with 1,000 nodes of quota and 100,000 units. 10,000 of them hold quota.
func crowd(t failer) *cluster {
	return full(t, queue.RoundRobin, scale{parents: 9, leaves: 110, perLeaf: 101, root: "20000", parent: "5000", min: "4", max: "10",
		cpu: func(unit int) int { return 1000 + unit%7 }})
}

// turnover is a cluster with 1,000 nodes of quota and 104,976 units. All units of a parent compete: it is full with 2
// units of each leaf, which may have 4. root is the max of the root, and may be empty.
func turnover(t failer, policy *queue.Policy, root string) *cluster {
	return full(t, policy, scale{parents: 27, leaves: 36, perLeaf: 108, root: root, parent: "72", min: "1", max: "4", cpu: func(int) int { return 1000 }})
}

// scale is the size of a cluster: its parents, leaves per parent, units per leaf, the max of each kind of node, and
// the requests of each unit in thousandths.
type scale struct {
	parents, leaves, perLeaf int
	root, parent, min, max   string
	cpu                      func(unit int) int
}

func full(t failer, policy *queue.Policy, s scale) *cluster {
	root := tree.Node{Name: "root"}
	if s.root != "" {
		root.Max = amounts("cpu", s.root)
	}
	for d := range s.parents {
		department := tree.Node{Name: fmt.Sprint("department", d), Max: amounts("cpu", s.parent)}
		for i := range s.leaves {
			name := fmt.Sprintf("team%d-%d", d, i)
			department.Children = append(department.Children, tree.Node{Name: name, Namespaces: []string{name}, Min: amounts("cpu", s.min), Max: amounts("cpu", s.max)})
		}
		root.Children = append(root.Children, department)
	}
	c := newCluster(t, root, tree.Options{PauseBorrowing: true})
	for d := range s.parents {
		for i := range s.leaves {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: fmt.Sprintf("root-department%d-team%d-%d", d, d, i), Policy: policy})
		}
	}
	for d := range s.parents {
		for i := range s.leaves {
			for j := range s.perLeaf {
				key := fmt.Sprintf("team%d-%d/unit-%d", d, i, j)
				u := &scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Submitted: int64(j), Kind: 1}}
				u.Demand.Requests, u.Demand.Preemptible = c.request("cpu", s.cpu(j)), true
				c.units[key] = u
				c.apply(u)
			}
		}
	}
	c.settle()
	return c
}

// reportProcessorTime starts a measurement. The function that it returns reports the processor time per operation.
func reportProcessorTime(b *testing.B) (report func()) {
	used := func() int64 {
		var usage syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkView(b *testing.B) {
	c := crowd(b)
	b.ReportAllocs()
	for b.Loop() {
		c.core.View(c.now, c.names)
	}
}

// The last unit of a full queue competes with all units below its parent or, if the root is full too, with all units.
func BenchmarkWhyOfTheLastUnit(b *testing.B) {
	for _, c := range []struct{ name, root string }{{"full parent", ""}, {"full root", "1944"}} {
		b.Run(c.name, func(b *testing.B) {
			c := turnover(b, queue.RoundRobin, c.root)
			view := c.core.View(c.now, c.names)
			b.ReportAllocs()
			defer reportProcessorTime(b)()
			for b.Loop() {
				if _, err := New(view, []string{"", "Job"}, "kube-queue").Why("team3-20", "unit-107", everything()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAnswers(b *testing.B) {
	c := crowd(b)
	view := c.core.View(c.now, c.names)
	queues := func(show visibilityv1alpha1.QueueReviewContent) func(*Model) (any, error) {
		return func(m *Model) (any, error) {
			return m.Queues("team3-50", visibilityv1alpha1.QueueReviewSpec{AllNamespaces: true, Show: show}, everything())
		}
	}
	for _, question := range []struct {
		name string
		ask  func(*Model) (any, error)
	}{
		{"why", func(m *Model) (any, error) { return m.Why("team3-50", "unit-60", everything()) }},
		{"queues", queues(visibilityv1alpha1.ShowQueues)},
		{"groups", queues(visibilityv1alpha1.ShowGroups)},
		{"units", queues(visibilityv1alpha1.ShowUnits)},
		{"quotas", func(m *Model) (any, error) {
			return m.Quotas("team3-50", visibilityv1alpha1.QuotaReviewSpec{}, everything())
		}},
	} {
		b.Run(question.name, func(b *testing.B) {
			b.ReportAllocs()
			defer reportProcessorTime(b)()
			size := 0
			for b.Loop() {
				answer, err := question.ask(New(view, []string{"", "Job"}, "kube-queue")) // nothing is computed yet
				require.NoError(b, err)
				text, _ := json.Marshal(answer)
				size = len(text)
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}

func BenchmarkStarts(b *testing.B) {
	m := crowd(b).model()
	report := reportProcessorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Starts(func(string, forecast.Declared, time.Duration) (time.Duration, bool) { return time.Hour, true }, nil)
	}
	report()
}

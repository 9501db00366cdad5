package visibility

import (
	"encoding/json"
	"fmt"
	"testing"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// crowd is a cluster with 1,000 nodes of quota and 100,000 units, of which 10,000 hold quota.
func crowd(b *testing.B) *cluster {
	const teams, perTeam = 990, 101
	root := tree.Node{Name: "root", Max: amounts("cpu", "20000")}
	for d := range 9 {
		department := tree.Node{Name: fmt.Sprint("department", d), Max: amounts("cpu", "5000")}
		for i := range teams / 9 {
			name := fmt.Sprintf("team%d-%d", d, i)
			department.Children = append(department.Children, tree.Node{Name: name, Namespaces: []string{name}, Min: amounts("cpu", "4"), Max: amounts("cpu", "10")})
		}
		root.Children = append(root.Children, department)
	}
	c := newCluster(b, root, tree.Options{PauseBorrowing: true})
	for d := range 9 {
		for i := range teams / 9 {
			for j := range perTeam {
				key := fmt.Sprintf("team%d-%d/unit-%d", d, i, j)
				u := &scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Submitted: int64(j), Kind: 1}}
				u.Demand.Requests, u.Demand.Preemptible = c.request("cpu", 1000+j%7), true
				c.units[key] = u
				c.apply(u)
			}
		}
	}
	c.settle()
	b.Logf("%d units", len(c.units))
	return c
}

func BenchmarkView(b *testing.B) {
	c := crowd(b)
	b.ReportAllocs()
	for b.Loop() {
		c.core.View(c.now, c.names)
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
			size := 0
			for b.Loop() {
				answer, err := question.ask(New(view, []string{"", "Job"}, "kube-queue")) // nothing is computed yet
				if err != nil {
					b.Fatal(err)
				}
				text, _ := json.Marshal(answer)
				size = len(text)
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}

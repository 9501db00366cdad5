package kueue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/migration/kueue"
	"kube-queue.dev/kube-queue/pkg/migration/migrationtest"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/test/require"
)

// member is a ClusterQueue or Cohort in a model of Kueue. The model admits units of a flavor one by one, as Kueue's
// documentation defines borrowing and lending, without the arithmetic of the converter.
type member struct {
	name     string
	parent   *member
	children []*member
	// nominal, borrow and lend are by flavor. A missing limit is not set.
	nominal, borrow, lend map[string]int
	usage                 map[string]int
}

var flavorNames = []string{"fast", "slow"}

// quota is what Kueue counts as the quota of the member: its own and what members below it lend.
func (m *member) quota(f string) int {
	sum := m.nominal[f]
	for _, child := range m.children {
		sum += child.quota(f) - child.kept(f)
	}
	return sum
}

// kept is what the member does not lend.
func (m *member) kept(f string) int {
	if lend, set := m.lend[f]; set {
		return max(0, m.quota(f)-lend)
	}
	return 0
}

// admit uses one more unit if it can.
func (m *member) admit(f string) bool {
	used := m.usage[f] + 1
	if m.parent == nil {
		if used > m.quota(f) {
			return false
		}
		m.usage[f] = used
		return true
	}
	if borrow, set := m.borrow[f]; set && used > m.quota(f)+borrow {
		return false
	}
	if used > m.kept(f) && !m.parent.admit(f) {
		return false
	}
	m.usage[f] = used
	return true
}

func (m *member) clear() {
	m.usage = map[string]int{}
	for _, child := range m.children {
		child.clear()
	}
}

// setup is a generated setup of Kueue.
type setup struct {
	roots, queues []*member
	text          []string
}

func generate(t *rapid.T) *setup {
	s := &setup{}
	var cohorts []*member
	amount := rapid.IntRange(0, 9)
	quotas := func(m *member, sometimes bool) string {
		var flavors []string
		for _, f := range flavorNames {
			if sometimes && rapid.Bool().Draw(t, "without") {
				continue
			}
			m.nominal[f] = amount.Draw(t, "nominal")
			text := fmt.Sprintf("name: cpu, nominalQuota: %d", m.nominal[f])
			if m.parent != nil && rapid.Bool().Draw(t, "borrows") {
				m.borrow[f] = amount.Draw(t, "borrowingLimit")
				text += fmt.Sprintf(", borrowingLimit: %d", m.borrow[f])
			}
			if m.parent != nil && rapid.Bool().Draw(t, "lends") {
				m.lend[f] = amount.Draw(t, "lendingLimit")
				text += fmt.Sprintf(", lendingLimit: %d", m.lend[f])
			}
			flavors = append(flavors, fmt.Sprintf("{name: %s, resources: [{%s}]}", f, text))
		}
		if flavors == nil {
			return "[]"
		}
		return "[{coveredResources: [cpu], flavors: [" + strings.Join(flavors, ", ") + "]}]"
	}
	create := func(name string) *member {
		m := &member{name: name, nominal: map[string]int{}, borrow: map[string]int{}, lend: map[string]int{}, usage: map[string]int{}}
		if len(cohorts) > 0 && rapid.IntRange(0, 3).Draw(t, "below") > 0 {
			m.parent = rapid.SampledFrom(cohorts).Draw(t, "parent")
			m.parent.children = append(m.parent.children, m)
		} else {
			s.roots = append(s.roots, m)
		}
		return m
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "cohorts") {
		m := create(fmt.Sprint("cohort-", i))
		parent := ""
		if m.parent != nil {
			parent = "parentName: " + m.parent.name + ", "
		}
		s.text = append(s.text, fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: %s}, spec: {%sresourceGroups: %s}}", m.name, parent, quotas(m, true)))
		cohorts = append(cohorts, m)
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "queues") {
		m := create(fmt.Sprint("queue-", i))
		parent := ""
		if m.parent != nil {
			parent = "cohortName: " + m.parent.name + ", "
		}
		s.text = append(s.text,
			fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {%snamespaceSelector: {}, resourceGroups: %s}}", m.name, parent, quotas(m, true)),
			fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: %s}, spec: {clusterQueue: %s}}", m.name, m.name))
		s.queues = append(s.queues, m)
	}
	return s
}

// nodesOf returns the nodes of a tree, with the chain from each node to the root.
func nodesOf(n tree.Node, above []tree.Node, into map[string][]tree.Node) {
	chain := append([]tree.Node{n}, above...)
	into[n.Name] = chain
	for _, child := range n.Children {
		nodesOf(child, chain, into)
	}
}

func whole(t *rapid.T, list map[string]resource.Quantity, name string) (int, bool) {
	q, has := list[name]
	if !has {
		return 0, false
	}
	value, exact := q.AsInt64()
	if !exact {
		t.Fatalf("%v is not whole", list)
	}
	return int(value), true
}

func treeOf(t *rapid.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == manifest.Kind })
	if at < 0 {
		t.Fatal("there is no tree")
	}
	return objects[at]
}

// For every setup, the tree is valid. Each queue is guaranteed its nominal quota and alone can use exactly as much as
// in Kueue. Everything that Kueue admits together fits.
func TestPropertyGuaranteesAndLimitsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generate(t)
		result, err := kueue.Convert(migrationtest.Read(t, strings.Join(s.text, "\n---\n")))
		require.NoError(t, err)
		object := treeOf(t, result.Objects)
		raw, err := object.MarshalJSON()
		require.NoError(t, err)
		if errors, _ := manifest.Check(raw); errors != nil {
			t.Fatalf("the tree is invalid: %v\n%s", errors, raw)
		}
		nodes := map[string][]tree.Node{}
		nodesOf(manifest.Root(object), nil, nodes)
		covered := false
		for _, q := range s.queues {
			covered = covered || len(q.nominal) > 0
		}
		for _, q := range s.queues {
			node := nodes[q.name][0]
			nominal, reach := 0, 0
			for _, amount := range q.nominal {
				nominal += amount
			}
			for _, root := range s.roots {
				root.clear()
			}
			for f := range q.nominal {
				for q.admit(f) {
					reach++
				}
			}
			if guarantee, has := whole(t, node.Min, "cpu"); guarantee != nominal || has != (len(q.nominal) > 0) {
				t.Fatalf("%s is guaranteed %d, want %d", q.name, guarantee, nominal)
			}
			if limit, has := whole(t, node.Max, "cpu"); limit != reach || has != covered {
				t.Fatalf("%s may use %d (%t), want %d", q.name, limit, has, reach)
			}
		}
		s.fill(t, nodes)
	})
}

// fill admits units to the model in random order, and checks that each state fits in the tree.
func (s *setup) fill(t *rapid.T, nodes map[string][]tree.Node) {
	for _, root := range s.roots {
		root.clear()
	}
	used := map[string]int{}
	for range 60 {
		q := rapid.SampledFrom(s.queues).Draw(t, "queue")
		flavors := slices.Sorted(maps.Keys(q.nominal))
		if len(flavors) == 0 || !q.admit(rapid.SampledFrom(flavors).Draw(t, "flavor")) {
			continue
		}
		for _, node := range nodes[q.name] {
			used[node.Name]++
			if limit, has := whole(t, node.Max, "cpu"); has && used[node.Name] > limit {
				t.Fatalf("Kueue admits %d below %s, and its max is %d", used[node.Name], node.Name, limit)
			}
		}
	}
}

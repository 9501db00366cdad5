package scenario

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Leaf is the name of a leaf's node and of its namespace; leaves are counted through
// all parents, from 0.
func (s *Scenario) Leaf(n int) string {
	return fmt.Sprintf("perf-%d-%d", n/s.Leaves.Count, n%s.Leaves.Count)
}

// LeafCount is the number of leaves of all parents.
func (s *Scenario) LeafCount() int { return s.Parents.Count * s.Leaves.Count }

// Namespaces are those of all leaves.
func (s *Scenario) Namespaces() []string {
	names := make([]string, s.LeafCount())
	for n := range names {
		names[n] = s.Leaf(n)
	}
	return names
}

type node struct {
	Name       string   `json:"name"`
	Namespaces []string `json:"namespaces,omitempty"`
	Min        Amounts  `json:"min,omitempty"`
	Max        Amounts  `json:"max,omitempty"`
	Children   []node   `json:"children,omitempty"`
}

// Tree is the manifest of the quota tree. Of a backlog it is the one in which nothing
// fits.
func (s *Scenario) Tree() ([]byte, error) {
	max := s.Leaves.Max
	if s.Kind == Backlog {
		max = s.roomFor(0)
	}
	return s.tree(max)
}

// TreeWithRoom is that of a backlog with room for so many units of each leaf: for the
// first so many, which fill it.
func (s *Scenario) TreeWithRoom(units int) ([]byte, error) { return s.tree(s.roomFor(units)) }

func (s *Scenario) tree(leafMax Amounts) ([]byte, error) {
	root := node{Name: "perf"}
	for p := range s.Parents.Count {
		parent := node{Name: fmt.Sprintf("perf-%d", p), Min: s.Parents.Min, Max: s.Parents.Max}
		for l := range s.Leaves.Count {
			name := s.Leaf(p*s.Leaves.Count + l)
			parent.Children = append(parent.Children, node{Name: name, Namespaces: []string{name}, Min: s.Leaves.Min, Max: leafMax})
		}
		root.Children = append(root.Children, parent)
	}
	return json.Marshal(map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree",
		"metadata": map[string]any{"name": "elasticquotatree", "namespace": "kube-system"},
		"spec":     map[string]any{"root": root},
	})
}

// roomFor is what the first so many units of a leaf request together.
func (s *Scenario) roomFor(units int) Amounts {
	class := &s.Classes[0]
	times := int64(0)
	for n := range units {
		times += int64(class.shape(n))
	}
	return class.Requests.times(times)
}

func (a Amounts) times(n int64) Amounts {
	product := Amounts{}
	for name, text := range a {
		quantity := resource.MustParse(text) // checked when it was read
		quantity.Mul(n)
		product[name] = quantity.String()
	}
	return product
}

// cpu is the amount of cpu, 0 when there is none.
func (a Amounts) cpu() float64 {
	quantity, err := resource.ParseQuantity(a["cpu"])
	if err != nil {
		return 0
	}
	return quantity.AsApproximateFloat64()
}

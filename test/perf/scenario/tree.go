package scenario

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Leaf returns the name of a leaf's node, which is also that of its namespace. Leaves are numbered
// from 0 over all parents.
func (s *Scenario) Leaf(n int) string {
	return fmt.Sprintf("perf-%d-%d", n/s.Leaves.Count, n%s.Leaves.Count)
}

// LeafCount returns the number of leaves of all parents.
func (s *Scenario) LeafCount() int { return s.Parents.Count * s.Leaves.Count }

// Namespaces returns the namespaces of all leaves.
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

// Tree returns the manifest of the quota tree. For a backlog this is a tree in which no unit fits.
func (s *Scenario) Tree() ([]byte, error) {
	max := s.Leaves.Max
	if s.Kind == Backlog {
		max = s.roomFor(0)
	}
	return s.tree(max)
}

// TreeWithRoom returns the tree of a backlog in which exactly the first units of each leaf fit.
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

// roomFor returns the sum of the requests of the first units of a leaf.
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
		quantity := resource.MustParse(text) // valid: checked by Read
		quantity.Mul(n)
		product[name] = quantity.String()
	}
	return product
}

// cpu returns the amount of cpu, or 0.
func (a Amounts) cpu() float64 {
	quantity, err := resource.ParseQuantity(a["cpu"])
	if err != nil {
		return 0
	}
	return quantity.AsApproximateFloat64()
}

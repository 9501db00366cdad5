package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// TreeObject describes an ElasticQuotaTree after a write.
type TreeObject struct {
	Created    string // its creation time; the text can be sorted
	Generation int64
	Tree       *Tree // nil if the spec is invalid
	Shown      TreeStatus
}

// TreeStatus is the status of a tree.
type TreeStatus struct {
	ObservedGeneration int64
	Nodes              []NodeStatus
}

// NodeStatus is the status of a node.
type NodeStatus struct {
	Path          string
	Used, Request Quantities
	Jobs          int64
}

// Tree is a valid spec.
type Tree struct{ Nodes []*Node } // in tree order: a node before its children

// Node is a node of a tree.
type Node struct {
	name, Path string
	Parent     *Node
	namespaces []string
	min, max   corev1.ResourceList // not rounded: the oversell rate is applied before rounding
}

// MaxJobs is the key that limits the number of jobs.
const MaxJobs = "kube-queue/max-jobs"

type treeNode struct {
	Name       string     `json:"name"`
	Namespaces []string   `json:"namespaces"`
	Min        Quantities `json:"min"`
	Max        Quantities `json:"max"`
	Children   []treeNode `json:"children"`
}

func parseTree(kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != "ElasticQuotaTree" {
		return nil, nil
	}
	f := &TreeObject{Created: m.CreationTimestamp, Generation: m.Generation}
	var o struct {
		Spec struct {
			Root *treeNode `json:"root"`
		} `json:"spec"`
	}
	var status struct{ Status TreeStatus }
	if json.Unmarshal(raw, &status) == nil { // an invalid status has no nodes
		f.Shown = status.Status
	}
	if tree := (&Tree{}); json.Unmarshal(raw, &o) == nil && o.Spec.Root != nil && tree.add(o.Spec.Root, nil, map[string]bool{}) {
		f.Tree = tree
	}
	return f, nil
}

// add adds a node and its children. It returns false if they are invalid. Names must be unique.
func (t *Tree) add(in *treeNode, parent *Node, seen map[string]bool) bool {
	n := &Node{name: in.Name, Path: in.Name, Parent: parent, namespaces: in.Namespaces}
	if parent != nil {
		n.Path = parent.Path + "/" + in.Name
	}
	if in.Name == "" || seen[in.Name] || !n.read(in) {
		return false
	}
	seen[in.Name] = true
	t.Nodes = append(t.Nodes, n)
	children := corev1.ResourceList{}
	for i := range in.Children {
		at := len(t.Nodes)
		if !t.add(&in.Children[i], n, seen) {
			return false
		}
		for name, least := range t.Nodes[at].min {
			sum := children[name]
			sum.Add(least)
			children[name] = sum
		}
	}
	for name, limit := range n.max {
		if sum := children[name]; sum.Cmp(limit) > 0 {
			return false // the children's min together is above the max
		}
	}
	return true
}

// read sets the limits of a node. It returns false if they are invalid.
func (n *Node) read(in *treeNode) bool {
	var err, maxErr error
	n.min, err = in.Min.read()
	if n.max, maxErr = in.Max.read(); errors.Join(err, maxErr) != nil {
		return false
	}
	for name, least := range n.min {
		if most, ok := n.max[name]; least.Sign() < 0 || ok && least.Cmp(most) > 0 {
			return false
		}
	}
	for _, most := range n.max {
		if most.Sign() < 0 {
			return false
		}
	}
	return true
}

// Limit returns the maximum usage of a resource under the node.
func (n *Node) Limit(name string, oversell *big.Rat) (int64, bool) {
	most, ok := n.max[corev1.ResourceName(name)]
	if !ok {
		return 0, false
	}
	return baseUnits(name, new(big.Rat).Mul(exact(most), oversell), false), true
}

// Group returns the node that a unit belongs to: the first node in tree order that lists its
// namespace, or the one of these nodes that the unit names, by its name or its path.
func (t *Tree) Group(namespace, name string) (*Node, error) {
	listing := t.listing(namespace)
	if len(listing) == 0 {
		listing = t.listing("*")
	}
	if len(listing) == 0 {
		return nil, fmt.Errorf("no node lists namespace %s", namespace)
	}
	if name == "" {
		return listing[0], nil
	}
	var paths []string
	for _, n := range listing {
		if n.name == name || n.Path == name {
			return n, nil
		}
		paths = append(paths, n.Path)
	}
	return nil, fmt.Errorf("quota %s does not list namespace %s; these do: %s", name, namespace, strings.Join(paths, ", "))
}

// Nearest returns the node of a path or, if it does not exist, its nearest existing ancestor. The
// root always exists.
func (t *Tree) Nearest(path string) *Node {
	for ; path != ""; path = path[:max(0, strings.LastIndex(path, "/"))] {
		for _, n := range t.Nodes {
			if n.Path == path {
				return n
			}
		}
	}
	return t.Nodes[0]
}

func (t *Tree) listing(namespace string) []*Node {
	var out []*Node
	for _, n := range t.Nodes {
		if slices.Contains(n.namespaces, namespace) {
			out = append(out, n)
		}
	}
	return out
}

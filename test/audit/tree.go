package audit

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
)

// treeFacts describe an ElasticQuotaTree after a write.
type treeFacts struct {
	name    string
	created metav1.Time
	tree    *tree // nil if the spec is invalid
}

// tree is a valid spec.
type tree struct {
	nodes  []*node // in tree order: a node before its children
	byPath map[string]*node
	names  map[string]bool
}

type node struct {
	quotav1beta1.ElasticQuotaNode
	path   string
	parent *node
}

// maxJobs is the key that limits the number of jobs.
const maxJobs = "kube-queue/max-jobs"

func readTree(m *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	f := &treeFacts{name: m.Name, created: m.CreationTimestamp}
	var spec struct {
		Spec struct {
			Root *quotav1beta1.ElasticQuotaNode
		}
	}
	t := &tree{byPath: map[string]*node{}, names: map[string]bool{}}
	if json.Unmarshal(raw, &spec) == nil && spec.Spec.Root != nil && t.add(*spec.Spec.Root, nil) {
		f.tree = t
	}
	return f, nil
}

// add adds a node and its children. It returns false if they are invalid. Names must be unique.
func (t *tree) add(spec quotav1beta1.ElasticQuotaNode, parent *node) bool {
	n := &node{spec, spec.Name, parent}
	if parent != nil {
		n.path = parent.path + "/" + spec.Name
	}
	if n.Name == "" || t.names[n.Name] || !n.valid() {
		return false
	}
	t.nodes, t.byPath[n.path], t.names[n.Name] = append(t.nodes, n), n, true
	return !slices.ContainsFunc(n.Children, func(child quotav1beta1.ElasticQuotaNode) bool { return !t.add(child, n) })
}

// valid reports whether min and max are amounts, and neither min nor the sum of the children's min exceeds max.
func (n *node) valid() bool {
	children := corev1.ResourceList{}
	for _, child := range n.Children {
		for name, least := range child.Min {
			sum := children[name]
			sum.Add(least)
			children[name] = sum
		}
	}
	for _, least := range n.Min {
		if least.Sign() < 0 {
			return false
		}
	}
	for name, most := range n.Max {
		least, sum := n.Min[name], children[name]
		if most.Sign() < 0 || least.Cmp(most) > 0 || sum.Cmp(most) > 0 {
			return false
		}
	}
	return true
}

// hard returns the maximum usage under the node.
func (n *node) hard(oversell *big.Rat) amounts {
	limits := amounts{}
	for name, most := range n.Max {
		limits[string(name)] = floorOf(string(name), new(big.Rat).Mul(exact(most), oversell))
	}
	return limits
}

// above reports whether the node is the other one or one of its ancestors.
func (n *node) above(other *node) bool {
	for ; other != nil; other = other.parent {
		if other == n {
			return true
		}
	}
	return false
}

// group returns the node that a unit belongs to: the first node in tree order that lists its
// namespace, or the one of these nodes that the unit names, by its name or its path.
func (t *tree) group(namespace, name string) (*node, error) {
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
		if n.Name == name || n.path == name {
			return n, nil
		}
		paths = append(paths, n.path)
	}
	return nil, fmt.Errorf("quota %s does not list namespace %s; these do: %s", name, namespace, strings.Join(paths, ", "))
}

func (t *tree) listing(namespace string) (nodes []*node) {
	for _, n := range t.nodes {
		if slices.Contains(n.Namespaces, namespace) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// nearest returns the node at a path or, if it does not exist, its nearest existing ancestor. The root always exists.
func (t *tree) nearest(path string) *node {
	for ; path != ""; path = path[:max(0, strings.LastIndex(path, "/"))] {
		if n := t.byPath[path]; n != nil {
			return n
		}
	}
	return t.nodes[0]
}

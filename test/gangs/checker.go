package gangs

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Checker checks what it is shown: all versions of all pods in order, and all versions of all nodes in
// order. The zero Checker has no gangs.
type Checker struct {
	mu      sync.Mutex
	members []member
	current map[string]*attempt
	ended   []*attempt
	rooms   rooms
	found   []Violation
}

// Expect adds a gang. Its name must be unique. Pods that were seen before are not checked.
func (c *Checker) Expect(gang Gang) error {
	m, err := newMember(gang)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
	return nil
}

// Pod processes a version of a pod.
func (c *Checker) Pod(now time.Time, pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rooms.see(pod)
	for _, m := range c.members {
		if m.has(pod) {
			c.found = append(c.found, c.attempt(m, pod).see(now, pod)...)
		}
	}
}

// attempt returns the attempt that a pod of the gang belongs to.
func (c *Checker) attempt(m member, pod *corev1.Pod) *attempt {
	a := c.current[m.Name]
	if a != nil && (a.pods[pod.UID] != nil || !a.over()) {
		return a
	}
	if a != nil {
		c.ended = append(c.ended, a)
	}
	if c.current == nil {
		c.current = map[string]*attempt{}
	}
	c.current[m.Name] = newAttempt(m.Gang)
	return c.current[m.Name]
}

// PodGone processes the deletion of a pod.
func (c *Checker) PodGone(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rooms.end(pod)
	for _, a := range c.current {
		a.end(pod.UID)
	}
}

// Node processes a version of a node.
func (c *Checker) Node(node *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rooms.nodes[node.Name] == nil && usable(node) {
		c.rooms.node(node)
	}
}

// NodeGone processes the deletion of a node.
func (c *Checker) NodeGone(node *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rooms.nodeGone(node)
}

// Violations returns the violations so far. Attempts that are incomplete now are violations.
func (c *Checker) Violations() []Violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]Violation(nil), c.found...)
	for _, a := range c.ended {
		all = append(all, a.judge(&c.rooms)...)
	}
	for _, m := range c.members {
		if a := c.current[m.Name]; a != nil {
			all = append(all, a.judge(&c.rooms)...)
		}
	}
	return all
}

// usable reports whether the scheduler places pods on the node.
func usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

package harness

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/test/audit/checks"
)

// together is what the parts of a test share that run at the same time.
type together struct {
	mu sync.Mutex
	// children are the children of the root of the quota tree, by the namespace of their part.
	children map[string][]string
	// allowed are the checks that the parts violate on purpose, by namespace.
	allowed map[string][]string
}

// Part is a part of a test.
type Part struct {
	// Name is a sentence.
	Name, Namespace string
	Run             func(*testing.T, *Env)
}

// Together runs the parts of a test at the same time. The Env of each has its own namespace, and its own
// children of the root of the one tree. The complete test starts the programs and has one run of the audit
// checker.
func (l *Env) Together(t *testing.T, parts []Part) {
	t.Helper()
	l.together = &together{children: map[string][]string{}, allowed: map[string][]string{}}
	for _, p := range parts {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			part := l.suite.Part(t, p.Namespace)
			part.together = l.together
			p.Run(t, part)
			part.together.allow(p.Namespace, part.Allowed)
		})
	}
}

// plant replaces the children of a part, and returns those of all parts.
func (g *together) plant(namespace string, children []string) (all []string, unlock func()) {
	g.mu.Lock()
	g.children[namespace] = children
	for _, name := range slices.Sorted(maps.Keys(g.children)) {
		all = append(all, g.children[name]...)
	}
	return all, g.mu.Unlock
}

func (g *together) allow(namespace string, checks []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed[namespace] = checks
}

// allows reports whether a part violates the check on purpose with an object of its namespace.
func (g *together) allows(v checks.Violation) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for namespace, allowed := range g.allowed {
		if strings.Contains(v.Object, " "+namespace+"/") && slices.Contains(allowed, v.Check) {
			return true
		}
	}
	return false
}

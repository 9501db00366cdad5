package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/checks"
)

// show writes the tree's status as the controller: one line for each node, such as "root/a jobs=1
// used=3 borrowed=1 request=4", in cpu.
func (s *script) show(tree *thing, generation int, lines ...string) {
	var nodes []any
	for _, line := range lines {
		path, rest, _ := strings.Cut(line, " ")
		node := map[string]any{"path": path}
		for field := range strings.FieldsSeq(rest) {
			name, value, _ := strings.Cut(field, "=")
			if name == "jobs" {
				var jobs float64
				fmt.Sscan(value, &jobs)
				node[name] = jobs
			} else {
				node[name] = map[string]any{"cpu": value}
			}
		}
		nodes = append(nodes, node)
	}
	tree.patchStatus(controller, "status.observedGeneration", generation, "status.nodes", nodes)
}

func TestAccountingIsTheSumOverTheUnits(t *testing.T) {
	const limits = "max: {cpu: 8}"
	two := `{name: a, namespaces: [a], min: {cpu: 2}, max: {cpu: 4}}, {name: b, namespaces: [b]}`
	start := func(s *script) *thing {
		tree := s.create(admin, trees, treeOf(limits, two))
		tree.patch(admin, "metadata.generation", 1)
		s.errand("a", "root/a", 3).admit()
		s.errand("a", "root/a", 2)
		s.errand("b", "root/b", 1).admit().end()
		return tree
	}
	right := []string{"root jobs=1 used=3 request=5", "root/a jobs=1 used=3 borrowed=1 request=5", "root/b jobs=0"}
	for _, c := range []struct {
		name string
		act  func(s *script, tree *thing)
		want []string
	}{
		{name: "right", act: func(s *script, tree *thing) { s.show(tree, 1, right...) }},
		{name: "a status of before", act: func(s *script, tree *thing) {
			s.show(tree, 1, right...)
			tree.patch(admin, "metadata.generation", 2)
		}, want: []string{"the status has observedGeneration 1, but the tree has generation 2"}},
		{name: "too little used", act: func(s *script, tree *thing) {
			s.show(tree, 1, "root jobs=1 used=2500m request=5", right[1], right[2])
		}, want: []string{"node root: used: cpu: status 2500m, counted 3"}},
		{name: "a job too many", act: func(s *script, tree *thing) {
			s.show(tree, 1, right[0], right[1], "root/b jobs=1 used=1 request=1")
		}, want: []string{"node root/b: jobs: 1 in the status, 0 counted", "node root/b: used: cpu: status 1, counted 0", "node root/b: request: cpu: status 1, counted 0"}},
		{name: "borrowed without need", act: func(s *script, tree *thing) {
			s.show(tree, 1, right[0], "root/a jobs=1 used=3 borrowed=3 request=5", right[2])
		}, want: []string{"node root/a: borrowed: cpu: status 3, counted 1"}},
		{name: "one in the queue forgotten", act: func(s *script, tree *thing) {
			s.show(tree, 1, "root jobs=1 used=3 request=3", right[1], right[2])
		}, want: []string{"node root: request: cpu: status 3, counted 5"}},
		{name: "one that does not ask counted", act: func(s *script, tree *thing) {
			s.errand("a", "root/a", 1).patch(admin, "spec.active", false)
			s.errand("nowhere", "", 1)
			s.show(tree, 1, "root jobs=1 used=3 request=7", right[1], right[2])
		}, want: []string{"node root: request: cpu: status 7, counted 5"}},
		{name: "a node left out and one too many", act: func(s *script, tree *thing) {
			s.show(tree, 1, right[0], right[1], right[1], "root/c jobs=0")
		}, want: []string{"node root/a: listed twice in the status", "node root/b: missing in the status", "node root/c: listed in the status, but not in the tree"}},
		{name: "a tree that changed is counted again", act: func(s *script, tree *thing) {
			s.becomes(tree, limits, `{name: b, namespaces: [b, a]}`)
			s.show(tree, 1, "root jobs=1 used=3 request=5", "root/b jobs=1 used=3 request=5")
		}},
		{name: "what belongs to no group any more is still used", act: func(s *script, tree *thing) {
			s.becomes(tree, limits, `{name: b, namespaces: [b]}`)
			s.show(tree, 1, "root jobs=0", "root/b jobs=0")
		}, want: []string{"node root: jobs: 0 in the status, 1 counted", "node root: used: cpu: status 0, counted 3", "node root: request: cpu: status 0, counted 3"}},
		{name: "one that waits for its time again asks when that has come", act: func(s *script, tree *thing) {
			later := s.errand("b", "root/b", 2)
			later.patchStatus(controller, "status.phase", "Backoff", "status.requeueState", map[string]any{"requeueAt": s.now.Add(time.Second).Format(time.RFC3339)})
			s.wait(2 * time.Second)
			s.show(tree, 1, right...)
		}, want: []string{"node root: request: cpu: status 5, counted 7", "node root/b: request: cpu: status 0, counted 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			c.act(s, start(s))
			got, err := s.log().Accounting(Options{})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAccountingIncludesPods(t *testing.T) {
	differs := func(s *script) []string {
		t.Helper()
		got, err := s.log().Accounting(Options{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	s := newScript(t)
	tree := s.create(admin, trees, fourCPU)
	tree.patch(admin, "metadata.generation", 1)
	a := s.tfjob("a", 2).admit()
	a.startWith(1)
	s.show(tree, 1, "root jobs=1 used=3 request=3", "root/team jobs=1 used=3 request=3")
	if got := differs(s); len(got) > 0 {
		t.Errorf("with a pod that was not admitted: got %q", got)
	}
	a.pods[0].terminate(30)
	a.orphan()
	s.show(tree, 1, "root jobs=0 used=3 request=3", "root/team jobs=0 used=3 request=3")
	if got := differs(s); len(got) > 0 {
		t.Errorf("with pods that are left: got %q", got)
	}
	s.wait(time.Minute)
	s.show(tree, 1, "root jobs=0 used=3 request=3", "root/team jobs=0 used=3 request=3")
	if got, want := differs(s), "node root: used: cpu: status 3, counted 1"; !slices.Contains(got, want) {
		t.Errorf("after the grace period of one: got %q, want %q", got, want)
	}
}

func TestAccountingNeedsATree(t *testing.T) {
	s := newScript(t)
	s.errand("a", "", 1)
	if _, err := s.log().Accounting(Options{}); !errors.Is(err, checks.ErrNoTree) {
		t.Errorf("got %v, want %v", err, checks.ErrNoTree)
	}
}

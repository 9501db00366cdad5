package audit

import (
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/checks"
)

func TestGrowthShown(t *testing.T) {
	const patience = 16 * time.Second
	hidden := []string{"growth-not-shown"}
	stories := []story{
		{name: "a node above its max shows it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			s.wait(14 * time.Second)
			a.unit.conditions("OverQuota=True/OverQuota")
			a.unit.patchStatus(controller)
			s.wait(time.Minute)
			a.event(extensions, "Late")
		}},
		{name: "or is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			s.wait(patience)
			a.event(extensions, "Late")
		}, breaks: hidden},
		{name: "also if it shows it too late", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			s.wait(patience)
			a.unit.conditions("OverQuota=True/OverQuota")
			a.unit.patchStatus(controller)
		}, breaks: hidden},
		{name: "or no longer", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			a.unit.conditions("OverQuota=True/OverQuota")
			a.unit.patchStatus(controller)
			s.wait(time.Minute)
			a.unit.conditions("OverQuota=False/Fits")
			a.unit.patchStatus(controller)
			s.wait(patience)
			a.event(extensions, "Late")
		}, breaks: hidden},
		{name: "the tree can show it", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			tree.conditions("Valid=True", "OverQuota=True/OverQuota")
			tree.patchStatus(controller)
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "another unit cannot", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 3).admit(), s.tfjob("b", 1).admit()
			a.startWith(2)
			b.unit.conditions("OverQuota=True/OverQuota")
			b.unit.patchStatus(controller)
			s.wait(patience)
			a.event(extensions, "Late")
		}, breaks: hidden},
		{name: "a short time need not be shown", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			s.wait(time.Minute)
			pod := a.startWith(2)
			s.wait(9 * time.Second)
			pod.removePod(operator)
			s.wait(9 * time.Second)
			a.startWith(2)
			s.wait(9 * time.Second)
			a.event(extensions, "Late")
		}},
		{name: "nor do pods that terminate", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2).terminate(300)
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "nor growth that fits", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(1)
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "nor what was admitted before the max was lowered", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			setTree(s, tree, treeOf("max: {cpu: 1}", "{name: team, namespaces: [default]}"))
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "nor that together with growth", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(1)
			setTree(s, tree, treeOf("max: {cpu: 1}", "{name: team, namespaces: [default]}"))
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "but growth that no longer fits because the max was lowered", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			a.startWith(2)
			s.wait(time.Minute)
			setTree(s, tree, treeOf("max: {cpu: 3}", "{name: team, namespaces: [default]}"))
			s.wait(patience)
			a.event(extensions, "Late")
		}, breaks: hidden},
		{name: "pods that are left of a job have no unit that could show it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			a.orphan()
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "nor if the unit has ended", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			a.pods = nil
			a.end()
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "nor if somebody deleted it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			a.unit.remove(admin)
			s.wait(patience)
			a.event(extensions, "Late")
		}},
		{name: "a unit of another node cannot show it", act: func(s *script) {
			s.create(admin, trees, treeOf(unlimited, "{name: a, namespaces: [a], max: {cpu: 2}}, {name: b, namespaces: [b], max: {cpu: 9}}"))
			s.errandOf("x", "a", "root/a", 1).admit()
			other := s.errandOf("z", "b", "root/b", 1).admit()
			s.podOf("x", "a", "x-0", 3)
			s.podOf("z", "b", "z-0", 3)
			other.conditions("OverQuota=True/OverQuota")
			other.patchStatus(controller)
			s.wait(patience)
			s.errand("a", "root/a", 1)
		}, breaks: hidden},
		{name: "nor one that has grown by another resource", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.errandOf("x", "default", "root/team", 1).admit()
			other := s.errandOf("z", "default", "root/team", 1).admit()
			s.podOf("x", "default", "x-0", 5)
			s.create(operator, pods, `{apiVersion: v1, kind: Pod, metadata: {name: z-0, ownerReferences: [{kind: Thing, name: t, uid: z, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {memory: 3}}}]}, status: {phase: Pending}}`)
			other.conditions("OverQuota=True/OverQuota")
			other.patchStatus(controller)
			s.wait(patience)
			s.errand("default", "root/team", 1)
		}, breaks: hidden},
		{name: "without a tree there is no max", act: func(s *script) {
			a := s.tfjob("a", 3).admit()
			a.startWith(2)
			s.wait(patience)
			a.event(extensions, "Late")
		}},
	}
	for i := range stories {
		stories[i].options.Growth = true
	}
	runStories(t, append(stories,
		story{name: "the end of the log counts", options: Options{Growth: true, Until: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)}, act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().startWith(2)
		}, breaks: hidden},
	))
}

func TestGrowthIsCheckedOnRequest(t *testing.T) {
	s := newScript(t)
	s.create(admin, trees, fourCPU)
	a := s.tfjob("a", 3).admit()
	a.startWith(2)
	s.wait(time.Minute)
	a.event(extensions, "Late")
	a.event(extensions, "Later")
	for _, c := range []struct {
		options Options
		checked bool
	}{{Options{}, false}, {Options{Growth: true}, true}, {Options{Growth: true, ResourceQuota: true}, false}} {
		report, err := s.log().Check(c.options)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(report.Checks, func(r checks.Result) bool { return r.Name == "growth-shown" })
		if at >= 0 != c.checked {
			t.Errorf("with %+v the growth is checked: %t, want %t", c.options, at >= 0, c.checked)
		} else if c.checked && (report.Checks[at].Found != 2 || report.Checks[at].Checked != 2) { // two nodes
			t.Errorf("%d of %d violated, want each of 2 nodes once", report.Checks[at].Found, report.Checks[at].Checked)
		}
	}
}

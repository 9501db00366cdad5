package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// unlimited has the limits of a root without limits.
const unlimited = "max: {}"

// errand is a unit without a job, with its namespace and group.
type errand struct {
	*thing
	path string
}

func (s *script) errand(namespace, path string, cpu int) errand {
	s.t.Helper()
	return errand{s.create(admin, units, fmt.Sprintf(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit,
  metadata: {name: errand-%d, namespace: %s}, spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: %d}}}`,
		s.names, namespace, cpu)), path}
}

func (e errand) admit() errand {
	e.patchStatus(controller, "status.phase", "Dequeued", "status.quota", e.path)
	return e
}

func (e errand) end() { e.patchStatus(admin, "status.phase", "Succeeded") }

// becomes changes the tree, and waits until the previous one no longer justifies decisions.
func (s *script) becomes(tree *thing, limits string, children ...string) {
	setTree(s, tree, treeOf(limits, strings.Join(children, ", ")))
	s.wait(3 * time.Second)
}

func TestUnitsFollowTheTree(t *testing.T) {
	const (
		a       = `{name: a, namespaces: [a]}`
		b       = `{name: b, namespaces: [b]}`
		aOf4    = `{name: a, namespaces: [a], max: {cpu: 4}}`
		bothAtB = `{name: b, namespaces: [b, a], max: {cpu: 4}}`
		rest    = `{name: rest, namespaces: ["*"], max: {cpu: 4}}`
	)
	under := func(name string, cpu int, children ...string) string {
		return fmt.Sprintf("{name: %s, max: {cpu: %d}, children: [%s]}", name, cpu, strings.Join(children, ", "))
	}
	runStories(t, []story{
		{name: "a quota lowered under its use admits nothing, however little", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [a], max: {cpu: 2}}`)
			s.errand("a", "root/a", 1).admit()
		}, breaks: []string{"over-limit"}},
		{name: "but what fits once enough has ended", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4))
			one := s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [a], max: {cpu: 2}}`)
			one.end()
			s.errand("a", "root/a", 2).admit()
		}},
		{name: "a raised one admits more", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4))
			s.errand("a", "root/a", 4).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [a], max: {cpu: 6}}`)
			s.errand("a", "root/a", 2).admit()
		}},
		{name: "a node that moved counts under its new parent", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, under("left", 4, a)+","+under("right", 4, b)))
			s.errand("a", "root/left/a", 3).admit()
			s.becomes(tree, unlimited, under("left", 4), under("right", 4, b, a))
			s.errand("b", "root/right/b", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "and no longer under the old one", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, under("left", 4, a, b)+","+under("right", 4)))
			s.errand("a", "root/left/a", 3).admit()
			s.becomes(tree, unlimited, under("left", 4, b), under("right", 4, a))
			s.errand("b", "root/left/b", 4).admit()
		}},
		{name: "a namespace that moved takes its use along", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4+","+b))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [elsewhere], max: {cpu: 4}}`, bothAtB)
			s.errand("b", "root/b", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "and leaves the room behind it", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4+","+b))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [elsewhere], max: {cpu: 4}}`, bothAtB)
			s.errand("elsewhere", "root/a", 4).admit()
		}},
		{name: "it waits at its new group", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4+","+b))
			s.becomes(tree, unlimited, `{name: a, namespaces: [elsewhere], max: {cpu: 4}}`, bothAtB)
			s.errand("a", "root/a", 1).admit()
		}, breaks: []string{"wrong-quota"}},
		{name: "one that falls to the star counts there", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4+","+rest))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, rest)
			s.errand("other", "root/rest", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a renamed node keeps its use", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, aOf4))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: crew, namespaces: [a], max: {cpu: 4}}`)
			s.errand("a", "root/crew", 2).admit()
		}, breaks: []string{"over-limit"}},
	})
}

func TestClaimsOfARemovedGroupCountAtTheNearestNode(t *testing.T) {
	const (
		b     = `{name: b, namespaces: [b]}`
		other = `{name: other, namespaces: [other]}`
	)
	org := func(children string) string {
		return "{name: org, max: {cpu: 4}, children: [" + children + "]}"
	}
	before := org(`{name: team, children: [{name: a, namespaces: [a]}]}, ` + b)
	runStories(t, []story{
		{name: "at the root at least", act: func(s *script) {
			tree := s.create(admin, trees, treeOf("max: {cpu: 4}", `{name: a, namespaces: [a]}, `+b))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, "max: {cpu: 4}", b)
			s.errand("b", "root/b", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "and is given back there when it ends", act: func(s *script) {
			tree := s.create(admin, trees, treeOf("max: {cpu: 4}", `{name: a, namespaces: [a]}, `+b))
			one := s.errand("a", "root/a", 3).admit()
			s.becomes(tree, "max: {cpu: 4}", b)
			one.end()
			s.errand("b", "root/b", 4).admit()
		}},
		{name: "at the parent when the parent is left", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, before))
			s.errand("a", "root/org/team/a", 3).admit()
			s.becomes(tree, unlimited, org("{name: team}, "+b))
			s.errand("b", "root/org/b", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "at the one above when the parent is gone too", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, before))
			s.errand("a", "root/org/team/a", 3).admit()
			s.becomes(tree, unlimited, org(b))
			s.errand("b", "root/org/b", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "and not at others beside it", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, before+", {name: more, max: {cpu: 4}, children: ["+other+"]}"))
			s.errand("a", "root/org/team/a", 3).admit()
			s.becomes(tree, unlimited, org(b), "{name: more, max: {cpu: 4}, children: ["+other+"]}")
			s.errand("other", "root/more/other", 4).admit()
		}},
		{name: "a name that only begins alike is another node", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, `{name: teams, max: {cpu: 4}, children: [{name: a, namespaces: [a]}]}`))
			s.errand("a", "root/teams/a", 3).admit()
			s.becomes(tree, unlimited, `{name: team, namespaces: [b], max: {cpu: 4}}`)
			s.errand("b", "root/team", 4).admit()
		}},
		{name: "the node itself, where it only lost its namespaces", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, `{name: a, namespaces: [a], max: {cpu: 4}}`))
			s.errand("a", "root/a", 3).admit()
			s.becomes(tree, unlimited, `{name: a, namespaces: [b], max: {cpu: 4}}`)
			s.errand("b", "root/a", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "also where its label names a node that is gone", act: func(s *script) {
			tree := s.create(admin, trees, treeOf("max: {cpu: 4}", `{name: a, namespaces: [a]}, {name: spare, namespaces: [a]}`))
			one := s.errand("a", "root/spare", 3)
			one.patch(admin, "spec.quotaName", "spare")
			one.admit()
			s.becomes(tree, "max: {cpu: 4}", `{name: a, namespaces: [a]}`)
			s.errand("a", "root/a", 2).admit()
		}, breaks: []string{"over-limit"}},
		{name: "as one of max-jobs too", act: func(s *script) {
			tree := s.create(admin, trees, treeOf("max: {kube-queue/max-jobs: 1}", `{name: a, namespaces: [a]}, `+b))
			s.errand("a", "root/a", 1).admit()
			s.becomes(tree, "max: {kube-queue/max-jobs: 1}", b)
			s.errand("b", "root/b", 1).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a group that comes back has it again", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, before))
			s.errand("a", "root/org/team/a", 3).admit()
			s.becomes(tree, unlimited, org(b))
			s.becomes(tree, unlimited, org(b), `{name: team, children: [{name: a, namespaces: [a], max: {cpu: 4}}]}`)
			s.errand("b", "root/org/b", 4).admit()
			s.errand("a", "root/team/a", 2).admit()
		}, breaks: []string{"over-limit"}},
	})
}

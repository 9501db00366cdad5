package tree_test

import (
	"strconv"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/test/require"
)

func TestPlace(t *testing.T) {
	f := build(t, "1", node("root", "shared", "",
		node("Team.A", "a shared", "", node("deep", "shared a", "")),
		node("rest", "* b", ""),
		node("rest-2", "*", ""),
		node("b", "b", ""),
		node("nobody", "", "")))
	for _, c := range []struct{ why, namespace, quotaName, want string }{
		{"a leaf that lists the namespace", "b", "", "root/rest"},
		{"the first in tree order, parents before children", "shared", "", "root"},
		{"the first of an inner node and its child", "a", "", "root/Team.A"},
		{"the name picks a later one", "a", "deep", "root/Team.A/deep"},
		{"the name picks the first", "shared", "root", "root"},
		{"the path picks one", "shared", "root/Team.A/deep", "root/Team.A/deep"},
		{"a node that lists it beside the star", "b", "b", "root/b"},
		{"the star has all that no node lists", "unheard-of", "", "root/rest"},
		{"the name picks among stars", "unheard-of", "rest-2", "root/rest-2"},
		{"the star has nothing that another node lists", "a", "rest", "QuotaNotAllowed"},
		{"a node that does not list the namespace", "a", "b", "QuotaNotAllowed"},
		{"a node that lists none", "a", "nobody", "QuotaNotAllowed"},
		{"a name that no node has", "a", "typo", "QuotaNotAllowed"},
		{"names are taken as they are", "a", "team.a", "QuotaNotAllowed"},
		{"a part of a path is none", "a", "Team.A/deep", "QuotaNotAllowed"},
	} {
		t.Run(c.why, func(t *testing.T) {
			g, refusal := f.Place(c.namespace, c.quotaName)
			if refusal != nil {
				if string(refusal.Reason) != c.want || g != nil {
					t.Errorf("refused: %s, want %s", refusal.Reason, c.want)
				}
			} else if g.Path() != c.want {
				t.Errorf("placed in %s, want %s", g.Path(), c.want)
			}
		})
	}
}

func TestPlaceSaysWhatToDo(t *testing.T) {
	f := build(t, "1", node("root", "", "", node("one", "a", ""), node("two", "a", "")))
	for _, c := range []struct{ namespace, quotaName, want string }{
		{"x", "", `no quota lists namespace "x"; ask an administrator to add the namespace to a node of the ElasticQuotaTree`},
		{"a", "typo", `namespace "a" may not use quota "typo", only "one" (root/one), "two" (root/two); correct or remove the label kube-queue/quota-name`},
		{"a", "tow", `namespace "a" may not use quota "tow", only "one" (root/one), "two" (root/two); did you mean "two"? Correct or remove the label kube-queue/quota-name`},
		{"a", "rot/one", `namespace "a" may not use quota "rot/one", only "one" (root/one), "two" (root/two); did you mean "root/one"? Correct or remove the label kube-queue/quota-name`},
		{"x", "one", `namespace "x" may not use quota "one" because no quota lists the namespace; ask an administrator to add the namespace to a node of the ElasticQuotaTree and set the label kube-queue/quota-name to the name of that node`},
	} {
		g, refusal := f.Place(c.namespace, c.quotaName)
		if g != nil || refusal == nil || refusal.Message() != c.want || !refusal.Final() {
			t.Errorf("Place(%q, %q): %+v, want %s", c.namespace, c.quotaName, refusal, c.want)
		}
	}
}

func TestALongListOfAllowedQuotasIsCut(t *testing.T) {
	var children []tree.Node
	for i := range 12 {
		children = append(children, node("n"+strconv.Itoa(i), "a", ""))
	}
	_, refusal := build(t, "1", node("root", "", "", children...)).Place("a", "typo")
	require.Says(t, "the refusal", refusal.Message(), `"n9" (root/n9), 2 more;`)
}

func TestEveryNodeThatListsNamespacesIsAGroupInTreeOrder(t *testing.T) {
	f := build(t, "1", node("root", "r", "",
		node("Inner", "i", "", node("leaf", "l", "", node("none", "", ""))), node("a-b", "", "", node("c", "x", "")), node("a", "", "", node("b-c", "y", ""))))
	want := []struct {
		path, queue string
		nodes       []quota.NodeID
	}{
		{"root", "root", []quota.NodeID{0}},
		{"root/Inner", "root-inner-", []quota.NodeID{1, 0}},
		{"root/Inner/leaf", "root-inner-leaf-", []quota.NodeID{2, 1, 0}},
		{"root/a-b/c", "root-a-b-c", []quota.NodeID{5, 4, 0}},
		{"root/a/b-c", "root-a-b-c-", []quota.NodeID{7, 6, 0}},
	}
	usage := f.Usage()
	for i, g := range f.Groups() {
		queue := g.Queue()
		hashed := strings.HasSuffix(want[i].queue, "-")
		if g.Path() != want[i].path || !strings.HasPrefix(queue, want[i].queue) || !hashed && queue != want[i].queue {
			t.Errorf("group %s with queue %s, want %s with %s", g.Path(), queue, want[i].path, want[i].queue)
		}
		for j, id := range g.Nodes() {
			if id != want[i].nodes[j] || !strings.HasPrefix(g.Path(), usage[id].Path) {
				t.Errorf("nodes of %s are %v, want %v", g.Path(), g.Nodes(), want[i].nodes)
			}
		}
	}
	if len(f.Groups()) != len(want) {
		t.Errorf("%d groups, want %d", len(f.Groups()), len(want))
	}
}

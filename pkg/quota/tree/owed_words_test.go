package tree_test

import (
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
)

func TestARefusalOfWhatAGroupIsOwedNamesWhoHasBorrowedIt(t *testing.T) {
	flat := node("root", "", "cpu=10", withMin("cpu=4", node("a", "a", "")), withMin("cpu=2", node("b", "b", "")), node("c", "c", ""))
	many := node("root", "", "cpu=10", withMin("cpu=4", node("a", "a", "")), node("b", "b", ""), node("c", "c", ""), node("d", "d", ""), node("e", "e", ""))
	deep := node("root", "", "cpu=10",
		withMin("cpu=6", node("x", "", "", withMin("cpu=2", node("a", "a", "")), node("b", "b", ""))),
		withMin("cpu=2", node("y", "", "", node("c", "c", ""))))
	inner := withMin("cpu=8", node("root", "root", "cpu=10", withMin("cpu=4", node("a", "a", ""))))
	roots := map[string]tree.Node{"flat": flat, "many": many, "deep": deep, "inner": inner}
	for name, test := range map[string]struct {
		root  string
		used  map[string]string
		asks  string
		group string
		want  string
	}{
		"two have borrowed": {"flat", map[string]string{"a": "cpu=1", "b": "cpu=3", "c": "cpu=6"}, "cpu=3", "a",
			"insufficient cpu in quota root: requested 3, used 10 of max 10; quota root/a is owed 3 of its min 4; borrowed by root/c (6), root/b (1)"},
		"it requests more than its min":  {"flat", map[string]string{"a": "cpu=2", "c": "cpu=8"}, "cpu=3", "a", "insufficient cpu in quota root: requested 3, used 10 of max 10"},
		"it would borrow itself":         {"flat", map[string]string{"a": "cpu=4", "b": "cpu=6"}, "cpu=1", "c", "insufficient cpu in quota root: requested 1, used 10 of max 10"},
		"more than three have borrowed":  {"many", map[string]string{"b": "cpu=1", "c": "cpu=2", "d": "cpu=3", "e": "cpu=4"}, "cpu=1", "a", "insufficient cpu in quota root: requested 1, used 10 of max 10; quota root/a is owed 4 of its min 4; borrowed by root/e (4), root/d (3), root/c (2) and 1 more"},
		"a sibling and an uncle":         {"deep", map[string]string{"b": "cpu=6", "c": "cpu=4"}, "cpu=2", "a", "insufficient cpu in quota root: requested 2, used 10 of max 10; quota root/x/a is owed 2 of its min 2; borrowed by root/x/b (6), root/y (2)"},
		"what is owed to its department": {"deep", map[string]string{"a": "cpu=2", "c": "cpu=8"}, "cpu=3", "a", "insufficient cpu in quota root: requested 3, used 10 of max 10; quota root/x is owed 4 of its min 6; borrowed by root/y (6)"},
		"a group above its children":     {"inner", map[string]string{"root": "cpu=8"}, "cpu=4", "a", "insufficient cpu in quota root: requested 4, used 8 of max 10; quota root/a is owed 4 of its min 4; borrowed by root (4)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, "1", roots[test.root])
			for namespace, used := range test.used {
				f.group(namespace).Charge(&quota.Charge{Demand: f.demand(used)})
			}
			r := f.group(test.group).Fits(f.demand(test.asks))
			if r == nil || r.Message() != test.want {
				t.Errorf("the refusal is %v, want %q", r.Message(), test.want)
			}
			copied, _ := f.Clone(f.names.Clone()).Place(test.group, "")
			if r = copied.Fits(f.demand(test.asks)); r == nil || r.Message() != test.want {
				t.Errorf("the refusal by a copy is %v, want %q", r.Message(), test.want)
			}
		})
	}
}

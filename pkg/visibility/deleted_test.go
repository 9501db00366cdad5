package visibility

import (
	"strings"
	"testing"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// A unit whose quota was deleted is charged to the remaining ancestor. There, it holds some of the max but nothing of
// the min, which is only for the units of that quota.
func TestTheEndOfAUnitOfADeletedQuotaFreesNothingOfAMin(t *testing.T) {
	root := func(least, most string, children ...tree.Node) tree.Node {
		return tree.Node{Name: "root", Max: amounts("cpu", "20"), Children: []tree.Node{
			{Name: "a", Namespaces: []string{"a"}, Min: amounts("cpu", least), Max: amounts("cpu", most), Children: children}}}
	}
	for _, c := range []struct {
		name, max string
		// preemptible is whether the waiting unit is preemptible.
		preemptible bool
		ends        string
		// used is the usage of the lacking limits, and holding are the units that hold it.
		used, holding string
	}{
		{"the min is lacking", "20", false, "a/one ends", "3", "a/one"},
		{"the max is lacking", "8", true, "x/u ends", "7", "x/u a/one"},
		{"both are lacking", "8", false, "a/one ends", "7", "x/u a/one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, root("7", "20", tree.Node{Name: "x", Namespaces: []string{"x"}, Min: amounts("cpu", "4")}), tree.Options{})
			fixed := func(u *scheduler.Unit) { u.Demand.Preemptible = false }
			cl.submit("a/one", cl.request("cpu", 3000), fixed)
			cl.submit("x/u", cl.request("cpu", 4000), fixed)
			if !cl.runs("a/one") || !cl.runs("x/u") {
				t.Fatal("they must hold quota")
			}
			cl.setTree(root("4", c.max))
			cl.submit("a/two", cl.request("cpu", 2000), func(u *scheduler.Unit) { u.Demand.Preemptible = c.preemptible })
			answer := cl.why("a/two", everything())
			var holding []string
			for _, u := range answer.HoldingUnits {
				holding = append(holding, u.Namespace+"/"+u.Name)
			}
			if got := strings.Join(holding, " "); got != c.holding {
				t.Errorf("it waits for %s: %s\nand what is lacking is held by %s, want %s", answer.Reason, answer.Message, got, c.holding)
			}
			if len(answer.Holders) != 1 || answer.Holders[0].Quota != "root/a" || answer.Holders[0].Used.Cpu().String() != c.used {
				t.Errorf("the holders are %+v, want root/a with %s", answer.Holders, c.used)
			}
			for _, r := range answer.WouldAdmit {
				if r.Type != visibilityv1alpha1.EndUnits {
					continue
				}
				if r.Message != c.ends {
					t.Errorf("it would be admitted if %s, want %s", r.Message, c.ends)
				}
				cl.do(r)
				if !cl.runs("a/two") {
					t.Errorf("%s, and it still waits", r.Message)
				}
				return
			}
			t.Errorf("no end would admit it, but: %s", messages(answer))
		})
	}
}

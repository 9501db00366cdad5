package tree_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestInvalidTrees(t *testing.T) {
	for _, c := range []struct {
		why  string
		root tree.Node
		want []string
	}{
		{"a node without a name", node("root", "", "", node("a", "", ""), node("", "x", "", node("b", "", ""), node(" ", "", ""))),
			[]string{"root/[1]: the node has no name; set one", "root/[1]/[1]: the node has no name; set one"}},
		{"no tree at all", tree.Node{}, []string{"spec.root: the node has no name; set one"}},
		{"a name that is used twice", node("root", "", "", node("x", "", "", node("team", "", "")), node("team", "", "")),
			[]string{`root/team: more than one node has the name "team" (the first is root/x/team); give every node a unique name`}},
		{"a name that is used twice below one node", node("root", "", "", node("team", "", ""), node("team", "", "")),
			[]string{`root/team: more than one child of root has the name "team"; give every node a unique name, or merge the nodes`}},
		{"a path that is used twice", node("root", "", "", node("x", "", "", node("y", "", "")), node("x/y", "", "")),
			[]string{`root/x/y: the path is also that of node "y"; remove the / from the names`}},
		{"min above max", withMin("cpu=5 memory=1Gi", node("root", "", "cpu=4500m memory=1Gi")),
			[]string{"root: min cpu 5 is above max 4500m; lower the min or raise the max"}},
		{"min above a max of zero", withMin("nvidia.com/gpu=1", node("root", "", "nvidia.com/gpu=0")),
			[]string{"root: min nvidia.com/gpu 1 is above max 0; lower the min or raise the max"}},
		{"negative quantities", withMin("memory=-1Gi", node("root", "", "memory=-2Gi cpu=-1")),
			[]string{"root: min: memory: -1Gi is negative; set it to 0 or more", "root: max: cpu: -1 is negative; set it to 0 or more", "root: max: memory: -2Gi is negative; set it to 0 or more"}},
		{"what could not be read", node("root", "", "", tree.Node{Name: "a", Faults: []string{`max: cpu: quantity "x" is no number`}}),
			[]string{`root/a: max: cpu: quantity "x" is no number`}},
		{"the children's min above the parent's max", node("root", "", "cpu=4",
			withMin("cpu=3", node("a", "", "")), withMin("cpu=1001m", node("b", "", ""))),
			[]string{"root: the sum of the children's min cpu, 4001m (a 3, b 1001m), is above max 4 of this node; lower them or raise the max"}},
		{"the children's min above all numbers", node("root", "", "memory=1Gi",
			withMin("memory=1e18", node("a", "", "")), withMin("memory=9e18", node("b", "", "")), withMin("memory=9e18", node("c", "", ""))),
			[]string{"root: the sum of the children's min memory, 9223372036854775807 (a 1E, b 9E, c 9E), is above max 1Gi of this node; lower them or raise the max"}},
		{"all faults in tree order", node("root", "", "cpu=1",
			withMin("cpu=3", node("b", "", "cpu=2", tree.Node{})), withMin("cpu=-1", node("root", "", ""))),
			[]string{
				"root: the sum of the children's min cpu, 3 (b 3), is above max 1 of this node; lower them or raise the max",
				"root/b: min cpu 3 is above max 2; lower the min or raise the max",
				"root/b/[0]: the node has no name; set one",
				`root/root: more than one node has the name "root" (the first is root); give every node a unique name`,
				"root/root: min: cpu: -1 is negative; set it to 0 or more",
			}},
	} {
		t.Run(c.why, func(t *testing.T) {
			for range 5 {
				built, _, err := tree.New(resources.NewNames(), c.root, tree.Options{})
				var invalid *tree.InvalidError
				if built != nil || !errors.As(err, &invalid) {
					t.Fatalf("New gives %v, %v, want an InvalidError", built, err)
				}
				if !slices.Equal(invalid.Faults, c.want) {
					t.Fatalf("faults\n  %s\nwant\n  %s", strings.Join(invalid.Faults, "\n  "), strings.Join(c.want, "\n  "))
				}
				require.Says(t, "the error", err.Error(), c.want...)
			}
		})
	}
}

func TestValidTreesWithAndWithoutWarnings(t *testing.T) {
	for _, c := range []struct {
		why  string
		root tree.Node
		want []string
	}{
		{"nothing is limited", node("root", "a", ""), nil},
		{"min without max, and max without min", node("root", "", "cpu=4", withMin("memory=100Gi", node("a", "", "cpu=4"))), nil},
		{"the children's min up to the max", node("root", "", "cpu=4", withMin("cpu=4", node("a", "", "")), node("b", "", "")), nil},
		{"the children's min above the parent's min", withMin("cpu=1", node("root", "", "cpu=4", withMin("cpu=2", node("a", "", "")))), nil},
		{"more is guaranteed below a node without min than there is above it", node("root", "", "cpu=10", node("inner", "", "", withMin("cpu=8", node("a", "", "")), withMin("cpu=8", node("b", "", "")))),
			[]string{"root: 16 cpu is guaranteed below this node, which is above max 10, so not all of it can be guaranteed at the same time; lower the min of nodes below it or raise the max"}},
		{"a limit beyond all numbers", node("root", "", "memory=1e30", withMin("memory=9e18", node("a", "", "memory=1e30")), withMin("memory=2e17", node("b", "", ""))), nil},
		{"a child's max above the parent's", node("root", "", "cpu=4", node("a", "", "cpu=5"), node("b", "", "cpu=5")),
			[]string{"root/a: max cpu 5 is above max 4 of root, so it can never be reached; lower it", "root/b: max cpu 5 is above max 4 of root, so it can never be reached; lower it"}},
		{"the children's max above the parent's", node("root", "", "cpu=4 memory=4Gi", node("a", "", "cpu=3 memory=2Gi"), node("b", "", "cpu=3 memory=2Gi")), nil},
		{"namespaces that two nodes list", node("root", "x", "", node("a", "x y *", ""), node("b", "y *", "")),
			[]string{
				`root/a: namespace "x" is also listed by root, which gets all jobs of the namespace that do not select this node with the label kube-queue/quota-name`,
				`root/b: namespace "y" is also listed by root/a, which gets all jobs of the namespace that do not select this node with the label kube-queue/quota-name`,
				`root/b: namespace "*" is also listed by root/a, which gets all jobs of the namespace that do not select this node with the label kube-queue/quota-name`,
			}},
		{"resources that are misspelled", withMin("memroy=1Gi", node("root", "", "CPU=4 nvida.com/gpu=4 nvidia.com/gpus=4 nvidia/gpu=4 kube-queue/max-job=1 max-jobs=1")),
			[]string{
				`root: min: no known resource is called "memroy", so the entry probably has no effect; did you mean "memory"?`,
				`root: max: no known resource is called "CPU", so the entry probably has no effect; did you mean "cpu"?`,
				`root: max: no known resource is called "kube-queue/max-job", so the entry probably has no effect; did you mean "kube-queue/max-jobs"?`,
				`root: max: no known resource is called "max-jobs", so the entry probably has no effect; did you mean "kube-queue/max-jobs"?`,
				`root: max: no known resource is called "nvida.com/gpu", so the entry probably has no effect; did you mean "nvidia.com/gpu"?`,
				`root: max: no known resource is called "nvidia.com/gpus", so the entry probably has no effect; did you mean "nvidia.com/gpu"?`,
				`root: max: no known resource is called "nvidia/gpu", so the entry probably has no effect; did you mean "nvidia.com/gpu"?`,
			}},
		{"resources that resemble others", node("root", "", "gpu=4 nvidia.com/vgpu=4 hugepages-2Mi=4 example.com/gpu=4 x=1 nvidia.com/gpu.shared=2"), nil},
		{"what was found when it was read", tree.Node{Name: "root", Children: []tree.Node{{Name: "a", Warnings: []string{"odd"}}}}, []string{"root/a: odd"}},
		{"attributes of ack-kube-queue and others", tree.Node{Name: "root", Attributes: map[string]string{"preempt-policy": "x", "kube-queue/reclaim": "never", "example.com/owner": "x"}},
			[]string{"root: attribute preempt-policy has no effect; instead: set spec.preemption.withinQueue: LowerPriority of the Queue"}},
		{"namespaces that mean nothing", tree.Node{Name: "root", Namespaces: []string{"", "x", "x", "Team-A", "a/b"}},
			[]string{
				"root: an empty namespace is ignored; remove it",
				`root: namespace "x" is listed twice; remove one entry`,
				`root: "Team-A" is ignored because it is not a valid namespace name; correct or remove it`,
				`root: "a/b" is ignored because it is not a valid namespace name; correct or remove it`,
			}},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, warnings, err := tree.New(resources.NewNames(), c.root, tree.Options{})
			if err != nil || !slices.Equal(warnings, c.want) {
				t.Errorf("%v, warnings\n  %s\nwant\n  %s", err, strings.Join(warnings, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func TestWarningsAboutWhatTheClusterDoesNotHave(t *testing.T) {
	in := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for _, c := range []struct {
		why     string
		root    tree.Node
		cluster tree.Cluster
		want    []string
	}{
		{"nothing is known", node("root", "a", "example.com/fpga=1"), tree.Cluster{}, nil},
		{"a namespace", node("root", "a b *", ""), tree.Cluster{HasNamespace: in("b")},
			[]string{`root: namespace "a" does not exist; create it, or correct or remove the entry`}},
		{"namespaces", node("root", "", "", node("x", "a b c", "")), tree.Cluster{HasNamespace: in("b")},
			[]string{`root/x: namespaces "a", "c" do not exist; create them, or correct or remove the entries`}},
		{"many namespaces", node("root", "a b c d e f g h i j k l", ""), tree.Cluster{HasNamespace: in()},
			[]string{`root: namespaces "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" and 2 more do not exist; create them, or correct or remove the entries`}},
		{"as many namespaces as are named", node("root", "a b c d e f g h i j", ""), tree.Cluster{HasNamespace: in()},
			[]string{`root: namespaces "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" do not exist; create them, or correct or remove the entries`}},
		{"names that are no namespaces", tree.Node{Name: "root", Namespaces: []string{"Team-A"}}, tree.Cluster{HasNamespace: in()},
			[]string{`root: "Team-A" is ignored because it is not a valid namespace name; correct or remove it`}},
		{"a resource that one node names", node("root", "", "", node("x", "", "example.com/fpga=1")), tree.Cluster{HasResource: in("cpu")},
			[]string{`root/x: max: no node of the cluster has resource "example.com/fpga", and no other node of the tree names it, so the entry probably has no effect; correct the name, or keep it if nodes with it are still to come`}},
		{"a resource that resembles that of another node", node("root", "", "example.com/fpga=9", node("x", "", "example.com/fpgas=1"), node("y", "", "example.com/fpga=1")), tree.Cluster{HasResource: in("cpu")},
			[]string{`root/x: max: no node of the cluster has resource "example.com/fpgas", and no other node of the tree names it, so the entry probably has no effect; did you mean "example.com/fpga", as in another node?`}},
		{"a resource that one node names twice", withMin("example.com/fpga=1", node("root", "", "example.com/fpga=1")), tree.Cluster{HasResource: in()},
			[]string{
				`root: min: no node of the cluster has resource "example.com/fpga", and no other node of the tree names it, so the entry probably has no effect; correct the name, or keep it if nodes with it are still to come`,
				`root: max: no node of the cluster has resource "example.com/fpga", and no other node of the tree names it, so the entry probably has no effect; correct the name, or keep it if nodes with it are still to come`,
			}},
		{"a resource that two nodes name", node("root", "", "example.com/fpga=9", node("x", "", "example.com/fpga=1")), tree.Cluster{HasResource: in()}, nil},
		{"a common resource that no node has yet", node("root", "", "cpu=1 nvidia.com/gpu=1 kube-queue/max-jobs=1"), tree.Cluster{HasResource: in()}, nil},
		{"a resource that nodes have, though it resembles a common one", node("root", "", "nvidia.com/gpus=1"), tree.Cluster{HasResource: in("nvidia.com/gpus")}, nil},
		{"a misspelled resource in all nodes", node("root", "", "kube-queue/maxjobs=9", node("x", "", "kube-queue/maxjobs=9")), tree.Cluster{HasResource: in("cpu")},
			[]string{
				`root: max: no known resource is called "kube-queue/maxjobs", so the entry probably has no effect; did you mean "kube-queue/max-jobs"?`,
				`root/x: max: no known resource is called "kube-queue/maxjobs", so the entry probably has no effect; did you mean "kube-queue/max-jobs"?`,
			}},
	} {
		t.Run(c.why, func(t *testing.T) {
			if got := tree.Warnings(c.root, c.cluster); !slices.Equal(got, c.want) {
				t.Errorf("warnings\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func TestBorrowingSetUpsAreNotWarnedOf(t *testing.T) {
	all := tree.Cluster{HasResource: func(string) bool { return true }, HasNamespace: func(string) bool { return true }}
	root := node("root", "", "cpu=10 nvidia.com/gpu=16", withMin("cpu=5 nvidia.com/gpu=8", node("a", "a", "cpu=10 nvidia.com/gpu=16")),
		withMin("cpu=5 nvidia.com/gpu=8", node("b", "b", "nvidia.com/gpu=12")), node("c", "c", "cpu=10"))
	if got := tree.Warnings(root, all); got != nil {
		t.Errorf("warnings %q", got)
	}
}

func TestWarningsAreGivenWithFaultsToo(t *testing.T) {
	_, warnings, err := tree.New(resources.NewNames(), tree.Node{Namespaces: []string{""}}, tree.Options{})
	if err == nil || len(warnings) != 1 {
		t.Errorf("%v, warnings %q", err, warnings)
	}
}

func TestANodeThatListsNoRealNamespaceIsNoGroup(t *testing.T) {
	f := build(t, "1", tree.Node{Name: "root", Namespaces: []string{"", "Not-One"}})
	if len(f.Groups()) != 0 {
		t.Errorf("groups %v", f.Groups())
	}
}

func TestTreesThatAreTooDeepAreInvalid(t *testing.T) {
	chain := func(depth int) tree.Node {
		n := node("leaf", "a", "")
		for i := range depth - 1 {
			n = node("n"+strings.Repeat("x", i), "", "", n)
		}
		return n
	}
	_, _, err := tree.New(resources.NewNames(), chain(100), tree.Options{})
	require.NoError(t, err)
	_, _, err = tree.New(resources.NewNames(), chain(5000), tree.Options{})
	if err == nil || !strings.HasSuffix(err.Error(), "the tree has more than 100 levels; remove the levels below this node") {
		t.Error("a tree of 5000 levels is accepted")
	}
}

// If it took quadratic time, this would take several times the allowed time.
func TestATreeIsBuiltInTimeProportionalToItsNodes(t *testing.T) {
	root := node("root", "", "")
	for i := range 50_000 {
		root.Children = append(root.Children, withMin("cpu=1", node(fmt.Sprint("n", i), "", "")))
	}
	start := time.Now()
	_, _, err := tree.New(resources.NewNames(), root, tree.Options{})
	require.NoError(t, err)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

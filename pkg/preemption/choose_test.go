package preemption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/preemption"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// failer is what testing.TB and rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// hall is a tree and the units that hold its quota.
type hall struct {
	t failer
	*tree.Tree
	names   *resources.Names
	started int64
	running []*preemption.Candidate
}

func newHall(t failer, root tree.Node) *hall {
	t.Helper()
	h := &hall{t: t, names: resources.NewNames()}
	var err error
	h.Tree, _, err = tree.New(h.names, root, tree.Options{})
	require.NoError(t, err)
	return h
}

// amounts reads "cpu=2 gpu=1".
func amounts(text string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		list[name] = resource.MustParse(value)
	}
	return list
}

// node returns a node that lists the namespace of its name if it has no children.
func node(name, least, most string, children ...tree.Node) tree.Node {
	n := tree.Node{Name: name, Min: amounts(least), Max: amounts(most), Children: children}
	if children == nil {
		n.Namespaces = []string{name}
	}
	return n
}

func (h *hall) demand(text string) quota.Demand {
	h.t.Helper()
	requests, err := resources.Request(h.names, amounts(text))
	require.NoError(h.t, err)
	return quota.Demand{Requests: requests.With(h.names.ID(quota.JobsResource), 1), Preemptible: true}
}

func (h *hall) group(namespace string) quota.Group {
	h.t.Helper()
	g, refusal := h.Place(namespace, "")
	if refusal != nil {
		h.t.Fatal(refusal.Message())
	}
	return g
}

// run lets units of a namespace hold quota, each started after the one before it.
func (h *hall) run(namespace, requests string, priority int32, keys ...string) {
	h.t.Helper()
	for _, key := range keys {
		h.start(&preemption.Candidate{Key: key, Priority: priority, Group: h.group(namespace), Charge: &quota.Charge{Demand: h.demand(requests)}})
	}
}

// start lets a unit hold quota.
func (h *hall) start(c *preemption.Candidate) {
	h.started++
	c.Started = h.started
	c.Group.Charge(c.Charge)
	h.running = append(h.running, c)
}

// stop removes a unit that holds quota.
func (h *hall) stop(c *preemption.Candidate) {
	c.Group.Uncharge(c.Charge)
	h.running = slices.DeleteFunc(h.running, func(other *preemption.Candidate) bool { return other == c })
}

func (h *hall) end(keys ...string) {
	for _, c := range slices.Clone(h.running) {
		if slices.Contains(keys, c.Key) {
			h.stop(c)
		}
	}
}

func (h *hall) claim(namespace, requests string, priority int32) preemption.Claim {
	return preemption.Claim{Group: h.group(namespace), Demand: h.demand(requests), Reclaims: true,
		Preempts: func(c *preemption.Candidate) bool { return c.Priority < priority }}
}

func (h *hall) victims(claim preemption.Claim) []string {
	h.t.Helper()
	before := fmt.Sprint(h.Usage())
	var keys []string
	for _, v := range preemption.Choose(h.Tree, claim, slices.Clone(h.running)) {
		keys = append(keys, v.Key)
	}
	if after := fmt.Sprint(h.Usage()); after != before {
		h.t.Fatalf("the choice changed what is charged:\n%s\n%s", before, after)
	}
	slices.Sort(keys)
	return keys
}

func (h *hall) expect(claim preemption.Claim, want ...string) {
	h.t.Helper()
	if got := h.victims(claim); !slices.Equal(got, want) {
		h.t.Errorf("victims are %v, want %v", got, want)
	}
}

func TestAProductionJobTakesTheOnlyGPUOfADevelopmentJob(t *testing.T) {
	h := newHall(t, node("root", "", "gpu=1", node("team", "", "gpu=1")))
	h.run("team", "gpu=1", 100, "dev")
	h.expect(h.claim("team", "gpu=1", 1000), "dev")
	h.expect(h.claim("team", "gpu=1", 100))
	h.expect(h.claim("team", "gpu=2", 1000)) // it would not fit then either
}

func TestInAQueueTheSmallestPriorityAndTheLatestStartAreTakenFirst(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=10", node("a", "", "")))
	h.run("a", "cpu=2", 1, "old", "new")
	h.run("a", "cpu=2", 0, "low")
	h.run("a", "cpu=4", 5, "high")
	h.expect(h.claim("a", "cpu=2", 9), "low")
	h.expect(h.claim("a", "cpu=4", 9), "low", "new")
	h.expect(h.claim("a", "cpu=6", 9), "low", "new", "old")
	h.expect(h.claim("a", "cpu=7", 5)) // those with lower priority hold six
}

func TestNoVictimIsTakenThatIsNotNeeded(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=10", node("a", "", "")))
	h.run("a", "cpu=1", 0, "small")
	h.run("a", "cpu=9", 1, "large")
	h.expect(h.claim("a", "cpu=9", 9), "large")
}

func TestWhoUsesMoreThanWasAdmittedIsTakenFirst(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=10", node("a", "", "")))
	h.run("a", "cpu=5", 7, "exceeding")
	h.run("a", "cpu=5", 0, "low")
	h.running[0].Exceeding = true
	claim := h.claim("a", "cpu=5", 9)
	h.expect(claim, "exceeding")
}

func TestAGroupGetsBackWhatWasBorrowedFromIt(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=20", node("a", "cpu=10", "cpu=20"), node("b", "cpu=10", "")))
	for i := range 20 {
		h.run("a", "cpu=1", 0, fmt.Sprintf("a%02d", i))
	}
	h.expect(h.claim("b", "cpu=3", 0), "a17", "a18", "a19")
	h.expect(h.claim("b", "cpu=10", 0), "a10", "a11", "a12", "a13", "a14", "a15", "a16", "a17", "a18", "a19")
	h.expect(h.claim("b", "cpu=11", 0)) // more than it is guaranteed
	none := h.claim("b", "cpu=3", 0)
	none.Reclaims = false
	h.expect(none)
}

func TestAGangThatIsLargerThanWhatCanBeReclaimedEvictsNobody(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=20", node("a", "cpu=5", ""), node("b", "cpu=15", "")))
	h.run("a", "cpu=9", 0, "never")
	h.run("a", "cpu=2", 0, "a1")
	never := h.running[0]
	h.running = h.running[1:] // is not preemptible
	h.expect(h.claim("b", "cpu=15", 0))
	h.expect(h.claim("b", "cpu=11", 0), "a1")
	h.running = append(h.running, never)
	h.expect(h.claim("b", "cpu=15", 0), "never") // a falls below its guarantee, because its job is that large
}

func TestAGroupThatIsGuaranteedOnlyGPUsReclaimsOnlyGPUs(t *testing.T) {
	h := newHall(t, node("root", "", "gpu=4 cpu=10", node("a", "gpu=2", ""), node("b", "", "")))
	h.run("b", "gpu=1 cpu=2", 0, "b1", "b2", "b3", "b4")
	h.expect(h.claim("a", "gpu=2 cpu=2", 0), "b3", "b4")
	// It lacks cpu, which is not guaranteed to it. What the victims would free of it does not count.
	h.expect(h.claim("a", "gpu=2 cpu=3", 0))
}

func TestVictimsUseMoreThanTheirGuaranteeOfWhatIsLacking(t *testing.T) {
	h := newHall(t, node("root", "", "gpu=4 cpu=10",
		node("a", "gpu=2 cpu=2", ""), node("b", "gpu=1 cpu=4", ""), node("c", "gpu=1 cpu=4", "")))
	h.run("b", "cpu=8 gpu=1", 0, "b-cpu") // above its guarantee of cpu, not of gpus
	h.run("c", "gpu=3", 0, "c-gpu")       // above its guarantee of gpus
	h.expect(h.claim("a", "gpu=1", 0), "c-gpu")
	h.expect(h.claim("a", "gpu=1 cpu=2", 0), "c-gpu")
}

func TestTwoGroupsThatNeedWhatTheOtherIsGuaranteedEvictNobody(t *testing.T) {
	h := newHall(t, node("root", "", "gpu=1 cpu=10", node("a", "gpu=1", ""), node("b", "cpu=10", "")))
	h.run("b", "gpu=1 cpu=5", 0, "b1")
	h.expect(h.claim("a", "gpu=1 cpu=5", 0), "b1") // only the gpu is lacking
	h.end("b1")
	h.run("a", "gpu=1 cpu=5", 0, "a1")
	h.expect(h.claim("b", "gpu=1 cpu=5", 0)) // it lacks the gpu, which its guarantee does not name
}

// A job that needs only cpu, which its group borrows, must not displace one that uses the group's guaranteed gpus: the
// gpus would be lent, the cpu would be reclaimed for a unit that is owed it, then the gpus for the first job, and so
// on.
func TestAJobThatWouldBorrowDoesNotPreemptWhoUsesTheGuarantee(t *testing.T) {
	h := newHall(t, node("root", "", "gpu=2 cpu=3", node("a", "gpu=2", ""), node("b", "cpu=3", "")))
	h.run("a", "gpu=2 cpu=1", 0, "low")
	h.run("b", "cpu=2", 0, "b1")
	h.expect(h.claim("a", "cpu=1", 1))
	h.expect(h.claim("a", "gpu=2 cpu=1", 1), "low")
	h.run("a", "cpu=0", 0, "nothing")
	h.end("low")
	h.run("a", "cpu=1", 0, "borrows")
	h.expect(h.claim("a", "cpu=1", 1), "borrows")
}

// Without its large unit, a would use less of its guarantee, because the claimant borrows a gpu.
func TestASmallVictimIsTakenIfALargeOneUsesTheGuarantee(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=8 gpu=3", node("a", "cpu=6", "")))
	h.run("a", "cpu=6 gpu=1", 0, "large")
	h.run("a", "cpu=1 gpu=1", 1, "small1", "small2")
	h.expect(h.claim("a", "cpu=1 gpu=1", 9), "small2")
	h.expect(h.claim("a", "cpu=2 gpu=2", 9), "small1", "small2")
	h.expect(h.claim("a", "gpu=3", 9))
}

// Four services with five jobs of 5 cpu each start one after the other. Each gets its guarantee, and they share the
// rest.
func TestReclaimIsEvenInATreeOfThreeLevels(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=40",
		node("left", "", "", node("a", "cpu=10", "cpu=20"), node("b", "cpu=10", "cpu=20")),
		node("right", "", "", node("c", "cpu=10", "cpu=20"), node("d", "cpu=10", "cpu=20"))))
	for i, want := range []string{"4 0 0 0", "4 4 0 0", "3 3 2 0", "2 2 2 2"} {
		namespace := string("abcd"[i])
		for job := range 5 {
			claim := h.claim(namespace, "cpu=5", 0)
			if claim.Group.Fits(claim.Demand) != nil {
				victims := h.victims(claim)
				if victims == nil {
					continue
				}
				h.end(victims...)
			}
			h.run(namespace, "cpu=5", 0, fmt.Sprint(namespace, job))
		}
		count := map[byte]int{}
		for _, c := range h.running {
			count[c.Key[0]]++
		}
		if got := fmt.Sprint(count['a'], " ", count['b'], " ", count['c'], " ", count['d']); got != want {
			t.Fatalf("after service %s: %s jobs run, want %s", namespace, got, want)
		}
	}
}

func TestTheBranchFurthestAboveItsGuaranteeGivesFirst(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=40", node("a", "cpu=10", ""), node("b", "cpu=10", ""), node("c", "cpu=4", ""), node("d", "", "")))
	h.run("a", "cpu=1", 0, "a1")
	h.run("b", "cpu=15", 0, "b1")
	h.run("c", "cpu=2", 0, "c1", "c2", "c3", "c4") // 8 of 4 is further above than 15 of 10
	h.run("d", "cpu=1", 0, "d1")                   // is guaranteed nothing
	h.run("a", "cpu=1", 0, "a2", "a3", "a4")
	for i := range 8 { // the rest, which no unit borrows
		h.run("d", "cpu=1", 0, fmt.Sprint("d-", i))
	}
	h.end("d-0", "d-1", "d-2", "d-3", "d-4", "d-5", "d-6", "d-7")
	h.run("b", "cpu=4", 0, "b2")
	h.run("c", "cpu=8", 0, "c5") // 40 are used: 4, 19, 16, 1
	h.expect(h.claim("a", "cpu=1", 0), "d1")
	h.expect(h.claim("a", "cpu=6", 0), "c5")
}

func TestWhatIsBorrowedWithinADepartmentComesFromIt(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=40",
		node("left", "cpu=20", "cpu=20", node("a", "cpu=10", ""), node("b", "cpu=10", "")), node("right", "", "", node("c", "cpu=4", ""))))
	h.run("b", "cpu=5", 0, "b1", "b2", "b3", "b4")
	h.run("c", "cpu=20", 0, "c1")
	h.expect(h.claim("a", "cpu=10", 0), "b3", "b4") // left itself is full, so evicting c1 would not help
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, leaves := range []int{1, 100} {
			for _, wanted := range []int{1, n / 2} {
				b.Run(fmt.Sprintf("candidates=%d/leaves=%d/victims=%d", n, leaves, wanted), func(b *testing.B) {
					root := node("root", "", fmt.Sprint("cpu=", n), node("claimant", fmt.Sprint("cpu=", n/2), ""))
					for i := range leaves {
						root.Children = append(root.Children, node(fmt.Sprint("leaf-", i), fmt.Sprint("cpu=", n/2/leaves), ""))
					}
					h := newHall(b, root)
					for i := range n {
						h.run(fmt.Sprint("leaf-", i%leaves), "cpu=1", int32(i%3), fmt.Sprintf("u%06d", i))
					}
					claim := h.claim("claimant", fmt.Sprint("cpu=", wanted), 0)
					b.ReportAllocs()
					for b.Loop() {
						if got := len(preemption.Choose(h.Tree, claim, h.running)); got != wanted {
							b.Fatalf("%d victims, want %d", got, wanted)
						}
					}
				})
			}
		}
	}
}

// Without its small unit, d uses exactly its guarantee, and its large unit would be safe. The others that have borrowed
// cannot be evicted.
func TestALargeVictimIsTakenIfASmallOneProtectsIt(t *testing.T) {
	h := newHall(t, node("root", "", "cpu=10", node("a", "cpu=4", ""), node("d", "cpu=6", ""), node("z", "", "")))
	h.run("z", "cpu=2", 0, "unstoppable")
	others := len(h.running)
	h.run("d", "cpu=6", 0, "large")
	h.run("d", "cpu=1", 0, "small")
	if got := preemption.Choose(h.Tree, h.claim("a", "cpu=4", 0), h.running[others:]); len(got) != 1 || got[0].Key != "large" {
		t.Errorf("the victims are %+v", got)
	}
}

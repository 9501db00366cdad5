package gangs

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scene shows a Checker versions of objects, with growing versions and times.
type scene struct {
	t       *testing.T
	checker Checker
	version int
	pods    map[string]*corev1.Pod
}

// begin returns a scene with a gang of two pods.
func begin(t *testing.T) *scene {
	s := &scene{t: t, pods: map[string]*corev1.Pod{}}
	if err := s.checker.Expect(Gang{Name: "train", Namespace: "research", Selector: "job=train", Pods: 2}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// node shows a node that is ready, unless it is changed.
func (s *scene) node(name string, changes ...func(*corev1.Node)) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: s.next()},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range changes {
		change(node)
	}
	s.checker.Node(node)
}

func unready(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionFalse }

// nodes shows nodes that are ready.
func (s *scene) nodes(names ...string) {
	for _, name := range names {
		s.node(name)
	}
}

// pod shows a changed pod of the gang.
func (s *scene) pod(name string, change func(*corev1.Pod)) {
	p := s.pods[name]
	if p == nil {
		p = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "research", UID: types.UID(name), Labels: map[string]string{"job": "train"},
		}}
		s.pods[name] = p
	}
	p.ResourceVersion = s.next()
	change(p)
	s.checker.Pod(time.Unix(int64(s.version), 0).UTC(), p.DeepCopy())
}

func created(*corev1.Pod) {}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = node, nil }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
	}}
}

func (s *scene) gone(name string) {
	s.checker.PodGone(s.pods[name])
	delete(s.pods, name)
}

// expect compares the violations as "RULE POD".
func (s *scene) expect(want ...string) {
	s.t.Helper()
	var got []string
	for _, v := range s.checker.Violations() {
		got = append(got, fmt.Sprintf("%s %s", v.Rule, v.Pod))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("got the violations %q, want %q", got, want)
	}
}

func TestAGangThatIsBoundOneByOneToExistingNodesBreaksNoRule(t *testing.T) {
	s := begin(t)
	s.nodes("a", "b")
	s.pod("train-0", created)
	s.pod("train-0", on("a"))
	s.pod("train-0", phase(corev1.PodRunning))
	s.pod("train-1", created) // its operator is slow
	s.pod("train-1", on("b"))
	s.pod("train-1", phase(corev1.PodRunning))
	s.expect()
}

func TestAPodWithoutANodeWhileAnotherOneRunsIsAViolation(t *testing.T) {
	s := begin(t)
	s.node("a")
	s.pod("train-0", on("a"))
	s.pod("train-1", unschedulable)
	s.expect("Incomplete ")
	s.pod("train-0", phase(corev1.PodRunning))
	s.pod("train-1", unschedulable) // it is reported once
	s.expect("Unschedulable train-1", "Incomplete ")
	first := s.checker.Violations()[0]
	const want = "gang train is partly running at 00:00:04.000: Unschedulable: pod train-1 is unschedulable: 0/1 nodes are available; pods with nodes: train-0"
	if got := first.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPodThatWasUnschedulableBeforeTheFirstOneRunsBreaksNoRule(t *testing.T) {
	s := begin(t)
	s.nodes("a", "b")
	s.pod("train-0", unschedulable)
	s.pod("train-1", unschedulable)
	s.pod("train-0", on("a"))
	s.pod("train-1", on("b"))
	s.pod("train-0", phase(corev1.PodRunning))
	s.expect()
}

func TestARefusalFromBeforeTheFirstPodBreaksNoRule(t *testing.T) {
	s := begin(t)
	s.nodes("a", "b")
	s.pod("train-0", unschedulable)
	s.pod("train-1", unschedulable)
	s.pod("train-0", on("a"))
	s.pod("train-0", phase(corev1.PodRunning))
	s.pod("train-1", func(*corev1.Pod) {}) // a scheduler that has decided for both binds it now
	s.pod("train-1", on("b"))
	s.expect()
}

func TestARefusalFromBeforeTheFirstPodCountsIfThePodGetsNoNodeOrAnotherOne(t *testing.T) {
	s := begin(t)
	s.node("a")
	s.pod("train-1", unschedulable)
	s.pod("train-0", on("a"))
	s.pod("train-0", phase(corev1.PodRunning))
	s.expect("Unschedulable train-1", "Incomplete ")
	s.node("b")
	s.pod("train-1", on("b"))
	s.expect("Unschedulable train-1", "LateCapacity train-1")
}

// full shows nodes with room for one pod each.
func (s *scene) full(names ...string) {
	for _, name := range names {
		s.node(name, func(node *corev1.Node) {
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		})
	}
}

// fills binds a pod that requests as much as a node has.
func fills(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		on(node)(p)
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	}
}

// other binds a pod that is not of the gang.
func other(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = nil; fills(node)(p) }
}

func TestRoomThatBecomesFreeAfterTheFirstPodIsAViolation(t *testing.T) {
	for name, end := range map[string]func(*scene){
		"its pod has ended": func(s *scene) { s.pod("other", phase(corev1.PodSucceeded)) },
		"its pod is gone":   func(s *scene) { s.pods["other"].ResourceVersion = s.next(); s.gone("other") },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.full("a", "b")
			s.pod("other", other("b"))
			s.pod("train-0", fills("a"))
			end(s)
			s.pod("train-1", fills("b"))
			s.expect("LateCapacity ")
		})
	}
}

func TestRoomOfANodeThatWasGoneIsNoRoom(t *testing.T) {
	s := begin(t)
	s.full("a", "b", "c")
	s.pod("other", other("b"))
	s.checker.NodeGone(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: s.next()}})
	s.pod("train-0", fills("a"))
	s.pod("other", phase(corev1.PodSucceeded))
	s.pod("train-1", fills("b"))
	s.expect("LateCapacity ")
}

func TestOthersMayTakeTheRoomIfOtherRoomBecomesFree(t *testing.T) {
	s := begin(t)
	s.full("a", "b", "c")
	s.pod("ending", other("c"))
	s.pod("train-0", fills("a"))
	s.pod("later", other("b"))
	s.pod("ending", phase(corev1.PodSucceeded))
	s.pod("train-1", fills("c"))
	s.expect()
}

func TestANodeThatArrivesAfterTheFirstPodIsAViolation(t *testing.T) {
	for name, late := range map[string]func(*scene){
		"a node that did not exist":  func(s *scene) { s.node("b") },
		"a node that was not ready":  func(s *scene) { s.node("b", unready); s.node("b") },
		"a node that is never ready": func(s *scene) { s.node("b", unready) },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.node("a")
			s.pod("train-0", on("a"))
			late(s)
			s.pod("train-1", on("b"))
			s.expect("LateCapacity train-1")
		})
	}
}

func TestTheOrderOfTheTwoWatchesDoesNotMatter(t *testing.T) {
	s := begin(t)
	versions := []string{s.next(), s.next()}
	s.pod("train-0", on("a"))
	s.pod("train-1", on("b"))
	for i, name := range []string{"a", "b"} {
		s.node(name, func(node *corev1.Node) { node.ResourceVersion = versions[i] })
	}
	s.expect()
}

func TestATaintedNodeIsNotCapacity(t *testing.T) {
	s := begin(t)
	s.node("a", func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	})
	s.pod("train-0", on("a"))
	s.expect("LateCapacity train-0", "Incomplete ")
}

func TestAnAttemptThatNeverCompletedIsAViolationAlsoLater(t *testing.T) {
	s := begin(t)
	s.node("a")
	s.pod("train-0", on("a"))
	s.pod("train-1", created)
	s.gone("train-0")
	s.gone("train-1")
	s.node("b")
	s.pod("train-2", on("a"))
	s.pod("train-3", on("b"))
	s.expect("Incomplete ")
}

func TestAnAttemptAfterAnEvictionMayUseNewNodes(t *testing.T) {
	s := begin(t)
	s.nodes("a", "b")
	s.pod("train-0", on("a"))
	s.pod("train-1", on("b"))
	s.gone("train-0")
	s.gone("train-1")
	s.nodes("c", "d")
	s.pod("train-2", on("c"))
	s.pod("train-3", on("d"))
	s.expect()
}

func TestAReplacedPodOfACompleteGangMayUseANewNode(t *testing.T) {
	s := begin(t)
	s.nodes("a", "b")
	s.pod("train-0", on("a"))
	s.pod("train-1", on("b"))
	s.pod("train-1", phase(corev1.PodFailed))
	s.node("c")
	s.pod("train-2", on("c"))
	s.expect()
}

func TestPodsThatEndBeforeTheLastOneIsCreatedAreOfOneAttempt(t *testing.T) {
	s := begin(t)
	s.node("a")
	s.pod("train-0", on("a"))
	s.pod("train-0", phase(corev1.PodSucceeded))
	s.pod("train-1", on("a"))
	s.expect()
}

func TestOtherPodsAreNotChecked(t *testing.T) {
	s := begin(t)
	s.pod("other", func(p *corev1.Pod) { p.Namespace = "default"; p.Spec.NodeName = "a" })
	s.pod("unlabeled", func(p *corev1.Pod) { p.Labels = nil; p.Spec.NodeName = "a" })
	s.expect()
}

func TestAGangWithoutPodsIsRefused(t *testing.T) {
	for _, gang := range []Gang{
		{Name: "no-selector", Pods: 2},
		{Name: "no-pods", Selector: "job=train"},
		{Name: "malformed", Selector: "job in", Pods: 2},
	} {
		var c Checker
		if err := c.Expect(gang); err == nil {
			t.Errorf("gang %s was not refused", gang.Name)
		}
	}
}

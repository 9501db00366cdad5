package pod

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/test/require"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// gated returns a marked pod that waits at the gate, as the policy leaves it.
func gated(name, cpu string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(noon),
			Labels: map[string]string{wellknown.GatedLabel: "true"}, Annotations: map[string]string{wellknown.SuspendAnnotation: "true"}},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: wellknown.PodGate}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func inGroup(size string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[wellknown.PodGroupLabel], p.Annotations[wellknown.PodGroupSizeAnnotation] = "g", size
	}
}

func sandboxed(class string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.RuntimeClassName, p.Spec.Overhead = &class, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		p.Spec.NodeSelector = map[string]string{"model": "a100"}
	}
}

func passed(p *corev1.Pod) {
	p.Spec.SchedulingGates, p.Annotations[wellknown.ReleasedAnnotation] = nil, "1/u"
}

func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func leaving(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(noon)) }

func TestStates(t *testing.T) {
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		want framework.JobState
	}{
		{"a pod waits", []*corev1.Pod{gated("a", "1")}, framework.JobState{Gated: true, Suspended: true, Stopped: true}},
		{"it has passed", []*corev1.Pod{gated("a", "1", passed)}, framework.JobState{Gated: true, Started: true}},
		{"it runs", []*corev1.Pod{gated("a", "1", passed, in(corev1.PodRunning), ready)}, framework.JobState{Gated: true, Started: true, Running: true, Ready: true}},
		{"it has succeeded", []*corev1.Pod{gated("a", "1", passed, in(corev1.PodSucceeded))},
			framework.JobState{Gated: true, Started: true, Stopped: true, Ready: true, End: &framework.End{Succeeded: true, Reason: "PodsSucceeded"}}},
		{"it has failed", []*corev1.Pod{gated("a", "1", passed, in(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "the node is full" })},
			framework.JobState{Gated: true, Started: true, Stopped: true, End: &framework.End{Reason: "Evicted", Message: "pod a has failed: the node is full"}}},
		{"it is deleted and still runs", []*corev1.Pod{gated("a", "1", passed, in(corev1.PodRunning), leaving)}, framework.JobState{Gated: true, Started: true, Running: true}},
		{"a pod of two is missing", []*corev1.Pod{gated("a", "1", inGroup("2"))}, framework.JobState{Gated: true, Suspended: true, Stopped: true, Incomplete: true}},
		{"both wait", []*corev1.Pod{gated("a", "1", inGroup("2")), gated("b", "1", inGroup("2"))}, framework.JobState{Gated: true, Suspended: true, Stopped: true}},
		{"one has passed", []*corev1.Pod{gated("a", "1", inGroup("2"), passed), gated("b", "1", inGroup("2"))}, framework.JobState{Gated: true, Started: true}},
		{"one is replaced", []*corev1.Pod{gated("a", "1", inGroup("1"), passed, leaving), gated("b", "1", inGroup("1"))}, framework.JobState{Gated: true, Suspended: true, Started: true}},
		{"one has ended, and one waits", []*corev1.Pod{gated("a", "1", inGroup("2"), passed, in(corev1.PodSucceeded)), gated("b", "1", inGroup("2"))},
			framework.JobState{Gated: true, Suspended: true, Started: true, Stopped: true, End: &framework.End{Succeeded: true, Reason: "PodsSucceeded"}}},
		{"a pod that has failed was replaced, and two have succeeded", []*corev1.Pod{gated("a", "1", inGroup("2"), passed, in(corev1.PodFailed)),
			gated("b", "1", inGroup("2"), passed, in(corev1.PodSucceeded)), gated("c", "1", inGroup("2"), passed, in(corev1.PodSucceeded))},
			framework.JobState{Gated: true, Started: true, Stopped: true, Ready: true, End: &framework.End{Succeeded: true, Reason: "PodsSucceeded"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := adapter{grouped: c.pods[0].Labels[wellknown.PodGroupLabel] != ""}
			got := of.State(framework.NewPodGroup("g", c.pods, "u"))
			if (got.End == nil) != (c.want.End == nil) || got.End != nil && *got.End != *c.want.End {
				t.Errorf("end %+v, want %+v", got.End, c.want.End)
			}
			got.End, c.want.End = nil, nil
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAPodIsOfTheSameSetInTheCache(t *testing.T) {
	of := adapter{grouped: true}
	for name, affinity := range map[string]*corev1.Affinity{
		"none": nil,
		"pods that repel each other": {PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}}},
		"preferred nodes": {NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}}}}},
	} {
		live := gated("a", "1", inGroup("1"), func(p *corev1.Pod) { p.Spec.Affinity = affinity })
		slim := live.DeepCopy()
		decision.SlimPod(slim)
		if of.SetOf(live) != of.SetOf(slim) {
			t.Errorf("%s: the pod is of set %s, and in the cache of %s", name, of.SetOf(live), of.SetOf(slim))
		}
	}
}

func TestRequests(t *testing.T) {
	cluster := adaptertest.Usual()
	// These have changed since the API server completed the pods.
	cluster.Ranges = map[string][]*corev1.LimitRange{"n": {{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
		Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}}}}}}}
	cluster.RuntimeClasses["sandbox"].Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"model": "h100"}}
	two := []*corev1.Pod{gated("a", "1", inGroup("3")), gated("b", "4", inGroup("3")), gated("c", "1", inGroup("3")), gated("d", "9", inGroup("3"))}
	for _, c := range []struct {
		name string
		of   adapter
		pods []*corev1.Pod
		want string // the counts of pod sets, and the total, or the error
	}{
		{"a pod", adapter{}, []*corev1.Pod{gated("a", "1500m")}, "[1] 1500m"},
		{"a pod without requests", adapter{}, []*corev1.Pod{gated("a", "1", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil })}, "[1] 0"},
		{"a pod with the former overhead of its RuntimeClass", adapter{}, []*corev1.Pod{gated("a", "1", sandboxed("sandbox"))}, "[1] 1100m"},
		{"a pod whose RuntimeClass is gone", adapter{}, []*corev1.Pod{gated("a", "1", sandboxed("gone"))},
			`pod set "pod": RuntimeClass "gone" does not exist; set spec.runtimeClassName of the pod to an existing one, or ask an administrator to create it`},
		{"the oldest pods of a group, by what they request", adapter{grouped: true}, two, "[2 1] 6"},
		{"a group without a size", adapter{grouped: true}, []*corev1.Pod{gated("a", "1")}, "annotation kube-queue/pod-group-size is missing; delete the pods, and create them with it: it is the number of pods in the group"},
		{"a size of 0", adapter{grouped: true}, []*corev1.Pod{gated("a", "1", inGroup("0"))}, `annotation kube-queue/pod-group-size must be an integer from 1 to 10000, not "0"`},
		{"a size that is no number", adapter{grouped: true}, []*corev1.Pod{gated("a", "1", inGroup("1e9"))}, `annotation kube-queue/pod-group-size must be an integer from 1 to 10000, not "1e9"`},
		{"different sizes", adapter{grouped: true}, []*corev1.Pod{gated("a", "1", inGroup("2")), gated("b", "1", inGroup("3"))},
			`annotation kube-queue/pod-group-size is "2" in pod a and "3" in pod b; delete the pods, and create them with the same number`},
		{"a group that is not complete", adapter{grouped: true}, []*corev1.Pod{gated("a", "1", inGroup("2"))},
			"the group has 1 of its 2 pods; create the others, or delete these and create them with a lower annotation kube-queue/pod-group-size"},
		{"a pod of a group that is deleted while it waits", adapter{grouped: true}, []*corev1.Pod{gated("a", "1", inGroup("2"), leaving), gated("b", "1", inGroup("2"))},
			"the group has 1 of its 2 pods; create the others, or delete these and create them with a lower annotation kube-queue/pod-group-size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			desired := decision.DesiredOf(c.of, framework.NewPodGroup("g", c.pods, ""), nil, cluster, nil)
			got := desired.Invalid
			if got == "" {
				var counts []int32
				for _, set := range desired.Spec.PodSets {
					counts = append(counts, set.Count)
				}
				cpu := desired.Spec.Resource[corev1.ResourceCPU]
				got = fmt.Sprint(counts, " ", cpu.String())
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// world is a group, or a pod, that a creator, a controller and job-extensions change in any order.
type world struct {
	*rapid.T
	adapter adapter
	size    int
	pods    []*corev1.Pod
	unit    *v1alpha1.QueueUnit
	now     time.Time
	made    int
	// let counts how often the gate of each pod was opened.
	let                   map[types.UID]int
	admissions, evictions int
}

func (w *world) create() {
	if !w.adapter.grouped && len(w.pods) > 0 { // the name is taken
		return
	}
	w.made++
	size := fmt.Sprint(w.size)
	pod := gated(fmt.Sprint("p", w.made), rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(w.T, "cpu"))
	pod.CreationTimestamp = metav1.NewTime(w.now)
	if w.adapter.grouped {
		inGroup(size)(pod)
	}
	w.pods = append(w.pods, pod)
}

func (w *world) one(what string, is func(*corev1.Pod) bool) *corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range w.pods {
		if is(pod) {
			found = append(found, pod)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(w.T, what)
}

func (w *world) remove(pod *corev1.Pod) {
	w.pods = slices.DeleteFunc(w.pods, func(p *corev1.Pod) bool { return p == pod })
}

// delete begins the deletion of a pod. A pod that does not run is gone immediately, unless its owner has given it a
// finalizer at the gate.
func (w *world) delete(pod *corev1.Pod) {
	if framework.IsGated(pod) && rapid.IntRange(0, 3).Draw(w.T, "without a finalizer") > 0 || framework.HasEnded(pod) {
		w.remove(pod)
		return
	}
	pod.DeletionTimestamp = new(metav1.NewTime(w.now))
}

// write applies a merge patch to the status of the unit.
func (w *world) write(status lifecycle.Status) {
	var fields map[string]any
	w.convert(w.unit.Status, &fields)
	var patch map[string]any
	w.convert(status, &patch)
	decision.Merge(fields, patch)
	w.unit.Status = v1alpha1.QueueUnitStatus{}
	w.convert(fields, &w.unit.Status)
}

func (w *world) convert(from, to any) {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	require.NoError(w, err)
}

// control is a step of the controller.
func (w *world) control() {
	switch unit := w.unit; {
	case unit == nil || unit.Status.Phase.Ended():
	case lifecycle.EvictionOf(unit).Stopped():
		w.write(lifecycle.Requeued(lifecycle.Place{}, wellknown.ReasonQuotaExceeded, "", 0, metav1.MicroTime{}, metav1.NewMicroTime(w.now)))
	case unit.Status.Phase.Waits() && *unit.Spec.Active:
		w.admissions++
		w.write(lifecycle.Dequeued(lifecycle.Place{}, unit.Status.Attempts+1, metav1.NewMicroTime(w.now)))
	}
}

func (w *world) evict() {
	if w.unit == nil || !w.unit.Status.Phase.HoldsQuota() || lifecycle.EvictionOf(w.unit) != lifecycle.EvictionNone {
		return
	}
	w.evictions++
	reason := rapid.SampledFrom([]wellknown.Reason{wellknown.ReasonMaximumExecutionTime, wellknown.ReasonPreempted}).Draw(w.T, "reason")
	w.write(lifecycle.Evicted(w.unit.Status.Conditions, reason, "", "", metav1.NewMicroTime(w.now)))
}

// step is a step of job-extensions. It does the minimum of what package reconciler does with a decision.
func (w *world) step() {
	uid := types.UID("")
	if w.adapter.grouped && w.unit != nil && !w.unit.Status.Phase.Ended() {
		uid = w.unit.Spec.ConsumerRef.UID
	}
	job := framework.NewPodGroup("g", w.pods, uid)
	if job == nil || w.unit != nil && w.unit.Spec.ConsumerRef.UID != job.UID {
		w.unit = nil // no pod of its job is left
		return
	}
	state := decision.State{JobState: w.adapter.State(job), Released: job.Annotations[wellknown.ReleasedAnnotation], RunKeys: decision.RunKeys{Active: true},
		Deleting: job.DeletionTimestamp != nil, Created: job.CreationTimestamp.Time}
	state.Marked, state.Incomplete = decision.Marked(w.adapter.Kind(), job, state.JobState), state.JobState.Incomplete
	var passing []*corev1.Pod
	if w.unit != nil {
		passing = w.adapter.Passing(job, decision.Admitted(w.unit))
		state.Passing = len(passing)
	}
	if decision.Continues(state, w.unit) {
		state.End = nil
	}
	desired := decision.DesiredOf(w.adapter, job, nil, adaptertest.Usual(), nil)
	switch action := decision.Decide(state, w.unit, desired, w.now).Action; action {
	case decision.Nothing:
	case decision.CreateUnit, decision.RestoreUnit:
		w.unit = &v1alpha1.QueueUnit{Spec: *desired.Spec.DeepCopy(), Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseEnqueued}}
		w.unit.Spec.ConsumerRef.UID = job.UID
		if action == decision.RestoreUnit {
			w.Fatalf("a unit was lost")
		}
	case decision.UpdateSpec:
		w.unit.Spec.Active, w.unit.Spec.PodSets, w.unit.Spec.Resource = desired.Spec.Active, desired.Spec.PodSets, desired.Spec.Resource
	case decision.MarkInvalid:
		w.write(lifecycle.Invalid(w.unit, desired.Invalid))
	case decision.MarkValid:
		w.write(lifecycle.Valid())
	case decision.Release:
		for _, pod := range passing {
			set := w.adapter.SetOf(pod)
			w.let[pod.UID]++
			passed(pod)
			pod.Annotations[wellknown.ReleasedAnnotation] = framework.Release(decision.Attempt(w.unit), job.UID, set)
		}
	case decision.Evict:
		for _, pod := range slices.Clone(w.pods) {
			if !framework.IsGated(pod) && !framework.HasEnded(pod) && pod.DeletionTimestamp == nil {
				w.delete(pod)
			}
		}
	case decision.MarkStopped:
		w.write(lifecycle.Stopped(w.unit, metav1.NewTime(w.now)))
	case decision.MarkChanged:
		w.write(lifecycle.JobChanged(w.unit, metav1.NewTime(w.now)))
	case decision.AcceptChange:
		w.write(lifecycle.ChangeAccepted(w.unit, metav1.NewTime(w.now)))
	case decision.MarkRunning:
		w.write(lifecycle.Running(w.unit, metav1.NewTime(w.now)))
	case decision.MarkFinished:
		if state.End == nil { // a deleted job ends with the last of its pods
			return
		}
		w.write(lifecycle.Finished(w.unit, state.End.Succeeded, state.End.Reason, "", metav1.NewTime(w.now)))
	case decision.LeaveQueue:
		w.unit = nil
	default:
		w.Fatalf("pods at the gate cannot do action %s", action)
	}
}

// check looks only at the pods and the unit.
func (w *world) check() {
	open := int64(0)
	for _, pod := range w.pods {
		if !framework.HasEnded(pod) && !framework.IsGated(pod) {
			cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
			open += cpu.Value()
		}
		if w.let[pod.UID] > 1 {
			w.Fatalf("pod %s was let through %d times", pod.Name, w.let[pod.UID])
		}
	}
	charged := int64(0)
	if w.unit != nil && w.unit.Status.Phase.HoldsQuota() {
		cpu := w.unit.Spec.Resource[corev1.ResourceCPU]
		charged = cpu.Value()
	}
	if open > charged {
		w.Fatalf("pods with %d cpu have passed, but their unit is charged %d", open, charged)
	}
}

// TestPropertyPodsPassOnlyWithinTheirCharge also shows that pods do not wait forever if there are enough of them for a
// group.
func TestPropertyPodsPassOnlyWithinTheirCharge(t *testing.T) {
	admissions, evictions, worlds := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{T: rt, adapter: adapter{grouped: rapid.Bool().Draw(rt, "grouped")}, size: 1, now: noon, let: map[types.UID]int{}}
		if w.adapter.grouped {
			w.size = rapid.IntRange(1, 4).Draw(rt, "size")
		}
		all := func(*corev1.Pod) bool { return true }
		runs := func(p *corev1.Pod) bool { return !framework.IsGated(p) && !framework.HasEnded(p) }
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.now = w.now.Add(11 * time.Second)
			switch rapid.SampledFrom([]string{"create", "create", "step", "step", "step", "control", "control", "run", "end", "delete", "gone", "evict", "resize"}).Draw(rt, "what") {
			case "create":
				w.create()
			case "step":
				w.step()
			case "control":
				w.control()
			case "run":
				if pod := w.one("pod", runs); pod != nil {
					pod.Status.Phase = corev1.PodRunning
				}
			case "end":
				if pod := w.one("pod", runs); pod != nil {
					pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}).Draw(rt, "phase")
				}
			case "delete":
				if pod := w.one("pod", all); pod != nil {
					w.delete(pod)
				}
			case "gone":
				if pod := w.one("pod", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }); pod != nil {
					w.remove(pod)
				}
			case "evict":
				w.evict()
			case "resize": // at the gate
				if pod := w.one("pod", framework.IsGated); pod != nil {
					cpu := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "cpu")
					pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
				}
			}
			w.check()
		}
		// Pods that are being deleted go, running pods end, and the others get their turn.
		for round := range 30 + 10*len(w.pods) {
			w.now = w.now.Add(11 * time.Second)
			for _, pod := range slices.Clone(w.pods) {
				if runs(pod) && pod.DeletionTimestamp != nil {
					w.remove(pod)
				} else if runs(pod) && round%3 == 2 {
					pod.Status.Phase = corev1.PodSucceeded
				}
			}
			w.step()
			w.check()
			w.control()
		}
		waiting := slices.DeleteFunc(slices.Clone(w.pods), func(p *corev1.Pod) bool { return !framework.IsGated(p) || p.DeletionTimestamp != nil })
		if len(waiting) >= w.size {
			var names []string
			for _, pod := range waiting {
				names = append(names, pod.Name)
			}
			rt.Fatalf("pods %s wait forever; unit %+v", strings.Join(names, ", "), w.unit)
		}
		admissions, evictions, worlds = admissions+w.admissions, evictions+w.evictions, worlds+1
	})
	t.Logf("%d worlds, %d admissions, %d evictions", worlds, admissions, evictions)
	if admissions < worlds || evictions < worlds/10 {
		t.Error("the test proves little")
	}
}

// TestAPartOfAReleasedGroupIsReplaced: the creator of a group replaces a failed pod.
func TestAPartOfAReleasedGroupIsReplaced(t *testing.T) {
	of := adapter{grouped: true}
	failed, runs := gated("a", "1", inGroup("2"), passed, in(corev1.PodFailed)), gated("b", "1", inGroup("2"), passed, in(corev1.PodRunning))
	next, extra := gated("c", "1", inGroup("2")), gated("d", "1", inGroup("2"))
	admitted := map[string]int32{of.SetOf(runs): 2}
	passing := of.Passing(framework.NewPodGroup("g", []*corev1.Pod{failed, runs, next, extra}, "u"), admitted)
	if len(passing) != 1 || passing[0] != next {
		t.Errorf("%d pods pass, want the oldest that waits", len(passing))
	}
	other := gated("e", "2", inGroup("2"))
	if passing := of.Passing(framework.NewPodGroup("g", []*corev1.Pod{failed, runs, other}, "u"), admitted); len(passing) > 0 {
		t.Error("a pod with other requests passes in place of one that has ended")
	}
}

// TestAPodThatHasPassedKeepsItsPlace: its owner may change what a pod requests, and how long it may run.
func TestAPodThatHasPassedKeepsItsPlace(t *testing.T) {
	of := adapter{grouped: true}
	first, next := gated("a", "1", inGroup("1")), gated("b", "1", inGroup("1"))
	set := of.SetOf(first)
	passed(first)
	first.Annotations[wellknown.ReleasedAnnotation] = framework.Release("1", "u", set)
	first.Spec.ActiveDeadlineSeconds = new(int64(5))
	if passing := of.Passing(framework.NewPodGroup("g", []*corev1.Pod{first, next}, "u"), map[string]int32{set: 1}); len(passing) > 0 {
		t.Error("another pod passes too")
	}
}

func TestAPodThatHasEndedTakesNoPlaceOfOneThatWaits(t *testing.T) {
	ended := gated("a", "1", inGroup("2"), passed, in(corev1.PodFailed))
	job := framework.NewPodGroup("g", []*corev1.Pod{ended, gated("b", "1", inGroup("2")), gated("c", "4", inGroup("2"))}, "u")
	desired := decision.DesiredOf(adapter{grouped: true}, job, nil, adaptertest.Usual(), nil)
	if cpu := desired.Spec.Resource[corev1.ResourceCPU]; cpu.Value() != 5 || len(desired.Spec.PodSets) != 2 {
		t.Errorf("the group requests %s in %d pod sets (%s)", cpu.String(), len(desired.Spec.PodSets), desired.Invalid)
	}
}

package decision_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/test/require"
)

// growingWorld is a job whose size its owner changes, its operator, kubelets, and a controller that admits and evicts.
type growingWorld struct {
	rapid.TB
	unit   *v1alpha1.QueueUnit
	grown  []*v1alpha1.QueueUnit
	pods   []decision.GrowingPod
	wanted int32
	made   int
	now    time.Time
	let    map[types.UID]int
	writes int
	stops  int
}

func growingPods(units []*v1alpha1.QueueUnit) (pods int32) {
	for _, unit := range units {
		if unit.Status.Phase.HoldsQuota() {
			pods += lifecycle.AdmittedPods(unit, &unit.Spec.PodSets[0])
		}
	}
	return pods
}

// passed returns how many pods have passed and have not ended.
func (w *growingWorld) passed() (n int32) {
	for _, pod := range w.pods {
		if !framework.IsGated(pod.Pod) && !framework.HasEnded(pod.Pod) {
			n++
		}
	}
	return n
}

// operate makes the operator create missing pods and delete surplus ones, newest first.
func (w *growingWorld) operate() {
	alive := 0
	for _, pod := range w.pods {
		if pod.DeletionTimestamp == nil && !framework.HasEnded(pod.Pod) {
			alive++
		}
	}
	for ; alive < int(w.wanted); alive++ {
		w.made++
		name := fmt.Sprint("p", w.made)
		w.pods = append(w.pods, decision.GrowingPod{Set: "workers", Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(w.now)},
			Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}}}})
	}
	for i := len(w.pods) - 1; i >= 0 && alive > int(w.wanted); i-- {
		if w.pods[i].DeletionTimestamp == nil && !framework.HasEnded(w.pods[i].Pod) {
			w.end(w.pods[i])
			alive--
		}
	}
}

func (w *growingWorld) end(pod decision.GrowingPod) {
	if framework.IsGated(pod.Pod) {
		w.pods = slices.DeleteFunc(w.pods, func(p decision.GrowingPod) bool { return p.UID == pod.UID })
		return
	}
	pod.DeletionTimestamp = new(metav1.NewTime(w.now))
}

// reap makes the kubelets end the pods that are being deleted.
func (w *growingWorld) reap() {
	w.pods = slices.DeleteFunc(w.pods, func(p decision.GrowingPod) bool { return p.DeletionTimestamp != nil })
}

// admit makes the controller admit a waiting unit with some of its pods.
func (w *growingWorld) admit(pods int32) {
	for _, unit := range w.grown {
		if !unit.Status.Phase.Waits() || pods == 0 {
			continue
		}
		set := &unit.Spec.PodSets[0]
		unit.Status = v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued, Attempts: unit.Status.Attempts + 1}
		if pods < set.Count {
			unit.Status.AdmittedPodSets = []v1alpha1.AdmittedPodSet{{Name: set.Name, Count: pods}}
		}
		return
	}
}

// settle makes the controller requeue what has stopped.
func (w *growingWorld) settle() {
	for _, unit := range w.grown {
		if lifecycle.EvictionOf(unit).Stopped() {
			unit.Status = v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseEnqueued, Attempts: unit.Status.Attempts}
		}
	}
}

func evict(unit *v1alpha1.QueueUnit, stopped bool) {
	reason := wellknown.ReasonPreempted
	if stopped {
		reason = wellknown.ReasonStopped
	}
	unit.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(reason)}}
}

// step is a step of job-extensions.
func (w *growingWorld) step() (changed bool) {
	before := growingPods([]*v1alpha1.QueueUnit{w.unit}) + growingPods(w.grown)
	kept := before - evicting(w.grown)
	growth, err := decision.GrowthOf(w.unit, w.grown, map[string]int32{"workers": w.wanted}, w.pods, "")
	require.NoError(w, err)
	for _, pod := range growth.Pass {
		w.let[pod.UID]++
		pod.Spec.SchedulingGates = nil
	}
	if after := w.passed(); len(growth.Pass) > 0 && after > before {
		w.Fatalf("%d pods have passed, and %d are admitted", after, before)
	}
	for _, pod := range growth.Delete {
		w.end(pod)
	}
	for _, spec := range growth.Create {
		w.made++
		w.grown = append(w.grown, &v1alpha1.QueueUnit{Spec: spec, Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseEnqueued},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unit-%03d", w.made), CreationTimestamp: metav1.NewTime(w.now)}})
	}
	for _, change := range growth.Resize {
		change.Unit.Spec = change.Spec
	}
	for _, unit := range growth.Run {
		unit.Status.Phase = v1alpha1.PhaseRunning
	}
	for _, unit := range growth.Stop {
		if passed := w.passed(); passed > kept {
			w.Fatalf("the quota of a unit is given back while %d pods run, and %d are admitted without it", passed, kept)
		}
		evict(unit, true)
		w.stops++
	}
	w.grown = slices.DeleteFunc(w.grown, func(unit *v1alpha1.QueueUnit) bool { return slices.Contains(growth.Leave, unit) })
	writes := len(growth.Create) + len(growth.Resize) + len(growth.Run) + len(growth.Stop) + len(growth.Leave)
	w.writes += writes
	return writes+len(growth.Pass)+len(growth.Delete) > 0
}

// evicting returns how many pods the evicted units hold.
func evicting(units []*v1alpha1.QueueUnit) int32 {
	var found []*v1alpha1.QueueUnit
	for _, unit := range units {
		if lifecycle.EvictionOf(unit) != lifecycle.EvictionNone {
			found = append(found, unit)
		}
	}
	return growingPods(found)
}

// Whatever the owner, operator and controller do: no more pods pass than are admitted, no pod passes twice, and in the
// end all pods pass that fit the quota.
func TestPropertyPodsOfAGrowingJobPassOnlyIfAdmitted(t *testing.T) {
	worlds, passed, stopped := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int32Range(0, 4).Draw(t, "admitted")
		w := &growingWorld{TB: t, wanted: base, now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), let: map[types.UID]int{},
			unit: &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "workers", Count: base,
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}},
				Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Attempts: 1, Growth: v1alpha1.GrowthGate}}}
		holding := func() (units []*v1alpha1.QueueUnit) {
			for _, unit := range w.grown {
				if unit.Status.Phase.HoldsQuota() && lifecycle.EvictionOf(unit) == lifecycle.EvictionNone {
					units = append(units, unit)
				}
			}
			return units
		}
		t.Repeat(map[string]func(*rapid.T){
			"its size changes":    func(t *rapid.T) { w.wanted = rapid.Int32Range(0, 20).Draw(t, "pods") },
			"its operator acts":   func(*rapid.T) { w.operate() },
			"the kubelets act":    func(*rapid.T) { w.reap() },
			"growth is admitted":  func(t *rapid.T) { w.admit(rapid.Int32Range(1, 8).Draw(t, "pods")) },
			"growth is requeued":  func(*rapid.T) { w.settle() },
			"job-extensions acts": func(*rapid.T) { w.step() },
			"all act": func(t *rapid.T) { // so that jobs get further than with single steps
				w.operate()
				w.step()
				w.reap()
				w.settle()
				w.admit(rapid.Int32Range(1, 8).Draw(t, "pods"))
				w.step()
			},
			"growth is evicted": func(t *rapid.T) {
				if units := holding(); len(units) > 0 {
					evict(rapid.SampledFrom(units).Draw(t, "unit"), false)
				}
			},
			"a pod ends": func(t *rapid.T) {
				if len(w.pods) > 0 {
					rapid.SampledFrom(w.pods).Draw(t, "pod").Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}).Draw(t, "phase")
				}
			},
			"a unit is lost": func(t *rapid.T) {
				if len(w.grown) > 0 {
					lost := rapid.SampledFrom(w.grown).Draw(t, "unit")
					w.grown = slices.DeleteFunc(w.grown, func(unit *v1alpha1.QueueUnit) bool { return unit == lost })
				}
			},
			"": func(t *rapid.T) {
				w.now = w.now.Add(time.Second)
				for uid, n := range w.let {
					if n > 1 {
						t.Fatalf("pod %s passed %d times", uid, n)
					}
				}
			},
		})
		worlds, passed, stopped = worlds+1, passed+len(w.let), stopped+w.stops
		// In the end there is room for all.
		for range 100 {
			w.now = w.now.Add(time.Second)
			w.operate()
			w.reap()
			w.settle()
			w.admit(100)
			if !w.step() && len(w.pods) > 0 && w.passed() == w.wanted {
				break
			}
		}
		if w.passed() != w.wanted {
			t.Fatalf("%d pods have passed in the end, want %d", w.passed(), w.wanted)
		}
		if got, want := growingPods(w.grown), max(0, w.wanted-base); got != want {
			t.Fatalf("units for growth hold %d pods, want %d", got, want)
		}
		if w.step() {
			t.Fatal("nothing changes, but something is written")
		}
	})
	t.Logf("%d pods passed in %d worlds, and %d units stopped", passed, worlds, stopped)
	if passed < 2*worlds || stopped < worlds/20 {
		t.Error("the test proves little")
	}
}

// A job that grows from 4 to 80 asks once. If 4 more pods fit, it asks for the rest with one more unit.
func TestAJobAsksOnceForAllItsPods(t *testing.T) {
	w := &growingWorld{TB: t, wanted: 80, let: map[types.UID]int{}, unit: &v1alpha1.QueueUnit{
		Spec:   v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "workers", Count: 4}}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Growth: v1alpha1.GrowthGate}}}
	w.operate()
	for _, want := range []struct {
		admitted, passed, asks int32
		writes, units          int
	}{{0, 4, 76, 1, 1}, {4, 8, 72, 3, 2}} {
		w.admit(want.admitted)
		w.step()
		w.step()
		last := w.grown[len(w.grown)-1].Spec.PodSets[0]
		if w.writes != want.writes || len(w.grown) != want.units || last.Count != want.asks || *last.MinCount != 1 || w.passed() != want.passed {
			t.Fatalf("want %+v, got %d writes, %d units, the last for %d pods, and %d pods have passed", want, w.writes, len(w.grown), last.Count, w.passed())
		}
	}
}

// Version v2 of Ray's autoscaler deletes workers that wait for long: it lowers the number of replicas, and raises it again.
func TestAnAutoscalerThatAddsItsWorkersAgainKeepsThePlaceOfItsJob(t *testing.T) {
	w := &growingWorld{TB: t, let: map[types.UID]int{}, unit: growingUnit(4, v1alpha1.PhaseRunning)}
	w.unit.Spec.SubmissionTime = new(metav1.NewMicroTime(time.Unix(1, 0)))
	for _, wanted := range []int32{8, 4, 8} {
		w.wanted = wanted
		w.operate()
		w.step()
		if asks := wanted > 4; asks != (len(w.grown) == 1) || asks && !w.grown[0].Spec.SubmissionTime.Equal(w.unit.Spec.SubmissionTime) || w.passed() != 4 {
			t.Fatalf("with %d workers, %d units ask, and %d workers have passed", wanted, len(w.grown), w.passed())
		}
	}
}

func growingUnit(count int32, phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "workers", Count: count}}},
		Status: v1alpha1.QueueUnitStatus{Phase: phase, Growth: v1alpha1.GrowthGate}}
}

func growingPod(name string, passed, ready bool) decision.GrowingPod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if !passed {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}
	}
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return decision.GrowingPod{Pod: pod, Set: "workers"}
}

// A replacement of the first pod does not wait for older growth.
func TestPodsOfAnIndexedJobPassInTheirOrder(t *testing.T) {
	pods := []decision.GrowingPod{growingPod("third", false, false), growingPod("second", true, true), growingPod("first", false, false)}
	for i, index := range []string{"10", "9", "0"} {
		pods[i].Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
		pods[i].CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
	}
	growth, err := decision.GrowthOf(growingUnit(2, v1alpha1.PhaseRunning), nil, map[string]int32{"workers": 3}, pods, "")
	if err != nil || len(growth.Pass) != 1 || growth.Pass[0].Name != "first" {
		t.Errorf("%v pass: %v", growth.Pass, err)
	}
}

func TestPodsWithACopyOfTheAnnotationPassIfTheirReleaseGatesNoGrowth(t *testing.T) {
	job := &batchv1.Job{}
	for record, want := range map[string]int{"": 3, "kube-queue/growth=others": 3, "kube-queue/growth=others:workers": 1} {
		job.Annotations = map[string]string{wellknown.PodAnnotationsAnnotation: record}
		pods := []decision.GrowingPod{growingPod("a", true, false), growingPod("b", false, false), growingPod("c", false, false), growingPod("d", false, false)}
		wanted := map[string]int32{}
		if decision.PassCopies(job, pods) {
			wanted["workers"] = 2
		}
		growth, err := decision.GrowthOf(growingUnit(2, v1alpha1.PhaseRunning), nil, wanted, pods, "")
		if err != nil || len(growth.Pass) != want || len(growth.Create) > 0 {
			t.Errorf("with the record %q: %+v, %v", record, growth, err)
		}
	}
}

// Checks do not decide about growth, so its pods have no gate, and no unit asks for them.
func TestTheGrowthOfAJobWithAdmissionChecksIsNotGated(t *testing.T) {
	unit := growingUnit(1, v1alpha1.PhaseRunning)
	if !decision.IsGated(unit) {
		t.Error("the growth of a job without checks is not gated")
	}
	unit.Status.AdmissionChecks = []v1alpha1.AdmissionCheckState{{Name: "nodes", State: v1alpha1.CheckReady}}
	if decision.IsGated(unit) {
		t.Error("the growth of a job with checks is gated")
	}
}

// Growth has the place of its job in the queue, even if run times decide the order. It ends with the job, and the owner
// can change when that is.
func TestGrowthEndsWithItsJob(t *testing.T) {
	unit, grown := growingUnit(1, v1alpha1.PhaseRunning), growingUnit(3, v1alpha1.PhaseRunning)
	unit.Spec.MaximumExecutionTimeSeconds, unit.Spec.ExpectedRunTimeSeconds = ptr.To[int32](600), ptr.To[int32](60)
	grown.Spec.MaximumExecutionTimeSeconds, grown.Status.AdmittedPodSets = ptr.To[int32](600), []v1alpha1.AdmittedPodSet{{Name: "workers", Count: 2}}
	grow := func() decision.Growth {
		growth, err := decision.GrowthOf(unit, []*v1alpha1.QueueUnit{grown}, map[string]int32{"workers": 5}, nil, "")
		require.NoError(t, err)
		return growth
	}
	first := grow()
	if asked := first.Create; len(first.Resize) > 0 || len(asked) != 1 || asked[0].PodSets[0].Count != 2 || *asked[0].MaximumExecutionTimeSeconds != 600 || *asked[0].ExpectedRunTimeSeconds != 60 {
		t.Errorf("it asks %+v", first)
	}
	unit.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](900)
	if changed := grow().Resize; len(changed) != 1 || *changed[0].Spec.MaximumExecutionTimeSeconds != 900 || changed[0].Spec.PodSets[0].Count != 2 {
		t.Errorf("with another maximum it changes %+v", changed)
	}
}

// The Job controller would count pods that are deleted as failed.
func TestGrowthThatIsKeptEndsWithItsJob(t *testing.T) {
	pods := []decision.GrowingPod{growingPod("a", true, true), growingPod("b", true, true)}
	for kept, deleted := range map[string]int{"": 1, "they count as failed": 0} {
		grown := growingUnit(1, v1alpha1.PhaseRunning)
		evict(grown, false)
		growth, err := decision.GrowthOf(growingUnit(1, v1alpha1.PhaseRunning), []*v1alpha1.QueueUnit{grown}, map[string]int32{"workers": 2}, pods, kept)
		if err != nil || len(growth.Delete) != deleted || len(growth.Evicted) != deleted || len(growth.Stop) > 0 {
			t.Errorf("kept %q: %d pods are deleted, for %+v, %d units stop: %v", kept, len(growth.Delete), growth.Evicted, len(growth.Stop), err)
		}
		asks, err := decision.GrowthOf(growingUnit(1, v1alpha1.PhaseRunning), nil, map[string]int32{"workers": 2}, pods, kept)
		if err != nil || len(asks.Create) != 1 || asks.Create[0].Unstoppable != kept {
			t.Errorf("kept %q: it asks %+v: %v", kept, asks.Create, err)
		}
	}
}

// Pods that wait at the gate do not prevent the admitted ones from counting as ready.
func TestAGrowingJobIsReadyWithItsAdmittedPods(t *testing.T) {
	unit, growing := growingUnit(2, v1alpha1.PhaseDequeued), map[string]int32{"workers": 9}
	pods := []decision.GrowingPod{growingPod("a", true, true), growingPod("b", true, false), growingPod("c", false, false)}
	if decision.AdmittedAreReady(unit, growing, pods) {
		t.Error("it is ready with one of two pods")
	}
	pods[1] = growingPod("b", true, true)
	if !decision.AdmittedAreReady(unit, growing, pods) {
		t.Error("it is not ready with both pods")
	}
	pods[1].DeletionTimestamp = &metav1.Time{}
	if decision.AdmittedAreReady(unit, growing, pods) {
		t.Error("it is ready with a pod that is being deleted")
	}
	if decision.AdmittedAreReady(unit, nil, pods) {
		t.Error("a job that cannot grow is judged by its pods")
	}
	if decision.AdmittedAreReady(growingUnit(0, v1alpha1.PhaseDequeued), growing, pods[2:]) {
		t.Error("a cluster without workers is ready, although its head may not be")
	}
	unit.Status.Attempts = 2
	for attempt, want := range map[string]bool{"1": false, "2": true} {
		pods[1] = growingPod("b", true, false)
		pods[1].Status.Phase, pods[1].Annotations = corev1.PodSucceeded, map[string]string{wellknown.ReleasedAnnotation: framework.Release(attempt, "j", "workers")}
		if got := decision.AdmittedAreReady(unit, growing, pods); got != want {
			t.Errorf("with a pod that has succeeded since release %s of 2, it is ready: %t", attempt, got)
		}
	}
}

// A restored unit is charged for the pods that passed before, except those of the growth.
func TestPodsThatHavePassedBefore(t *testing.T) {
	pods := []decision.GrowingPod{growingPod("a", true, true), growingPod("b", true, true), growingPod("c", true, true), growingPod("d", false, false)}
	for _, c := range []struct {
		grown  []*v1alpha1.QueueUnit
		passed int32
	}{{nil, 3}, {[]*v1alpha1.QueueUnit{growingUnit(2, v1alpha1.PhaseRunning), growingUnit(7, v1alpha1.PhaseEnqueued)}, 1}} {
		if passed, gated := decision.PassedBefore(pods, c.grown, "workers"); passed != c.passed || !gated {
			t.Errorf("%d have passed, want %d", passed, c.passed)
		}
	}
	if passed, gated := decision.PassedBefore(pods, nil, "others"); passed != 0 || gated {
		t.Errorf("%d pods of another set have passed", passed)
	}
}

// The event of each eviction says how many pods it ends, even if others are ending already.
func TestEachEvictedUnitHasItsPods(t *testing.T) {
	pods := []decision.GrowingPod{growingPod("a", true, true), growingPod("b", true, true), growingPod("c", true, true), growingPod("d", true, true)}
	pods[0].DeletionTimestamp = &metav1.Time{}
	units := []*v1alpha1.QueueUnit{growingUnit(3, v1alpha1.PhaseRunning), growingUnit(2, v1alpha1.PhaseRunning)}
	for i, unit := range units {
		unit.Name = fmt.Sprint(i)
		evict(unit, false)
	}
	growth, err := decision.GrowthOf(growingUnit(0, v1alpha1.PhaseRunning), units, map[string]int32{"workers": 4}, pods, "")
	if e := growth.Evicted; err != nil || len(growth.Delete) != 3 || len(e) != 2 || e[0].Pods != 3 || e[1].Pods != 1 {
		t.Errorf("%d pods are deleted, for %+v: %v", len(growth.Delete), growth.Evicted, err)
	}
}

package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/test/require"
)

func TestAChangeOfAPodDoesNotCollectItsGroup(t *testing.T) {
	f := frameworkOf(t, Options{Pods: pod.Adapters()})
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "one", UID: "u", ResourceVersion: "1",
		Labels: map[string]string{wellknown.GatedLabel: "true", wellknown.PodGroupLabel: "g"}}}
	two := one.DeepCopy()
	two.Name, two.UID = "two", "v"
	var told []string
	tell := func(what string) func(*framework.PodGroup) {
		return func(group *framework.PodGroup) {
			told = append(told, fmt.Sprintf("%s %s/%s with %d pods", what, group.Namespace, group.Name, len(group.Pods)))
		}
	}
	handler := follow.Handler(tell("changed"), tell("gone"))
	cached(t, f.pods, one)
	cached(t, f.pods, two)
	gate := f.reconcilers[1].gate
	gate.tell(one, handler)
	for _, gone := range []*corev1.Pod{one, two} {
		require.NoError(t, f.pods.GetIndexer().Delete(gone))
		gate.tell(gone, handler)
	}
	if want := []string{"changed n/g with 0 pods", "changed n/g with 1 pods", "gone n/g with 1 pods"}; !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
}

// No event reports that a pod on a lost node is gone.
func TestAPodOfAGroupOnALostNodeIsReplaced(t *testing.T) {
	f := frameworkOf(t, Options{Pods: pod.Adapters()})
	r := f.reconcilers[1]
	adapter, _ := r.adapter.(framework.GatedPods)
	of := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
				CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
				Labels:            map[string]string{wellknown.GatedLabel: "true", wellknown.PodGroupLabel: "g"},
				Annotations:       map[string]string{wellknown.SuspendAnnotation: "true", wellknown.PodGroupSizeAnnotation: "1"}},
			Spec:   corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}, Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
	}
	for name, c := range map[string]struct {
		since time.Duration
		want  decision.Action
		after time.Duration
	}{
		"within its grace period": {30 * time.Second, decision.Nothing, 30 * time.Second},
		"later":                   {61 * time.Second, decision.Release, 0},
	} {
		lost, next := of("a"), of("b")
		set := adapter.SetOf(next)
		lost.Spec.SchedulingGates, lost.Status.Phase = nil, corev1.PodRunning
		lost.Annotations[wellknown.ReleasedAnnotation] = framework.Release("1", lost.UID, set)
		// The API server adds the grace period to the time of the deletion.
		lost.DeletionTimestamp, lost.DeletionGracePeriodSeconds = new(metav1.NewTime(noon.Add(30*time.Second-c.since))), new(int64(30))
		unit := &v1alpha1.QueueUnit{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: decision.UnitName("PodGroup", "g", lost.UID), UID: "u", ResourceVersion: "1"},
			Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: set, Count: 1}},
				ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "kube-queue.dev/v1", Kind: "PodGroup", Namespace: "n", Name: "g", UID: lost.UID}},
			Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Attempts: 1},
		}
		cached(t, f.units, unit)
		cached(t, f.pods, lost)
		cached(t, f.pods, next)
		key := types.NamespacedName{Namespace: "n", Name: "g"}
		object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
		if err != nil || !exists {
			t.Fatalf("%s: there is no group (%v)", name, err)
		}
		job, _ := object.(*framework.PodGroup)
		own, _, _ := r.unitsOf(key, job)
		o, decided, err := r.decide(key, job, own, noon)
		if err != nil || decided.Action != c.want || o == nil {
			t.Fatalf("%s: the decision is %+v (%v)", name, decided, err)
		}
		if c.want == decision.Release && (len(o.passing) != 1 || o.passing[0].Name != "b") {
			t.Errorf("%s: the pods that pass are %v", name, o.passing)
		}
		if left := firstGraceOver(job.Pods, noon); left != c.after {
			t.Errorf("%s: the group is looked at again after %v", name, left)
		}
	}
}

// A policy limits what job-extensions writes to pods.
func TestPodsPassWithoutAnnotationsThatAreRefused(t *testing.T) {
	const key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	var asked []string
	config := jsonServer(t, func(req *http.Request) any {
		var sent corev1.Pod
		if err := json.NewDecoder(req.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		asked = append(asked, fmt.Sprint(path.Base(req.URL.Path), " ", sent.Annotations[key], " ", sent.Annotations[wellknown.ReleasedAnnotation]))
		if sent.Annotations[key] != "" {
			return apierrors.NewForbidden(corev1.Resource("pods"), sent.Name, errors.New("a policy forbids it"))
		}
		return &sent
	})
	r := frameworkOf(t, Options{Config: config, Pods: pod.Adapters()}).reconcilers[1]
	adapter, _ := r.adapter.(framework.GatedPods)
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b"} {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}}})
	}
	set := adapter.SetOf(pods[0])
	o := &observation{key: types.NamespacedName{Namespace: "n", Name: "g"}, job: framework.NewPodGroup("g", pods, ""), passing: pods, now: noon,
		unit: &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Attempts: 1, AdmissionChecks: []v1alpha1.AdmissionCheckState{{Name: "c", State: v1alpha1.CheckReady,
			PodSetUpdates: []v1alpha1.PodSetUpdate{{Name: set, Annotations: map[string]string{key: "false", wellknown.ReleasedAnnotation: "9"}}}}}}}}
	done, err := r.open(t.Context(), o)
	release := framework.Release("1", "a", set)
	if want := []string{"a false " + release, "a  " + release, "b  " + release}; !done || err != nil || !slices.Equal(asked, want) || !strings.Contains(o.unplaced[set], "a policy forbids it") {
		t.Errorf("done %t (%v) with %q, unplaced %v", done, err, asked, o.unplaced)
	}
}

// Nothing closes the gates that are open.
func TestAGroupThatRunsInPartIsNotSaidToGiveItsQuotaBack(t *testing.T) {
	config := jsonServer(t, func(req *http.Request) any {
		if name := path.Base(req.URL.Path); name != "a" {
			return apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New("a policy forbids it"))
		}
		return &corev1.Pod{}
	})
	said := &spoken{}
	r := frameworkOf(t, Options{Config: config, Pods: pod.Adapters(), Events: said}).reconcilers[1]
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b"} {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}}})
	}
	o := &observation{key: types.NamespacedName{Namespace: "n", Name: "g"}, job: framework.NewPodGroup("g", pods, ""), passing: pods, now: noon,
		unit:  &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued, Attempts: 1}},
		state: decision.State{JobState: framework.JobState{Gated: true, Suspended: true, Stopped: true}}}
	for range 2 {
		done, err := r.open(t.Context(), o)
		if _, err = r.record(t.Context(), o, decision.Decision{Action: decision.Release}, done, err); !apierrors.IsForbidden(err) {
			t.Errorf("the error is %v", err)
		}
		r.Clock.(*clocktesting.FakeClock).Step(giveBackAfter)
	}
	if len(said.repeated) != 2 {
		t.Errorf("%d events", len(said.repeated))
	}
	for _, e := range said.repeated {
		require.Says(t, "the event", e.Message, "refuses to open the scheduling gate of a pod (kube-queue retries); ", "a policy forbids it")
	}
}

func TestAPodWhoseGraceIsOverHidesNoOther(t *testing.T) {
	leaving := func(left time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(noon.Add(left - 30*time.Second))), DeletionGracePeriodSeconds: new(int64(30))}}
	}
	pods := []*corev1.Pod{leaving(-time.Hour), {}, leaving(time.Minute), leaving(20 * time.Second)}
	if left := firstGraceOver(pods, noon); left != 20*time.Second {
		t.Errorf("the next one ends in %v", left)
	}
	if left := firstGraceOver(pods[:2], noon); left != 0 {
		t.Errorf("none ends later, but %v", left)
	}
}

func TestTheOwnerOfPodsIsNotToldThatTheirMarkWasRemoved(t *testing.T) {
	sink := &spoken{}
	r := frameworkOf(t, Options{Pods: pod.Adapters(), Events: sink}).reconcilers[1]
	next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "b"}}
	for _, suspended := range []bool{true, false} {
		r.recordLeft(&observation{key: types.NamespacedName{Namespace: "n", Name: "g"}, job: framework.NewPodGroup("g", []*corev1.Pod{next}, "a"),
			unit:  &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: "u"}},
			state: decision.State{JobState: framework.JobState{Gated: true, Suspended: suspended, Stopped: suspended}, Marked: true}})
	}
	for _, e := range sink.repeated {
		if strings.Contains(e.Message, "mark was removed") {
			t.Errorf("the event says %q", e.Message)
		}
	}
	if len(sink.repeated) != 2 {
		t.Errorf("%d events", len(sink.repeated))
	}
	next.Annotations = map[string]string{wellknown.BypassAnnotation: "true"}
	event, _ := r.withoutUnit(t.Context(), &observation{job: framework.NewPodGroup("g", []*corev1.Pod{next}, "a"),
		state: decision.State{JobState: framework.JobState{Gated: true, Suspended: true}, Marked: true, Foreign: "bypass"}}, decision.Decision{})
	if event == nil || strings.Contains(event.Message, "unsuspend") || !strings.Contains(event.Message, "create it again with the annotation") {
		t.Errorf("with a bypass, the event is %+v", event)
	}
	r.recordLeft(&observation{job: framework.NewPodGroup("g", []*corev1.Pod{next}, "a"), unit: &v1alpha1.QueueUnit{},
		state: decision.State{JobState: framework.JobState{Gated: true, Suspended: true}}})
	if says := sink.repeated[2].Message; strings.Contains(says, "unsuspends") || !strings.Contains(says, "again, or delete it") {
		t.Errorf("without a mark, the event says %q", says)
	}
	r.recordNotQueued(&observation{job: framework.NewPodGroup("g", []*corev1.Pod{next}, "a"), now: noon, state: decision.State{JobState: framework.JobState{Gated: true}}}, true)
	if says := sink.written[0].Message; strings.Contains(says, "suspend") || !strings.Contains(says, "delete it and create it again") {
		t.Errorf("with an open gate, the event says %q", says)
	}
}

// The pods of a group go one by one.
func TestAnEvictionIsReportedOnce(t *testing.T) {
	sink := &spoken{}
	r := frameworkOf(t, Options{Pods: pod.Adapters(), Events: sink}).reconcilers[1]
	for i, began := range []time.Time{noon, noon, noon.Add(time.Minute)} {
		unit := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Conditions: []metav1.Condition{
			{Type: wellknown.ConditionEvicted, Status: "True", Reason: "Preempted", LastTransitionTime: metav1.NewTime(began)}}}}
		of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "b", ResourceVersion: strconv.Itoa(i)}}
		r.recordSuspended(&observation{job: framework.NewPodGroup("g", []*corev1.Pod{of}, "a"), unit: unit}, decision.Evict)
	}
	if e := sink.written; e[0].Name() != e[1].Name() || e[1].Name() == e[2].Name() {
		t.Errorf("the events are %+v", e)
	}
}

// The pods are deleted in several steps.
func TestAnEvictionOfGrowthIsReportedOnce(t *testing.T) {
	sink := &spoken{}
	r := frameworkOf(t, Options{Pods: pod.Adapters(), Events: sink}).reconcilers[1]
	for _, began := range []time.Time{noon, noon, noon.Add(time.Minute)} {
		unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: "u"}, Status: v1alpha1.QueueUnitStatus{Conditions: []metav1.Condition{
			{Type: wellknown.ConditionEvicted, Status: "True", Reason: "Reclaimed", Message: "why", LastTransitionTime: metav1.NewTime(began)}}}}
		r.recordGrowthEvicted(&observation{job: marked()}, []decision.Evicted{{Unit: unit, Pods: 2}})
	}
	e := sink.written
	if len(e) != 3 || e[0].Name() != e[1].Name() || e[1].Name() == e[2].Name() || e[0].Reason != "Reclaimed" || !strings.HasPrefix(e[0].Message, "Deleted 2 of the pods") {
		t.Errorf("the events are %+v", e)
	}
}

package reconciler

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/test/require"
)

func TestMarkedJobsOfAKindThatIsNotQueuedAreNotifiedAsLongAsTheyAreMarked(t *testing.T) {
	said := &spoken{}
	units := frameworkOf(t, Options{}).units
	jobs := &otherJobs{events: said, units: units, kind: raycluster.New().Kind(), version: "ray.io/v1", notified: map[string]types.UID{}}
	object := func(name string, annotations map[string]string, change ...func(*metav1.PartialObjectMetadata)) any {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name), Annotations: annotations}}
		for _, c := range change {
			c(o)
		}
		return o
	}
	mark := map[string]string{wellknown.SuspendAnnotation: "true"}
	notified := func(want ...string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(said.keeps))
		var uids []types.UID
		for _, name := range slices.Sorted(slices.Values(want)) {
			uids = append(uids, types.UID("uid-"+name))
		}
		if !slices.Equal(got, uids) || len(jobs.notified) != len(want) {
			t.Errorf("notified are %v, want %v; remembered are %v", got, want, jobs.notified)
		}
	}
	do := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	do(jobs.Replace([]any{
		object("a", mark), object("b", nil), object("released", map[string]string{wellknown.SuspendAnnotation: "false"}),
		object("of-kueue", mark, func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{wellknown.KueueLabel: "q"} }),
		object("part", mark, func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "x", UID: "x", Controller: new(true)}}
		}),
	}, "1"))
	notified("a")
	do(jobs.Add(object("c", mark)))
	do(jobs.Update(object("b", mark)))
	notified("a", "b", "c")
	do(jobs.Update(object("b", nil)))
	do(jobs.Delete(object("c", mark)))
	notified("a")
	do(jobs.Add(object("a", mark, func(o *metav1.PartialObjectMetadata) { o.UID = "uid-again" })))
	notified("again")
	do(jobs.Replace([]any{object("d", mark)}, "2"))
	notified("d")
	for _, bypass := range []string{"true", "false"} { // policies hold the second
		do(jobs.Add(object("bypass-"+bypass, map[string]string{wellknown.SuspendAnnotation: "true", wellknown.BypassAnnotation: bypass})))
	}
	notified("bypass-false", "d")
	for name, phase := range map[string]v1alpha1.QueueUnitPhase{"waits": v1alpha1.PhaseEnqueued, "runs": v1alpha1.PhaseDequeued, "ended": v1alpha1.PhaseSucceeded} {
		cached(t, units, &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "unit-of-" + name},
			Spec:   v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: name, UID: types.UID("uid-" + name)}},
			Status: v1alpha1.QueueUnitStatus{Phase: phase, Attempts: 1}})
		do(jobs.Add(object(name, map[string]string{wellknown.SuspendAnnotation: "true", wellknown.ReleasedAnnotation: "1"})))
	}
	notified("bypass-false", "d", "waits")
}

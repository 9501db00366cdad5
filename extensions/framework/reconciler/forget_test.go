package reconciler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/test/require"
)

func (m *memory) size() string {
	return fmt.Sprint(len(m.awaited.all()), len(m.began.all()), len(m.measured.all()), len(m.look.all()), len(m.outages.all()))
}

// Jobs and units that are deleted while they are processed leave nothing in the memory.
func TestNothingIsRememberedOfWhatIsDeletedMeanwhile(t *testing.T) {
	var meanwhile func()
	config := jsonServer(t, func(r *http.Request) any {
		meanwhile()
		var unit v1alpha1.QueueUnit
		if err := json.NewDecoder(r.Body).Decode(&unit); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		unit.ResourceVersion = "9"
		return unit
	})
	said := &spoken{}
	f := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New()}, Workers: 1, Events: said})
	r := f.reconcilers[0]
	held := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "j", UID: "j", ResourceVersion: "1"},
		Spec: batchv1.JobSpec{Suspend: new(true)}}
	deleteJob := func() {
		require.NoError(t, r.cached.GetIndexer().Delete(held))
		r.jobGone(held)
	}
	process := func() {
		t.Helper()
		for r.queue.Len() > 0 {
			r.next(t.Context())
		}
		if size := r.memory.size(); size != "0 0 0 0 0" || len(said.keeps) > 0 {
			t.Errorf("remembered are %s, and events of %v", size, said.keeps)
		}
	}
	add := func(object *batchv1.Job) {
		t.Helper()
		cached(t, r.cached, object)
		r.jobChanged(object)
	}

	// The answer to the creation of its unit comes after the event.
	meanwhile = deleteJob
	add(held)
	process()

	// The event comes while the job waits, between the read of the caches and the decision.
	unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "left", UID: "left"},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "gone"}}}
	deleteJob()
	r.unitGone(unit)
	r.memory.since("j", isReleased, true, noon)
	r.memory.measured.set("j", "1")
	r.Events.Keep(events.Event{Object: corev1.ObjectReference{UID: "j"}})
	r.memory.lookIn(unit.UID, noon, catchUp)
	r.forgetGone(types.NamespacedName{Namespace: "n", Name: "j"}, held, []*v1alpha1.QueueUnit{unit})
	f.notifySome([]notice{{r, "j", queuedKey}}, &outage{since: "2026"})
	process()

	// Another job of the same name has replaced it.
	other := held.DeepCopy()
	other.UID, other.ResourceVersion = "other", "2"
	cached(t, r.cached, other)
	r.memory.since("j", isReleased, true, noon)
	r.memory.since("other", isReleased, true, noon)
	r.forgetGone(types.NamespacedName{Namespace: "n", Name: "j"}, held, nil)
	if size := r.memory.size(); size != "0 1 0 0 0" || r.memory.since("other", isReleased, true, noon.Add(catchUp)) != noon {
		t.Errorf("remembered are %s, want what is known of the other job", size)
	}
}

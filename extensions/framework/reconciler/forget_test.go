package reconciler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/pkg/events"
)

// keeping are the objects whose events are kept.
type keeping map[types.UID]bool

func (k keeping) Write(events.Event)      {}
func (k keeping) Repeat(events.Event)     {}
func (k keeping) Keep(e events.Event)     { k[e.Object.UID] = true }
func (k keeping) Forget(object types.UID) { delete(k, object) }

// size is how much is remembered.
func (m *memory) size() string {
	return fmt.Sprint(len(m.awaited), len(m.began), len(m.measured), len(m.look))
}

// Jobs and units are deleted while they are processed: nothing of them is remembered.
func TestNothingIsRememberedOfWhatIsDeletedMeanwhile(t *testing.T) {
	var meanwhile func()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		meanwhile()
		w.Header().Set("Content-Type", "application/json")
		var unit v1alpha1.QueueUnit
		if err := json.NewDecoder(r.Body).Decode(&unit); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		unit.ResourceVersion = "9"
		if err := json.NewEncoder(w).Encode(unit); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kept := keeping{}
	f, err := New(Options{Config: &rest.Config{Host: server.URL}, Adapters: []framework.Adapter{job.New()},
		Workers: 1, Events: kept, Clock: clocktesting.NewFakeClock(noon)})
	if err != nil {
		t.Fatal(err)
	}
	r := f.reconcilers[0]
	held := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "j", UID: "j", ResourceVersion: "1"},
		Spec: batchv1.JobSpec{Suspend: new(true)}}
	deleteJob := func() {
		if err := r.cached.GetIndexer().Delete(held); err != nil {
			t.Error(err)
		}
		r.jobGone(held)
	}
	process := func() {
		t.Helper()
		for r.queue.Len() > 0 {
			r.next(t.Context())
		}
		if size := r.memory.size(); size != "0 0 0 0" || len(kept) > 0 {
			t.Errorf("remembered are %s, and events of %v", size, slices.Collect(maps.Keys(kept)))
		}
	}
	add := func(object *batchv1.Job) {
		t.Helper()
		if err := r.cached.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
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
	r.memory.setMeasured("j", "1")
	kept["j"] = true
	r.memory.lookIn(unit.UID, noon, catchUp)
	r.forgetGone(types.NamespacedName{Namespace: "n", Name: "j"}, held, []*v1alpha1.QueueUnit{unit})
	process()

	// Another job of the name has taken its place.
	other := held.DeepCopy()
	other.UID, other.ResourceVersion = "other", "2"
	if err := r.cached.GetIndexer().Add(other); err != nil {
		t.Fatal(err)
	}
	r.memory.since("j", isReleased, true, noon)
	r.memory.since("other", isReleased, true, noon)
	r.forgetGone(types.NamespacedName{Namespace: "n", Name: "j"}, held, nil)
	if size := r.memory.size(); size != "0 1 0 0" || r.memory.since("other", isReleased, true, noon.Add(catchUp)) != noon {
		t.Errorf("remembered are %s, want what is known of the other job", size)
	}
}

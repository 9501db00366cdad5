package reconciler

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/test/require"
)

const liveJob = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "n", "uid": "1"}, "spec": {"parallelism": 2,
	"template": {"metadata": {"labels": {"app": "train"}}, "spec": {"schedulerName": "gang", "tolerations": [{"key": "gpu"}], "containers": [{"name": "main", "image": "large"}]}}}}`

func TestTheLivePodsOfAJobAreComplete(t *testing.T) {
	config := jsonServer(t, func(r *http.Request) any {
		if r.URL.Path != "/apis/batch/v1/namespaces/n/jobs/train" {
			return apierrors.NewNotFound(schema.GroupResource{Group: "batch", Resource: "jobs"}, "")
		}
		return json.RawMessage(liveJob)
	})
	f := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New()}})
	unit := func(version, kind, name string, uid types.UID) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{}
		u.Namespace = "n"
		u.Spec.ConsumerRef = v1alpha1.ConsumerReference{APIVersion: version, Kind: kind, Namespace: "n", Name: name, UID: uid}
		return u
	}
	sets, err := f.PodsOf(t.Context(), unit("batch/v1", "Job", "train", "1"))
	if err != nil || len(sets) != 1 || sets[0].Count != 2 {
		t.Fatalf("the pod sets are %v (%v)", sets, err)
	}
	if pod := sets[0].Template; pod.Labels["app"] != "train" || pod.Spec.SchedulerName != "gang" || len(pod.Spec.Tolerations) != 1 || pod.Spec.Containers[0].Image != "large" {
		t.Errorf("the template is %v", pod)
	}
	for name, test := range map[string]struct {
		unit *v1alpha1.QueueUnit
		is   func(error) bool
	}{
		"a job that is gone":              {unit("batch/v1", "Job", "gone", "1"), apierrors.IsNotFound},
		"another job of the name":         {unit("batch/v1", "Job", "train", "2"), apierrors.IsNotFound},
		"a kind that is not enabled":      {unit("kubeflow.org/v1", "TFJob", "train", "1"), func(err error) bool { return errors.Is(err, ErrNotEnabled) }},
		"a version that is not of a kind": {unit("batch/v9", "Job", "train", "1"), func(err error) bool { return errors.Is(err, ErrNotEnabled) }},
		"a unit that was created by hand": {unit("batch/v1", "Job", "train", ""), func(err error) bool { return errors.Is(err, ErrNoJob) }},
	} {
		if _, err := f.PodsOf(t.Context(), test.unit); !test.is(err) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestTheLiveObjectThatDescribesAJobIsItsOwn(t *testing.T) {
	config := listServer(t, sizes, func(r *http.Request) {
		if selector := r.URL.Query().Get("fieldSelector"); selector == "" {
			t.Errorf("%s lists everything", r.URL)
		}
	})
	client, _, err := newRelated(config, withSizes{}, unreported)
	require.NoError(t, err)
	r := &reconciler{adapter: withSizes{}, relatedLive: client}
	for _, test := range []struct {
		name  string
		uid   types.UID
		found bool
	}{{"mine", "1", true}, {"forged", "2", false}, {"older", "1", false}, {"alone", "1", false}, {"none", "1", false}} {
		thing := &batchv1.Job{}
		thing.Namespace, thing.Name, thing.UID = "team", test.name, test.uid
		related, err := r.liveRelated(t.Context(), thing)
		if err != nil || (related != nil) != test.found {
			t.Errorf("%s: found is %v (%v)", test.name, related, err)
		}
		if test.found && related.(*batchv1.Job).Spec.Template.Spec.Containers[0].Image != "large" {
			t.Errorf("the template is incomplete: %v", related)
		}
	}
	unread := &batchv1.Job{}
	unread.Namespace, unread.Name, unread.UID = "team", "unread", "3"
	if _, err := r.liveRelated(t.Context(), unread); err == nil {
		t.Error("an object that cannot be read is no error")
	}
}

// Thousands of units that were created by hand need little memory, and their checks can be decided.
func TestAUnitThatWasCreatedByHandIsCachedWithItsChecks(t *testing.T) {
	unit := func(phase v1alpha1.QueueUnitPhase, checks ...v1alpha1.AdmissionCheckState) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{}
		u.Spec.ConsumerRef.Name, u.Spec.PodSets = "mine", []v1alpha1.PodSet{{Name: "main"}}
		u.Status.Phase, u.Status.Message, u.Status.AdmissionChecks = phase, "long", checks
		slimUnit(u)
		return u
	}
	check := v1alpha1.AdmissionCheckState{Name: "nodes"}
	if u := unit(v1alpha1.PhaseReserved, check); len(u.Spec.PodSets) != 1 || len(u.Status.AdmissionChecks) != 1 || u.Status.Message != "" {
		t.Errorf("with checks it is %+v", u)
	}
	for _, u := range []*v1alpha1.QueueUnit{unit(v1alpha1.PhaseEnqueued), unit(v1alpha1.PhaseSucceeded, check)} {
		if u.Spec.PodSets != nil || u.Status.AdmissionChecks != nil || u.Spec.ConsumerRef.Name != "mine" {
			t.Errorf("in phase %s it is %+v", u.Status.Phase, u)
		}
	}
}

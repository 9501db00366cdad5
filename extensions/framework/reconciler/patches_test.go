package reconciler

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/test/require"
)

// suspender is an adapter of Jobs that can be marked in two ways.
type suspender struct {
	framework.Adapter
	bySuspend bool
	places    []framework.Place
}

func (s suspender) Kind() framework.Kind {
	return framework.Kind{MarkedBySuspend: s.bySuspend, Places: s.places}
}

func (suspender) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}

func TestPatches(t *testing.T) {
	meta := func(annotation string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7"}}
		if annotation != "" {
			job.Annotations = map[string]string{wellknown.SuspendAnnotation: annotation}
		}
		return job
	}
	held := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"scheduling.x-k8s.io/suspend": "true"}},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](10), Suspend: ptr.To(true)},
	}
	runs := held.DeepCopy()
	runs.Annotations = map[string]string{"scheduling.x-k8s.io/suspend": "false", "kube-queue/original-count": "main=10", "kube-queue/admitted-count": "main=6"}
	runs.Spec.Parallelism, runs.Spec.Suspend = ptr.To[int32](6), ptr.To(false)
	tests := []struct {
		name  string
		patch func() ([]byte, error)
		want  string
	}{
		{"a release with fewer pods sets their number in the same patch", func() ([]byte, error) {
			resized, err := decision.Resized(job.New(), held, &v1alpha1.QueueUnit{
				Spec:   v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main", Count: 10, MinCount: ptr.To[int32](4)}}},
				Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued, AdmittedPodSets: []v1alpha1.AdmittedPodSet{{Name: "main", Count: 6}}},
			})
			if err != nil {
				return nil, err
			}
			return releasePatch(job.New(), job.New().Kind(), held, "1", resized)
		}, `{"metadata":{"annotations":{"kube-queue/admitted-count":"main=6","kube-queue/original-count":"main=10","kube-queue/released":"1",` +
			`"scheduling.x-k8s.io/suspend":"false"},"resourceVersion":"7","uid":"u"},"spec":{"parallelism":6,"suspend":false}}`},
		{"a suspension restores the number of pods in the same patch", func() ([]byte, error) { return suspendPatch(job.New(), job.New().Kind(), runs, nil) },
			`{"metadata":{"annotations":{"kube-queue/admitted-count":null,"kube-queue/original-count":null,` +
				`"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"parallelism":10,"suspend":true}}`},
		{"a release clears annotation and suspend field together", func() ([]byte, error) { return releasePatch(suspender{}, suspender{}.Kind(), meta("true"), "2", nil) },
			`{"metadata":{"annotations":{"kube-queue/released":"2","scheduling.x-k8s.io/suspend":"false"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a mark that its owner applies on the server stays, and a wish to resume is fulfilled", func() ([]byte, error) {
			job := meta("true")
			job.Annotations[wellknown.ResumedAnnotation] = "true"
			job.ManagedFields = []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply}}
			return releasePatch(suspender{}, suspender{}.Kind(), job, "2", nil)
		},
			`{"metadata":{"annotations":{"kube-queue/released":"2","kube-queue/resumed":null},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a job marked by its suspend field gets no annotation", func() ([]byte, error) {
			return releasePatch(suspender{bySuspend: true}, suspender{bySuspend: true}.Kind(), meta(""), "1", nil)
		},
			`{"metadata":{"annotations":{"kube-queue/released":"1"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a release without annotations of pods removes the list of the last release", func() ([]byte, error) {
			return releasePatch(suspender{}, suspender{}.Kind(), meta("true"), "2", record(nil, decision.PodAnnotations{"a": {"b/c": ""}}))
		},
			`{"metadata":{"annotations":{"kube-queue/pod-annotations":null,"kube-queue/released":"2","scheduling.x-k8s.io/suspend":"false"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}}`},
		{"a release that changes lists is the same as a JSON Patch", func() ([]byte, error) {
			live := map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7", "annotations": map[string]any{"scheduling.x-k8s.io/suspend": "true"}},
				"spec": map[string]any{"suspend": true, "groups": []any{map[string]any{"name": "a", "template": map[string]any{}}}}}
			placed := suspender{places: []framework.Place{{Path: []string{"spec", "groups"}, Key: "name", Below: []string{"template", "metadata", "annotations"}}}}
			data, _, err := annotatedPatch(placed, placed.Kind(), meta("true"), live, "2", decision.PodAnnotations{"a": {"b/c": "d"}}, nil, nil, time.Time{})
			return data, err
		}, `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/metadata/uid","value":"u"},` +
			`{"op":"add","path":"/metadata/annotations/kube-queue~1pod-annotations","value":"b/c=a"},{"op":"add","path":"/metadata/annotations/kube-queue~1released","value":"2"},` +
			`{"op":"replace","path":"/metadata/annotations/scheduling.x-k8s.io~1suspend","value":"false"},` +
			`{"op":"add","path":"/spec/groups/0/template/metadata","value":{"annotations":{"b/c":"d"}}},{"op":"replace","path":"/spec/suspend","value":false}]`},
		{"a suspension puts the annotation back", func() ([]byte, error) {
			return suspendPatch(suspender{bySuspend: true}, suspender{bySuspend: true}.Kind(), meta("false"), nil)
		},
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one of a kind marked by annotation puts it back though it was removed", func() ([]byte, error) { return suspendPatch(suspender{}, suspender{}.Kind(), meta(""), nil) },
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one of a job marked by its suspend field does not", func() ([]byte, error) {
			return suspendPatch(suspender{bySuspend: true}, suspender{bySuspend: true}.Kind(), meta(""), nil)
		},
			`{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
		{"one for good deactivates in the same patch", func() ([]byte, error) {
			return suspendPatch(suspender{}, suspender{}.Kind(), meta("false"), map[string]any{wellknown.ActiveAnnotation: "false"})
		},
			`{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false","scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"suspend":true}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := test.patch()
			require.NoError(t, err)
			if string(data) != test.want {
				t.Errorf("the patch is\n%s, not\n%s", data, test.want)
			}
		})
	}
}

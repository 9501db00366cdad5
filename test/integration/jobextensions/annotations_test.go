package jobextensions

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const (
	consume    = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
	class      = "cluster-autoscaler.kubernetes.io/provisioning-class-name"
	recordedIn = "kube-queue/pod-annotations"
)

// admitWithUpdates admits the unit with an admission check that annotates its pods. updates has the annotations by
// pod set.
func (s *story) admitWithUpdates(updates map[string]map[string]string) {
	s.Helper()
	var list []v1alpha1.PodSetUpdate
	for podSet, annotations := range updates {
		list = append(list, v1alpha1.PodSetUpdate{Name: podSet, Annotations: annotations})
	}
	s.admit(v1alpha1.AdmissionCheckState{Name: "capacity", State: v1alpha1.CheckReady, LastTransitionTime: metav1.Now(), PodSetUpdates: list})
}

// annotatesPods waits for a released job whose pods have exactly these of the annotations that checks set.
func (s *story) annotatesPods(want map[string]string, template ...string) {
	s.Helper()
	s.becomesSuspended(false)
	got, _, err := unstructured.NestedStringMap(s.get().Object, append(template, "metadata", "annotations")...)
	s.must(err)
	if !maps.Equal(got, want) {
		s.Errorf("the template has the annotations %v, not %v", got, want)
	}
}

// evictedAndQueued evicts the running job, and requeues it as the controller does.
func (s *story) evictedAndQueued() {
	s.Helper()
	s.evict(wellknown.ReasonPreempted)
	s.becomesSuspended(true)
	s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
	s.decide(map[string]any{"phase": "Enqueued", "admissionChecks": nil,
		"conditions": []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Requeued", LastTransitionTime: metav1.Now()}}})
}

// has counts the events with a reason.
func (s *story) has(reason string) int {
	s.Helper()
	n := 0
	for _, event := range s.events() {
		if event.Reason == reason {
			n++
		}
	}
	return n
}

// An older API server, or one without the feature, refuses changes to the template of a Job that has started.
func TestAJobIsReleasedWithoutAnnotationsThatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	s.admitWithUpdates(map[string]map[string]string{"main": {"example.com/a": strings.Repeat("x", 262144)}, "other": {consume: "first"}})
	s.becomesSuspended(false)
	s.event(corev1.EventTypeWarning, "PodsNotAnnotated", "the API server refuses them: ")
	s.event(corev1.EventTypeWarning, "PodsNotAnnotated", "the Job contains no template of these pods (pod set other)")
	if n := s.has("PodsNotAnnotated"); n != 1 {
		t.Errorf("%d events report it", n)
	}
}

const workers = `workerGroupSpecs: [
	{groupName: small, replicas: 1, minReplicas: 0, maxReplicas: 2, rayStartParams: {}, template: {metadata: {annotations: {own: kept}}, spec: {containers: [{name: ray, image: ray, env: [{name: A, value: b}], resources: {requests: {cpu: 1}}}]}}},
	{groupName: large, replicas: 1, minReplicas: 0, maxReplicas: 2, rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 2}}}]}}}]`

// jobRequests is a connection that records the requests for a RayJob, and may call a function before one.
type jobRequests struct {
	next http.RoundTripper
	mu   sync.Mutex
	// seen has the method, the kind of patch and the status code of each.
	seen []string
	// before is called with the first JSON Patch.
	before func()
}

func (r *jobRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	ofJob := strings.HasSuffix(request.URL.Path, "/rayjobs/a")
	how := request.Header.Get("Content-Type")
	if ofJob && how == string(types.JSONPatchType) {
		r.mu.Lock()
		before := r.before
		r.before = nil
		r.mu.Unlock()
		if before != nil {
			before()
		}
	}
	response, err := r.next.RoundTrip(request)
	if ofJob && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, strings.TrimSpace(fmt.Sprint(request.Method, " ", response.StatusCode, " ", how)))
	}
	return response, err
}

// expect waits until exactly these requests were seen since. Other clients may see the effect of a request before its
// response arrives here.
func (r *jobRequests) expect(s *story, want string) {
	s.Helper()
	s.eventually("it has sent "+want, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if seen := strings.Join(r.seen, ", "); seen != want {
			return "it has sent " + seen
		}
		r.seen = nil
		return ""
	})
}

func (r *jobRequests) first(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.seen = do, nil
}

func TestListsOfAJobAreChangedByAJSONPatchOfTheCurrentJob(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	sent := &jobRequests{}
	defer startFor(t, c, "rayjob", func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { sent.next = next; return sent })
	})()
	cluster := []string{"spec", "rayClusterSpec"}
	head := append(cluster, "headGroupSpec", "template")
	start := func(t *testing.T) *story {
		t.Helper()
		s := begin(t, c, rayJob, `{spec: {rayClusterSpec: {`+workers+`}}}`)
		s.hasUnit("with three pod sets", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.PodSets) == 3 })
		return s
	}
	// template returns the template of a group of workers.
	template := func(s *story, index int) map[string]any {
		s.Helper()
		groups, _, err := unstructured.NestedSlice(s.get().Object, append(cluster, "workerGroupSpecs")...)
		s.must(err)
		return groups[index].(map[string]any)["template"].(map[string]any)
	}
	both := map[string]map[string]string{"head": {consume: "r", class: "c"}, "small": {consume: "r"}}

	t.Run("a release without annotations needs no other request", func(t *testing.T) {
		s := start(t)
		sent.first(nil)
		s.admit()
		s.becomesSuspended(false)
		sent.expect(s, "PATCH 200 "+string(types.MergePatchType))
	})
	t.Run("a job that changes meanwhile is a conflict", func(t *testing.T) {
		s := start(t)
		before := template(s, 0)
		sent.first(func() { s.change(`{metadata: {labels: {a: b}}}`) })
		s.admitWithUpdates(both)
		s.annotatesPods(map[string]string{consume: "r", class: "c"}, head...)
		sent.expect(s, "GET 200, PATCH 409 application/json-patch+json, GET 200, PATCH 200 application/json-patch+json")
		if s.get().GetLabels()["a"] != "b" {
			t.Error("the change is lost")
		}
		s.must(unstructured.SetNestedStringMap(before, map[string]string{"own": "kept", consume: "r"}, "metadata", "annotations"))
		if got, want := asJSON(template(s, 0)), asJSON(before); got != want {
			t.Errorf("the template of the workers is\n%s, not\n%s", got, want)
		}
		if metadata := template(s, 1)["metadata"]; metadata != nil {
			t.Errorf("other workers have %v", metadata)
		}
		s.event(corev1.EventTypeNormal, "Released", "")
		if n := s.has("PodsNotAnnotated"); n > 0 {
			t.Errorf("%d events report that it is not annotated", n)
		}
	})
	t.Run("a list that becomes shorter meanwhile is no invalid job", func(t *testing.T) {
		s := start(t)
		sent.first(func() { s.change(`{spec: {rayClusterSpec: {workerGroupSpecs: []}}}`) })
		s.admitWithUpdates(both)
		s.evicted(metav1.ConditionTrue, wellknown.ReasonJobChanged)
		sent.expect(s, "GET 200, PATCH 422 application/json-patch+json, GET 200, GET 200")
		if n := s.has("PodsNotAnnotated"); n > 0 || !s.suspended() {
			t.Errorf("%d events report that it is not annotated; suspended %v", n, s.suspended())
		}
	})
	t.Run("what was added is removed by the next release", func(t *testing.T) {
		s := start(t)
		s.admitWithUpdates(both)
		s.annotatesPods(map[string]string{consume: "r", class: "c"}, head...)
		s.setStatus(`{jobDeploymentStatus: Running, startTime: "2026-01-01T00:00:00Z"}`)
		s.evict(wellknown.ReasonPreempted)
		s.becomesSuspended(true)
		s.setStatus(`{jobDeploymentStatus: Suspended}`)
		s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
		s.decide(map[string]any{"phase": "Enqueued", "admissionChecks": nil,
			"conditions": []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Requeued", LastTransitionTime: metav1.Now()}}})
		s.admitWithUpdates(map[string]map[string]string{"head": {consume: "again"}})
		s.annotatesPods(map[string]string{consume: "again"}, head...)
		if got, want := asJSON(template(s, 0)["metadata"]), `{"annotations":{"own":"kept"}}`; got != want {
			t.Errorf("the workers have %s, not %s", got, want)
		}
		if got, want := s.get().GetAnnotations()[recordedIn], consume+"=head"; got != want {
			t.Errorf("the job lists %q, not %q", got, want)
		}
	})
}

package frameworks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/harness"
)

// The propagation policies of a deletion.
const (
	background = metav1.DeletePropagationBackground
	orphan     = metav1.DeletePropagationOrphan
)

func (s *story) objects() dynamic.ResourceInterface {
	return s.Dynamic.Resource(s.resource).Namespace(s.Namespace)
}

// submit creates the job, and checks that it is held.
func (s *story) submit(j job) {
	s.t.Helper()
	created, err := s.objects().Create(s.t.Context(), s.manifest(j), metav1.CreateOptions{})
	harness.Must(s.t, err)
	if !s.suspended(created) {
		s.t.Errorf("%s %s is not suspended from its creation", s.kind, j.name)
	}
}

func (s *story) suspended(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, s.suspend...)
	return suspended
}

func (s *story) suspendByHand(name string) {
	s.t.Helper()
	s.Patch(s.resource, name, `{"`+strings.Join(s.suspend, `":{"`)+`":true`+strings.Repeat("}", len(s.suspend)))
}

// stops reports whether a suspended job has no pods once its status shows that it is suspended. Argo lets the pods of
// a Workflow run until they end. Spark executors end some time after their driver, and the submitter of a RayJob some
// time after its cluster. Their quota is freed before that.
func (s *story) stops() bool {
	return !slices.Contains([]string{"Workflow", "SparkApplication", "RayJob"}, s.kind)
}

func (s *story) expectSuspendedByUser(name string) {
	s.t.Helper()
	if unit := s.WaitForReason(s.kind, name, "SuspendedByUser"); unit.Status.Phase != v1alpha1.PhaseEnqueued {
		s.t.Errorf("%s is %s after it was suspended by hand, want Enqueued", name, unit.Status.Phase)
	}
}

// expectWaits checks that the job waits for quota, shows it, and has no pod.
func (s *story) expectWaits(name string) {
	s.t.Helper()
	unit := s.WaitForReason(s.kind, name, "QuotaExceeded")
	if pods := s.Pods(name); len(pods) > 0 {
		s.t.Errorf("%s has %d pods while it waits", name, len(pods))
	}
	if !s.suspended(s.Object(s.resource, name)) {
		s.t.Errorf("%s is not suspended while it waits", name)
	}
	if event := s.WaitForEvent(name, "Queued"); !strings.Contains(event.Message, unit.Name) {
		s.t.Errorf("the event Queued of %s does not name its unit: %q", name, event.Message)
	}
}

func (s *story) expectReleased(name string) {
	s.t.Helper()
	harness.Eventually(s.t, patience, fmt.Sprintf("%s %s is released", s.kind, name), func() (bool, string) {
		return !s.suspended(s.Object(s.resource, name)), "it is suspended"
	})
}

func (s *story) prioritize(name string, priority int32) {
	s.t.Helper()
	s.Patch(s.resource, name, fmt.Sprintf(`{"metadata":{"annotations":{"scheduling.x-k8s.io/priority":"%d"}}}`, priority))
	harness.Eventually(s.t, patience, fmt.Sprintf("the priority of %s is %d", name, priority), func() (bool, string) {
		unit := s.Unit(s.kind, name)
		return unit != nil && unit.Spec.Priority == priority, fmt.Sprint(unit)
	})
}

// waitForRun waits until the status of the job shows that it runs.
func (s *story) waitForRun(name string) {
	s.t.Helper()
	s.waitForJob(name, "running", func(view audit.JobView) bool { return view.Running })
}

// waitForEnd waits until the status of the job shows this end.
func (s *story) waitForEnd(name, outcome string) {
	s.t.Helper()
	s.waitForJob(name, outcome, func(view audit.JobView) bool { return view.Outcome == outcome })
}

// waitForState waits until kubectl shows the job in a state.
func (s *story) waitForState(name, state string) {
	s.t.Helper()
	s.waitForJob(name, "shown as "+state, func(view audit.JobView) bool { return view.State == state })
}

func (s *story) waitForJob(name, what string, is func(audit.JobView) bool) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("%s %s is %s", s.kind, name, what), func() (bool, string) {
		view, err := s.view.Job(s.Object(s.resource, name).Object)
		harness.Must(s.t, err)
		return is(view), fmt.Sprintf("%+v", view)
	})
}

// expectNoneRuns checks that no pod runs: servers and endless workers must end with their job.
func (s *story) expectNoneRuns(name string) {
	s.t.Helper()
	harness.Eventually(s.t, patience, fmt.Sprintf("no pod of %s runs", name), func() (bool, string) {
		for _, pod := range s.Pods(name) {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				return false, pod.Name + " runs"
			}
		}
		return true, ""
	})
}

// delete deletes the job with a propagation policy and waits until its unit is gone.
func (s *story) delete(name string, cascade metav1.DeletionPropagation) {
	s.t.Helper()
	s.request(name, cascade)
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("%s %s and its unit are gone", s.kind, name), func() (bool, string) {
		_, err := s.objects().Get(s.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && s.Unit(s.kind, name) == nil, fmt.Sprint("job: ", err, ", unit: ", s.Unit(s.kind, name) != nil)
	})
}

// request requests the deletion of the job.
func (s *story) request(name string, cascade metav1.DeletionPropagation) {
	s.t.Helper()
	harness.Must(s.t, s.objects().Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &cascade}))
}

// expectNoRefusal checks that the fence has refused no request of an operator.
func (s *story) expectNoRefusal() {
	s.t.Helper()
	for _, refusal := range s.Refusals("namespace is managed by kube-queue: ") {
		s.t.Error(refusal)
	}
}

// deleteRunning deletes a running job and keeps its pods, which keep its unit until they are gone.
func (s *story) deleteRunning(name string) {
	s.t.Helper()
	s.request(name, orphan)
	// The Spark operator deletes the driver with the job, and Trainer may become the owner of the JobSet again, so
	// that it is not orphaned.
	if s.kind != "SparkApplication" && s.sample.Related.Resource == "" {
		s.WaitForReason(s.kind, name, wellknown.ReasonPodsRemain)
	}
	harness.Eventually(s.t, 2*time.Minute, fmt.Sprintf("%s %s, its orphans and its unit are gone", s.kind, name), func() (bool, string) {
		s.ClearOrphans(name)
		_, err := s.objects().Get(s.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && s.Unit(s.kind, name) == nil, fmt.Sprint("job: ", err, ", unit: ", s.Unit(s.kind, name) != nil)
	})
}

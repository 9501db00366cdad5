package frameworks

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// cronJob is a Job that is queued although it has a controller.
var cronJob = specimen{
	kind: "Job", resource: harness.Jobs, extension: "job", name: "cronjob",
	total: `{cpu: 100m}`,
	test:  (*story).taleOfCronJob,
}

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

// yearly returns a CronJob whose Jobs run until the test ends them.
func yearly(name, concurrency string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: CronJob
metadata: {name: %s}
spec:
  schedule: "0 0 1 1 *"
  concurrencyPolicy: %s
  jobTemplate: {spec: {suspend: true, backoffLimit: 0, template: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]}}}}
`, name, concurrency, harness.PodAnnotations(harness.UntilFinished, false))
}

// taleOfCronJob: the Jobs of a CronJob are queued. With concurrencyPolicy Forbid, one that is deactivated holds up the
// CronJob until it is deleted, and its event says so.
func (s *story) taleOfCronJob() {
	s.Apply(yearly("allows", "Allow"))
	s.lapse("allows")
	name := s.jobOf("allows", "").Name
	s.WaitForPhase("Job", name, v1alpha1.PhaseRunning)
	s.Finish(harness.Jobs, name)
	s.WaitForPhase("Job", name, v1alpha1.PhaseSucceeded)
	expectOneRelease(s.t, s.Env, "Job", name)
	s.Delete(cronJobs, "allows")

	s.Apply(yearly("forbids", "Forbid"))
	s.lapse("forbids")
	first := s.jobOf("forbids", "")
	s.WaitForPhase("Job", first.Name, v1alpha1.PhaseRunning)
	s.Patch(harness.Jobs, first.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, wellknown.ActiveAnnotation))
	s.WaitForReason("Job", first.Name, wellknown.ReasonInactive)
	if event := s.WaitForEvent(first.Name, string(wellknown.ReasonDeactivated)); !strings.Contains(event.Message, "CronJob forbids counts the suspended job as active") {
		s.t.Errorf("the event says: %s", event.Message)
	}
	s.Patch(cronJobs, "forbids", `{"spec":{"schedule":"0 0 1 2 *"}}`) // it ignores a time for which a Job exists
	s.lapse("forbids")
	s.WaitForEvent("forbids", "JobAlreadyActive")
	s.delete(first.Name, background)
	s.WaitForPhase("Job", s.jobOf("forbids", first.UID).Name, v1alpha1.PhaseRunning)
	s.Delete(cronJobs, "forbids")
}

// lapse sets the time of the last Job of a CronJob, so that another one is due.
func (s *story) lapse(name string) {
	s.t.Helper()
	_, err := s.Dynamic.Resource(cronJobs).Namespace(s.Namespace).Patch(s.t.Context(), name, types.MergePatchType,
		[]byte(`{"status":{"lastScheduleTime":"2024-06-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	harness.Must(s.t, err)
}

// jobOf waits until the CronJob has made a Job other than the given one.
func (s *story) jobOf(name string, other types.UID) (job *batchv1.Job) {
	s.t.Helper()
	harness.Eventually(s.t, patience, "CronJob "+name+" has made a Job", func() (bool, string) {
		list, err := s.Kube.BatchV1().Jobs(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
		harness.Must(s.t, err)
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Name == name && list.Items[i].UID != other {
				job = &list.Items[i]
			}
		}
		return job != nil, fmt.Sprintf("%d Jobs", len(list.Items))
	})
	return job
}

package frameworks

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// cronJob is a Job that is queued although it has a controller.
var cronJob = specimen{
	kind: "Job", resource: harness.Jobs, extension: "job", name: "cronjob",
	total: `{cpu: 100m}`,
	test:  (*story).taleOfCronJob,
}

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

const yearly = `apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {suspend: true, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]}}}}
`

// taleOfCronJob creates a CronJob whose last Job was a year ago.
func (s *story) taleOfCronJob() {
	s.Apply(yearly)
	_, err := s.Dynamic.Resource(cronJobs).Namespace(s.Namespace).Patch(s.t.Context(), "yearly", types.MergePatchType,
		[]byte(`{"status":{"lastScheduleTime":"2024-06-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	harness.Must(s.t, err)
	name := ""
	harness.Eventually(s.t, patience, "the CronJob has made a Job", func() (bool, string) {
		list, err := s.Kube.BatchV1().Jobs(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
		harness.Must(s.t, err)
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == "CronJob" {
				name = list.Items[i].Name
			}
		}
		return name != "", fmt.Sprintf("%d Jobs", len(list.Items))
	})
	s.WaitForPhase("Job", name, v1alpha1.PhaseSucceeded)
	expectOneRelease(s.t, s.Env, "Job", name)
	harness.Must(s.t, s.Dynamic.Resource(cronJobs).Namespace(s.Namespace).Delete(s.t.Context(), "yearly", metav1.DeleteOptions{}))
}

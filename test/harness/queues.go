package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// CreateQueue creates a Queue with a spec before its quota exists, so that no unit misses it. It exists until the
// end of the test.
func (l *Env) CreateQueue(name string, spec schedulingv1alpha1.QueueSpec) {
	l.t.Helper()
	queues := l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace)
	_, err := queues.Create(l.t.Context(), &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	Must(l.t, err)
	l.t.Cleanup(func() { // the context of the test is already done
		Must(l.t, ignoreNotFound(queues.Delete(context.Background(), name, metav1.DeleteOptions{})))
	})
}

// PatchQueue applies a merge patch to the Queue with the name once kube-queue-controller has created it.
func (l *Env) PatchQueue(name, patch string) {
	l.t.Helper()
	queues := l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace)
	Eventually(l.t, time.Minute, fmt.Sprintf("Queue %s is patched with %s", name, patch), func() (bool, string) {
		_, err := queues.Patch(l.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// CreateCheck creates an AdmissionCheck that the test decides. It exists until the end of the test.
func (l *Env) CreateCheck(name string) {
	l.t.Helper()
	checks := l.Queue.SchedulingV1alpha1().AdmissionChecks()
	_, err := checks.Create(l.t.Context(), &schedulingv1alpha1.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: schedulingv1alpha1.AdmissionCheckSpec{ControllerName: "example.com/" + name}}, metav1.CreateOptions{})
	Must(l.t, err)
	l.t.Cleanup(func() { Must(l.t, checks.Delete(context.Background(), name, metav1.DeleteOptions{})) })
}

// Decide writes the state of a check of the unit of a Job, as soon as the unit has checks.
func (l *Env) Decide(job, check string, state schedulingv1alpha1.CheckState, message string) {
	l.t.Helper()
	Eventually(l.t, time.Minute, "check "+check+" of "+job+" is "+string(state), func() (bool, string) {
		unit := l.Unit("Job", job)
		if unit == nil || len(unit.Status.AdmissionChecks) == 0 {
			return false, "it has no check"
		}
		for i := range unit.Status.AdmissionChecks {
			if s := &unit.Status.AdmissionChecks[i]; s.Name == check {
				s.State, s.Message, s.LastTransitionTime = state, message, metav1.Now()
			}
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
			"status": map[string]any{"admissionChecks": unit.Status.AdmissionChecks}})
		Must(l.t, err)
		_, err = l.Queue.SchedulingV1alpha1().QueueUnits(unit.Namespace).Patch(l.t.Context(), unit.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err == nil, fmt.Sprint(err) // it may have been written in the meantime
	})
}

// CheckNodes gives the queue of the namespace a check that requests nodes of the class for pods with GPUs.
func (l *Env) CheckNodes(class string) {
	l.t.Helper()
	l.ApplyAsIs(`
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ProvisioningRequestConfig
metadata: {name: gpus}
spec: {provisioningClassName: ` + class + `, managedResources: [nvidia.com/gpu]}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: AdmissionCheck
metadata: {name: nodes}
spec:
  controllerName: kube-queue.dev/provisioning-request
  parameters: {apiGroup: scheduling.x-k8s.io, kind: ProvisioningRequestConfig, name: gpus}
`)
	l.t.Cleanup(func() {
		_, err := l.suite.Kubectl(context.Background(), "delete", "admissioncheck/nodes", "provisioningrequestconfig/gpus")
		Must(l.t, err)
	})
	l.CreateQueue("root-"+l.Namespace, schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"nodes"}})
}

package harness

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// RunTime is the annotation of pods and RayJobs that sets how long they run.
	RunTime = "localcluster.kube-queue.dev/run-time"
	// ExitCode is the annotation of pods and RayJobs that sets their exit code.
	ExitCode = "localcluster.kube-queue.dev/exit-code"
	// UntilFinished is the run time of pods that the test ends or deletes, so that the result does
	// not depend on the speed of the machine.
	UntilFinished = 1000 * time.Hour

	// EndNow is a patch that ends a pod or RayJob with a run time.
	EndNow = `{"metadata":{"annotations":{"` + RunTime + `":"1ms"}}}`
)

// Finish ends a job that runs until the test ends it. It patches the run time of the job, or of the
// pods that end the job. If no pod has a run time, it ends all pods.
func (l *Env) Finish(resource schema.GroupVersionResource, name string) {
	l.t.Helper()
	if l.Object(resource, name).GetAnnotations()[RunTime] != "" {
		l.Patch(resource, name, EndNow)
		return
	}
	Eventually(l.t, 20*time.Second, name+" has a pod that ends it", func() (bool, string) {
		pods := l.Pods(name)
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Annotations[RunTime] != "" }) {
			pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Annotations[RunTime] != UntilFinished.String() })
		}
		for _, pod := range pods {
			l.Patch(Pods, pod.Name, EndNow)
		}
		return len(pods) > 0, "none"
	})
}

func (l *Env) Object(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.t.Helper()
	object, err := l.Dynamic.Resource(resource).Namespace(l.Namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	Must(l.t, err)
	return object
}

// State returns the column STATE of a kubeflow job.
func (l *Env) State(resource schema.GroupVersionResource, name string) string {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.Object(resource, name).Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	kind, _ := conditions[len(conditions)-1].(map[string]any)["type"].(string)
	return kind
}

// HasCondition reports whether a condition of the object is true.
func (l *Env) HasCondition(resource schema.GroupVersionResource, name, condition string) bool {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.Object(resource, name).Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
			return true
		}
	}
	return false
}

func (l *Env) WaitForState(resource schema.GroupVersionResource, name string, states ...string) {
	l.t.Helper()
	Eventually(l.t, time.Minute, fmt.Sprintf("%s is %v", name, states), func() (bool, string) {
		state := l.State(resource, name)
		return slices.Contains(states, state), state
	})
}

// Events returns the events about an object with a reason.
func (l *Env) Events(name, reason string) []corev1.Event {
	l.t.Helper()
	return slices.DeleteFunc(l.AllEvents(name), func(e corev1.Event) bool { return e.Reason != reason })
}

func (l *Env) AllEvents(name string) []corev1.Event {
	l.t.Helper()
	list, err := l.Kube.CoreV1().Events(l.Namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	Must(l.t, err)
	return list.Items
}

func (l *Env) WaitForEvent(name, reason string) corev1.Event {
	l.t.Helper()
	var found []corev1.Event
	Eventually(l.t, 30*time.Second, fmt.Sprintf("there is an event %s about %s", reason, name), func() (bool, string) {
		found = l.Events(name, reason)
		return len(found) > 0, "none"
	})
	return found[0]
}

// RayClustersOf returns the names of a RayJob's clusters.
func (l *Env) RayClustersOf(job string) (names []string) {
	l.t.Helper()
	list, err := l.Dynamic.Resource(RayClusters).Namespace(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == "RayJob" && owner.Name == job {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names
}

// RayWorkers returns the workers of a RayCluster that are not being deleted.
func (l *Env) RayWorkers(cluster string) []corev1.Pod {
	l.t.Helper()
	return slices.DeleteFunc(l.Pods(cluster), func(p corev1.Pod) bool {
		return p.Labels["ray.io/node-type"] != "worker" || p.DeletionTimestamp != nil
	})
}

// Pods returns the pods that belong to the job by their names.
func (l *Env) Pods(job string) []corev1.Pod {
	l.t.Helper()
	list, err := l.Kube.CoreV1().Pods(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !belongs(p.Name, job) })
}

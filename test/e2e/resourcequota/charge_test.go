package resourcequota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/testmode"
)

// pytorchjob returns a PyTorchJob with a master and a worker.
func pytorchjob(name string, master, workers pods) string {
	return fmt.Sprintf(`---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: %s}
    Worker: {replicas: %d, restartPolicy: Never, template: %s}
`, name, master.template(ends(false), "pytorch"), workers.count, workers.template(ends(false), "pytorch"))
}

// raycluster returns a RayCluster with a head and workers.
func raycluster(name string, head, workers pods) string {
	return fmt.Sprintf(`---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  headGroupSpec: {rayStartParams: {}, template: %s}
  workerGroupSpecs: [{groupName: small, replicas: %d, minReplicas: 1, maxReplicas: 9, rayStartParams: {}, template: %s}]
`, name, head.ray(), workers.count, workers.ray())
}

// growing is a job of some kind whose pods request whole CPUs.
type growing struct {
	kind, manifest string
	// admitted is the number of CPUs of the job at its start, and pods of its pods with one CPU more.
	admitted, pods int
	// grow adds a pod that requests 1 CPU.
	grow func(t *testing.T, l *harness.Env)
}

func kindsThatGrow() []growing {
	return []growing{
		{"Job", strings.Replace(job("grows", one("1")), "completions: 1", "completions: 9", 1), 1, 2, func(_ *testing.T, l *harness.Env) {
			l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":2}}`)
		}},
		{"PyTorchJob", pytorchjob("grows", one("1"), one("1")), 2, 3, func(_ *testing.T, l *harness.Env) {
			l.Patch(resources["PyTorchJob"], "grows", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2}}}}`)
		}},
		{"RayCluster", raycluster("grows", one("1"), one("1")), 2, 3, func(t *testing.T, l *harness.Env) { growRayCluster(t, l, "grows") }},
		{"RayJob", strings.Replace(rayjob("grows", one("1"), one("1"), false), "entrypoint:", "submissionMode: HTTPMode\n  entrypoint:", 1), 2, 3,
			func(t *testing.T, l *harness.Env) {
				list, err := l.Dynamic.Resource(harness.RayClusters).Namespace(l.Namespace).List(t.Context(), metav1.ListOptions{})
				harness.Must(t, err)
				if len(list.Items) != 1 {
					t.Fatalf("%d RayClusters, want 1", len(list.Items))
				}
				growRayCluster(t, l, list.Items[0].GetName())
			}},
		{"SparkApplication", spark("grows", 1, "1", "", false), 2, 3, addExecutor},
	}
}

// growRayCluster adds a worker, as the autoscaler of Ray does.
func growRayCluster(t *testing.T, l *harness.Env, name string) {
	t.Helper()
	clusters := l.Dynamic.Resource(harness.RayClusters).Namespace(l.Namespace)
	patch := []byte(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2}]`)
	_, err := clusters.Patch(t.Context(), name, "application/json-patch+json", patch, metav1.PatchOptions{})
	harness.Must(t, err)
}

// addExecutor creates another executor, as the driver does with dynamic allocation.
func addExecutor(t *testing.T, l *harness.Env) {
	t.Helper()
	for _, p := range l.Pods("grows") {
		if p.Labels["spark-role"] != "executor" {
			continue
		}
		labels := map[string]string{}
		for key, value := range p.Labels {
			labels[key] = value
		}
		more := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: "grows-more", Labels: labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{p.Spec.Containers[0]}},
		}
		more.Spec.Containers[0].VolumeMounts = nil
		_, err := l.Kube.CoreV1().Pods(l.Namespace).Create(t.Context(), more, metav1.CreateOptions{})
		harness.Must(t, err)
		return
	}
	t.Fatal("the application has no executor")
}

// A job that grows after its release is charged for all its pods, and pods that are left of a deleted
// job are charged until they are gone.
func TestPodsAreChargedWhateverTheirJobDoes(t *testing.T) {
	for _, c := range kindsThatGrow() {
		t.Run(c.kind, func(t *testing.T) {
			if c.kind != "Job" && c.kind != "RayJob" {
				testmode.OnlyInTestAll(t, "make test has a Job, which owns its pods, and a RayJob, whose RayCluster does")
			}
			l := suite.Env(t, "grow-"+strings.ToLower(c.kind))
			controller, _ := suite.Both(t, enabled+",pytorchjob,raycluster")
			l.Tree(fmt.Sprintf("{cpu: %d}", c.admitted+1))
			l.Apply(c.manifest)
			runs(t, l, c.kind, "grows")
			c.grow(t, l)
			harness.Eventually(t, patience, "the job has grown", func() (bool, string) {
				return len(l.Pods("grows")) == c.pods, fmt.Sprintf("%d pods", len(l.Pods("grows")))
			})
			l.Apply(job("next", one("1")))
			full := fmt.Sprintf("requested 1, used %[1]d of max %[1]d", c.admitted+1)
			waits(t, l, "Job", "next", wellknown.ReasonQuotaExceeded, full)

			deleteAndOrphan(t, l, c.kind, "grows")
			controller.Kill()
			controller.Start()
			harness.Never(t, 3*time.Second, "a job is admitted to quota that pods of a deleted job use", func() (bool, string) {
				return len(l.Pods("next")) > 0, "it has pods"
			})
			clearOrphans(t, l, "grows")
			runs(t, l, "Job", "next")
			end(l, "Job", "next")
			l.ExpectFree()
		})
	}
}

// deleteAndOrphan deletes a job and keeps what belongs to it. The Spark operator would delete the driver
// of an application that is being deleted, so it is paused meanwhile.
func deleteAndOrphan(t *testing.T, l *harness.Env, kind, name string) {
	t.Helper()
	if kind == "SparkApplication" {
		resume, err := suite.Pause("spark-operator")
		harness.Must(t, err)
		defer func() { harness.Must(t, resume()) }()
	}
	orphan := metav1.DeletePropagationOrphan
	objects := l.Dynamic.Resource(resources[kind]).Namespace(l.Namespace)
	harness.Must(t, objects.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &orphan}))
	harness.Eventually(t, patience, name+" is gone", func() (bool, string) {
		_, err := objects.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// clearOrphans deletes all that is left of a job. Operators may create pods of what is left in the
// meantime.
func clearOrphans(t *testing.T, l *harness.Env, name string) {
	t.Helper()
	harness.Eventually(t, patience, "nothing is left of "+name, func() (bool, string) {
		l.ClearOrphans(name)
		pods := l.Pods(name)
		return len(pods) == 0, fmt.Sprintf("%d pods", len(pods))
	})
}

// Package provisioning tests jobs that wait for nodes: the two programs, unmodified operators, the real
// scheduler, simulated nodes, and the stand-in for the cluster autoscaler.
package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

const (
	enabled = "rayjob,job,pytorchjob,trainjob"
	class   = "queued-provisioning.gke.io"
)

var (
	suite     *harness.Suite
	trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
)

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{Operators: []string{"kuberay", "training-operator", "trainer"}, PodRunTime: harness.UntilFinished},
		func(s *harness.Suite) { suite = s })
}

// scene is a namespace whose queue has the check "nodes", and a cluster without GPUs.
type scene struct {
	t *testing.T
	*harness.Env
	scaler *autoscaler.Autoscaler
}

func begin(t *testing.T, namespace string) *scene {
	t.Helper()
	s := prepare(t, namespace)
	suite.Both(t, enabled)
	s.quota()
	return s
}

// prepare creates the objects of the administrator.
func prepare(t *testing.T, namespace string) *scene {
	t.Helper()
	l := suite.Env(t, namespace)
	s := &scene{t: t, Env: l, scaler: autoscaler.ForTest(t, suite.Cluster)}
	l.CheckNodes(class)
	return s
}

// quota lets the jobs of the namespace start.
func (s *scene) quota() {
	s.TreeOf(`{name: ` + s.Namespace + `, namespaces: [` + s.Namespace + `], max: {cpu: 1k, memory: 1Ti, nvidia.com/gpu: "64"}}`)
}

func (s *scene) answer(answer autoscaler.Answer) {
	s.t.Helper()
	s.scaler.Answer(answer)
}

// requests returns the ProvisioningRequests of the namespace.
func (s *scene) requests() []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.Dynamic.Resource(autoscaler.Resource).Namespace(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	return list.Items
}

// says waits until the unit of the job has a phase and a message.
func (s *scene) says(kind, name string, phase v1alpha1.QueueUnitPhase, message string) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("the unit of %s %s is %s and says %q", kind, name, phase, message), func() (bool, string) {
		unit := s.Unit(kind, name)
		if unit == nil {
			return false, "there is no unit"
		}
		return unit.Status.Phase == phase && strings.Contains(unit.Status.Message, message), fmt.Sprintf("%s: %s", unit.Status.Phase, unit.Status.Message)
	})
}

// shows waits until an event on the job has a reason and a message.
func (s *scene) shows(name, reason, message string) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("an event %s on %s says %q", reason, name, message), func() (bool, string) {
		var messages []string
		for _, event := range s.Events(name, reason) {
			messages = append(messages, event.Message)
		}
		return slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, message) }), fmt.Sprintf("%q", messages)
	})
}

// gang returns the pods of a job that need a GPU.
func (s *scene) gang(selector string) []corev1.Pod {
	s.t.Helper()
	list, err := s.Kube.CoreV1().Pods(s.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: selector})
	harness.Must(s.t, err)
	return list.Items
}

// runs waits until all pods of the gang run with the annotations that let them use the nodes.
func (s *scene) runs(selector string, pods int, request string) {
	s.t.Helper()
	harness.Eventually(s.t, 90*time.Second, fmt.Sprintf("%d pods run", pods), func() (bool, string) {
		var running int
		var others []string
		for _, pod := range s.gang(selector) {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			} else {
				others = append(others, pod.Name+" "+string(pod.Status.Phase))
			}
		}
		return running == pods && len(others) == 0, fmt.Sprintf("%d run, others %v", running, others)
	})
	for _, pod := range s.gang(selector) {
		for key, want := range map[string]string{
			"cluster-autoscaler.kubernetes.io/consume-provisioning-request": request, "cluster-autoscaler.kubernetes.io/provisioning-class-name": class,
			"autoscaling.x-k8s.io/consume-provisioning-request": request, "autoscaling.x-k8s.io/provisioning-class-name": class,
		} {
			if got := pod.Annotations[key]; got != want {
				s.t.Errorf("pod %s has %s %q, want %q", pod.Name, key, got, want)
			}
		}
	}
}

// gone waits until nothing is left of requests and their nodes.
func (s *scene) gone() {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, "no request, no template and no added node is left", s.nothingIsLeft)
}

func (s *scene) nothingIsLeft() (bool, string) { return s.scaler.NothingLeft(s.t, s.Namespace) }

const gpu = `{requests: {cpu: 100m, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}`

// stories are one job of each kind. Each pod that needs a GPU matches the selector.
var stories = []struct {
	kind, name, selector string
	resource             schema.GroupVersionResource
	pods                 int
	parameters           map[string]any
	manifest             string
}{
	{kind: "RayJob", name: "ray", selector: "gang=ray", resource: harness.RayJobs, pods: 3, parameters: map[string]any{"maxRunDurationSeconds": "600"}, manifest: `
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: ray, annotations: {provreq.kueue.x-k8s.io/maxRunDurationSeconds: "600"}}
spec:
  entrypoint: python train.py
  suspend: true
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    rayVersion: 2.52.0
    headGroupSpec:
      rayStartParams: {}
      template:
        metadata: {labels: {gang: ray}}
        spec: {containers: [{name: ray-head, image: rayproject/ray:2.52.0, resources: ` + gpu + `}]}
    workerGroupSpecs:
    - groupName: workers
      replicas: 2
      minReplicas: 2
      maxReplicas: 2
      rayStartParams: {}
      template:
        metadata: {labels: {gang: ray}}
        spec: {containers: [{name: ray-worker, image: rayproject/ray:2.52.0, resources: ` + gpu + `}]}
`},
	{kind: "PyTorchJob", name: "torch", selector: "gang=torch", resource: harness.PyTorchJobs, pods: 3, parameters: map[string]any{"maxRunDurationSeconds": "900"}, manifest: `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: torch, annotations: {scheduling.x-k8s.io/suspend: "true", scheduling.x-k8s.io/max-exec-time-seconds: "900"}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata: {labels: {gang: torch}}
        spec: {containers: [{name: pytorch, image: train, resources: ` + gpu + `}]}
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        metadata: {labels: {gang: torch}}
        spec: {containers: [{name: pytorch, image: train, resources: ` + gpu + `}]}
`},
	{kind: "TrainJob", name: "trainer", selector: "jobset.sigs.k8s.io/jobset-name=trainer", resource: trainJobs, pods: 2, manifest: `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: trainer, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: train, numNodes: 2, resourcesPerNode: ` + gpu + `}
`},
}

// There is no node with a GPU. No pod of the job exists until there are nodes for all its pods.
func TestAJobOfEachKindStartsWhenItsNodesAreThere(t *testing.T) {
	s := begin(t, "gangs")
	for _, story := range stories {
		t.Run(story.kind, func(t *testing.T) {
			s := &scene{t: t, Env: s.For(t), scaler: s.scaler}
			gangs.Follow(t, s.Kube, gangs.Gang{Name: story.name, Namespace: s.Namespace, Selector: story.selector, Pods: story.pods})
			s.answer(autoscaler.Never())
			s.Apply(story.manifest)
			s.says(story.kind, story.name, v1alpha1.PhaseReserved, "waits for an autoscaler")
			s.answer(autoscaler.NotProvisioned("the nodes are being added"))
			s.says(story.kind, story.name, v1alpha1.PhaseReserved, "NotProvisioned: the nodes are being added")
			s.shows(story.name, "ProvisioningPending", "NotProvisioned: the nodes are being added")
			s.answer(autoscaler.QuotaExceeded("no quota for GPUs in this region"))
			s.says(story.kind, story.name, v1alpha1.PhaseReserved, "QuotaExceeded: no quota for GPUs in this region")
			s.shows(story.name, "ProvisioningPending", "QuotaExceeded: no quota for GPUs in this region")
			if pods := s.Pods(story.name); len(pods) > 0 {
				t.Errorf("%d pods exist", len(pods))
			}
			requests := s.requests()
			if len(requests) != 1 {
				t.Fatalf("there are %d requests", len(requests))
			}
			parameters, _, _ := unstructured.NestedMap(requests[0].Object, "spec", "parameters")
			if fmt.Sprint(parameters) != fmt.Sprint(story.parameters) {
				t.Errorf("the parameters are %v, want %v", parameters, story.parameters)
			}
			s.answer(autoscaler.Provision())
			s.runs(story.selector, story.pods, requests[0].GetName())
			s.Delete(story.resource, story.name)
			s.gone()
		})
	}
}

// The unchanged manifest of a user. Its node has the labels and the taints that the manifest expects.
func TestTheJobOfTheAcceptanceFileGetsItsNode(t *testing.T) {
	s := begin(t, "default")
	s.answer(autoscaler.Provision())
	s.ApplyAsIs(s.Read("job-gpu.yaml"))
	s.WaitForPhase("Job", "sample-job", v1alpha1.PhaseRunning)
	requests := s.requests()
	if len(requests) != 1 {
		t.Fatalf("there are %d requests", len(requests))
	}
	parameters, _, _ := unstructured.NestedMap(requests[0].Object, "spec", "parameters")
	if parameters["maxRunDurationSeconds"] != "600" {
		t.Errorf("the parameters are %v", parameters)
	}
	s.runs("batch.kubernetes.io/job-name=sample-job", 1, requests[0].GetName())
	s.Finish(harness.Jobs, "sample-job")
	s.WaitForPhase("Job", "sample-job", v1alpha1.PhaseSucceeded)
	s.gone() // also if the job is kept
	s.ExpectFree()
}

// batch is a Job with 2 pods.
func batch(name string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: train, resources: ` + gpu + `}]
`
}

// The test goes through all ways in which an autoscaler can fail. Two jobs take turns, because the backoff of a job
// doubles.
func TestARequestThatFailsIsRepeated(t *testing.T) {
	s := begin(t, "failing")
	s.answer(autoscaler.Fail("NoStock", "there are no GPUs left"))
	s.Apply(batch("batch"))
	s.says("Job", "batch", v1alpha1.PhaseBackoff, "NoStock: there are no GPUs left")
	s.ExpectFree() // no quota is held meanwhile
	s.WaitForEvent("batch", "ProvisioningFailed")

	s.answer(autoscaler.Never())
	s.says("Job", "batch", v1alpha1.PhaseReserved, "waits for an autoscaler")
	requests := s.requests()
	if len(requests) != 1 || !strings.HasSuffix(requests[0].GetName(), "-nodes-2") {
		t.Fatalf("the requests are %v", requests)
	}
	harness.Must(t, s.Dynamic.Resource(autoscaler.Resource).Namespace(s.Namespace).Delete(t.Context(), requests[0].GetName(), metav1.DeleteOptions{}))
	s.says("Job", "batch", v1alpha1.PhaseBackoff, "was deleted")

	s.answer(autoscaler.Provision())
	s.WaitForPhase("Job", "batch", v1alpha1.PhaseRunning)
	s.runs("batch.kubernetes.io/job-name=batch", 2, strings.TrimSuffix(requests[0].GetName(), "2")+"3")
	s.Delete(harness.Jobs, "batch")
	s.gone()

	s.Apply(batch("running"))
	s.WaitForPhase("Job", "running", v1alpha1.PhaseRunning)
	first := s.requests()[0].GetName()
	s.runs("batch.kubernetes.io/job-name=running", 2, first)
	// The booking ends while the pods run, and nothing happens.
	s.answer(autoscaler.Expire())
	harness.Never(t, 3*time.Second, "the job is stopped", func() (bool, string) {
		unit := s.Unit("Job", "running")
		return unit.Status.Phase != v1alpha1.PhaseRunning || unit.Status.Attempts != 1, string(unit.Status.Phase)
	})
	s.answer(autoscaler.Revoke("maintenance"))
	s.WaitForEvent("running", "AdmissionCheckRetry")
	s.says("Job", "running", v1alpha1.PhaseBackoff, "maintenance")
	s.answer(autoscaler.Provision())
	harness.Eventually(t, 2*time.Minute, "it runs again", func() (bool, string) {
		unit := s.Unit("Job", "running")
		return unit.Status.Phase == v1alpha1.PhaseRunning && unit.Status.Attempts == 2, fmt.Sprintf("%s: %s", unit.Status.Phase, unit.Status.Message)
	})
	s.runs("batch.kubernetes.io/job-name=running", 2, strings.TrimSuffix(first, "1")+"2")
	s.Delete(harness.Jobs, "running")
	s.gone()
}

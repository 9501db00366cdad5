// Package standin tests that the checker of gangs, test/gangs, finds a gang that runs in part, with a real
// API server, the real scheduler, and the nodes of test/standin/autoscaler. The programs do not run.
package standin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

// patience is the timeout of waits.
const patience = time.Minute

var cluster *clustertest.Cluster

func TestMain(m *testing.M) {
	// The only node has room for one pod of a gang.
	clustertest.Main(m, clustertest.Options{Nodes: 1, NodeCPU: "1", Bare: true}, func(c *clustertest.Cluster) { cluster = c })
}

// scene is a namespace, and a stand-in that answers the requests there.
type scene struct {
	t         *testing.T
	namespace string
	client    kubernetes.Interface
	requests  dynamic.ResourceInterface
	scaler    *autoscaler.Autoscaler
}

func begin(t *testing.T) *scene {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config())
	harness.Must(t, err)
	requests, err := dynamic.NewForConfig(cluster.Config())
	harness.Must(t, err)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gang-"}}, metav1.CreateOptions{})
	harness.Must(t, err)
	s := &scene{
		t: t, namespace: namespace.Name, client: client, scaler: autoscaler.ForTest(t, cluster),
		requests: requests.Resource(autoscaler.Resource).Namespace(namespace.Name),
	}
	harness.Eventually(t, patience, "pods can be created", func() (bool, string) {
		_, err := client.CoreV1().ServiceAccounts(s.namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return s
}

func (s *scene) answer(answer autoscaler.Answer) {
	s.t.Helper()
	harness.Must(s.t, s.scaler.Answer(autoscaler.Rule{Namespace: s.namespace}, answer))
}

// request creates a request for pods of the template.
func (s *scene) request(name string, template corev1.PodTemplateSpec, count int32) {
	s.t.Helper()
	_, err := s.client.CoreV1().PodTemplates(s.namespace).Create(s.t.Context(), &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Template: template,
	}, metav1.CreateOptions{})
	harness.Must(s.t, err)
	request := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	request.SetGroupVersionKind(provisioningv1.SchemeGroupVersion.WithKind("ProvisioningRequest"))
	request.Spec.ProvisioningClassName = "queued.example.com"
	request.Spec.PodSets = []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: name}, Count: count}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	harness.Must(s.t, err)
	_, err = s.requests.Create(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	harness.Must(s.t, err)
}

func (s *scene) deleteRequest(name string) {
	s.t.Helper()
	harness.Must(s.t, s.requests.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// waitForNodes waits until there are n nodes that the stand-in has added.
func (s *scene) waitForNodes(n int) {
	s.t.Helper()
	harness.Eventually(s.t, patience, fmt.Sprintf("there are %d added nodes", n), func() (bool, string) {
		list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{LabelSelector: autoscaler.Label})
		harness.Must(s.t, err)
		return len(list.Items) == n, fmt.Sprint(len(list.Items))
	})
}

// worker is the template of the pods of a gang. A node has room for one.
func worker() corev1.PodTemplateSpec {
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"gang": "train"}, Annotations: map[string]string{harness.RunTime: "never"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
		},
	}
}

func (s *scene) createPods(template corev1.PodTemplateSpec, names ...string) {
	s.t.Helper()
	for _, name := range names {
		meta := *template.ObjectMeta.DeepCopy()
		meta.Name = name
		_, err := s.client.CoreV1().Pods(s.namespace).Create(s.t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: template.Spec}, metav1.CreateOptions{})
		harness.Must(s.t, err)
	}
}

func (s *scene) pods() []corev1.Pod {
	s.t.Helper()
	list, err := s.client.CoreV1().Pods(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	return list.Items
}

func (s *scene) waitForRunning(n int) {
	s.t.Helper()
	harness.Eventually(s.t, patience, fmt.Sprintf("%d pods run", n), func() (bool, string) {
		var running, others []string
		for _, pod := range s.pods() {
			if pod.Status.Phase == corev1.PodRunning {
				running = append(running, pod.Name)
			} else {
				others = append(others, pod.Name+" "+string(pod.Status.Phase))
			}
		}
		slices.Sort(others)
		return len(running) == n, fmt.Sprintf("running %v, others %v", running, others)
	})
}

func (s *scene) deletePods() {
	s.t.Helper()
	harness.Must(s.t, s.client.CoreV1().Pods(s.namespace).DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	s.waitForNoPods()
}

func (s *scene) waitForNoPods() {
	s.t.Helper()
	harness.Eventually(s.t, patience, "no pod is left", func() (bool, string) {
		left := len(s.pods())
		return left == 0, fmt.Sprint(left)
	})
}

// Package requests compares the requests of a pod as computed by pkg/requests with the same pod in the API server,
// which may refuse it. The programs do not run.
package requests

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var client kubernetes.Interface

func TestMain(m *testing.M) {
	clustertest.Main(m, clustertest.Options{Nodes: 1}, func(c *clustertest.Cluster) {
		client = kubernetes.NewForConfigOrDie(c.Config())
	})
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is the timeout of waits. It is multiplied on slow machines.
const patience = 30 * time.Second

// namespace has the LimitRanges of a namespace and the RuntimeClasses of the cluster, as stored. It
// is an input of requests.Pod.
type namespace struct {
	name    string
	ranges  []*corev1.LimitRange
	classes map[string]*nodev1.RuntimeClass
}

func (n *namespace) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	class, found := n.classes[name]
	return class, found
}

func (n *namespace) LimitRanges(string) []*corev1.LimitRange { return n.ranges }

// Rules have two types of GPUs.
func (n *namespace) Rules() requests.Rules {
	return requests.Rules{Types: map[corev1.ResourceName]requests.Types{"example.com/gpu": {
		Names:   map[string]map[string]corev1.ResourceName{"model": {"h100": "gpu/h100"}},
		Default: "gpu/any",
	}}}
}

func (n *namespace) ClaimTemplate(string, string) (*resourcev1.ResourceClaimSpec, bool) {
	return nil, false
}

func (n *namespace) Claim(string, string) (*resourcev1.ResourceClaimSpec, bool) { return nil, false }

// begin creates a namespace with LimitRanges of these items, and waits until they are in effect.
func begin(t *testing.T, ranges ...string) *namespace {
	t.Helper()
	created, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "requests-"},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, client.CoreV1().Namespaces().Delete(context.Background(), created.Name, metav1.DeleteOptions{}))
	})
	n := &namespace{name: created.Name, classes: classes(t)}
	for i, items := range ranges {
		n.addRange(t, i, items)
	}
	n.settle(t)
	return n
}

// mark is a resource for which a LimitRange has a default request of 0, which shows that the
// LimitRange is in effect.
func mark(i int) corev1.ResourceName {
	return corev1.ResourceName(fmt.Sprintf("kube-queue.dev/range-%d", i))
}

func (n *namespace) addRange(t *testing.T, i int, items string) {
	t.Helper()
	limitRange := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("range-%d", i)}}
	must(t, yaml.UnmarshalStrict([]byte(items), &limitRange.Spec.Limits))
	for j := range limitRange.Spec.Limits {
		item := &limitRange.Spec.Limits[j]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		if item.Default == nil {
			item.Default = corev1.ResourceList{}
		}
		item.Default[mark(i)] = resource.Quantity{}
	}
	created, err := client.CoreV1().LimitRanges(n.name).Create(t.Context(), limitRange, metav1.CreateOptions{})
	must(t, err)
	n.ranges = append(n.ranges, created)
}

// settle waits until pods can be created and all LimitRanges are in effect.
func (n *namespace) settle(t *testing.T) {
	t.Helper()
	harness.Eventually(t, patience, "the namespace is ready", func() (bool, string) {
		pod, err := client.CoreV1().Pods(n.name).Create(t.Context(), n.pod(probe()), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err.Error()
		}
		for i := range n.ranges {
			if _, given := pod.Spec.Containers[0].Resources.Limits[mark(i)]; !given {
				return false, fmt.Sprintf("LimitRange %d is not in effect", i)
			}
		}
		return true, ""
	})
}

// probe returns a pod that all LimitRanges of the tests admit.
func probe() corev1.PodSpec {
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe", Resources: corev1.ResourceRequirements{Limits: amounts}}}}
}

// pod returns a pod that no scheduler handles.
func (n *namespace) pod(spec corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: n.name}, Spec: *spec.DeepCopy()}
	pod.Spec.SchedulerName = "none"
	return pod
}

// create returns the stored pod, or the error.
func (n *namespace) create(ctx context.Context, spec corev1.PodSpec) (pod *corev1.Pod, refused, err error) {
	created, err := client.CoreV1().Pods(n.name).Create(ctx, n.pod(spec), metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return nil, err, nil
	case err != nil:
		return nil, nil, err
	}
	pod, err = client.CoreV1().Pods(n.name).Get(ctx, created.Name, metav1.GetOptions{})
	return pod, nil, err
}

// classes creates the RuntimeClasses of the tests if they do not exist.
func classes(t *testing.T) map[string]*nodev1.RuntimeClass {
	t.Helper()
	made := map[string]*nodev1.RuntimeClass{}
	for name, overhead := range map[string]*nodev1.Overhead{
		"plain": nil,
		"h100":  nil,
		"tiny":  {PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100u")}},
		"sandbox": {PodFixed: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
	} {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name, Overhead: overhead}
		if name == "h100" {
			class.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"model": "h100", "zone": "a"}}
		}
		_, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		made[name], err = client.NodeV1().RuntimeClasses().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
	}
	return made
}

package autoscaler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

const namespace = "research"

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// scene is an Autoscaler with fake clients, whose loop the test runs.
type scene struct {
	*Autoscaler
	t       *testing.T
	kube    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	clock   *testingclock.FakePassiveClock
	// kubelets make created nodes ready.
	kubelets bool
	// written are the conditions that were written, by request.
	written map[string][]string
	known   map[string]map[string]metav1.Condition
	created int
}

func begin(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		t: t, kube: fake.NewClientset(), clock: testingclock.NewFakePassiveClock(start), kubelets: true,
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{Resource: "ProvisioningRequestList"}),
		written: map[string][]string{}, known: map[string]map[string]metav1.Condition{},
	}
	s.kube.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		node := action.(clienttesting.CreateAction).GetObject().(*corev1.Node)
		node.UID = types.UID(node.Name)
		if s.kubelets {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}
		return false, nil, nil
	})
	s.dynamic.PrependReactor("update", Resource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" {
			return true, nil, fmt.Errorf("a write that is not to the status")
		}
		s.record(action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured))
		return false, nil, nil
	})
	s.Autoscaler = newAutoscaler(s.dynamic, s.kube, s.clock)
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// record notes the conditions of a write that differ from those before.
func (s *scene) record(object *unstructured.Unstructured) {
	request := s.typed(object)
	known := s.known[request.Name]
	if known == nil {
		known = map[string]metav1.Condition{}
		s.known[request.Name] = known
	}
	for _, condition := range request.Status.Conditions {
		if known[condition.Type] != condition {
			known[condition.Type] = condition
			s.written[request.Name] = append(s.written[request.Name], fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason))
		}
	}
}

func (s *scene) typed(object *unstructured.Unstructured) *provisioningv1.ProvisioningRequest {
	request := &provisioningv1.ProvisioningRequest{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, request))
	return request
}

// template creates a pod template.
func (s *scene) template(name string, change func(*corev1.PodSpec), requests ...string) {
	s.t.Helper()
	object := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	object.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "busybox"}}
	object.Template.Spec.Containers[0].Resources.Requests = amounts(requests...)
	if change != nil {
		change(&object.Template.Spec)
	}
	_, err := s.kube.CoreV1().PodTemplates(namespace).Create(s.t.Context(), object, metav1.CreateOptions{})
	s.must(err)
}

// amounts returns pairs of names and amounts as a list.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

func set(template string, count int32) provisioningv1.PodSet {
	return provisioningv1.PodSet{PodTemplateRef: provisioningv1.Reference{Name: template}, Count: count}
}

// request creates a request, a second after the one before.
func (s *scene) request(name string, sets ...provisioningv1.PodSet) {
	s.t.Helper()
	s.created++
	request := &provisioningv1.ProvisioningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(start.Add(time.Duration(s.created) * time.Second)),
		},
		Spec: provisioningv1.ProvisioningRequestSpec{ProvisioningClassName: "queued.example.com", PodSets: sets},
	}
	request.SetGroupVersionKind(provisioningv1.SchemeGroupVersion.WithKind("ProvisioningRequest"))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	s.must(err)
	_, err = s.requestClient().Create(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	s.must(err)
}

func (s *scene) requestClient() dynamic.ResourceInterface {
	return s.dynamic.Resource(Resource).Namespace(namespace)
}

func (s *scene) deleteRequest(name string) {
	s.t.Helper()
	s.must(s.requestClient().Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

func (s *scene) answer(rule Rule, answer Answer) {
	s.t.Helper()
	s.must(s.Answer(rule, answer))
}

// settle runs the loop until it writes nothing.
func (s *scene) settle() {
	s.t.Helper()
	for range 100 {
		s.readCaches()
		s.kube.ClearActions()
		s.dynamic.ClearActions()
		s.must(s.sync(s.t.Context()))
		if len(s.kube.Actions())+len(s.dynamic.Actions()) == 0 {
			return
		}
	}
	s.t.Fatal("the loop does not end")
}

// readCaches fills the caches of the Autoscaler.
func (s *scene) readCaches() {
	s.t.Helper()
	ctx, all := s.t.Context(), metav1.ListOptions{}
	s.requests = cache.NewGenericLister(s.indexed(s.requestClient().List(ctx, all)), Resource.GroupResource())
	s.nodes = corelisters.NewNodeLister(s.indexed(s.kube.CoreV1().Nodes().List(ctx, all)))
	s.pods = corelisters.NewPodLister(s.indexed(s.kube.CoreV1().Pods("").List(ctx, all)))
	s.templates = corelisters.NewPodTemplateLister(s.indexed(s.kube.CoreV1().PodTemplates("").List(ctx, all)))
}

// indexed returns a cache with the objects of a list.
func (s *scene) indexed(list runtime.Object, err error) cache.Indexer {
	s.t.Helper()
	s.must(err)
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	s.must(meta.EachListItem(list, func(object runtime.Object) error { return indexer.Add(object) }))
	return indexer
}

func (s *scene) allNodes() []corev1.Node {
	s.t.Helper()
	nodes, err := s.kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	return nodes.Items
}

// expect compares all conditions that were written to a request.
func (s *scene) expect(request string, want ...string) {
	s.t.Helper()
	if got := s.written[request]; !slices.Equal(got, want) {
		s.t.Errorf("request %s got the conditions\n%q, want\n%q", request, got, want)
	}
}

// expectMessage compares the message of a condition.
func (s *scene) expectMessage(request, condition, want string) {
	s.t.Helper()
	if got := s.known[request][condition].Message; got != want {
		s.t.Errorf("condition %s of request %s has the message %q, want %q", condition, request, got, want)
	}
}

// expectNodes compares the number of nodes of each request.
func (s *scene) expectNodes(want map[string]int) {
	s.t.Helper()
	got := map[string]int{}
	for _, node := range s.allNodes() {
		if uid := requestOf(&node); uid != "" {
			got[string(uid)[len("uid-"):]]++
		}
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("the requests have the nodes %v, want %v", got, want)
	}
}

// pod creates a running pod on a node.
func (s *scene) pod(name, node string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name)}}
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	_, err := s.kube.CoreV1().Pods(namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

func (s *scene) hasPod(name string) bool {
	s.t.Helper()
	_, err := s.kube.CoreV1().Pods(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		s.must(err)
	}
	return err == nil
}

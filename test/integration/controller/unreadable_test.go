package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// patience is the timeout of waits. It is multiplied on slow machines.
const patience = 30 * time.Second

// stage is a namespace with a quota tree of 4 cpu.
type stage struct {
	*testing.T
	namespace string
	units     dynamic.ResourceInterface
	objects   dynamic.Interface
	kube      kubernetes.Interface
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t}
	var err error
	s.objects, err = dynamic.NewForConfig(cluster.Config())
	must(t, err)
	s.kube, err = kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	namespace, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "units-"}}, metav1.CreateOptions{})
	must(t, err)
	s.namespace = namespace.Name
	s.units = s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(s.namespace)
	s.create(s.trees(), `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: tree},
		spec: {root: {name: root, max: {cpu: 4}, namespaces: [`+s.namespace+`]}}}`)
	t.Cleanup(func() {
		must(t, s.trees().Delete(context.Background(), "tree", metav1.DeleteOptions{}))
		must(t, s.units.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		must(t, s.queues().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	return s
}

func (s *stage) trees() dynamic.ResourceInterface {
	return s.objects.Resource(quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")).Namespace(quotav1beta1.TreeNamespace)
}

func (s *stage) queues() dynamic.ResourceInterface {
	return s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queues")).Namespace(clustertest.Namespace)
}

func (s *stage) create(in dynamic.ResourceInterface, text string) {
	s.Helper()
	object := &unstructured.Unstructured{}
	must(s.T, yaml.Unmarshal([]byte(text), &object.Object))
	_, err := in.Create(s.Context(), object, metav1.CreateOptions{})
	must(s.T, err)
}

// unit creates a unit for an object that does not exist.
func (s *stage) unit(name, spec string) {
	s.Helper()
	s.create(s.units, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: `+name+`},
		spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, `+spec+`}}`)
}

func (s *stage) patch(name, patch string, subresources ...string) {
	s.Helper()
	_, err := s.units.Patch(s.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	must(s.T, err)
}

func (s *stage) status(name, field string) string {
	s.Helper()
	unit, err := s.units.Get(s.Context(), name, metav1.GetOptions{})
	must(s.T, err)
	text, _, _ := unstructured.NestedString(unit.Object, "status", field)
	return text
}

// eventually waits until check returns "".
func (s *stage) eventually(what string, check func() string) {
	s.Helper()
	harness.Eventually(s.T, patience, what, func() (bool, string) {
		wrong := check()
		return wrong == "", wrong
	})
}

func (s *stage) becomes(name, field, want string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s of %s is %s", field, name, want), func() string {
		if is := s.status(name, field); is != want {
			return fmt.Sprintf("it is %q: %s", is, s.status(name, "message"))
		}
		return ""
	})
}

func (s *stage) says(name, want string) {
	s.Helper()
	if is := s.status(name, "message"); is != want {
		s.Errorf("%s says %q, want %q", name, is, want)
	}
}

func (s *stage) end(name string) {
	s.Helper()
	s.patch(name, `{"status": {"phase": "Succeeded"}}`, "status")
}

// warnings returns the warnings about a unit.
func (s *stage) warnings(name string) []corev1.Event {
	s.Helper()
	list, err := s.kube.CoreV1().Events(s.namespace).List(s.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=QueueUnit,involvedObject.name=" + name + ",type=Warning"})
	must(s.T, err)
	return list.Items
}

func (s *stage) isReported(name string, number int, says string) {
	s.Helper()
	s.eventually("a warning about "+name, func() string {
		found := s.warnings(name)
		if len(found) == number && found[number-1].Reason == "UnreadableUnit" && strings.Contains(found[number-1].Message, says) {
			return ""
		}
		return fmt.Sprintf("%d events: %v", len(found), found)
	})
}

func (s *stage) used(want string) {
	s.Helper()
	s.eventually("the tree has "+want+" cpu used", func() string {
		tree, err := s.trees().Get(s.Context(), "tree", metav1.GetOptions{})
		must(s.T, err)
		nodes, _, _ := unstructured.NestedSlice(tree.Object, "status", "nodes")
		if len(nodes) == 0 {
			return "it has no status"
		}
		used, _, _ := unstructured.NestedFieldNoCopy(nodes[0].(map[string]any), "used", "cpu")
		if is := fmt.Sprint(used); is != want {
			return is
		}
		return ""
	})
}

func TestUnreadableUnitsDoNotBlockOthers(t *testing.T) {
	withoutUnitPolicy(t)
	s := newStage(t)
	bad := map[string]struct{ spec, says string }{
		"broken":  {`resource: {cpu: "1e1.5"}`, `spec.resource.cpu: "1e1.5"`},
		"slow":    {`resource: {cpu: "1e-1000000000"}`, `spec.resource.cpu: "1e-1000000000"`},
		"untimed": {`submissionTime: "2026-01-01T00:00:00Z", resource: {cpu: 1}`, "spec.submissionTime: "},
		"podsets": {`resource: {cpu: 1}, podSets: [{name: a, count: 1, requests: {cpu: "1e1.5"}}]`, "spec.podSets[0].requests.cpu: "},
	}
	// Some units exist before the controller lists them, and others are created while it watches.
	s.eventually("the policy is gone", func() string {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: probe},
			spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: "1e1.5"}}}`), &object.Object))
		if _, err := s.units.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return err.Error()
		}
		return ""
	})
	s.unit("broken", bad["broken"].spec)
	s.unit("slow", bad["slow"].spec)
	s.unit("first", `resource: {cpu: 3}`)
	stop := startController(t)
	s.becomes("first", "phase", "Dequeued")
	s.unit("untimed", bad["untimed"].spec)
	s.unit("podsets", bad["podsets"].spec)
	s.unit("second", `resource: {cpu: 2}`)
	s.becomes("second", "reason", "QuotaExceeded")
	for name, unit := range bad {
		s.isReported(name, 1, unit.says)
		s.becomes(name, "reason", "InvalidRequest")
		if phase, message := s.status(name, "phase"), s.status(name, "message"); phase != "Enqueued" || !strings.Contains(message, unit.says) {
			t.Errorf("unit %s is %s and says %q", name, phase, message)
		}
	}

	// A unit that became unreadable keeps its quota until its end.
	s.used("3")
	s.patch("first", `{"spec": {"resource": {"cpu": "1e1.5"}}}`)
	s.isReported("first", 1, `spec.resource.cpu: "1e1.5"`)
	s.unit("third", `resource: {cpu: 2}`) // it would fit beside second without first
	s.becomes("third", "reason", "QuotaExceeded")
	s.used("3")
	s.becomes("second", "phase", "Enqueued")
	must(t, s.units.Delete(t.Context(), "third", metav1.DeleteOptions{}))
	s.end("first")
	s.becomes("second", "phase", "Dequeued")
	s.used("2")

	// The next process reports nothing twice, and charges the same.
	stop()
	startController(t)
	s.patch("broken", `{"spec": {"resource": {"cpu": "2"}}}`)
	s.becomes("broken", "phase", "Dequeued")
	s.used("4")
	for name := range bad {
		s.isReported(name, 1, bad[name].says)
	}

	// The policy allows changes of the metadata of such a unit, and its end.
	must(t, cluster.Install(t.Context()))
	s.patch("slow", `{"metadata": {"labels": {"a": "b"}, "finalizers": []}}`)
	s.patch("slow", `{"status": {"phase": "Failed"}}`, "status")
	if _, err := s.units.Patch(t.Context(), "slow", types.MergePatchType, []byte(`{"spec": {"resource": {"cpu": "1e2.5"}}}`), metav1.PatchOptions{}); err == nil {
		t.Error("the policy is not back")
	}
}

// Earlier schemas accepted durations that Go cannot parse, such as days.
func TestADurationThatCannotBeReadIsNotSet(t *testing.T) {
	s := newStage(t)
	queue := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: root}, spec: {stop: Hold, reserveAfter: 2d}}`), &queue.Object))
	if _, err := s.queues().Create(t.Context(), queue, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "should match") {
		t.Fatalf("the API server does not refuse the duration: %v", err)
	}
	crds := s.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const at = `"path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/reserveAfter/pattern"`
	change := func(ctx context.Context, operations string) {
		_, err := crds.Patch(ctx, "queues.scheduling.x-k8s.io", types.JSONPatchType, []byte("["+operations+"]"), metav1.PatchOptions{})
		must(t, err)
	}
	change(t.Context(), `{"op": "copy", "from": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/reserveAfter/pattern",
		"path": "/metadata/annotations/pattern"}, {"op": "remove", `+at+`}`)
	t.Cleanup(func() {
		change(context.Background(), `{"op": "move", "from": "/metadata/annotations/pattern", `+at+`}`)
	})
	s.eventually("the former schema is in force", func() string {
		if _, err := s.queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	s.unit("held", `resource: {cpu: 1}`)
	startController(t)
	s.becomes("held", "reason", "QueueStopped")
	_, err := s.queues().Patch(t.Context(), "root", types.MergePatchType, []byte(`{"spec": {"stop": "None"}}`), metav1.PatchOptions{})
	must(t, err)
	s.becomes("held", "phase", "Dequeued")
}

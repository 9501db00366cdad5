package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/audit"
)

var (
	tfjobs      = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	pytorchjobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	trees       = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1beta1", Resource: "elasticquotatrees"}
)

// lab is what one test works with: a namespace and clients. Its cleanup removes
// every job, tree and unit, and has the audit log checked.
type lab struct {
	t         testing.TB
	namespace string
	dynamic   dynamic.Interface
	kube      kubernetes.Interface
	queue     versioned.Interface
	audit     audit.Options
	// allowed are the checks that the test breaks on purpose.
	allowed []string
}

// newLab works in the namespace, which is made if it is not there.
func newLab(t testing.TB, namespace string) *lab {
	t.Helper()
	config := cluster.Config()
	l := &lab{t: t, namespace: namespace}
	var err error
	l.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	l.kube, err = kubernetes.NewForConfig(config)
	must(t, err)
	l.queue, err = versioned.NewForConfig(config)
	must(t, err)
	l.ensureNamespace(namespace)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.clean(ctx)
		l.check(ctx)
	})
	return l
}

func (l *lab) ensureNamespace(name string) {
	l.t.Helper()
	out, err := cluster.KubectlWith(l.t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
}

// clean removes what the test has made, programs still running or not.
func (l *lab) clean(ctx context.Context) {
	l.t.Helper()
	background := metav1.DeletePropagationBackground
	for _, resource := range []schema.GroupVersionResource{tfjobs, pytorchjobs, jobs} {
		err := l.dynamic.Resource(resource).Namespace(l.namespace).
			DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		must(l.t, err)
	}
	must(l.t, l.dynamic.Resource(trees).Namespace("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		units, err := l.queue.SchedulingV1alpha1().QueueUnits(l.namespace).List(ctx, metav1.ListOptions{})
		must(l.t, err)
		pods, err := l.kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
		must(l.t, err)
		if len(units.Items)+len(pods.Items) == 0 {
			return
		}
		for _, unit := range units.Items {
			if len(unit.OwnerReferences) == 0 { // made by hand, or orphaned
				must(l.t, ignoreNotFound(l.queue.SchedulingV1alpha1().QueueUnits(l.namespace).Delete(ctx, unit.Name, metav1.DeleteOptions{})))
			}
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("%d units and %d pods are left after the test", len(units.Items), len(pods.Items))
		case <-tick.C:
		}
	}
}

// judged holds what was found in the log at the end of each test so far: the log
// is one for all tests, and a test answers for what came in its own time.
var judged = map[string]bool{}

// check has the independent checker read the log of everything so far.
func (l *lab) check(ctx context.Context) {
	l.t.Helper()
	log := l.log(ctx)
	report, err := log.Check(l.audit)
	must(l.t, err)
	for _, v := range report.Violations() {
		key := fmt.Sprint(v.Rule, v.Object, v.Revision)
		if !judged[key] && !slices.Contains(l.allowed, v.Check) {
			l.t.Errorf("the audit log is not clean: %v", v)
		}
		judged[key] = true
	}
	if l.audit.Oversell == "" {
		return
	}
	report, err = log.Check(audit.Options{}) // as the tests after this one do
	must(l.t, err)
	for _, v := range report.Violations() {
		judged[fmt.Sprint(v.Rule, v.Object, v.Revision)] = true
	}
}

// log is the audit log up to now.
func (l *lab) log(ctx context.Context) *audit.Log {
	l.t.Helper()
	marker, err := l.kube.CoreV1().ConfigMaps("default").Create(ctx,
		configMap(fmt.Sprintf("marker-%d", time.Now().UnixNano())), metav1.CreateOptions{})
	must(l.t, err)
	must(l.t, audit.WaitFor(ctx, cluster.AuditLog, audit.Marker{Namespace: marker.Namespace, Name: marker.Name}))
	log, err := audit.ReadFile(cluster.AuditLog)
	must(l.t, err)
	return log
}

// apply applies a manifest in the lab's namespace.
func (l *lab) apply(manifest string) {
	l.t.Helper()
	if out, err := cluster.KubectlWith(l.t.Context(), manifest, "-n", l.namespace, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

// create is for manifests that carry generateName; it returns the object's name.
func (l *lab) create(manifest string) string {
	l.t.Helper()
	out, err := cluster.KubectlWith(l.t.Context(), manifest, "-n", l.namespace, "create", "-o", "name", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
	_, name, _ := strings.Cut(strings.TrimSpace(out), "/")
	return name
}

func (l *lab) read(file string) string {
	l.t.Helper()
	text, err := os.ReadFile(acceptance(file))
	must(l.t, err)
	return string(text)
}

// tree puts a tree of one group in force: the lab's namespace with this max.
func (l *lab) tree(max string) {
	l.treeOf("{name: team, namespaces: [" + l.namespace + "], max: " + max + "}")
}

// treeOf puts a tree with these children in force.
func (l *lab) treeOf(children ...string) {
	l.t.Helper()
	l.apply0("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: root, children: [" + strings.Join(children, ", ") + "]}}\n")
}

// apply0 applies what names its namespace itself.
func (l *lab) apply0(manifest string) {
	l.t.Helper()
	if out, err := cluster.KubectlWith(l.t.Context(), manifest, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

func (l *lab) object(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.t.Helper()
	object, err := l.dynamic.Resource(resource).Namespace(l.namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	must(l.t, err)
	return object
}

// state is what kubectl shows in the column STATE of a kubeflow job.
func (l *lab) state(resource schema.GroupVersionResource, name string) string {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.object(resource, name).Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	kind, _ := conditions[len(conditions)-1].(map[string]any)["type"].(string)
	return kind
}

// hasCondition tells whether a condition of the object is True.
func (l *lab) hasCondition(resource schema.GroupVersionResource, name, condition string) bool {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.object(resource, name).Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
			return true
		}
	}
	return false
}

// unit of a job; nil when there is none.
func (l *lab) unit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	units, err := l.queue.SchedulingV1alpha1().QueueUnits(l.namespace).List(l.t.Context(), metav1.ListOptions{})
	must(l.t, err)
	for i := range units.Items {
		if ref := units.Items[i].Spec.ConsumerRef; ref.Kind == kind && ref.Name == name {
			return &units.Items[i]
		}
	}
	return nil
}

func (l *lab) waitForState(resource schema.GroupVersionResource, name string, states ...string) {
	l.t.Helper()
	eventually(l.t, time.Minute, fmt.Sprintf("%s is %v", name, states), func() (bool, string) {
		state := l.state(resource, name)
		return slices.Contains(states, state), state
	})
}

func (l *lab) waitForPhase(kind, name string, phases ...schedulingv1alpha1.QueueUnitPhase) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s is %v", kind, name, phases), func() (bool, string) {
		unit = l.unit(kind, name)
		if unit == nil {
			return false, "there is no unit"
		}
		phase := unit.Status.Phase
		if phase == "" {
			phase = schedulingv1alpha1.PhaseEnqueued
		}
		return slices.Contains(phases, phase), fmt.Sprintf("%s %s: %s", phase, unit.Status.Reason, unit.Status.Message)
	})
	return unit
}

func (l *lab) waitForReason(kind, name, reason string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s waits for reason %s", kind, name, reason), func() (bool, string) {
		if unit = l.unit(kind, name); unit == nil {
			return false, "there is no unit"
		}
		return unit.Status.Reason == reason, fmt.Sprintf("%s %s: %s", unit.Status.Phase, unit.Status.Reason, unit.Status.Message)
	})
	return unit
}

// events about an object, by reason.
func (l *lab) events(name, reason string) []corev1.Event {
	l.t.Helper()
	list, err := l.kube.CoreV1().Events(l.namespace).List(l.t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
	must(l.t, err)
	return list.Items
}

func (l *lab) allEvents(name string) []corev1.Event {
	l.t.Helper()
	list, err := l.kube.CoreV1().Events(l.namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	must(l.t, err)
	return list.Items
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (l *lab) waitForEvent(name, reason string) corev1.Event {
	l.t.Helper()
	var found []corev1.Event
	eventually(l.t, 30*time.Second, fmt.Sprintf("there is an event %s about %s", reason, name), func() (bool, string) {
		found = l.events(name, reason)
		return len(found) > 0, "none"
	})
	return found[0]
}

// pods that belong to a job, by the operators' naming.
func (l *lab) pods(job string) []corev1.Pod {
	l.t.Helper()
	list, err := l.kube.CoreV1().Pods(l.namespace).List(l.t.Context(), metav1.ListOptions{})
	must(l.t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, job+"-") })
}

func (l *lab) patch(resource schema.GroupVersionResource, name, patch string) {
	l.t.Helper()
	out, err := cluster.Kubectl(l.t.Context(), "-n", l.namespace, "patch", resource.Resource+"."+resource.Group, name, "--type=merge", "-p", patch)
	if err != nil {
		l.t.Fatal(err, out)
	}
}

func (l *lab) ended(kind, name string) bool {
	unit := l.unit(kind, name)
	return unit != nil && unit.Status.Phase.Ended()
}

// expectFree waits until the tree's status says that nothing is used.
func (l *lab) expectFree() {
	l.t.Helper()
	eventually(l.t, 30*time.Second, "the quota is free", l.free)
}

// free tells whether the tree's status says that nothing is used.
func (l *lab) free() (bool, string) {
	l.t.Helper()
	tree, err := l.dynamic.Resource(trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	must(l.t, err)
	nodes, _, _ := unstructured.NestedSlice(tree.Object, "status", "nodes")
	for _, n := range nodes {
		node := n.(map[string]any)
		if used, ok := node["used"].(map[string]any); ok && len(used) > 0 {
			return false, fmt.Sprint(node)
		}
		if jobs, _, _ := unstructured.NestedInt64(node, "jobs"); jobs != 0 {
			return false, fmt.Sprint(node)
		}
	}
	return len(nodes) > 0, "the tree has no status"
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// eventuallyQuiet waits without a word for what may take some time each time.
func eventuallyQuiet(t testing.TB, done func() bool) {
	t.Helper()
	eventually(t, 2*time.Minute, "the program is killed or the story has ended", func() (bool, string) { return done(), "neither" })
}

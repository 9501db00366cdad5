package lab

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

// Lab is what one test works with: a namespace and clients. Its cleanup removes
// every job, tree and unit, and has the audit log checked.
type Lab struct {
	Namespace string
	Dynamic   dynamic.Interface
	Kube      kubernetes.Interface
	Queue     versioned.Interface
	Audit     audit.Options
	// Allowed are the checks that the test breaks on purpose.
	Allowed []string

	t    testing.TB
	site *Site
}

// Lab works in the namespace, which is made if it is not there.
func (s *Site) Lab(t testing.TB, namespace string) *Lab {
	t.Helper()
	l := s.lab(t, namespace)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.Clean(ctx)
		l.Check(ctx)
	})
	return l
}

// Part is a lab for a part of a test, in a namespace of its own. The tree and the
// check of the audit log are the whole test's.
func (s *Site) Part(t testing.TB, namespace string) *Lab {
	t.Helper()
	l := s.lab(t, namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.clearJobs(ctx)
		l.waitForNothing(ctx)
	})
	return l
}

func (s *Site) lab(t testing.TB, namespace string) *Lab {
	t.Helper()
	config := s.Config()
	l := &Lab{t: t, site: s, Namespace: namespace}
	var err error
	l.Dynamic, err = dynamic.NewForConfig(config)
	Must(t, err)
	l.Kube, err = kubernetes.NewForConfig(config)
	Must(t, err)
	l.Queue, err = versioned.NewForConfig(config)
	Must(t, err)
	l.EnsureNamespace(namespace)
	return l
}

// EnsureNamespace makes the namespace if it is not there.
func (l *Lab) EnsureNamespace(name string) {
	l.t.Helper()
	out, err := l.site.KubectlWith(l.t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
}

// Clean removes what the test has made, programs still running or not.
func (l *Lab) Clean(ctx context.Context) {
	l.t.Helper()
	l.clearJobs(ctx)
	Must(l.t, l.Dynamic.Resource(trees).Namespace("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	l.waitForNothing(ctx)
}

func (l *Lab) clearJobs(ctx context.Context) {
	l.t.Helper()
	background := metav1.DeletePropagationBackground
	for _, resource := range allJobs {
		// Not every kind is served.
		Must(l.t, ignoreNotFound(l.Dynamic.Resource(resource).Namespace(l.Namespace).
			DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})))
	}
}

// waitForNothing waits until no unit and no pod is left.
func (l *Lab) waitForNothing(ctx context.Context) {
	l.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(ctx, metav1.ListOptions{})
		Must(l.t, err)
		pods, err := l.Kube.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
		Must(l.t, err)
		if len(units.Items)+len(pods.Items) == 0 {
			return
		}
		for _, unit := range units.Items {
			if len(unit.OwnerReferences) == 0 { // made by hand, or orphaned
				Must(l.t, ignoreNotFound(l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).Delete(ctx, unit.Name, metav1.DeleteOptions{})))
			}
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("%d units and %d pods are left after the test", len(units.Items), len(pods.Items))
		case <-tick.C:
		}
	}
}

// Check has the independent checker read the log of everything so far.
func (l *Lab) Check(ctx context.Context) {
	l.t.Helper()
	log := l.Log(ctx)
	report, err := log.Check(l.Audit)
	Must(l.t, err)
	for _, v := range report.Violations() {
		key := fmt.Sprint(v.Rule, v.Object, v.Revision)
		if !l.site.judged[key] && !slices.Contains(l.Allowed, v.Check) {
			l.t.Errorf("the audit log is not clean: %v", v)
		}
		l.site.judged[key] = true
	}
	if l.Audit.Oversell == "" {
		return
	}
	report, err = log.Check(audit.Options{}) // as the tests after this one do
	Must(l.t, err)
	for _, v := range report.Violations() {
		l.site.judged[fmt.Sprint(v.Rule, v.Object, v.Revision)] = true
	}
}

// Log is the audit log up to now.
func (l *Lab) Log(ctx context.Context) *audit.Log {
	l.t.Helper()
	marker, err := l.Kube.CoreV1().ConfigMaps("default").Create(ctx,
		ConfigMap(fmt.Sprintf("marker-%d", time.Now().UnixNano())), metav1.CreateOptions{})
	Must(l.t, err)
	Must(l.t, audit.WaitFor(ctx, l.site.AuditLog, audit.Marker{Namespace: marker.Namespace, Name: marker.Name}))
	log, err := audit.ReadFile(l.site.AuditLog)
	Must(l.t, err)
	return log
}

// Apply applies a manifest in the lab's namespace.
func (l *Lab) Apply(manifest string) {
	l.t.Helper()
	if out, err := l.site.KubectlWith(l.t.Context(), manifest, "-n", l.Namespace, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

// Create is for manifests that carry generateName; it returns the object's name.
func (l *Lab) Create(manifest string) string {
	l.t.Helper()
	out, err := l.site.KubectlWith(l.t.Context(), manifest, "-n", l.Namespace, "create", "-o", "name", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
	_, name, _ := strings.Cut(strings.TrimSpace(out), "/")
	return name
}

func (l *Lab) Read(file string) string {
	l.t.Helper()
	text, err := os.ReadFile(l.site.Acceptance(file))
	Must(l.t, err)
	return string(text)
}

// Tree puts a tree of one group in force: the lab's namespace with this max.
func (l *Lab) Tree(max string) {
	l.TreeOf("{name: team, namespaces: [" + l.Namespace + "], max: " + max + "}")
}

// TreeOf puts a tree with these children in force.
func (l *Lab) TreeOf(children ...string) {
	l.t.Helper()
	l.ApplyAsIs("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: root, children: [" + strings.Join(children, ", ") + "]}}\n")
}

// ApplyAsIs applies what names its namespace itself.
func (l *Lab) ApplyAsIs(manifest string) {
	l.t.Helper()
	if out, err := l.site.KubectlWith(l.t.Context(), manifest, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

func (l *Lab) Object(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.t.Helper()
	object, err := l.Dynamic.Resource(resource).Namespace(l.Namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	Must(l.t, err)
	return object
}

// State is what kubectl shows in the column STATE of a kubeflow job.
func (l *Lab) State(resource schema.GroupVersionResource, name string) string {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.Object(resource, name).Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	kind, _ := conditions[len(conditions)-1].(map[string]any)["type"].(string)
	return kind
}

// HasCondition tells whether a condition of the object is True.
func (l *Lab) HasCondition(resource schema.GroupVersionResource, name, condition string) bool {
	l.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(l.Object(resource, name).Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
			return true
		}
	}
	return false
}

// Unit of a job; nil when there is none.
func (l *Lab) Unit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	for i := range units.Items {
		if ref := units.Items[i].Spec.ConsumerRef; ref.Kind == kind && ref.Name == name {
			return &units.Items[i]
		}
	}
	return nil
}

func (l *Lab) WaitForState(resource schema.GroupVersionResource, name string, states ...string) {
	l.t.Helper()
	Eventually(l.t, time.Minute, fmt.Sprintf("%s is %v", name, states), func() (bool, string) {
		state := l.State(resource, name)
		return slices.Contains(states, state), state
	})
}

func (l *Lab) WaitForPhase(kind, name string, phases ...schedulingv1alpha1.QueueUnitPhase) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s is %v", kind, name, phases), func() (bool, string) {
		unit = l.Unit(kind, name)
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

func (l *Lab) WaitForReason(kind, name, reason string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s waits for reason %s", kind, name, reason), func() (bool, string) {
		if unit = l.Unit(kind, name); unit == nil {
			return false, "there is no unit"
		}
		return unit.Status.Reason == reason, fmt.Sprintf("%s %s: %s", unit.Status.Phase, unit.Status.Reason, unit.Status.Message)
	})
	return unit
}

// Events about an object, by reason.
func (l *Lab) Events(name, reason string) []corev1.Event {
	l.t.Helper()
	list, err := l.Kube.CoreV1().Events(l.Namespace).List(l.t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
	Must(l.t, err)
	return list.Items
}

func (l *Lab) AllEvents(name string) []corev1.Event {
	l.t.Helper()
	list, err := l.Kube.CoreV1().Events(l.Namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	Must(l.t, err)
	return list.Items
}

// ConfigMap is an empty one, to own things or to mark a time.
func ConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (l *Lab) WaitForEvent(name, reason string) corev1.Event {
	l.t.Helper()
	var found []corev1.Event
	Eventually(l.t, 30*time.Second, fmt.Sprintf("there is an event %s about %s", reason, name), func() (bool, string) {
		found = l.Events(name, reason)
		return len(found) > 0, "none"
	})
	return found[0]
}

// Pods that belong to a job, by the operators' naming.
func (l *Lab) Pods(job string) []corev1.Pod {
	l.t.Helper()
	list, err := l.Kube.CoreV1().Pods(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !belongs(p.Name, job) })
}

func belongs(name, job string) bool { return name == job || strings.HasPrefix(name, job+"-") }

// ClearOrphans deletes what the deletion of a job has left behind when what it
// owned was to be orphaned.
func (l *Lab) ClearOrphans(job string) {
	l.t.Helper()
	ctx := l.t.Context()
	background := metav1.DeletePropagationBackground
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, resource := range []schema.GroupVersionResource{RayClusters, Jobs, pods} {
		orphans := l.Dynamic.Resource(resource).Namespace(l.Namespace)
		list, err := orphans.List(ctx, metav1.ListOptions{})
		Must(l.t, ignoreNotFound(err))
		if err != nil {
			continue // not served here
		}
		for _, orphan := range list.Items {
			if belongs(orphan.GetName(), job) && metav1.GetControllerOf(&orphan) == nil {
				Must(l.t, ignoreNotFound(orphans.Delete(ctx, orphan.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})))
			}
		}
	}
}

func (l *Lab) Patch(resource schema.GroupVersionResource, name, patch string) {
	l.t.Helper()
	out, err := l.site.Kubectl(l.t.Context(), "-n", l.Namespace, "patch", resource.Resource+"."+resource.Group, name, "--type=merge", "-p", patch)
	if err != nil {
		l.t.Fatal(err, out)
	}
}

func (l *Lab) Ended(kind, name string) bool {
	unit := l.Unit(kind, name)
	return unit != nil && unit.Status.Phase.Ended()
}

// ExpectFree waits until the tree's status says that nothing is used.
func (l *Lab) ExpectFree() {
	l.t.Helper()
	Eventually(l.t, 30*time.Second, "the quota is free", l.Free)
}

// Free tells whether the tree's status says that nothing is used.
func (l *Lab) Free() (bool, string) {
	l.t.Helper()
	tree, err := l.Dynamic.Resource(trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	Must(l.t, err)
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

// TreeValidity is what the tree in force says of itself as it is now.
func (l *Lab) TreeValidity() (status, message string) {
	l.t.Helper()
	tree, err := l.Dynamic.Resource(trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	Must(l.t, err)
	generation, _, _ := unstructured.NestedInt64(tree.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(tree.Object, "status", "conditions")
	if len(conditions) == 0 || generation != tree.GetGeneration() {
		return "", "not looked at yet"
	}
	condition := conditions[0].(map[string]any)
	status, _ = condition["status"].(string)
	message, _ = condition["message"].(string)
	return status, message
}

// TreeInForce tells whether the tree has been found valid.
func (l *Lab) TreeInForce() bool {
	l.t.Helper()
	status, _ := l.TreeValidity()
	return status == "True"
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// EventuallyQuiet waits without a word for what may take some time each time.
func EventuallyQuiet(t testing.TB, done func() bool) {
	t.Helper()
	Eventually(t, 2*time.Minute, "the program is killed or the story has ended", func() (bool, string) { return done(), "neither" })
}

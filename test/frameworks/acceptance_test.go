package frameworks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/harness"
)

// row is an unchanged manifest of a user and its expected life: a unit that requests this amount, no pod without
// quota, and then the end.
type row struct {
	file      string
	kind      string
	resource  schema.GroupVersionResource
	namespace string
	// total is what its unit requests.
	total string
	state func(*unstructured.Unstructured) string
	ended string
	// late: it is submitted after the users' quota tree is applied.
	late bool
	// waits checks the state under the users' tree before the release. ends checks the state between the end of the
	// job and the end of its unit.
	waits, ends func(t *testing.T, l *harness.Env, name string)
}

var raySample = row{
	file: "rayjob.yaml", kind: "RayJob", resource: harness.RayJobs, namespace: "default",
	total: `{cpu: 900m, memory: 456Mi}`, state: at("status", "jobStatus"), ended: "SUCCEEDED",
	ends: keepsItsCluster,
}

var sparkPi = row{
	file: "sparkapplication.yaml", kind: "SparkApplication", resource: harness.SparkApplications, namespace: "spark-operator",
	total: `{cpu: "2", memory: 1792Mi}`, state: at("status", "applicationState", "state"), ended: "COMPLETED",
}

var sizedWorkflow = row{
	file: "workflow.yaml", kind: "Workflow", resource: harness.Workflows, namespace: "default",
	total: `{cpu: "5", memory: "5000000000"}`, state: at("status", "phase"), ended: "Succeeded",
	waits: exceedsMax,
}

var unsizedWorkflow = row{
	file: "workflow-unsized.yaml", kind: "Workflow", resource: harness.Workflows, namespace: "default",
	total: `{}`, state: at("status", "phase"), ended: "Succeeded",
	late: true, waits: warnedOnce,
}

// rowsOf returns users' manifests of the kinds of an operator.
func rowsOf(operator string) []row {
	return map[string][]row{
		"spark-operator": {sparkPi},
		"kuberay":        {raySample},
		"argo-workflows": {sizedWorkflow, unsizedWorkflow},
	}[operator]
}

// at returns a function that reads the state at a path.
func at(path ...string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
}

// in is the Env of the row.
func (r row) in(t *testing.T, s *scene) *harness.Env {
	l := s.whole.For(t)
	l.Namespace = r.namespace
	return l
}

// hold submits the manifest while its namespace has no quota.
func (r row) hold(t *testing.T, l *harness.Env) string {
	if r.late {
		return ""
	}
	name := l.Create(l.Read(r.file))
	r.expectUnit(t, l, name)
	l.WaitForReason(r.kind, name, "NoQuota")
	if pods := l.Pods(name); len(pods) > 0 {
		t.Errorf("%d pods before the release", len(pods))
	}
	if r.resource == harness.RayJobs && len(l.RayClustersOf(name)) > 0 {
		t.Error("a RayCluster before the release")
	}
	return name
}

func (r row) expectUnit(t *testing.T, l *harness.Env, name string) {
	t.Helper()
	unit := l.WaitForUnit(r.kind, name)
	want := harness.Amounts(t, r.total)
	if !equality.Semantic.DeepEqual(unit.Spec.Resource, want) && len(unit.Spec.Resource)+len(want) > 0 {
		t.Errorf("the unit requests %v, want %v", text(unit.Spec.Resource), text(want))
	}
}

// release is called after the users' quota tree is applied.
func (r row) release(t *testing.T, l *harness.Env, name string) {
	if r.late {
		name = l.Create(l.Read(r.file))
		r.expectUnit(t, l, name)
	}
	if name == "" {
		t.Fatal("it could not be held before")
	}
	if r.waits != nil {
		r.waits(t, l, name)
	}
	harness.Eventually(t, time.Minute, fmt.Sprintf("%s is %s", name, r.ended), func() (bool, string) {
		state := r.state(l.Object(r.resource, name))
		return state == r.ended, state
	})
	if r.ends != nil {
		r.ends(t, l, name)
	}
	l.WaitForPhase(r.kind, name, "Succeeded")
	expectOneRelease(t, l, r.kind, name)
}

// expectOneRelease checks in the audit log that the job was held, released once and succeeded.
func expectOneRelease(t *testing.T, l *harness.Env, kind, name string) {
	life, err := l.Log(t.Context()).Life(kind, l.Namespace, name)
	harness.Must(t, err)
	for _, wrong := range (fate{job: name, released: true, outcome: "Succeeded"}).differences(life) {
		t.Errorf("%s: %s", life, wrong)
	}
}

// keepsItsCluster: for a RayJob without shutdownAfterJobFinishes, the release restores the field, so the cluster and
// its charge remain until the cluster is deleted.
func keepsItsCluster(t *testing.T, l *harness.Env, name string) {
	if shut, _, _ := unstructured.NestedBool(l.Object(harness.RayJobs, name).Object, "spec", "shutdownAfterJobFinishes"); shut {
		t.Error("the release left shutdownAfterJobFinishes, which the manifest has not")
	}
	l.WaitForReason("RayJob", name, "PodsRemain")
	if event := l.WaitForEvent(name, "QuotaKept"); event.Type != "Warning" || !strings.Contains(event.Message, "shutdownAfterJobFinishes") {
		t.Errorf("the event is %s %s", event.Type, event.Message)
	}
	clusters := l.RayClustersOf(name)
	if len(clusters) != 1 {
		t.Fatalf("it has the clusters %v, want one", clusters)
	}
	harness.Must(t, l.Dynamic.Resource(harness.RayClusters).Namespace(l.Namespace).Delete(t.Context(), clusters[0], metav1.DeleteOptions{}))
}

// exceedsMax: 5 cpu never fit into a max of 4. The larger tree has quota for this job and for those of the other
// rows.
func exceedsMax(t *testing.T, l *harness.Env, name string) {
	l.WaitForReason("Workflow", name, "ExceedsMaxQuota")
	if pods := l.Pods(name); len(pods) > 0 {
		t.Errorf("%d pods before the release", len(pods))
	}
	l.ApplyAsIs(l.Read("quota-tree-large.yaml"))
}

// warnedOnce: a warning about the unknown size is written once, and the job is released.
func warnedOnce(t *testing.T, l *harness.Env, name string) {
	l.WaitForPhase("Workflow", name, "Dequeued", "Running", "Succeeded")
	l.WaitForEvent(name, "UnknownSize")
	l.WaitForPhase("Workflow", name, "Succeeded")
	var warnings []string
	for _, event := range l.AllEvents(name) {
		if event.Type == "Warning" {
			warnings = append(warnings, event.Reason+": "+event.Message)
		}
	}
	if len(warnings) != 1 {
		t.Errorf("there are the warnings %q, want one", warnings)
	}
}

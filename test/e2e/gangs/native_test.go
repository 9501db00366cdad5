//go:build native

package gangs

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}

// native: Jobs can be gangs of Kubernetes.
const native = true

func chooseKubernetes(options *clustertest.Options) {
	options.Kubernetes = "1.37"
	options.FeatureGates = []string{"GenericWorkload=true", "WorkloadWithJob=true"}
	options.APIs = []string{"scheduling.k8s.io/v1beta1=true"}
}

// The quota has room for all gangs, but the nodes do not. kube-scheduler alone decides which gangs start.
func TestAHundredGangsOfKubernetesShareFixedNodes(t *testing.T) {
	gangs, pods := mixed()
	nodes := pods * 3 / 10 / nodeGPUs
	addNodes(t, nodes)
	l := suite.Env(t, "native")
	suite.Both(t, enabled)
	limit(l, pods)
	run(t, l, with(gangs, func(g *gang) { g.kind = "Job" }), nodes*nodeGPUs, unschedulable)
}

// What the owner of a Job sets for gangs survives hold, release, eviction and another release.
func TestAJobThatIsAGangOfKubernetesStaysOne(t *testing.T) {
	addNodes(t, 1)
	l := suite.Env(t, "staying")
	suite.Both(t, enabled)
	limit(l, 0)
	g := gang{kind: "Job", name: "gang", pods: 3, native: true}
	l.Apply(strings.Replace(g.manifest(), ": 4s}", ": never}", 1))
	l.WaitForReason("Job", "gang", "ExceedsMaxQuota")
	scheduling := func() any {
		value, _, err := unstructured.NestedFieldCopy(l.Object(harness.Jobs, "gang").Object, "spec", "scheduling")
		harness.Must(t, err)
		return value
	}
	before := scheduling()
	limit(l, nodeGPUs)
	l.WaitForPhase("Job", "gang", v1alpha1.PhaseRunning)
	expectPodGroup(t, l, "gang", 3)
	l.Patch(harness.Jobs, "gang", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
	l.WaitForPhase("Job", "gang", v1alpha1.PhaseEnqueued)
	l.Patch(harness.Jobs, "gang", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":null}}}`)
	l.WaitForPhase("Job", "gang", v1alpha1.PhaseRunning)
	expectPodGroup(t, l, "gang", 3)
	if after := scheduling(); !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("spec.scheduling was %v and is %v", before, after)
	}
}

// A JobSet has no field that creates a PodGroup, but its pods can name one.
func TestTheJobsOfAJobSetStartTogetherInAPodGroupOfItsOwner(t *testing.T) {
	addNodes(t, 1)
	l := suite.Env(t, "jobset")
	suite.Both(t, enabled)
	limit(l, nodeGPUs)
	g := gang{kind: "JobSet", name: "gang", pods: 3}
	manifest := strings.ReplaceAll(g.manifest(), ": 4s}", ": never}")
	l.Apply("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: gang}\nspec: {schedulingPolicy: {gang: {minCount: 3}}}\n" +
		strings.ReplaceAll(manifest, "restartPolicy", "schedulingGroup: {podGroupName: gang}, restartPolicy"))
	l.WaitForPhase("JobSet", "gang", v1alpha1.PhaseRunning)
	expectPodGroup(t, l, "gang", 3)
}

// expectPodGroup checks that all pods of a Job are in its PodGroup, which places all of them or none.
func expectPodGroup(t *testing.T, l *harness.Env, job string, pods int) {
	t.Helper()
	list, err := l.Dynamic.Resource(podGroups).Namespace(l.Namespace).List(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("there are %d PodGroups, want 1", len(list.Items))
	}
	group := list.Items[0]
	if minimum, _, err := unstructured.NestedInt64(group.Object, "spec", "schedulingPolicy", "gang", "minCount"); err != nil || minimum != int64(pods) {
		t.Errorf("the PodGroup places at least %d pods (%v), want %d", minimum, err, pods)
	}
	harness.Eventually(t, time.Minute, "all pods run in their PodGroup", func() (bool, string) {
		all, err := l.Dynamic.Resource(harness.Pods).Namespace(l.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "gang=" + job})
		harness.Must(t, err)
		var running int
		for _, pod := range all.Items {
			name, _, _ := unstructured.NestedString(pod.Object, "spec", "schedulingGroup", "podGroupName")
			phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
			if name == group.GetName() && phase == string(corev1.PodRunning) {
				running++
			}
		}
		return running == pods, "not all"
	})
}

// A release cannot make a Job a gang, because Kubernetes does not allow it. If it ever does, the release can: see
// docs/reference/kinds.md#gangs-of-kubernetes.
func TestAHeldJobCannotBecomeAGangOfKubernetes(t *testing.T) {
	l := suite.Env(t, "becoming")
	suite.Both(t, enabled)
	limit(l, 0)
	l.Apply(gang{kind: "Job", name: "gang", pods: 3}.manifest() + gang{kind: "JobSet", name: "gangs", pods: 3}.manifest())
	l.WaitForReason("Job", "gang", "ExceedsMaxQuota")
	l.WaitForReason("JobSet", "gangs", "ExceedsMaxQuota")
	for _, c := range []struct {
		resource    schema.GroupVersionResource
		name, patch string
	}{
		{harness.Jobs, "gang", `[{"op":"add","path":"/spec/scheduling","value":{"schedulingPolicy":{"gang":{}}}}]`},
		{harness.Jobs, "gang", `[{"op":"add","path":"/spec/template/spec/schedulingGroup","value":{"podGroupName":"gang"}}]`},
		{resources["JobSet"], "gangs", `[{"op":"add","path":"/spec/replicatedJobs/0/template/spec/template/spec/schedulingGroup","value":{"podGroupName":"gang"}}]`},
	} {
		_, err := l.Dynamic.Resource(c.resource).Namespace(l.Namespace).Patch(t.Context(), c.name, types.JSONPatchType, []byte(c.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s of a held %s: %v, want it refused", c.patch, c.resource.Resource, err)
		}
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/test/harness"
)

// What the fence does not refuse, a tenant may do. Whatever runs afterwards is charged.
func TestWhatATenantMayDoIsCharged(t *testing.T) {
	l := suite.Env(t, "charged")
	suite.Both(t, enabled)
	n := &tenancy{Env: l, t: t}
	l.ApplyAsIs(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: e2e-charged}, rules: [
		{apiGroups: [kubeflow.org], resources: ["*"], verbs: ["*"]}]}`)
	for _, role := range []string{"admin", "e2e-charged"} {
		l.Apply(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant-%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s},
			subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]}`, role, role))
	}
	l.Manage()
	harness.Eventually(t, time.Minute, "the tenant has its rights", func() (bool, string) {
		out, err := suite.Kubectl(t.Context(), "auth", "can-i", "patch", "pytorchjobs.kubeflow.org/scale", "-n", l.Namespace, "--as=tenant")
		return err == nil, fmt.Sprint(out, err)
	})
	l.Tree(`{cpu: "8"}`)
	elastic := fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: elastic}, spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 3}, pytorchReplicaSpecs: {Worker: {replicas: 1, template: {
		metadata: {annotations: {%s}}, spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}}}`, podAnnotations(harness.UntilFinished, false))
	for _, c := range []struct {
		name, kind, manifest string
		// args are of kubectl. POD is the pod of the job.
		args string
		// cpus are what the pods request afterwards.
		cpus string
	}{
		{name: "no finalizer of the pod", args: `patch pod POD --type=merge -p {"metadata":{"finalizers":null}}`, cpus: "1"},
		{name: "a finalizer of the pod", args: `patch pod POD --type=merge -p {"metadata":{"finalizers":["batch.kubernetes.io/job-tracking","example.com/keep"]}}`, cpus: "1"},
		{name: "an elastic job that is scaled", kind: "PyTorchJob", manifest: elastic, cpus: "3",
			args: "scale pytorchjob elastic --replicas=3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, jobs := "elastic", harness.PyTorchJobs
			if c.kind == "" {
				name, jobs, c.kind = "running", harness.Jobs, "Job"
				c.manifest = job{name: name, cpu: "1", completions: 8, runs: harness.UntilFinished}.String()
			}
			l := l.For(t)
			l.Apply(c.manifest)
			l.WaitForPhase(c.kind, name, "Running")
			pod := l.Pods(name)[0].Name
			_, err := suite.Kubectl(t.Context(), append([]string{"-n", l.Namespace, "--as=tenant"}, strings.Fields(strings.ReplaceAll(c.args, "POD", pod))...)...)
			harness.Must(t, err)
			want := resource.MustParse(c.cpus)
			harness.Eventually(t, time.Minute, "the pods request what the tenant wants, and are charged", func() (bool, string) {
				requested, charged := n.requested(), n.charged()
				return requested.Cmp(want) == 0 && charged.Cmp(want) == 0, fmt.Sprintf("%s requested, %s charged", &requested, &charged)
			})
			for _, pod := range l.Pods(name) {
				l.Patch(harness.Pods, pod.Name, `{"metadata":{"finalizers":null}}`)
			}
			l.Delete(jobs, name)
			l.ExpectFree()
			harness.Eventually(t, time.Minute, "no unit is left", func() (bool, string) { return l.Unit(c.kind, name) == nil, "it is" })
		})
	}
}

// requested returns the cpus of all pods that are not being deleted.
func (n *tenancy) requested() (sum resource.Quantity) {
	pods, err := n.Kube.CoreV1().Pods(n.Namespace).List(n.t.Context(), metav1.ListOptions{})
	harness.Must(n.t, err)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			requests := resourcehelper.PodRequests(&pod, resourcehelper.PodResourcesOptions{})
			sum.Add(*requests.Cpu())
		}
	}
	return sum
}

// charged returns the cpus that the status of the tree shows.
func (n *tenancy) charged() (sum resource.Quantity) {
	tree, err := n.Dynamic.Resource(harness.Trees).Namespace("kube-system").Get(n.t.Context(), "elasticquotatree", metav1.GetOptions{})
	harness.Must(n.t, err)
	nodes, _, _ := unstructured.NestedSlice(tree.Object, "status", "nodes")
	for _, node := range nodes {
		if path, _, _ := unstructured.NestedString(node.(map[string]any), "path"); path == "root/team" {
			used, _, _ := unstructured.NestedString(node.(map[string]any), "used", "cpu")
			if used != "" {
				sum = resource.MustParse(used)
			}
		}
	}
	return sum
}

package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"
)

// podsOf is a client for the pods of a managed namespace, as a user with all rights on them.
func podsOf(t *testing.T, ns, user string) typedv1.PodInterface {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "pods-"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Verbs: []string{"*"},
		Resources: []string{"pods", "pods/binding", "pods/ephemeralcontainers", "pods/resize"}}}}
	created, err := core(t).RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	grant(t, ns, "Role", created.Name, user)
	client, err := kubernetes.NewForConfig(cluster.ConfigAs(user))
	must(t, err)
	return client.CoreV1().Pods(ns)
}

// What a pod names determines the job that is charged for it. After a restart, kube-queue knows nothing else.
func TestAPodOfAManagedNamespaceStaysWithItsJob(t *testing.T) {
	ns := managedNamespace(t)
	kind := batchJob(t)
	job := create(t, objects(t).Resource(kind.resource).Namespace(ns), kind.job(t))
	controller := `{apiVersion: batch/v1, kind: Job, name: ` + job.GetName() + `, uid: ` + string(job.GetUID()) + `, controller: true, blockOwnerDeletion: false}`
	// The Job's selector does not match the pod, so the Job controller tries to release it.
	const labels = `labels: {batch.kubernetes.io/controller-uid: u, app: a}`
	const orphanLabels = `labels: {ray.io/cluster: c, app: a}`
	const other = `{apiVersion: ray.io/v9, kind: RayCluster, name: c, uid: c}`
	pods := map[string]string{
		"owned":  labels + ", ownerReferences: [" + controller + "]",
		"orphan": orphanLabels,
		"worker": "labels: {ray.io/group: g, ray.io/node-type: worker, app: a}, ownerReferences: [{apiVersion: ray.io/v9, kind: RayCluster, name: c, uid: c, controller: true}]",
		"other":  "labels: {app: a}, ownerReferences: [" + other + "]",
		"server": "labels: {app: a}",
	}
	tenant := podsOf(t, ns, "tenant")
	for name, metadata := range pods {
		pod := new(corev1.Pod)
		must(t, yaml.UnmarshalStrict([]byte(`{metadata: {name: `+name+`, `+metadata+`}, spec: {containers: [{name: c, image: i}]}}`), pod))
		eventually(t, name+" is created", func(ctx context.Context) error { // it needs the ServiceAccount of the namespace
			_, err := tenant.Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	const keepsOwner, keepsLabels = "the owners of a Pod cannot be changed", "labels that show to which job a Pod belongs"
	tests := []struct{ pod, name, patch, refused string }{
		{"owned", "no owner", `{metadata: {ownerReferences: null}}`, keepsOwner},
		{"owned", "no owner and no labels", `{metadata: {ownerReferences: null, labels: null, finalizers: null}}`, keepsOwner},
		{"owned", "another UID", `{metadata: {ownerReferences: [` + strings.Replace(controller, string(job.GetUID()), "other", 1) + `]}}`, keepsOwner},
		{"owned", "another API group", `{metadata: {ownerReferences: [` + strings.Replace(controller, "batch/v1", "example.com/v1", 1) + `]}}`, keepsOwner},
		{"owned", "an owner that is no controller", `{metadata: {ownerReferences: [` + strings.Replace(controller, "controller: true", "controller: false", 1) + `]}}`, keepsOwner},
		{"owned", "a DaemonSet", `{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]}}`, keepsOwner},
		{"owned", "no labels", `{metadata: {labels: null}}`, keepsLabels},
		{"owned", "no label of a selector", `{metadata: {labels: {app: b}}}`, keepsLabels},
		{"owned", "the label of another job", `{metadata: {labels: {ray.io/cluster: c}}}`, keepsLabels},
		{"owned", "another label", `{metadata: {labels: {b: c}}}`, ""},
		{"owned", "an annotation", `{metadata: {annotations: {b: c}}}`, ""},
		{"owned", "a second owner", `{metadata: {ownerReferences: [` + controller + `, {apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}}`, keepsOwner}, // else the garbage collector takes it off a deleted job
		{"owned", "a bypass", `{metadata: {ownerReferences: null, annotations: {kube-queue/bypass: "true"}}}`, keepsOwner},
		{"orphan", "a controller", `{metadata: {ownerReferences: [` + controller + `]}}`, keepsOwner},
		{"orphan", "an owner", `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}}`, keepsOwner},
		{"orphan", "no label", `{metadata: {labels: {ray.io/cluster: null}}}`, keepsLabels},
		{"orphan", "another job", `{metadata: {labels: {ray.io/cluster: d}}}`, keepsLabels},
		{"orphan", "a label of no job", `{metadata: {labels: {app: b}}}`, ""},
		{"worker", "another group", `{metadata: {labels: {ray.io/group: h}}}`, keepsLabels},
		{"worker", "no type", `{metadata: {labels: {ray.io/node-type: null}}}`, keepsLabels},
		{"worker", "another label that KubeRay does not select by", `{metadata: {labels: {app: b}}}`, ""},
		{"other", "a controller", `{metadata: {ownerReferences: [` + other + `, ` + controller + `]}}`, keepsOwner},
		{"other", "another owner", `{metadata: {ownerReferences: [` + controller + `]}}`, keepsOwner},
		{"server", "a controller", `{metadata: {ownerReferences: [` + controller + `]}}`, ""},
		{"server", "no labels", `{metadata: {labels: null}}`, ""},
	}
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for user, client := range map[string]typedv1.PodInterface{"tenant": tenant, "administrator": core(t).CoreV1().Pods(ns), "Job controller": podsOf(t, ns, "system:serviceaccount:kube-system:job-controller")} {
		for _, test := range tests {
			if test.name == "a bypass" && user == "administrator" || test.name == "a controller" && user == "Job controller" {
				test.refused = "" // cluster-admin has every verb; a Job whose pods cannot be adopted never stops
			}
			_, err := client.Patch(t.Context(), test.pod, types.MergePatchType, toJSON(t, test.patch), dryRun)
			if test.refused == "" {
				allowed(t, user+": "+test.pod+" gets "+test.name, err)
			} else {
				t.Log(user, test.pod, test.name)
				refused(t, err, test.refused)
			}
		}
	}
	collector := podsOf(t, ns, "system:serviceaccount:kube-system:generic-garbage-collector")
	_, err := collector.Patch(t.Context(), "owned", types.MergePatchType, toJSON(t, `{metadata: {ownerReferences: null}}`), dryRun)
	allowed(t, "the garbage collector removes an owner", err)
	_, err = podsOf(t, ns, "letting-go").Patch(t.Context(), "owned", types.MergePatchType, toJSON(t, `{metadata: {ownerReferences: null}}`), dryRun)
	if !apierrors.IsInvalid(err) { // for any other reason, the Job controller does not go on
		t.Errorf("refused with %v", err)
	}
	if pod, err := tenant.Get(t.Context(), "owned", metav1.GetOptions{}); err != nil || metav1.GetControllerOf(pod) == nil {
		t.Errorf("the Job controller let the pod go: %v", err)
	}
}

// The same applies to the objects between a pod and its job.
func partsStayParts(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	owner, err := core(t).CoreV1().ConfigMaps(f.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	must(t, err)
	create(t, f.tenant, kind.job(t, strings.Replace(ownedBy("v1", "ConfigMap", "true"), "uid: u", "uid: "+string(owner.UID), 1)))
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for _, jobs := range []dynamic.ResourceInterface{f.tenant, f.admin} {
		_, err := try(t, jobs, `{metadata: {ownerReferences: null}}`, dryRun)
		refused(t, err, "owners of a "+kind.Kind.Kind)
		_, err = try(t, jobs, `{metadata: {labels: {a: b}}}`, dryRun)
		allowed(t, "a label", err)
	}
}

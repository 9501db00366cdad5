package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const mark = "scheduling.x-k8s.io/suspend"

// heldKind is a kind of job that a policy holds.
type heldKind struct {
	name     string
	resource schema.GroupVersionResource
	// manifest is the least that a job of the kind may be, without a mark.
	manifest string
	// holder is the path of the field that the suspend field is in.
	holder []string
	// manager is what managedBy says for the kind's own controller. Some kinds know
	// no managedBy.
	manager string
	// schedule is what may be the controller of a job that is queued.
	schedule schedule
	// operator is the one whose CRD must be there, where there are several of the
	// same name.
	operator string
}

// schedule is a kind that makes jobs time and again.
type schedule struct{ apiVersion, kind string }

const podTemplate = `{spec: {restartPolicy: Never, containers: [{name: tensorflow, image: main}, {name: pytorch, image: main}]}}`

const rayCluster = `{headGroupSpec: {rayStartParams: {}, template: ` + podTemplate + `}}`

func inSpec() []string      { return []string{"spec"} }
func inRunPolicy() []string { return []string{"spec", "runPolicy"} }

// heldKinds ends with the one that takes another's place.
func heldKinds() []heldKind {
	const training, ray = "kubeflow.org/training-operator", "ray.io/kuberay-operator"
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	job := func(apiVersion, kind, spec string) string {
		return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {name: held}, spec: ` + spec + `}`
	}
	replicas := func(field, role string) string {
		return `{` + field + `: {` + role + `: {replicas: 1, template: ` + podTemplate + `}}}`
	}
	rayJob := `{entrypoint: main, rayClusterSpec: ` + rayCluster + `}`
	return []heldKind{
		{name: "Job", resource: gvr("batch", "v1", "jobs"), holder: inSpec(), manager: "kubernetes.io/job-controller",
			schedule: schedule{"batch/v1", "CronJob"}, manifest: job("batch/v1", "Job", `{template: `+podTemplate+`}`)},
		{name: "TFJob", resource: gvr("kubeflow.org", "v1", "tfjobs"), holder: inRunPolicy(), manager: training,
			manifest: job("kubeflow.org/v1", "TFJob", replicas("tfReplicaSpecs", "Worker"))},
		{name: "PyTorchJob", resource: gvr("kubeflow.org", "v1", "pytorchjobs"), holder: inRunPolicy(), manager: training,
			manifest: job("kubeflow.org/v1", "PyTorchJob", replicas("pytorchReplicaSpecs", "Master"))},
		{name: "SparkApplication", resource: gvr("sparkoperator.k8s.io", "v1beta2", "sparkapplications"), holder: inSpec(),
			manifest: job("sparkoperator.k8s.io/v1beta2", "SparkApplication",
				`{type: Scala, sparkVersion: "4.0.0", mainApplicationFile: main, driver: {}, executor: {}}`)},
		{name: "RayJob", resource: gvr("ray.io", "v1", "rayjobs"), holder: inSpec(), manager: ray,
			schedule: schedule{"ray.io/v1", "RayCronJob"}, manifest: job("ray.io/v1", "RayJob", rayJob)},
		{name: "RayJob v1alpha1", resource: gvr("ray.io", "v1alpha1", "rayjobs"), holder: inSpec(),
			schedule: schedule{"ray.io/v1", "RayCronJob"}, manifest: job("ray.io/v1alpha1", "RayJob", rayJob)},
		{name: "RayCluster", resource: gvr("ray.io", "v1", "rayclusters"), holder: inSpec(), manager: ray,
			manifest: job("ray.io/v1", "RayCluster", rayCluster)},
		{name: "RayCluster v1alpha1", resource: gvr("ray.io", "v1alpha1", "rayclusters"), holder: inSpec(),
			manifest: job("ray.io/v1alpha1", "RayCluster", rayCluster)},
		{name: "JobSet", resource: gvr("jobset.x-k8s.io", "v1alpha2", "jobsets"), holder: inSpec(), manager: "jobset.sigs.k8s.io/jobset-controller",
			manifest: job("jobset.x-k8s.io/v1alpha2", "JobSet", `{replicatedJobs: [{name: main, template: {spec: {template: `+podTemplate+`}}}]}`)},
		{name: "Workflow", resource: gvr("argoproj.io", "v1alpha1", "workflows"), holder: inSpec(),
			manifest: job("argoproj.io/v1alpha1", "Workflow", `{entrypoint: main, templates: [{name: main, container: {image: main}}]}`)},
		{name: "MPIJob v1", resource: gvr("kubeflow.org", "v1", "mpijobs"), holder: inRunPolicy(), manager: training, operator: "training-operator",
			manifest: job("kubeflow.org/v1", "MPIJob", replicas("mpiReplicaSpecs", "Launcher"))},
		{name: "MPIJob v2beta1", resource: gvr("kubeflow.org", "v2beta1", "mpijobs"), holder: inRunPolicy(), manager: "kubeflow.org/mpi-operator", operator: "mpi-operator",
			manifest: job("kubeflow.org/v2beta1", "MPIJob", replicas("mpiReplicaSpecs", "Launcher"))},
	}
}

// kindTest is a test of one kind. It gets the jobs of a namespace of its own.
type kindTest struct {
	name string
	test func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface)
}

func TestHoldingEachKind(t *testing.T) {
	for _, kind := range heldKinds() {
		t.Run(kind.name, func(t *testing.T) {
			kind.serve(t)
			for _, test := range slices.Concat(holdTests(), applyTests(), damageTests(), managedTests()) {
				t.Run(test.name, func(t *testing.T) {
					test.test(t, kind, objects(t).Resource(kind.resource).Namespace(namespace(t)))
				})
			}
		})
	}
}

// serve has the cluster serve the kind, in place of another of the same name.
func (k heldKind) serve(t *testing.T) {
	t.Helper()
	if k.operator == "" {
		return
	}
	list, err := core(t).Discovery().ServerResourcesForGroupVersion(k.resource.GroupVersion().String())
	if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.resource.Resource }) {
		return
	}
	kubectl(t, "", "delete", "crd", k.resource.GroupResource().String())
	if err := cluster.InstallCRDs(t.Context(), k.operator); err != nil {
		t.Fatal(err)
	}
}

func (k heldKind) isRayJob() bool { return k.resource.Resource == "rayjobs" }
func (k heldKind) kubeflow() bool { return k.resource.Group == "kubeflow.org" }
func (k heldKind) mayBeBare() bool {
	return k.name != "Job" && k.name != "SparkApplication" && k.name != "Workflow"
}

// job is the kind's manifest with values merged in, written in YAML.
func (k heldKind) job(t *testing.T, merged ...string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	for _, text := range append([]string{k.manifest}, merged...) {
		var part map[string]any
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		job.Object = merge(job.Object, part)
	}
	return job
}

// merge puts the values of part into object; null stays null, as in a manifest.
func merge(object, part map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range part {
		inner, isMap := value.(map[string]any)
		old, wasMap := object[key].(map[string]any)
		if isMap && wasMap && len(inner) > 0 {
			value = merge(old, inner)
		}
		object[key] = value
	}
	return object
}

// suspend is a patch, or a part of a manifest, that sets the suspend field.
func (k heldKind) suspend(value string) string { return k.field("suspend", value) }

// field sets one beside the suspend field.
func (k heldKind) field(name, value string) string {
	return nested(k.holder, "{"+name+": "+value+"}")
}

func nested(path []string, value string) string {
	for i := len(path) - 1; i >= 0; i-- {
		value = "{" + path[i] + ": " + value + "}"
	}
	return value
}

func (k heldKind) suspended(job *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(job.Object, append(k.holder, "suspend")...)
	return value
}

func (k heldKind) wantSuspended(t *testing.T, job *unstructured.Unstructured, want bool) {
	t.Helper()
	if got := k.suspended(job); got != want {
		spec, _ := yaml.Marshal(job.Object["spec"])
		t.Errorf("suspended %v, want %v\n%s", got, want, spec)
	}
}

const marked = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

func ownedBy(apiVersion, kind, controller string) string {
	return fmt.Sprintf(`{metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: owner, uid: u, controller: %s}]}}`, apiVersion, kind, controller)
}

func create(t *testing.T, jobs dynamic.ResourceInterface, job *unstructured.Unstructured, dryRun ...string) *unstructured.Unstructured {
	t.Helper()
	created, err := jobs.Create(t.Context(), job, metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func patch(t *testing.T, jobs dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	t.Helper()
	patched, err := jobs.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, text), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return data
}

// release is the one patch by which job-extensions releases a job.
func (k heldKind) release(t *testing.T, jobs dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	unmark, with := `scheduling.x-k8s.io/suspend: "false", kube-queue/released: "1"`, k.suspend("false")
	if k.isRayJob() {
		unmark += `, kube-queue/shutdown-after-job-finishes: null`
		with = `{spec: {suspend: false, shutdownAfterJobFinishes: false}}`
	}
	released := patch(t, jobs, "{metadata: {annotations: {"+unmark+"}}, "+strings.TrimPrefix(with, "{"))
	k.wantSuspended(t, released, false)
	if value := released.GetAnnotations()[mark]; value != "false" {
		t.Errorf("the mark is %q after the release", value)
	}
	return released
}

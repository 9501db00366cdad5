package testcluster

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// probe is an object by which to see whether a policy acts yet. It is created
// only as a dry run.
type probe struct {
	policy   string
	resource schema.GroupVersionResource
	// object is without its name, and without the mark that has a policy hold it.
	object string
	// acts tells it from what became of the object.
	acts func(created *unstructured.Unstructured, err error) bool
	// managed is for a namespace whose jobs are all queued; there it needs no mark.
	managed bool
}

// probes has an entry for each policy in deploy/policies and, of one that is for
// more than one resource, for each of them.
func probes() []probe {
	all := []probe{{
		policy:   "kube-queue-units",
		resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queueunits"},
		object:   `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: probe}}}`,
		acts: func(_ *unstructured.Unstructured, err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "kube-queue-units")
		},
	}}
	for _, held := range heldProbes {
		all = append(all, held)
		held.policy, held.managed = "kube-queue-managed-namespace", true
		all = append(all, held)
	}
	return all
}

const probeTemplate = `{spec: {restartPolicy: Never, containers: [{name: main, image: probe}]}}`

// heldProbes are for the policies that hold jobs.
var heldProbes = []probe{
	{
		policy:   "kube-queue-hold-job",
		resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		object:   `{apiVersion: batch/v1, kind: Job, spec: {template: ` + probeTemplate + `}}`,
		acts:     isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-tfjob",
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"},
		object:   `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {}}}`,
		acts:     isTrue("spec", "runPolicy", "suspend"),
	},
	{
		policy:   "kube-queue-hold-pytorchjob",
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
		object:   `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {}}}`,
		acts:     isTrue("spec", "runPolicy", "suspend"),
	},
	{
		policy:   "kube-queue-hold-mpijob",
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"},
		object:   `{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {}}}`,
		acts:     isTrue("spec", "runPolicy", "suspend"),
	},
	{
		policy:   "kube-queue-hold-mpijob",
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"},
		object:   `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {}}}`,
		acts:     isTrue("spec", "runPolicy", "suspend"),
	},
	{
		policy:   "kube-queue-hold-sparkapplication",
		resource: schema.GroupVersionResource{Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"},
		object: `{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication,
			spec: {type: Scala, sparkVersion: "4.0.0", mainApplicationFile: probe, driver: {}, executor: {}}}`,
		acts: isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-rayjob",
		resource: schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"},
		object:   `{apiVersion: ray.io/v1, kind: RayJob, spec: {entrypoint: probe}}`,
		acts:     isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-rayjob",
		resource: schema.GroupVersionResource{Group: "ray.io", Version: "v1alpha1", Resource: "rayjobs"},
		object:   `{apiVersion: ray.io/v1alpha1, kind: RayJob, spec: {entrypoint: probe}}`,
		acts:     isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-raycluster",
		resource: schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"},
		object:   `{apiVersion: ray.io/v1, kind: RayCluster, spec: {headGroupSpec: {rayStartParams: {}, template: ` + probeTemplate + `}}}`,
		acts:     isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-raycluster",
		resource: schema.GroupVersionResource{Group: "ray.io", Version: "v1alpha1", Resource: "rayclusters"},
		object:   `{apiVersion: ray.io/v1alpha1, kind: RayCluster, spec: {headGroupSpec: {rayStartParams: {}, template: ` + probeTemplate + `}}}`,
		acts:     isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-jobset",
		resource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet,
			spec: {replicatedJobs: [{name: main, template: {spec: {template: ` + probeTemplate + `}}}]}}`,
		acts: isTrue("spec", "suspend"),
	},
	{
		policy:   "kube-queue-hold-workflow",
		resource: schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"},
		object:   `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main, templates: [{name: main, suspend: {}}]}}`,
		acts:     isTrue("spec", "suspend"),
	},
}

func isTrue(path ...string) func(*unstructured.Unstructured, error) bool {
	return func(created *unstructured.Unstructured, err error) bool {
		if err != nil {
			return false
		}
		value, _, _ := unstructured.NestedBool(created.Object, path...)
		return value
	}
}

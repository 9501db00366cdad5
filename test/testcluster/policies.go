package testcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// probe is an object by which to see whether a policy acts yet. It is created
// only as a dry run.
type probe struct {
	resource schema.GroupVersionResource
	object   string
	// acts tells it from what became of the object.
	acts func(created *unstructured.Unstructured, err error) bool
}

// probes has one entry for each policy in deploy/policies, by its name.
var probes = map[string]probe{
	"kube-queue-units": {
		resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queueunits"},
		object: `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: probe}
spec:
  consumerRef: {apiVersion: batch/v1, kind: Job, name: probe}
`,
		acts: func(_ *unstructured.Unstructured, err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "kube-queue-units")
		},
	},
	"kube-queue-hold-job": {
		resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		object: `
apiVersion: batch/v1
kind: Job
metadata: {name: probe, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: probe}]
`,
		acts: isTrue("spec", "suspend"),
	},
	"kube-queue-hold-tfjob": {
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"},
		object: `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: probe, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec: {tfReplicaSpecs: {}}
`,
		acts: isTrue("spec", "runPolicy", "suspend"),
	},
	"kube-queue-hold-pytorchjob": {
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
		object: `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: probe, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec: {pytorchReplicaSpecs: {}}
`,
		acts: isTrue("spec", "runPolicy", "suspend"),
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

// waitForPolicies waits until each installed policy acts. One for a kind that
// this cluster does not serve has nothing to act on.
func (c *Cluster) waitForPolicies(ctx context.Context) error {
	names, err := c.policyNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		probe, known := probes[name]
		if !known {
			return fmt.Errorf("package testcluster has no probe for policy %s: add one", name)
		}
		served, err := c.serves(probe.resource)
		if err != nil {
			return err
		}
		if !served {
			continue
		}
		if err := c.waitForPolicy(ctx, probe); err != nil {
			return fmt.Errorf("policy %s: %w", name, err)
		}
	}
	return nil
}

// policyNames are the policies of kube-queue in the cluster.
func (c *Cluster) policyNames(ctx context.Context) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kube-queue"}
	mutating, err := client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	validating, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, policy := range mutating.Items {
		names = append(names, policy.Name)
	}
	for _, policy := range validating.Items {
		names = append(names, policy.Name)
	}
	return names, nil
}

func (c *Cluster) serves(resource schema.GroupVersionResource) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.admin)
	if err != nil {
		return false, err
	}
	list, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

func (c *Cluster) waitForPolicy(ctx context.Context, probe probe) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(probe.object), &object.Object); err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		created, err := client.Resource(probe.resource).Namespace(Namespace).
			Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		last = err
		return probe.acts(created, err), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("does not act: %w", err), last)
	}
	return nil
}

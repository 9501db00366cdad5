package clustertest

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
)

// probe is an object that shows whether a policy is in effect. It is created only as a dry run.
type probe struct {
	policy   string
	resource schema.GroupVersionResource
	// object has no mark.
	object *unstructured.Unstructured
	// acts reports whether the policy is in effect, from the result of the create.
	acts func(created *unstructured.Unstructured, err error) bool
	// managed creates the object without a mark, in a managed namespace.
	managed bool
}

const (
	policyOfUnits      = "kube-queue-units"
	policyOfManaged    = "kube-queue-managed-namespace"
	policyOfExtensions = "kube-queue-job-extensions"
	policyOfQueues     = "kube-queue-queues"
	policyOfWebhooks   = "kube-queue-webhooks"
	policyOfPrograms   = "kube-queue-programs"
	policyOfOwners     = "kube-queue-fence-owners"
)

// probes returns the probes of the policies for units and Queues, and a probe for each kind and version of each hold
// policy and each fence. Policies for updates have none: no creation shows whether they are in effect.
func probes() ([]probe, error) {
	all := []probe{{
		policy:   policyOfUnits,
		resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queueunits"},
		object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "probe"}},
		}},
		acts: func(_ *unstructured.Unstructured, err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), policyOfUnits)
		},
	}}
	all = append(all, probe{
		policy:   policyOfQueues,
		resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queues"},
		object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue", "spec": map[string]any{},
		}},
		// Any namespace except kube-queue's.
		managed: true,
		acts: func(_ *unstructured.Unstructured, err error) bool {
			return err != nil && strings.Contains(err.Error(), policyOfQueues)
		},
	})
	all = append(all, probe{policy: policyOfExtensions}, probe{policy: policyOfWebhooks}, probe{policy: policyOfPrograms}, probe{policy: policyOfOwners})
	for _, ofPods := range []string{"gate-pod", "growth-pod", "managed-pod", "gate", "job-extensions-pods", "fence-pod"} { // see harness.Env.WaitForGate
		all = append(all, probe{policy: "kube-queue-" + ofPods})
	}
	samples, err := kinds.All()
	if err != nil {
		return nil, err
	}
	for _, sample := range samples {
		for _, version := range sample.Versions() {
			held := probe{
				policy: sample.Hold(), resource: sample.GVR(version), object: sample.Unmarked(version),
				acts: isTrue(sample.SuspendPath...),
			}
			all = append(all, held)
			held.policy, held.managed = policyOfManaged, true
			all = append(all, held)
			fence := "kube-queue-fence-" + strings.ToLower(sample.Kind.Kind)
			other := held.object.DeepCopy()
			other.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "other"})
			all = append(all,
				probe{policy: fence, resource: held.resource, object: other, managed: true, acts: func(_ *unstructured.Unstructured, err error) bool {
					return apierrors.IsForbidden(err) && strings.Contains(err.Error(), fence)
				}},
				probe{policy: fence + "-scale"})
		}
	}
	return all, nil
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

package kueue

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
)

// Controllers of AdmissionChecks.
const (
	provisioning = "kueue.x-k8s.io/provisioning-request"
	multiKueue   = "kueue.x-k8s.io/multikueue"
)

// maxCheckName is the maximum length of the name of an AdmissionCheck in kube-queue.
const maxCheckName = 63

func (c *converter) readCheck(d migration.Document, check *admissionCheck) {
	name, spec := d.Object.GetName(), check.Spec
	c.checks[name] = spec.ControllerName
	if spec.ControllerName == multiKueue {
		c.result.Find(d.Name(), "spec.controllerName", "kube-queue queues the jobs of its own cluster only", "install kube-queue in each cluster, and submit jobs there")
		return
	}
	if len(name) > maxCheckName {
		c.result.Find(d.Name(), "metadata.name", fmt.Sprintf("the name of an AdmissionCheck has at most %d characters", maxCheckName), "rename it")
		return
	}
	written := map[string]any{"controllerName": spec.ControllerName}
	if spec.ControllerName == provisioning {
		written["controllerName"] = wellknown.ProvisioningController
	} else {
		c.result.Find(d.Name(), "spec.controllerName", fmt.Sprintf("the controller %q writes its decisions into Workloads", spec.ControllerName),
			"have it write them into the status of QueueUnits before jobs are submitted: they wait until then")
	}
	if p := spec.Parameters; p != nil {
		group := p.APIGroup
		if group == Group {
			group = "scheduling.x-k8s.io"
		}
		written["parameters"] = map[string]any{"apiGroup": group, "kind": p.Kind, "name": p.Name}
	}
	if spec.RetryDelayMinutes != nil {
		c.result.Find(d.Name(), "spec.retryDelayMinutes", "the delay of a Retry is 10 s, doubling to 15 minutes, for all checks", "nothing")
	}
	c.before = append(c.before, migration.Object(apiVersion, "AdmissionCheck", "", name, map[string]any{"spec": written}))
}

// maxManaged is the maximum number of managed resources in a ProvisioningRequestConfig of kube-queue.
const maxManaged = 64

// defaultRetries is how often Kueue repeats a failed request by default.
const defaultRetries = 3

// readConfig converts a ProvisioningRequestConfig.
func (c *converter) readConfig(d migration.Document, config *provisioningRequestConfig) {
	spec := config.Spec
	written := map[string]any{"provisioningClassName": spec.ProvisioningClassName}
	if len(spec.Parameters) > 0 {
		parameters := map[string]any{}
		for name, value := range spec.Parameters {
			parameters[name] = value
		}
		written["parameters"] = parameters
	}
	if len(spec.ManagedResources) > maxManaged {
		c.result.Find(d.Name(), "spec.managedResources", fmt.Sprintf("at most %d resources are listed; the others are left out", maxManaged), "list the resources of devices only")
		spec.ManagedResources = spec.ManagedResources[:maxManaged]
	}
	if len(spec.ManagedResources) > 0 {
		written["managedResources"] = anys(spec.ManagedResources)
	}
	limit := int64(defaultRetries)
	if retry := spec.RetryStrategy; retry != nil {
		if retry.BackoffLimitCount != nil {
			limit = int64(*retry.BackoffLimitCount)
		}
		if retry.BackoffBaseSeconds != nil || retry.BackoffMaxSeconds != nil {
			c.result.Find(d.Name(), "spec.retryStrategy: backoffBaseSeconds, backoffMaxSeconds", "a request is repeated after 10 s, doubling to 15 minutes", "nothing")
		}
	}
	written["retry"] = map[string]any{"limit": limit}
	if spec.PodSetUpdates != nil {
		c.result.Find(d.Name(), "spec.podSetUpdates", "no node selector is added to pods", "set it in the pods of the jobs, or let the autoscaler match the annotations that the pods get")
	}
	switch spec.PodSetMergePolicy {
	case "":
	case "IdenticalPodTemplates": // equal pod sets are always merged
	default:
		c.result.Find(d.Name(), "spec.podSetMergePolicy", "only equal pod sets are merged", "make the templates of the pod sets equal")
	}
	c.before = append(c.before, migration.Object(apiVersion, "ProvisioningRequestConfig", "", d.Object.GetName(), map[string]any{"spec": written}))
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/provisioning"
)

// answer returns the answer of a check for a unit that holds quota. It creates the request of an attempt that has none.
func (c *Controller) answer(ctx context.Context, unit *v1alpha1.QueueUnit, entry v1alpha1.AdmissionCheckState,
	check *v1alpha1.AdmissionCheck, all []*provisioning.Request) (provisioning.Answer, error) {
	same := provisioning.Unchanged(entry)
	requested := len(entry.PodSetUpdates) > 0
	if !requested && (unit.Status.Phase != v1alpha1.PhaseReserved || entry.State != v1alpha1.CheckPending) {
		return same, nil
	}
	name, config, fault, err := c.configOf(check)
	if err != nil {
		return same, err
	}
	if requested {
		return c.follow(ctx, unit, entry, config, all)
	}
	switch {
	case fault != nil:
		return *fault, nil
	case !provisioning.IsManaged(unit, &config.Spec):
		return provisioning.Unmanaged(), nil
	case unit.Spec.ConsumerRef.UID == "":
		return byHand(), nil
	case c.api.get() == apiMissing:
		return noAPI(), nil
	}
	former := formerOf(unit, entry.Name, all)
	in := provisioning.Input{
		Unit: unit, Check: entry.Name, ConfigName: name, Config: &config.Spec, Cluster: c.Cluster, Failed: provisioning.FailedBefore(unit, former),
	}
	// The cache may not show yet that the unit had freed its quota. Two requests at a time would get the nodes twice.
	if err := c.deleteRequests(ctx, slices.DeleteFunc(former, (*provisioning.Request).Failed)); err != nil {
		return same, err
	}
	return c.request(ctx, in, entry)
}

// errNoAPI means that the API of requests is no longer served. No event shows when it is served again.
var errNoAPI = errors.New("the API of ProvisioningRequests is gone")

func noAPI() provisioning.Answer {
	return provisioning.Waiting("the cluster has no ProvisioningRequest API (CRD provisioningrequests.%s, version %s); an administrator must install an autoscaler that provides it",
		provisioning.RequestKind.Group, strings.Join(provisioning.RequestVersions(), " or "))
}

func byHand() provisioning.Answer {
	return provisioning.Answer{State: v1alpha1.CheckRejected,
		Message: "the QueueUnit was created by hand, so its pods are unknown and no nodes can be requested for them; use a queue without this check"}
}

// configOf returns the config of a check, or the answer for a check without one.
func (c *Controller) configOf(check *v1alpha1.AdmissionCheck) (string, *v1alpha1.ProvisioningRequestConfig, *provisioning.Answer, error) {
	ref := check.Spec.Parameters
	if ref == nil || ref.APIGroup != v1alpha1.GroupName || ref.Kind != "ProvisioningRequestConfig" {
		fault := provisioning.Waiting("AdmissionCheck %q names no ProvisioningRequestConfig; an administrator must set its spec.parameters to apiGroup %s, kind ProvisioningRequestConfig and a name",
			check.Name, v1alpha1.GroupName)
		return "", nil, &fault, nil
	}
	config, err := get[v1alpha1.ProvisioningRequestConfig](c.configs.GetStore(), ref.Name)
	if err != nil {
		return "", nil, nil, err
	}
	if config == nil {
		return ref.Name, nil, new(provisioning.Waiting("ProvisioningRequestConfig %q of AdmissionCheck %q does not exist; an administrator must create it", ref.Name, check.Name)), nil
	}
	return ref.Name, config, nil, nil
}

// follow returns the answer for a unit whose request was created.
func (c *Controller) follow(ctx context.Context, unit *v1alpha1.QueueUnit, entry v1alpha1.AdmissionCheckState,
	config *v1alpha1.ProvisioningRequestConfig, all []*provisioning.Request) (provisioning.Answer, error) {
	observed := provisioning.Observed{Unit: unit, Entry: entry}
	if config != nil && config.Spec.Retry != nil {
		observed.Limit = config.Spec.Retry.Limit
	}
	name := provisioning.RequestName(unit, entry.Name)
	if i := slices.IndexFunc(all, func(r *provisioning.Request) bool { return r.Name == name }); i >= 0 {
		observed.Request = all[i]
	} else if unit.Status.Phase == v1alpha1.PhaseReserved {
		// The cache may lag behind the creation of the request.
		var err error
		if observed.Request, err = c.liveRequest(ctx, unit, name); err != nil {
			return provisioning.Answer{}, err
		}
	}
	answer := provisioning.Follow(observed)
	if answer.State != v1alpha1.CheckReady || entry.State == v1alpha1.CheckReady {
		return answer, nil
	}
	return c.confirm(ctx, unit, entry, observed.Request, answer)
}

// confirm returns the answer for a provisioned request if it is for the pods that the job has now. The unit does not
// show everything that a scheduler reads, such as the node selector.
func (c *Controller) confirm(ctx context.Context, unit *v1alpha1.QueueUnit, entry v1alpha1.AdmissionCheckState,
	request *provisioning.Request, answer provisioning.Answer) (provisioning.Answer, error) {
	pods, unknown, err := c.podsOf(ctx, unit, entry)
	if unknown == nil && err == nil {
		unknown = provisioning.Changed(provisioning.Input{Unit: unit, Check: entry.Name, Cluster: c.Cluster, Pods: pods}, entry, request)
	}
	if unknown != nil {
		answer = *unknown
		answer.Updates = entry.PodSetUpdates
	}
	return answer, err
}

// podsOf returns the pods of the job, or the answer for a unit whose pods are unknown.
func (c *Controller) podsOf(ctx context.Context, unit *v1alpha1.QueueUnit, entry v1alpha1.AdmissionCheckState) ([]framework.PodSet, *provisioning.Answer, error) {
	pods, err := c.Jobs.PodsOf(ctx, unit)
	var answer provisioning.Answer
	switch {
	case errors.Is(err, reconciler.ErrNoJob):
		answer = byHand()
	case errors.Is(err, reconciler.ErrNotEnabled):
		answer = provisioning.Answer{State: v1alpha1.CheckRetry, Message: "the kind " + unit.Spec.ConsumerRef.Kind +
			" is not enabled in job-extensions, so the pods of the job are unknown; an administrator must enable it"}
	case apierrors.IsNotFound(err):
		// The unit of a job that is gone is deleted soon.
		answer = provisioning.Unchanged(entry)
	default:
		return pods, nil, err
	}
	return nil, &answer, nil
}

// request creates the objects of the attempt, unless its request exists already: then the program ended between
// creating the request and recording it.
func (c *Controller) request(ctx context.Context, in provisioning.Input, entry v1alpha1.AdmissionCheckState) (provisioning.Answer, error) {
	existing, err := c.liveRequest(ctx, in.Unit, provisioning.RequestName(in.Unit, in.Check))
	if err != nil || existing != nil {
		return provisioning.Requested(in, existing), err
	}
	pods, unknown, err := c.podsOf(ctx, in.Unit, entry)
	if err != nil {
		return provisioning.Answer{}, err
	}
	if unknown != nil {
		return *unknown, nil
	}
	in.Pods = pods
	plan, refused := provisioning.PlanOf(in)
	if refused != nil {
		return *refused, nil
	}
	created, err := c.createAll(ctx, in, plan)
	if refusal := refusedBy(err); refusal != "" {
		return provisioning.Answer{State: v1alpha1.CheckRetry, Message: refusal}, nil
	}
	if err != nil {
		return provisioning.Answer{}, err
	}
	return provisioning.Requested(in, created), nil
}

// createAll creates the templates and then the request. It first deletes templates of earlier
// attempts, and of this one if the job has changed since a crash.
func (c *Controller) createAll(ctx context.Context, in provisioning.Input, plan *provisioning.Plan) (*provisioning.Request, error) {
	if err := c.deleteTemplates(ctx, in.Unit, in.Check, plan.Templates); err != nil {
		return nil, err
	}
	c.memory.setTemplates(in.Unit.UID, true)
	for _, template := range plan.Templates {
		if _, err := c.create(ctx, in.Unit, podTemplates, template); err != nil {
			return nil, err
		}
	}
	resource := c.api.requestsIn()
	plan.Request.APIVersion = resource.GroupVersion().String()
	created, err := c.create(ctx, in.Unit, resource, plan.Request)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("creating ProvisioningRequest %s/%s: %w: %w", plan.Request.Namespace, plan.Request.Name, errNoAPI, err)
	}
	if err != nil {
		return nil, err
	}
	return decode[provisioning.Request](created)
}

// refusedBy returns the message of an error that only a person can correct; empty for others.
func refusedBy(err error) string {
	var taken *errTaken
	switch {
	case errors.As(err, &taken):
		return taken.Error()
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return "the objects of the ProvisioningRequest cannot be created: " + err.Error()
	}
	return ""
}

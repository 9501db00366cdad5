package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// figures are the wanted status and the shown status of the tree in use.
type figures struct {
	trees           dynamic.ResourceInterface
	namespace, name string
	uid             types.UID
	status, shown   quotav1beta1.ElasticQuotaTreeStatus
}

// PrepareStatus prepares the status of the tree in use.
func (s *Source) PrepareStatus(pending map[quota.NodeID]resources.Vector) func(context.Context) error {
	f := s.forest
	if f.chosen == nil {
		return nil
	}
	figures := &figures{trees: s.client.Namespace(f.chosen.GetNamespace()),
		namespace: f.chosen.GetNamespace(), name: f.chosen.GetName(), uid: f.chosen.GetUID()}
	figures.shown = manifest.Status(f.chosen)
	figures.status.ObservedGeneration = f.chosen.GetGeneration()
	figures.status.Conditions = f.overQuota(f.validity(figures.shown.Conditions))
	if f.backend != nil {
		figures.status.Nodes = s.nodes(f.backend.Usage(), pending)
	}
	return figures.show
}

// unlimitedSize is the maximum size, in bytes, of the part of the status that shows resources that no node of the tree
// names. Users can request anything, but the status must stay writable: an object has at most about 1.5 MB, and most of
// that belongs to the spec and to the names that an administrator chose.
const unlimitedSize = 64 << 10

// limitsSize is the maximum size, in bytes, of the part of the status that repeats min and max. It is enough for
// 2,000 nodes with two resources.
const limitsSize = 256 << 10

// quantitySize is the size of a number with its punctuation, in bytes.
const quantitySize = 24

// nodes returns the status of the nodes. Of the resources that no node of the tree names, each node shows as many as
// fit, and the number of the others.
func (s *Source) nodes(usage []quota.NodeUsage, pending map[quota.NodeID]resources.Vector) []quotav1beta1.ElasticQuotaNodeStatus {
	var jobs resources.IDs
	jobs.Add(s.names.ID(quota.JobsResource))
	requests := make([]resources.Vector, len(usage))
	for i, u := range usage {
		requests[i] = u.Used.Plus(pending[quota.NodeID(i)].Without(jobs))
	}
	named := quota.Named(usage)
	most := quota.MostUnlimited
	for most > 0 && s.unlimited(requests, named, most) > unlimitedSize {
		most /= 2
	}
	repeats := s.limits(usage) <= limitsSize
	nodes := make([]quotav1beta1.ElasticQuotaNodeStatus, len(usage))
	for i, u := range usage {
		if !repeats {
			u.Min, u.Max = nil, nil
		}
		shown := quota.Show(requests[i], named, most)
		nodes[i] = quotav1beta1.ElasticQuotaNodeStatus{Path: u.Path, Jobs: int32(u.Jobs), OmittedResources: int32(shown.Omitted),
			Min: s.list(u.Min), Max: s.list(u.Max), Used: s.list(shown.Of(u.Used)), Unqueued: s.list(shown.Of(u.Unqueued)), Borrowed: s.list(shown.Of(u.Borrowed)), Request: s.list(shown.Of(requests[i]))}
	}
	return nodes
}

// unlimited returns the maximum size, in bytes, of the part of the status that shows resources that no node names, with
// at most this many per node.
func (s *Source) unlimited(requests []resources.Vector, named resources.IDs, most int) int {
	const lists = 3 // used, unqueued and request
	size := 0
	for _, request := range requests {
		for _, a := range quota.Show(request, named, most).Of(request).Without(named) {
			size += lists * (len(s.names.Name(a.ID)) + quantitySize)
		}
	}
	return size
}

// limits returns the maximum size, in bytes, of the part of the status that repeats min and max.
func (s *Source) limits(usage []quota.NodeUsage) (size int) {
	for _, u := range usage {
		for _, list := range []resources.Vector{u.Min, u.Max} {
			for _, a := range list {
				size += len(s.names.Name(a.ID)) + quantitySize
			}
		}
	}
	return size
}

func (s *Source) list(v resources.Vector) corev1.ResourceList {
	if len(v) == 0 {
		return nil
	}
	return resources.Quantities[corev1.ResourceName](s.names, v)
}

// validity returns the conditions with the condition Valid. Its time changes only with its status.
func (f *forest) validity(shown []metav1.Condition) []metav1.Condition {
	now := metav1.Condition{Type: wellknown.ConditionValid, Status: metav1.ConditionTrue, Reason: string(wellknown.ReasonInForce),
		Message: "The tree is in force.", ObservedGeneration: f.chosen.GetGeneration()}
	if len(f.warnings) > 0 {
		now.Message = lifecycle.Shorten("The tree is in force, with warnings: " + strings.Join(f.warnings, "; "))
	}
	if f.problem != "" {
		now.Status, now.Reason, now.Message = metav1.ConditionFalse, string(wellknown.ReasonInvalidQuotaTree), lifecycle.Shorten(f.problem)
		now.LastTransitionTime = metav1.NewTime(f.since)
	}
	conditions := slices.Clone(shown)
	apimeta.SetStatusCondition(&conditions, now)
	return conditions
}

// overQuota adds the condition OverQuota, unless no limit of the tree was ever exceeded. After a start, the condition
// stays unchanged until the excesses are known.
func (f *forest) overQuota(conditions []metav1.Condition) []metav1.Condition {
	now := metav1.Condition{Type: wellknown.ConditionOverQuota, Status: metav1.ConditionFalse, Reason: string(wellknown.ReasonWithinLimits),
		Message: "All nodes of the tree are within their limits."}
	if len(f.excesses) > 0 {
		messages := make([]string, len(f.excesses))
		for i, excess := range f.excesses {
			messages[i] = excess.Message()
		}
		now.Status, now.Reason, now.Message = metav1.ConditionTrue, string(wellknown.ReasonLimitExceeded), lifecycle.Shorten(strings.Join(messages, "; "))
	} else if !f.excessesKnown || apimeta.FindStatusCondition(conditions, wellknown.ConditionOverQuota) == nil {
		return conditions
	}
	apimeta.SetStatusCondition(&conditions, now)
	return conditions
}

// show writes the status, unless the tree already shows it.
func (f *figures) show(ctx context.Context) error {
	if apiequality.Semantic.DeepEqual(f.shown, f.status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": f.uid},
		// Null removes what a merge patch would otherwise keep.
		"status": map[string]any{"observedGeneration": f.status.ObservedGeneration, "conditions": f.status.Conditions, "nodes": f.status.Nodes},
	})
	if err != nil {
		return fmt.Errorf("tree %s/%s: %w", f.namespace, f.name, err)
	}
	_, err = f.trees.Patch(ctx, f.name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted or re-created: the next figures are for the new tree
		return nil
	}
	if err != nil {
		return fmt.Errorf("tree %s/%s: status: %w", f.namespace, f.name, err)
	}
	f.shown = f.status
	return nil
}

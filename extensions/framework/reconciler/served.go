package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// fill runs the cache of a kind once the API server serves it.
func (f *Framework) fill(ctx context.Context, r *reconciler) {
	kind := r.adapter.Kind()
	backoff := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.1, Steps: 8, Cap: 10 * time.Second}
	missing := false
	versions := strings.Join(kind.Versions(), " or ")
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_, served, err := f.serves(kind)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Whether a kind is served is not known yet", "kind", kind.Kind, "err", err)
			return false, nil
		}
		f.opts.Metrics.Missing(kind.Name, !served)
		if !served && !missing {
			missing = true
			klog.FromContext(ctx).Info("A kind is not served: its CRD is waited for", "kind", kind.Kind, "resource", kind.Resource, "group", kind.Group, "version", versions, "with", kind.Related.Resource)
		}
		return served, nil
	})
	if err != nil {
		return
	}
	if r.remains != nil {
		go r.remains.RunWithContext(ctx)
	}
	if r.related != nil {
		go r.related.RunWithContext(ctx)
	}
	r.cached.RunWithContext(ctx)
}

// servesAll asks the API server whether it knows all of the resources.
func (f *Framework) servesAll(gv schema.GroupVersion, resources []string) (bool, error) {
	list, err := f.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", gv, err)
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(list.APIResources, func(served metav1.APIResource) bool { return served.Name == resource }) {
			return false, nil
		}
	}
	return true, nil
}

// warnIfNothingHolds says at start what an older cluster cannot do.
func (f *Framework) warnIfNothingHolds(ctx context.Context) {
	served, err := f.servesAll(schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}, []string{"mutatingadmissionpolicies"})
	if err != nil || served {
		return
	}
	klog.FromContext(ctx).Info("Warning: this cluster has no MutatingAdmissionPolicy (Kubernetes 1.36): a job that carries only the annotation"+
		" is suspended right after it was created, and some of its pods may appear before; jobs created suspended are not affected",
		"annotation", wellknown.SuspendAnnotation)
}

// serves reports the best version of the kind in which the API server has both the
// jobs and what may remain of them. What they are read along with must be served too.
func (f *Framework) serves(kind framework.Kind) (version string, found bool, err error) {
	if related := kind.Related; related.Resource != "" {
		found, err := f.servesAll(related.GroupVersion(), []string{related.Resource})
		if err != nil || !found {
			return "", false, err
		}
	}
	for _, version := range kind.Versions() {
		resources := []string{kind.Resource}
		if kind.Remains != "" {
			resources = append(resources, kind.Remains)
		}
		found, err := f.servesAll(schema.GroupVersion{Group: kind.Group, Version: version}, resources)
		if err != nil || found {
			return version, found, err
		}
	}
	return "", false, nil
}

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

// fill starts the cache of a kind as soon as the API server serves the kind.
func (f *Framework) fill(ctx context.Context, r *reconciler) {
	kind := r.adapter.Kind()
	missing := false
	versions := strings.Join(kind.Versions(), " or ")
	err := Retry(ctx, func() (done bool) {
		_, served, err := f.serves(kind)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to discover a kind, retrying", "kind", kind.Kind, "err", err)
			return false
		}
		if r.annotated {
			return served // it need not be installed
		}
		f.Metrics.Missing(kind.Name, !served)
		if !served && !missing {
			missing = true
			klog.FromContext(ctx).Info("Waiting for the CRD of an enabled kind", "kind", kind.Kind, "resource", kind.Resource, "group", kind.Group, "version", versions, "with", kind.Related.Resource)
		}
		return served
	})
	if err != nil {
		return
	}
	for _, informer := range r.caches() {
		go informer.RunWithContext(ctx)
	}
}

// Retry repeats a step until it is done, at first after a second, then less and less often. The error is that of ctx.
func Retry(ctx context.Context, step func() (done bool)) error {
	backoff := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.1, Steps: 8, Cap: 10 * time.Second}
	return backoff.DelayFunc().Until(ctx, true, true, func(context.Context) (bool, error) { return step(), nil })
}

// Serves reports whether the API server serves all of the resources.
func (f *Framework) Serves(gv schema.GroupVersion, resources ...string) (bool, error) {
	list, err := f.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discovering the resources of %s: %w", gv, err)
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(list.APIResources, func(served metav1.APIResource) bool { return served.Name == resource }) {
			return false, nil
		}
	}
	return true, nil
}

// warnIfNothingHolds logs at start if marked jobs are suspended late.
func (f *Framework) warnIfNothingHolds(ctx context.Context) {
	if f.Webhook {
		return
	}
	served, err := f.Serves(schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}, "mutatingadmissionpolicies")
	if err != nil || served {
		return
	}
	klog.FromContext(ctx).Info("Warning: the API server does not serve MutatingAdmissionPolicy (Kubernetes 1.36 or later), and no webhook"+
		" holds jobs (--webhook-bind-address; chart value holdPolicies.by), so a job with only the annotation is suspended right after its creation and some of its pods may start;"+
		" jobs that are created suspended are not affected", "annotation", wellknown.SuspendAnnotation)
}

// serves returns the best version of the kind for which the API server serves both the jobs and the objects of
// Kind.Remains. It must also serve those of Kind.Related.
func (f *Framework) serves(kind framework.Kind) (version string, found bool, err error) {
	if related := kind.Related; related.Resource != "" {
		found, err := f.Serves(related.GroupVersion(), related.Resource)
		if err != nil || !found {
			return "", false, err
		}
	}
	for _, version := range kind.Versions() {
		resources := []string{kind.Resource}
		if kind.Remains != "" {
			resources = append(resources, kind.Remains)
		}
		found, err := f.Serves(schema.GroupVersion{Group: kind.Group, Version: version}, resources...)
		if err != nil || found {
			return version, found, err
		}
	}
	return "", false, nil
}

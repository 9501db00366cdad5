package reconciler

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Reporter returns a function that is called with the result of each list and watch of a resource. It reports
// immediately if job-extensions is not allowed to list or watch it, and so sees none of the objects.
func (f *Framework) Reporter(resource schema.GroupVersionResource) lenient.Report {
	name := resource.GroupResource().String()
	var mu sync.Mutex
	forbidden := false
	return func(err error) {
		denied := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
		if err != nil && !denied {
			return // it says nothing about permissions
		}
		mu.Lock()
		defer mu.Unlock()
		f.Metrics.Forbidden(name, denied)
		switch {
		case denied && !forbidden:
			klog.Background().Error(err, "job-extensions may not list or watch a resource, so it sees none of its objects; if they are jobs, add their kind to annotationExtensions of the chart; otherwise grant list and watch to ServiceAccount job-extensions (ClusterRole kube-queue-job-extensions)", "resource", name)
		case !denied && forbidden:
			klog.Background().Info("job-extensions may list and watch a resource again", "resource", name)
		}
		forbidden = denied
	}
}

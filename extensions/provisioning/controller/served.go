package controller

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/provisioning"
)

// apiState is the known state of the API of requests.
type apiState int32

const (
	// apiUnknown: not looked up yet, or the cache of requests is being filled.
	apiUnknown apiState = iota
	// apiMissing: the API server does not serve it.
	apiMissing
	// apiReady: the cache of requests is filled.
	apiReady
)

// api is the state of the API of requests, and whether it is needed.
type api struct {
	state atomic.Int32
	// requests has the version of the requests; nil while none is known to be served.
	requests atomic.Pointer[schema.GroupVersionResource]
	once     sync.Once
	needed   chan struct{}
}

func (a *api) get() apiState { return apiState(a.state.Load()) }

// set sets the state, and reports whether it has changed.
func (a *api) set(state apiState) bool { return a.state.Swap(int32(state)) != int32(state) }

// need reports that a check of this controller exists, or that requests of a former check may exist.
func (a *api) need() { a.once.Do(func() { close(a.needed) }) }

// requestsIn returns the resource of requests in the version that is used.
func (a *api) requestsIn() schema.GroupVersionResource {
	if served := a.requests.Load(); served != nil {
		return *served
	}
	return provisioning.RequestResource
}

// Start fills the caches in the background, as soon as the API server serves their objects.
func (c *Controller) Start(ctx context.Context) { go c.fill(ctx) }

func (c *Controller) fill(ctx context.Context) {
	own := func() (bool, error) { return c.Serves(checks.GroupVersion(), checks.Resource, configs.Resource) }
	if !c.await(ctx, checks.Group, own, func() {}) {
		return
	}
	go c.checks.RunWithContext(ctx)
	go c.configs.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.checks.HasSynced, c.configs.HasSynced, c.Units.HasSynced) {
		return
	}
	c.queueAll()
	select {
	case <-ctx.Done():
		return
	case <-c.api.needed:
	}
	missing := func() {
		if c.api.set(apiMissing) {
			klog.FromContext(ctx).Info("Waiting for the CRD of ProvisioningRequest, because an AdmissionCheck needs it",
				"group", provisioning.RequestKind.Group, "versions", provisioning.RequestVersions())
			c.queueAll()
		}
	}
	if !c.await(ctx, provisioning.RequestKind.Group, c.servesRequests, missing) {
		return
	}
	go c.requests.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.requests.HasSynced) {
		return
	}
	c.api.set(apiReady)
	c.queueAll()
}

// servesRequests reports whether requests are served, and stores in which version.
func (c *Controller) servesRequests() (bool, error) {
	for _, version := range provisioning.RequestVersions() {
		in := provisioning.RequestResource.GroupResource().WithVersion(version)
		served, err := c.Serves(in.GroupVersion(), in.Resource)
		if served {
			c.api.requests.Store(&in)
		}
		if served || err != nil {
			return served, err
		}
	}
	return false, nil
}

// await returns true when resources of the API group are served, and false if ctx is done first.
func (c *Controller) await(ctx context.Context, group string, serves func() (bool, error), missing func()) bool {
	return reconciler.Retry(ctx, func() (done bool) {
		served, err := serves()
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to discover resources, retrying", "group", group, "err", err)
			return false
		}
		if !served {
			missing()
		}
		return served
	}) == nil
}

// findTemplates finds templates that an earlier leader may have left behind, if it ended between creating them and
// creating their request. Each request has templates, so this also shows whether there are requests whose check is
// gone.
func (c *Controller) findTemplates(ctx context.Context) {
	// An error means that ctx is done.
	_ = reconciler.Retry(ctx, func() (done bool) {
		err := c.noteTemplates(ctx)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to list PodTemplates, retrying")
		}
		return err == nil
	})
}

func (c *Controller) noteTemplates(ctx context.Context) error {
	list, err := c.Client.Resource(podTemplates).List(ctx, metav1.ListOptions{LabelSelector: wellknown.UnitUIDLabel})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if owner := unitOf(&list.Items[i]); owner != nil {
			c.api.need()
			c.memory.setTemplates(owner.UID, true)
			c.queue.Add(types.NamespacedName{Namespace: list.Items[i].GetNamespace(), Name: owner.Name})
		}
	}
	return nil
}

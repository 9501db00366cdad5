package reconciler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// servedVersions returns the best version in which the API server serves a kind and the resources that it needs;
// found is false if it serves none.
type servedVersions func(kind framework.Kind) (version string, found bool, err error)

// recheckInterval is how often to check for a better version while only an older one is
// served.
const recheckInterval = 15 * time.Second

// versionedJobs reads and patches jobs in the best served version, because a patch through an older version drops
// fields that only a newer one has. It checks the served version at each list and watch, and at each patch through an
// older version: the API server does not report new versions, and does not add all their resources at the same time.
type versionedJobs struct {
	kind    framework.Kind
	clients map[string]*lenient.Client
	served  servedVersions
	// now is the version that was last found served; listed is the version that the cached jobs were read in.
	now, listed *atomic.Pointer[string]
	clock       clock.WithTicker
}

func newVersioned(config *rest.Config, adapter framework.Adapter, served servedVersions, clock clock.WithTicker) (versionedJobs, error) {
	kind := adapter.Kind()
	clients, err := clientsOf(config, kind, func(version string) lenient.Kind { return decision.ReadAs(adapter, version) })
	v := versionedJobs{kind: kind, clients: clients, served: served, clock: clock,
		now: &atomic.Pointer[string]{}, listed: &atomic.Pointer[string]{}}
	v.now.Store(&kind.Version)
	v.listed.Store(&kind.Version)
	return v, err
}

// clientsOf returns the clients for the versions of a kind. described describes the objects of a version.
func clientsOf(config *rest.Config, kind framework.Kind, described func(version string) lenient.Kind) (map[string]*lenient.Client, error) {
	clients := map[string]*lenient.Client{}
	for _, version := range kind.Versions() {
		client, err := lenient.NewForConfig(config, described(version))
		if err != nil {
			return nil, err
		}
		clients[version] = client
	}
	return clients, nil
}

// Version returns the version that was last found served.
func (v versionedJobs) Version() string { return *v.now.Load() }

// choose determines which version is served now, if the kind has several.
func (v versionedJobs) choose() (string, error) {
	if len(v.clients) == 1 {
		return v.kind.Version, nil
	}
	version, found, err := v.served(v.kind)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("the API server serves %s in none of the versions %v", v.kind.Resource, v.kind.Versions())
	}
	v.now.Store(&version)
	return version, nil
}

func (v versionedJobs) Get(ctx context.Context, namespace, name string) (lenient.Object, error) {
	return v.clients[v.Version()].Get(ctx, namespace, name)
}

func (v versionedJobs) GetJSON(ctx context.Context, namespace, name string) ([]byte, error) {
	return v.clients[v.Version()].GetJSON(ctx, namespace, name)
}

// Patch sends a patch, and returns the resourceVersion of the patched job.
func (v versionedJobs) Patch(ctx context.Context, kind types.PatchType, namespace, name string, patch []byte, subresources ...string) (string, error) {
	version := v.Version()
	if version != v.kind.Version {
		var err error
		if version, err = v.choose(); err != nil {
			return "", err
		}
	}
	return v.clients[version].Patch(ctx, kind, namespace, name, patch, subresources...)
}

func (v versionedJobs) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(lenient.Object) error) (metav1.ListMeta, error) {
	version := *v.listed.Load()
	if opts.Continue == "" { // otherwise the list continues in its version
		var err error
		if version, err = v.choose(); err != nil {
			return metav1.ListMeta{}, err
		}
		v.listed.Store(&version)
	}
	return v.clients[version].Each(ctx, namespace, opts, each)
}

// Watch reports changes of jobs. Jobs that were listed in another version must be listed
// again.
func (v versionedJobs) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	listed := *v.listed.Load()
	version, err := v.choose()
	switch {
	case err != nil:
		version = listed // a failed check is no reason to list all jobs again
	case listed != version:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("%s were listed in version %s and are now served in %s", v.kind.Resource, listed, version))
	}
	watched, err := v.clients[version].Watch(ctx, namespace, opts)
	if err != nil || version == v.kind.Version {
		return watched, err
	}
	return v.until(ctx, watched, version), nil
}

// until ends a watch when another version becomes the best one.
func (v versionedJobs) until(ctx context.Context, watched watch.Interface, version string) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticker := v.clock.NewTicker(recheckInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			if best, err := v.choose(); err == nil && best != version {
				watched.Stop()
				return
			}
		}
	}()
	return endedWatch{watched, cancel}
}

// endedWatch is a watch that calls a function when it is stopped, which every reader
// eventually does.
type endedWatch struct {
	watch.Interface
	stopped func()
}

func (w endedWatch) Stop() {
	w.stopped()
	w.Interface.Stop()
}

// servedKind returns the kind with the version that its jobs are read in.
func (r *reconciler) servedKind() schema.GroupVersionKind {
	return r.kind.WithVersion(r.jobs.Version())
}

package controller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/test/require"
)

// The controller looks for the API of requests only when a check needs it, uses it when it appears, and
// ends with its context.
func TestTheControllerRunsWithItsOwnCaches(t *testing.T) {
	w := newWorld(t)
	w.remove(checks, "", "nodes")
	w.reserve("nodes")
	var served, asked atomic.Bool
	c, stop := w.run(func(gv schema.GroupVersion, _ ...string) (bool, error) {
		if gv.Group != provisioning.RequestKind.Group {
			return true, nil
		}
		asked.Store(true)
		return served.Load(), nil
	})
	require.Becomes(t, "the checks are listed", func() bool {
		return c.checks.HasSynced() && c.configs.HasSynced() && c.Units.HasSynced()
	})
	if asked.Load() {
		t.Error("somebody looks for the API of requests without a check that needs it")
	}
	w.add(checks, nodesCheck)
	require.Becomes(t, "the API of requests is missing", func() bool { return c.api.get() == apiMissing })
	served.Store(true)
	require.Becomes(t, "a request is created", func() bool {
		return slices.Contains(w.names(provisioning.RequestResource), unitName+"-nodes-1")
	})
	stop()
}

// As in GKE.
func TestAnAutoscalerThatKnowsOnlyTheOlderVersionIsAskedInIt(t *testing.T) {
	w := newWorld(t)
	w.reserve("nodes")
	c, stop := w.run(func(gv schema.GroupVersion, _ ...string) (bool, error) {
		return gv != provisioning.RequestKind.GroupVersion(), nil
	})
	require.Becomes(t, "a request is created", func() bool { return len(w.names(older)) > 0 })
	if request := w.all(older)[0]; request.GetName() != unitName+"-nodes-1" || request.GetAPIVersion() != "autoscaling.x-k8s.io/v1beta1" {
		t.Errorf("the request is %s %s", request.GetAPIVersion(), request.GetName())
	}
	require.Becomes(t, "it is cached", func() bool { return len(c.requests.GetStore().ListKeys()) == 1 })
	w.move(v1alpha1.PhaseSucceeded)
	require.Becomes(t, "it is deleted", func() bool { return len(w.names(older)) == 0 })
	stop()
}

// A request must not outlive its job because an administrator has removed the check in the meantime.
func TestRequestsOfACheckThatIsGoneAreDeleted(t *testing.T) {
	const meta = `metadata: {name: left, namespace: team, uid: UID, labels: {kube-queue/queue-unit-uid: u1, kube-queue/admission-check: nodes},
		ownerReferences: [{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, name: ` + unitName + `, uid: u1, controller: true}]}`
	w := newWorld(t)
	w.remove(checks, "", "nodes")
	w.move(v1alpha1.PhaseSucceeded)
	w.add(podTemplates, `{apiVersion: v1, kind: PodTemplate, `+meta+`}`)
	w.add(provisioning.RequestResource, `{apiVersion: autoscaling.x-k8s.io/v1, kind: ProvisioningRequest, `+meta+`}`)
	_, stop := w.run(func(schema.GroupVersion, ...string) (bool, error) { return true, nil })
	require.Becomes(t, "nothing is left", func() bool {
		return len(w.names(podTemplates))+len(w.names(provisioning.RequestResource)) == 0
	})
	stop()
}

func unreported(schema.GroupVersionResource) lenient.Report { return func(error) {} }

// run runs a controller with caches of its own until stop.
func (w *world) run(serves func(schema.GroupVersion, ...string) (bool, error)) (c *Controller, stop func()) {
	w.t.Helper()
	units := informerOf(Options{Client: w.client, Reporter: unreported}, always(queueUnits), cache.Indexers{})
	require.NoError(w.t, units.SetTransform(func(obj any) (any, error) { return decode[v1alpha1.QueueUnit](obj) }))
	c, err := New(Options{Client: w.client, Reporter: unreported, Units: units, Jobs: w, Cluster: adaptertest.Usual(), Events: w, Clock: clock.RealClock{},
		Serves: serves})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { units.RunWithContext(ctx) })
	c.Start(ctx)
	running.Go(func() {
		if err := c.Work(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return c, func() {
		cancel()
		running.Wait()
	}
}

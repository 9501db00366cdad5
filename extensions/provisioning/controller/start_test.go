package controller

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// silence discards events.
type silence struct{}

func (silence) Write(events.Event) {}

// fixed are the pods of each job.
type fixed []framework.PodSet

func (f fixed) PodsOf(context.Context, *v1alpha1.QueueUnit) ([]framework.PodSet, error) {
	return f, nil
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func(ctx context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		t.Fatalf("never: %s", what)
	}
}

// The controller looks for the API of requests only when a check needs it, uses it when it appears, and
// ends with its context.
func TestTheControllerRunsWithItsOwnCaches(t *testing.T) {
	const check = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: nodes}, spec: {controllerName: kube-queue.dev/provisioning-request,
		parameters: {apiGroup: scheduling.x-k8s.io, kind: ProvisioningRequestConfig, name: gpus}}}`
	const config = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ProvisioningRequestConfig, metadata: {name: gpus}, spec: {provisioningClassName: class.example.com}}`
	const unit = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: unit, namespace: team, uid: u1},
		spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: train, uid: j1}, podSets: [{name: main, count: 1}]},
		status: {phase: Reserved, reservations: 1, admissionChecks: [{name: nodes, state: Pending}]}}`
	client := newClient()
	var served, asked atomic.Bool
	c, stop := run(t, client, func(gv schema.GroupVersion, _ ...string) (bool, error) {
		if gv != provisioning.RequestKind.GroupVersion() {
			return true, nil
		}
		asked.Store(true)
		return served.Load(), nil
	})
	eventually(t, "the checks are listed", func(context.Context) bool {
		return c.checks.HasSynced() && c.configs.HasSynced() && c.Units.HasSynced()
	})
	if asked.Load() {
		t.Error("somebody looks for the API of requests without a check that needs it")
	}
	create(t, client, queueUnits, unit)
	create(t, client, configs, config)
	create(t, client, checks, check)
	eventually(t, "the API of requests is missing", func(context.Context) bool { return c.api.get() == apiMissing })
	served.Store(true)
	eventually(t, "a request is created", func(ctx context.Context) bool {
		list, err := client.Resource(provisioning.RequestResource).Namespace(team).List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == "unit-nodes-1" })
	})
	stop()
}

// A request must not outlive its job because an administrator has removed the check in the meantime.
func TestRequestsOfACheckThatIsGoneAreDeleted(t *testing.T) {
	const meta = `metadata: {name: left, namespace: team, uid: UID, labels: {kube-queue/queue-unit-uid: u1, kube-queue/admission-check: nodes},
		ownerReferences: [{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, name: unit, uid: u1, controller: true}]}`
	client := newClient()
	create(t, client, queueUnits, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: unit, namespace: team, uid: u1},
		spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: train, uid: j1}}, status: {phase: Succeeded}}`)
	create(t, client, podTemplates, `{apiVersion: v1, kind: PodTemplate, `+meta+`}`)
	create(t, client, provisioning.RequestResource, `{apiVersion: autoscaling.x-k8s.io/v1, kind: ProvisioningRequest, `+meta+`}`)
	_, stop := run(t, client, func(schema.GroupVersion, ...string) (bool, error) { return true, nil })
	eventually(t, "nothing is left", func(ctx context.Context) bool {
		left := 0
		for _, resource := range []schema.GroupVersionResource{podTemplates, provisioning.RequestResource} {
			list, err := client.Resource(resource).Namespace(team).List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Error(err)
				return true
			}
			left += len(list.Items)
		}
		return left == 0
	})
	stop()
}

func unreported(schema.GroupVersionResource) lenient.Report { return func(error) {} }

func newClient() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		queueUnits: "QueueUnitList", checks: "AdmissionCheckList", configs: "ProvisioningRequestConfigList",
		podTemplates: "PodTemplateList", provisioning.RequestResource: "ProvisioningRequestList"})
}

// run runs a controller until stop.
func run(t *testing.T, client dynamic.Interface, serves func(schema.GroupVersion, ...string) (bool, error)) (c *Controller, stop func()) {
	t.Helper()
	units := informerOf(Options{Client: client, Reporter: unreported}, queueUnits, cache.Indexers{})
	// The fake client has no versions of objects.
	var version atomic.Int64
	if err := units.SetTransform(func(obj any) (any, error) {
		typed, err := decode[v1alpha1.QueueUnit](obj)
		if err == nil {
			typed.ResourceVersion = strconv.Itoa(int(version.Add(1)))
		}
		return typed, err
	}); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Client: client, Reporter: unreported, Units: units, Cluster: adaptertest.Usual(), Events: silence{}, Clock: clock.RealClock{},
		Jobs:   fixed{{Name: "main", Count: 1, Template: template(t, "{containers: [{name: main, image: train}]}")}},
		Serves: serves})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { units.RunWithContext(ctx) })
	c.Start(ctx)
	running.Go(func() {
		if err := c.Work(ctx); err != nil {
			t.Error(err)
		}
	})
	return c, func() {
		cancel()
		running.Wait()
	}
}

func create(t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

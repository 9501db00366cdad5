package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/test/require"
)

// errDead is the error that a killed program gets.
var errDead = errors.New("the program was killed")

// older is the API of requests in its older version.
var older = provisioning.RequestResource.GroupResource().WithVersion("v1beta1")

const team, unitName = "team", "train-job-0123456789"

// nodesCheck is an AdmissionCheck of the controller, and gpusConfig its config.
const nodesCheck = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: nodes}, spec: {controllerName: kube-queue.dev/provisioning-request,
	parameters: {apiGroup: scheduling.x-k8s.io, kind: ProvisioningRequestConfig, name: gpus}}}`

const gpusConfig = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ProvisioningRequestConfig, metadata: {name: gpus}, spec: {provisioningClassName: class.example.com}}`

// world is an API server with versions, UIDs and preconditions, and what others do there.
type world struct {
	t      *testing.T
	client *dynamicfake.FakeDynamicClient
	clock  *clocktesting.FakeClock
	kinds  map[schema.GroupVersionResource]string
	// served is false while there is no API of requests.
	served bool
	pods   []framework.PodSet
	// gone is the error when the job is read.
	gone error

	writes, uids int
	version      atomic.Int64 // the test changes objects while the controller runs
	log          []string
	// dieAfter is the number of writes after which the program is killed; negative: never.
	dieAfter int
	// refuse is the error of the next write to a resource.
	refuse map[string]error
	events []events.Event
}

func (w *world) Write(e events.Event) { w.events = append(w.events, e) }

// PodsOf returns the pods of the only job.
func (w *world) PodsOf(context.Context, *v1alpha1.QueueUnit) ([]framework.PodSet, error) {
	return w.pods, w.gone
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), served: true, dieAfter: -1, refuse: map[string]error{},
		kinds: map[schema.GroupVersionResource]string{
			queueUnits: "QueueUnit", checks: "AdmissionCheck", configs: "ProvisioningRequestConfig",
			podTemplates: "PodTemplate", provisioning.RequestResource: "ProvisioningRequest", older: "ProvisioningRequest",
		}}
	lists := map[schema.GroupVersionResource]string{}
	for resource, kind := range w.kinds {
		lists[resource] = kind + "List"
	}
	w.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	w.client.PrependReactor("*", "*", w.react)
	w.pods = []framework.PodSet{{Name: "main", Count: 4, Template: template(t, "{nodeSelector: {gpu: h100}, containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]}")}}
	w.add(checks, nodesCheck)
	w.add(checks, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: budget}, spec: {controllerName: example.com/budget}}`)
	w.add(configs, gpusConfig)
	w.add(queueUnits, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: `+unitName+`, namespace: team, uid: u1},
		spec: {consumerRef: {apiVersion: batch/v1, kind: Job, namespace: team, name: train, uid: j1}, podSets: [{name: main, count: 4, requests: {cpu: "1"}}]},
		status: {phase: Enqueued}}`)
	return w
}

// requested returns a world in which there is a request for the unit, and a program that has created it.
func requested(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	w.reserve("nodes")
	return w, w.settle(w.start())
}

func template(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	into := &corev1.PodTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &into.Spec))
	return into
}

// react is the API server in front of the plain store of the fake client.
func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if w.dieAfter == 0 {
		return true, nil, errDead
	}
	verb, resource := action.GetVerb(), action.GetResource()
	if resource == provisioning.RequestResource && !w.served {
		return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
	}
	if verb == "get" || verb == "list" || verb == "watch" {
		return false, nil, nil
	}
	if err := w.refuse[resource.Resource]; err != nil {
		delete(w.refuse, resource.Resource)
		return true, nil, err
	}
	object, err := w.write(action)
	if err == nil {
		w.writes++
		w.dieAfter--
		w.log = append(w.log, verb+" "+resource.Resource)
	}
	return true, object, err
}

func (w *world) write(action clienttesting.Action) (runtime.Object, error) {
	tracker, resource, namespace := w.client.Tracker(), action.GetResource(), action.GetNamespace()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		object := action.GetObject().DeepCopyObject().(*unstructured.Unstructured)
		w.stamp(object)
		w.uids++
		object.SetUID(types.UID("uid-" + strconv.Itoa(w.uids)))
		return object, tracker.Create(resource, object, namespace)
	case clienttesting.PatchActionImpl:
		found, err := tracker.Get(resource, namespace, action.GetName())
		if err != nil {
			return nil, err
		}
		object := found.DeepCopyObject().(*unstructured.Unstructured)
		var patch struct {
			Metadata struct{ ResourceVersion, UID string }
			Status   map[string]any
		}
		if err := json.Unmarshal(action.GetPatch(), &patch); err != nil {
			return nil, err
		}
		if patch.Metadata.ResourceVersion != object.GetResourceVersion() || patch.Metadata.UID != string(object.GetUID()) || action.GetSubresource() != "status" {
			return nil, apierrors.NewConflict(resource.GroupResource(), action.GetName(), errors.New("changed"))
		}
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		maps.Copy(status, patch.Status)
		object.Object["status"] = status
		w.stamp(object)
		return object, tracker.Update(resource, object, namespace)
	case clienttesting.DeleteActionImpl:
		found, err := tracker.Get(resource, namespace, action.GetName())
		if err != nil {
			return nil, err
		}
		if want := action.GetDeleteOptions().Preconditions; want == nil || want.UID == nil || *want.UID != found.(*unstructured.Unstructured).GetUID() {
			return nil, apierrors.NewConflict(resource.GroupResource(), action.GetName(), errors.New("another object"))
		}
		return nil, tracker.Delete(resource, namespace, action.GetName())
	}
	return nil, fmt.Errorf("no answer to %T", action)
}

func (w *world) stamp(object *unstructured.Unstructured) {
	object.SetResourceVersion(strconv.FormatInt(w.version.Add(1), 10))
}

// add creates an object as another client.
func (w *world) add(resource schema.GroupVersionResource, text string) {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(text), &object.Object))
	w.stamp(object)
	require.NoError(w.t, w.client.Tracker().Create(resource, object, object.GetNamespace()))
}

// remove deletes an object as another client.
func (w *world) remove(resource schema.GroupVersionResource, namespace, name string) {
	w.t.Helper()
	require.NoError(w.t, w.client.Tracker().Delete(resource, namespace, name))
}

// change changes an object as another client.
func (w *world) change(resource schema.GroupVersionResource, namespace, name string, change func(object map[string]any)) {
	w.t.Helper()
	found, err := w.client.Tracker().Get(resource, namespace, name)
	require.NoError(w.t, err)
	object := found.DeepCopyObject().(*unstructured.Unstructured)
	change(object.Object)
	w.stamp(object)
	require.NoError(w.t, w.client.Tracker().Update(resource, object, namespace))
}

func (w *world) all(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	w.t.Helper()
	list, err := w.client.Tracker().List(resource, resource.GroupVersion().WithKind(w.kinds[resource]), "")
	require.NoError(w.t, err)
	var all []*unstructured.Unstructured
	for i := range list.(*unstructured.UnstructuredList).Items {
		all = append(all, &list.(*unstructured.UnstructuredList).Items[i])
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

func (w *world) names(resource schema.GroupVersionResource) (names []string) {
	for _, object := range w.all(resource) {
		names = append(names, object.GetName())
	}
	return names
}

// reserve makes the queue controller reserve quota for the unit, with one or more checks.
func (w *world) reserve(names ...string) {
	w.change(queueUnits, team, unitName, func(object map[string]any) {
		status := object["status"].(map[string]any)
		attempt, _ := status["reservations"].(int64)
		var entries []any
		for _, name := range names {
			entries = append(entries, map[string]any{"name": name, "state": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"})
		}
		object["status"] = map[string]any{"phase": "Reserved", "reservations": attempt + 1, "admissionChecks": entries}
	})
}

// move moves the unit to a phase. One without quota has no checks.
func (w *world) move(phase v1alpha1.QueueUnitPhase) {
	w.change(queueUnits, team, unitName, func(object map[string]any) {
		status := object["status"].(map[string]any)
		status["phase"] = string(phase)
		if !phase.HoldsQuota() {
			delete(status, "admissionChecks")
		}
	})
}

// report makes the autoscaler set a condition of the only request.
func (w *world) report(condition, status, reason, message string) {
	w.t.Helper()
	requests := w.all(provisioning.RequestResource)
	if len(requests) != 1 {
		w.t.Fatalf("the requests are %v", w.names(provisioning.RequestResource))
	}
	w.change(provisioning.RequestResource, team, requests[0].GetName(), func(object map[string]any) {
		all, _, _ := unstructured.NestedSlice(object, "status", "conditions")
		all = slices.DeleteFunc(all, func(c any) bool { return c.(map[string]any)["type"] == condition })
		object["status"] = map[string]any{"conditions": append(all, map[string]any{
			"type": condition, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"})}
	})
}

func (w *world) unit() *v1alpha1.QueueUnit {
	w.t.Helper()
	found, err := w.client.Tracker().Get(queueUnits, team, unitName)
	require.NoError(w.t, err)
	unit, err := decode[v1alpha1.QueueUnit](found)
	require.NoError(w.t, err)
	return unit
}

func (w *world) entry(name string) v1alpha1.AdmissionCheckState {
	for _, entry := range w.unit().Status.AdmissionChecks {
		if entry.Name == name {
			return entry
		}
	}
	return v1alpha1.AdmissionCheckState{}
}

// is fails the test if an entry is not as expected.
func (w *world) is(name string, state v1alpha1.CheckState, message string) {
	w.t.Helper()
	if entry := w.entry(name); entry.State != state || !strings.Contains(entry.Message, message) {
		w.t.Errorf("check %s is %s %q, not %s %q", name, entry.State, entry.Message, state, message)
	}
}

// start starts a program, which reads everything.
func (w *world) start() *Controller {
	w.t.Helper()
	w.dieAfter = max(w.dieAfter, -1)
	units := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.QueueUnit{}, 0, cache.Indexers{})
	c, err := New(Options{Client: w.client, Reporter: unreported, Units: units, Jobs: w, Cluster: adaptertest.Usual(), Events: w, Clock: w.clock,
		Serves: func(schema.GroupVersion, ...string) (bool, error) { return w.served, nil }})
	require.NoError(w.t, err)
	w.sync(c)
	if err := c.noteTemplates(w.t.Context()); err != nil && !errors.Is(err, errDead) {
		w.t.Fatal(err)
	}
	return c
}

// sync makes the caches of a program current, and delivers all objects as events.
func (w *world) sync(c *Controller) {
	w.t.Helper()
	if state := map[bool]apiState{true: apiReady, false: apiMissing}[w.served]; c.api.set(state) {
		c.api.need()
	}
	fill := func(informer cache.SharedIndexInformer, resource schema.GroupVersionResource, read func(*unstructured.Unstructured) any) {
		var objects []any
		for _, object := range w.all(resource) {
			objects = append(objects, read(object))
		}
		require.NoError(w.t, informer.GetIndexer().Replace(objects, ""))
	}
	plain := func(object *unstructured.Unstructured) any { return object }
	fill(c.checks, checks, plain)
	fill(c.configs, configs, plain)
	if w.served {
		fill(c.requests, provisioning.RequestResource, plain)
	}
	fill(c.Units, queueUnits, func(object *unstructured.Unstructured) any {
		unit, err := decode[v1alpha1.QueueUnit](object)
		require.NoError(w.t, err)
		return unit
	})
	for _, obj := range c.Units.GetStore().List() {
		c.unitChanged(obj)
	}
	for _, obj := range c.requests.GetStore().List() {
		c.requestChanged(obj)
	}
}

// settle lets a program work until it writes nothing more. A program that is killed is started again.
func (w *world) settle(c *Controller) *Controller {
	w.t.Helper()
	for range 100 {
		w.sync(c)
		before := w.writes
		for c.queue.Len() > 0 {
			key, _ := c.queue.Get()
			_, err := c.reconcile(w.t.Context(), key)
			c.queue.Done(key)
			if w.dieAfter == 0 {
				w.dieAfter = -1
				c, before = w.start(), -1
				break
			}
			if err != nil {
				w.t.Logf("retrying: %v", err)
				before = -1
			}
		}
		if before == w.writes {
			return c
		}
	}
	w.t.Fatalf("the program never stops to write: %v", w.log)
	return nil
}

// dump returns all objects that the controller writes, without parts that differ between runs.
func (w *world) dump() string {
	var out strings.Builder
	for _, resource := range []schema.GroupVersionResource{podTemplates, provisioning.RequestResource, queueUnits} {
		for _, object := range w.all(resource) {
			object = object.DeepCopy()
			object.SetUID("")
			object.SetResourceVersion("")
			data, err := json.Marshal(object)
			require.NoError(w.t, err)
			out.Write(append(data, '\n'))
		}
	}
	return out.String()
}

// owned fails the test for objects that would outlive the unit, and for templates without a request.
func (w *world) owned() {
	w.t.Helper()
	used, templates := map[string]bool{}, w.names(podTemplates)
	for _, object := range w.all(provisioning.RequestResource) {
		request, err := decode[provisioning.Request](object)
		require.NoError(w.t, err)
		for _, set := range request.Spec.PodSets {
			used[set.PodTemplateRef.Name] = true
			if !request.Failed() && !slices.Contains(templates, set.PodTemplateRef.Name) {
				w.t.Errorf("%s refers to a template that does not exist", request.Name)
			}
		}
	}
	for _, resource := range []schema.GroupVersionResource{podTemplates, provisioning.RequestResource} {
		for _, object := range w.all(resource) {
			if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != "u1" || resource == podTemplates && !used[object.GetName()] {
				w.t.Errorf("%s %s is left behind", object.GetKind(), object.GetName())
			}
		}
	}
}

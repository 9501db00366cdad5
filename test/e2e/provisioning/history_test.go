package provisioning

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"

	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

// history is what a watch has shown of the requests of a namespace, in order.
type history struct {
	events <-chan watch.Event
	// created are the UIDs of all requests, by name.
	created map[string][]types.UID
	// active are the names of the requests of each unit that exist and have not failed.
	active map[string][]string
	faults []string
}

// record starts to follow the requests of the namespace.
func (s *scene) record() *history {
	s.t.Helper()
	requests := s.Dynamic.Resource(autoscaler.Resource).Namespace(s.Namespace)
	list, err := requests.List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	if len(list.Items) > 0 {
		s.t.Fatalf("there are %d requests before the test", len(list.Items))
	}
	ctx, stop := context.WithCancel(context.Background())
	watcher, err := requests.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	harness.Must(s.t, err)
	// The watch must not wait for the test.
	events := make(chan watch.Event, 1000)
	go func() {
		defer close(events)
		for event := range watcher.ResultChan() {
			events <- event
		}
	}()
	s.t.Cleanup(stop)
	return &history{events: events, created: map[string][]types.UID{}, active: map[string][]string{}}
}

// see processes the next version of a request.
func (h *history) see(event watch.Event) {
	object, is := event.Object.(*unstructured.Unstructured)
	if !is {
		h.faults = append(h.faults, fmt.Sprintf("the watch broke: %v", event.Object))
		return
	}
	request := &provisioningv1.ProvisioningRequest{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, request); err != nil {
		h.faults = append(h.faults, err.Error())
		return
	}
	owner := metav1.GetControllerOf(request)
	if owner == nil {
		h.faults = append(h.faults, request.Name+" has no owner")
		return
	}
	if !slices.Contains(h.created[request.Name], request.UID) {
		h.created[request.Name] = append(h.created[request.Name], request.UID)
	}
	others := slices.DeleteFunc(h.active[owner.Name], func(name string) bool { return name == request.Name })
	if event.Type != watch.Deleted && !apimeta.IsStatusConditionTrue(request.Status.Conditions, provisioningv1.Failed) {
		others = append(others, request.Name)
	}
	if h.active[owner.Name] = others; len(others) > 1 {
		h.faults = append(h.faults, fmt.Sprintf("unit %s has the requests %v at the same time", owner.Name, others))
	}
}

// oneForEachReservation checks that there was one request for each of the reservations, and never two
// for a unit at the same time.
func (h *history) oneForEachReservation(t *testing.T, reservations int) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "the watch has shown the end of all requests", func() (bool, string) {
		for len(h.events) > 0 {
			h.see(<-h.events)
		}
		active := 0
		for _, names := range h.active {
			active += len(names)
		}
		return len(h.created) >= reservations && active == 0, fmt.Sprintf("it has shown %d requests; %v are active", len(h.created), h.active)
	})
	for _, fault := range h.faults {
		t.Error(fault)
	}
	if len(h.created) != reservations {
		t.Errorf("there were %d requests for %d reservations: %v", len(h.created), reservations, h.created)
	}
	for name, uids := range h.created {
		if len(uids) > 1 {
			t.Errorf("request %s was created %d times", name, len(uids))
		}
	}
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/test/require"
)

func pod(name, uid, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
}

func TestObjectsAreSeenAndGone(t *testing.T) {
	var got []string
	note := func(what string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { got = append(got, fmt.Sprint(what, " ", p.Name, " ", p.UID)) }
	}
	all := Handler(note("seen"), note("gone"))
	some := Changes(func(before, now *corev1.Pod) bool { return before.Spec.NodeName == now.Spec.NodeName }, note("seen"), note("gone"))
	old, now := pod("p", "1", ""), pod("p", "1", "n")
	for name, c := range map[string]struct {
		handler cache.ResourceEventHandler
		does    func(cache.ResourceEventHandler)
		want    []string
	}{
		"an object":                      {all, func(h cache.ResourceEventHandler) { h.OnAdd(old, true) }, []string{"seen p 1"}},
		"an update":                      {all, func(h cache.ResourceEventHandler) { h.OnUpdate(old, old) }, []string{"seen p 1"}},
		"a change":                       {some, func(h cache.ResourceEventHandler) { h.OnUpdate(old, now) }, []string{"seen p 1"}},
		"an update of no interest":       {some, func(h cache.ResourceEventHandler) { h.OnUpdate(now, pod("p", "1", "n")) }, nil},
		"another object of the name":     {some, func(h cache.ResourceEventHandler) { h.OnUpdate(old, pod("p", "2", "")) }, []string{"gone p 1", "seen p 2"}},
		"a deletion":                     {some, func(h cache.ResourceEventHandler) { h.OnDelete(old) }, []string{"gone p 1"}},
		"a deletion that was missed":     {all, func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: old}) }, []string{"gone p 1"}},
		"objects of another type":        {all, func(h cache.ResourceEventHandler) { h.OnAdd("p", false); h.OnDelete(nil) }, nil},
		"an update of another type":      {some, func(h cache.ResourceEventHandler) { h.OnUpdate(old, "p") }, nil},
		"a tombstone that has no object": {all, func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{}) }, nil},
	} {
		got = nil
		if c.does(c.handler); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// failing is an informer whose watches fail when a test says so.
type failing struct {
	cache.SharedInformer
	failed cache.WatchErrorHandlerWithContext
}

func (f *failing) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	f.failed = handler
	return nil
}

func TestAnAbsentKindIsReportedOnce(t *testing.T) {
	var reported []error
	informer := &failing{}
	absent, err := Tolerate(informer, apierrors.IsNotFound, func(_ context.Context, err error) { reported = append(reported, err) })
	require.NoError(t, err)
	reflector := cache.NewReflector(&cache.ListWatch{}, &corev1.Pod{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	informer.failed(t.Context(), reflector, errors.New("not reachable"))
	if absent() || reported != nil {
		t.Errorf("absent is %t, reported %v, before the API server has answered", absent(), reported)
	}
	notServed := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "")
	for range 3 {
		informer.failed(t.Context(), reflector, notServed)
	}
	if !absent() || len(reported) != 1 || reported[0] != error(notServed) {
		t.Errorf("absent is %t, reported %v", absent(), reported)
	}
}

// A program that waited for the cache of a kind that is not served would never decide.
func TestAKindThatIsNotServedIsNotWaitedFor(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	informer := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}), 0).Core().V1().Pods().Informer()
	reported := make(chan struct{}, 1)
	synced, err := IfServed(informer, Handler(func(*corev1.Pod) {}, func(*corev1.Pod) {}), func(context.Context) { reported <- struct{}{} })
	require.NoError(t, err)
	if synced() {
		t.Error("it is synced before it runs")
	}
	go informer.RunWithContext(t.Context())
	require.Becomes(t, "it is not waited for", synced)
	<-reported
	if informer.HasSynced() {
		t.Error("the informer has objects")
	}
}

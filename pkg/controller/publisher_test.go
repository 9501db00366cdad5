package controller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	listers "kube-queue.dev/kube-queue/pkg/generated/listers/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// slowServer takes a second for each write, by the clock, and reports when it was done.
func slowServer(t *testing.T, clock *clocktesting.FakeClock) (versioned.Interface, <-chan time.Time) {
	t.Helper()
	written := make(chan time.Time, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch {
			t.Errorf("%s %s, want patches only", r.Method, r.URL.Path)
		}
		clock.Step(time.Second)
		written <- clock.Now()
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue"}`); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, written
}

func TestAQueueInWhichSomethingIsSetOutlivesItsGroup(t *testing.T) {
	var request string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		request = r.Method + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue"}`); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec schedulingv1alpha1.QueueSpec
		kept bool
	}{
		"nothing":               {schedulingv1alpha1.QueueSpec{}, false},
		"policy":                {schedulingv1alpha1.QueueSpec{Policy: schedulingv1alpha1.PolicyBlock}, true},
		"priority":              {schedulingv1alpha1.QueueSpec{Priority: 1}, true},
		"stop":                  {schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopHold}, true},
		"maxPriority":           {schedulingv1alpha1.QueueSpec{MaxPriority: ptr.To[int32](5)}, true},
		"maxPriority that is 0": {schedulingv1alpha1.QueueSpec{MaxPriority: ptr.To[int32](0)}, true},
	} {
		known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if err := known.Add(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "team", UID: "u", ResourceVersion: "7"},
			Spec: c.spec, Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}}); err != nil {
			t.Fatal(err)
		}
		p := newPublisher(client, listers.NewQueueLister(known), "kube-queue", clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval)
		if err := p.retire(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
		if c.kept && !strings.HasPrefix(request, `PATCH {"status":{"policy":null,"quota":null,`) {
			t.Errorf("%s: not kept but %s", name, request)
		}
		// Only as it was seen: something may have been set in it just now.
		if !c.kept && (!strings.HasPrefix(request, "DELETE ") || !strings.Contains(request, `"preconditions":{"uid":"u","resourceVersion":"7"}`)) {
			t.Errorf("%s: not deleted but %s", name, request)
		}
	}
}

func TestAStatusIsWrittenAgainOnlyAnIntervalAfterASlowWrite(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	client, written := slowServer(t, clock)
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := known.Add(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "team"}}); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(client, listers.NewQueueLister(known), "kube-queue", clock, PublishInterval)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.run(ctx); close(done) }()
	defer func() { cancel(); <-done }()

	next := func() time.Time {
		t.Helper()
		select {
		case at := <-written:
			return at
		case <-time.After(20 * time.Second):
			t.Fatal("the status was not written")
			return time.Time{}
		}
	}
	p.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Pending: 1}}, nil)
	first := next()
	p.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Pending: 2}}, nil)
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return clock.HasWaiters(), nil
	}); err != nil {
		t.Fatalf("the publisher does not wait after a write: %v", err)
	}
	clock.Step(PublishInterval - time.Millisecond)
	if !clock.HasWaiters() || len(written) > 0 {
		t.Errorf("the publisher waits less than %v", PublishInterval)
	}
	clock.Step(time.Millisecond)
	// The second write took a second too.
	if since := next().Add(-time.Second).Sub(first); since < PublishInterval {
		t.Errorf("the next write began %v after the one before was done, want %v at least", since, PublishInterval)
	}
}

func TestTheHeadThatAnOlderReleaseHasWrittenIsRemoved(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, r.Method+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue"}`); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := known.Add(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "team"},
		Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}}); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(client, listers.NewQueueLister(known), "kube-queue", clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval)
	if err := p.keep(t.Context(), scheduler.QueueStats{Name: "team", Quota: "root/team", Pending: 1, Waits: true, HighestPriority: new(int32(7))}); err != nil {
		t.Fatal(err)
	}
	if len(requests) != 1 || !strings.HasPrefix(requests[0], "PATCH ") || !strings.Contains(requests[0], `"head":null`) || !strings.Contains(requests[0], `"highestPriority":7`) {
		t.Errorf("the requests are %q, want one patch that removes the head and shows the priority", requests)
	}
}

func TestAnUnchangedStatusOfAQueueIsNotWrittenAgain(t *testing.T) {
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := known.Add(&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "team"},
		Status: schedulingv1alpha1.QueueStatus{Quota: "root/team", Pending: 1, HighestPriority: new(int32(7))}}); err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}) // refuses everything
	if err != nil {
		t.Fatal(err)
	}
	p := newPublisher(client, listers.NewQueueLister(known), "kube-queue", clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval)
	same := scheduler.QueueStats{Name: "team", Quota: "root/team", Pending: 1, HighestPriority: new(int32(7))}
	if err := p.keep(t.Context(), same); err != nil {
		t.Errorf("it is written: %v", err)
	}
	same.HighestPriority = new(int32(8))
	if err := p.keep(t.Context(), same); err == nil {
		t.Error("another priority is not written")
	}
}

// What a process before this one has left behind.
func TestQueuesWithoutAGroupAreRetiredAtTheStart(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+path.Base(strings.TrimSuffix(r.URL.Path, "/status")))
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue"}`); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, queue := range map[string]*schedulingv1alpha1.Queue{
		"left":    {Status: schedulingv1alpha1.QueueStatus{Quota: "other/left"}},
		"set":     {Spec: schedulingv1alpha1.QueueSpec{Priority: 1}, Status: schedulingv1alpha1.QueueStatus{Quota: "other/set"}},
		"foreign": {Spec: schedulingv1alpha1.QueueSpec{Priority: 1}},
		"team":    {Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}},
	} {
		queue.Namespace, queue.Name = "kube-queue", name
		if err := known.Add(queue); err != nil {
			t.Fatal(err)
		}
	}
	p := newPublisher(client, listers.NewQueueLister(known), "kube-queue", clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval)
	for _, want := range [][]string{{"DELETE left", "PATCH set"}, nil} {
		requests = nil
		p.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Quota: "root/team"}}, nil)
		if p.publish(t.Context(), klog.Background()) || !slices.Equal(requests, want) {
			t.Errorf("it requests %q, want %q", requests, want)
		}
	}
}

func TestWhatCannotBeShownIsTriedAgain(t *testing.T) {
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	p := newPublisher(nil, listers.NewQueueLister(known), "kube-queue", clocktesting.NewFakeClock(time.Unix(1000, 0)), PublishInterval)
	if p.publish(t.Context(), klog.Background()) {
		t.Error("it fails with nothing to show")
	}
	answers := []error{errors.New("not now"), nil}
	p.set(nil, nil, func(context.Context) error {
		answer := answers[0]
		answers = answers[1:]
		return answer
	})
	if !p.publish(t.Context(), klog.Background()) {
		t.Error("it does not fail")
	}
	if p.publish(t.Context(), klog.Background()) || len(answers) > 0 {
		t.Error("the next round does not show it")
	}
}

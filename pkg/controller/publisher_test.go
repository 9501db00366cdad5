package controller

import (
	"context"
	"encoding/json"
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
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// publisherOf returns a publisher that knows these Queues, and its clock. The API server calls see with each request
// and its body, and answers with the created Queue or an empty one. If see sets the header Conflict, it answers with a
// conflict.
func publisherOf(t *testing.T, see func(r *http.Request, body string), known ...*schedulingv1alpha1.Queue) (*publisher, *clocktesting.FakeClock) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		see(r, string(body))
		if r.Header.Get("Conflict") != "" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue"}`
		if r.Method == http.MethodPost {
			answer = string(body)
		}
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, queue := range known {
		queue.Namespace = "kube-queue"
		require.NoError(t, store.Add(queue))
	}
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	return newPublisher(client, store, "kube-queue", clock, PublishInterval), clock
}

func TestAQueueInWhichSomethingIsSetOutlivesItsGroup(t *testing.T) {
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
		var request, reported string
		p, _ := publisherOf(t, func(r *http.Request, body string) { request = r.Method + " " + body },
			&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "u", ResourceVersion: "7"},
				Spec: c.spec, Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}})
		p.report = func(n backend.Notice) { reported = n.Message }
		require.NoError(t, p.retire(t.Context(), "team"))
		if c.kept && !strings.HasPrefix(request, `PATCH {"status":{"policy":null,"quota":null,`) {
			t.Errorf("%s: not kept but %s", name, request)
		}
		if setting, _, _ := strings.Cut(name, " "); c.kept != strings.Contains(reported, "Quota root/team no longer exists") || c.kept && !strings.Contains(reported, `{"`+setting+`":`) {
			t.Errorf("%s: it reports %q", name, reported)
		}
		// It is deleted only in the version that was seen: someone may have just changed it.
		if !c.kept && (!strings.HasPrefix(request, "DELETE ") || !strings.Contains(request, `"preconditions":{"uid":"u","resourceVersion":"7"}`)) {
			t.Errorf("%s: not deleted but %s", name, request)
		}
	}
}

func TestTheSettingsOfAQueueMoveToItsNewName(t *testing.T) {
	var requests []string
	old := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "u", ResourceVersion: "7"}, Spec: schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopHold},
		Status: schedulingv1alpha1.QueueStatus{Quota: "root/old"}}
	p, _ := publisherOf(t, func(r *http.Request, body string) {
		if strings.Contains(body, "stop") || r.Method == http.MethodDelete {
			requests = append(requests, r.Method+" "+path.Base(r.URL.Path)+" "+body)
		}
	}, old)
	reported := 0
	p.report = func(n backend.Notice) { reported++ }
	p.move(old, &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: old.Spec})
	for range 2 {
		require.NoError(t, p.retire(t.Context(), "old"))
		require.NoError(t, p.keep(t.Context(), scheduler.QueueStats{Name: "new", Quota: "root/new"}))
		old.Status.Quota = ""
	}
	if len(requests) != 2 || !strings.HasPrefix(requests[0], "POST queues ") || !strings.Contains(requests[0], `"stop":"Hold"`) ||
		!strings.HasPrefix(requests[1], "DELETE old ") || !strings.Contains(requests[1], `"uid":"u","resourceVersion":"7"`) || reported != 1 {
		t.Errorf("it reports %d events and sends %q", reported, requests)
	}
}

func TestSettingsThatAreMadeWhileTheyMoveAreNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		created bool // whether the new Queue exists when the old one is stopped
		want    []string
	}{
		"before the new Queue exists":     {false, []string{`POST queues "stop":"Hold"`, `DELETE root-old "resourceVersion":"8"`}},
		"before the old Queue is deleted": {true, []string{`POST queues "priority":1`, `DELETE root-old "resourceVersion":"7"`, `PATCH root-old "quota":null`}},
	} {
		t.Run(name, func(t *testing.T) {
			old := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "root-old", UID: "u", ResourceVersion: "7"},
				Spec: schedulingv1alpha1.QueueSpec{Priority: 1}, Status: schedulingv1alpha1.QueueStatus{Quota: "root/old"}}
			var requests []string
			d := decide(t, tree.Options{})
			d.publisher, _ = publisherOf(t, func(r *http.Request, body string) {
				if request := r.Method + " " + path.Base(strings.TrimSuffix(r.URL.Path, "/status")) + " " + body; !strings.HasPrefix(request, "PATCH root-renamed ") {
					requests = append(requests, request)
				}
				if strings.Contains(body, `"resourceVersion":"7"`) {
					r.Header.Set("Conflict", "true")
				} else if r.Method == http.MethodDelete {
					require.NoError(t, d.publisher.queues.Delete(old))
				}
			}, old)
			round := func(seen ...*schedulingv1alpha1.Queue) (again bool) {
				for _, queue := range seen {
					require.NoError(t, d.publisher.queues.Add(queue))
					d.after(0, queueSeen(queue))
				}
				d.publish()
				return d.publisher.publish(t.Context(), klog.Background())
			}
			d.after(0, quotaListed, d.tree(`{name: root, children: [{name: old, namespaces: [a]}]}`))
			d.after(0, d.tree(`{name: root, children: [{name: renamed, namespaces: [a]}]}`))
			stopped := old.DeepCopy()
			stopped.ResourceVersion, stopped.Spec.Stop = "8", schedulingv1alpha1.StopHold
			if c.created {
				round()
				created := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: "root-renamed"}, Spec: old.Spec}
				if !round(created, stopped) {
					t.Error("the old Queue is not looked at again")
				}
				round()
			} else {
				round(stopped)
			}
			if !slices.EqualFunc(requests, c.want, func(request, want string) bool {
				part := strings.LastIndex(want, " ")
				return strings.HasPrefix(request, want[:part]) && strings.Contains(request, want[part+1:])
			}) {
				t.Errorf("it requests %q, want %q", requests, c.want)
			}
		})
	}
}

func TestAStatusIsWrittenAgainOnlyAnIntervalAfterASlowWrite(t *testing.T) {
	// Each write takes a second.
	written := make(chan time.Time, 10)
	var clock *clocktesting.FakeClock
	p, clock := publisherOf(t, func(r *http.Request, _ string) {
		if r.Method != http.MethodPatch {
			t.Errorf("%s %s, want patches only", r.Method, r.URL.Path)
		}
		clock.Step(time.Second)
		written <- clock.Now()
	}, &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
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
	pause := func(after string) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
			return clock.HasWaiters(), nil
		}); err != nil {
			t.Fatalf("the publisher does not wait after %s: %v", after, err)
		}
		clock.Step(PublishInterval - time.Millisecond)
		if !clock.HasWaiters() || len(written) > 0 {
			t.Errorf("the publisher waits less than %v after %s", PublishInterval, after)
		}
		clock.Step(time.Millisecond)
	}
	p.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Pending: 1}}, nil)
	pause("a write of the process before")
	first := next()
	p.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Pending: 2}}, nil)
	pause("a write")
	// The second write took a second too.
	if since := next().Add(-time.Second).Sub(first); since < PublishInterval {
		t.Errorf("the next write began %v after the one before was done, want %v at least", since, PublishInterval)
	}
}

func TestTheHeadThatAnOlderReleaseHasWrittenIsRemoved(t *testing.T) {
	var requests []string
	p, _ := publisherOf(t, func(r *http.Request, body string) { requests = append(requests, r.Method+" "+body) },
		&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}})
	require.NoError(t, p.keep(t.Context(), scheduler.QueueStats{Name: "team", Quota: "root/team", Pending: 1, Waits: true, HighestPriority: new(int32(7))}))
	if len(requests) != 1 || !strings.HasPrefix(requests[0], "PATCH ") || !strings.Contains(requests[0], `"head":null`) || !strings.Contains(requests[0], `"highestPriority":7`) {
		t.Errorf("the requests are %q, want one patch that removes the head and shows the priority", requests)
	}
}

func TestAnUnchangedStatusOfAQueueIsNotWrittenAgain(t *testing.T) {
	writes := 0
	p, _ := publisherOf(t, func(*http.Request, string) { writes++ }, &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Status: schedulingv1alpha1.QueueStatus{Quota: "root/team", Pending: 1, HighestPriority: new(int32(7))}})
	same := scheduler.QueueStats{Name: "team", Quota: "root/team", Pending: 1, HighestPriority: new(int32(7))}
	if err := p.keep(t.Context(), same); err != nil || writes != 0 {
		t.Errorf("it is written %d times, error %v", writes, err)
	}
	same.HighestPriority = new(int32(8))
	if err := p.keep(t.Context(), same); err != nil || writes != 1 {
		t.Errorf("another priority is written %d times, error %v", writes, err)
	}
}

// An earlier process left these Queues behind.
func TestQueuesWithoutAGroupAreRetiredAtTheStart(t *testing.T) {
	var requests []string
	d := decide(t, tree.Options{})
	d.publisher, _ = publisherOf(t, func(r *http.Request, _ string) {
		requests = append(requests, r.Method+" "+path.Base(strings.TrimSuffix(r.URL.Path, "/status")))
	},
		&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Status: schedulingv1alpha1.QueueStatus{Quota: "other/left"}},
		&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: schedulingv1alpha1.QueueSpec{Priority: 1},
			Status: schedulingv1alpha1.QueueStatus{Quota: "other/set"}},
		&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: schedulingv1alpha1.QueueSpec{Priority: 1}},
		&schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: schedulingv1alpha1.QueueStatus{Quota: "root/team"}})
	for _, queue := range d.publisher.queues.List() {
		d.after(0, queueSeen(queue.(*schedulingv1alpha1.Queue)))
	}
	for _, want := range [][]string{{"DELETE left", "PATCH set"}, nil} {
		requests = nil
		d.publisher.set([]string{"team"}, []scheduler.QueueStats{{Name: "team", Quota: "root/team"}}, nil)
		if d.publisher.publish(t.Context(), klog.Background()) || !slices.Equal(requests, want) {
			t.Errorf("it requests %q, want %q", requests, want)
		}
	}
}

func TestAStatusThatSomebodyElseHasChangedIsWrittenOnceMore(t *testing.T) {
	writes := 0
	queue := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "root"}}
	d := decide(t, tree.Options{})
	d.publisher, _ = publisherOf(t, func(_ *http.Request, body string) {
		writes++
		require.NoError(t, json.Unmarshal([]byte(body), queue))
	}, queue)
	d.after(0, quotaListed, d.tree(goodRoot))
	round := func(name string, want int) {
		t.Helper()
		for range 3 {
			d.after(PublishInterval, queueSeen(queue))
			d.publish()
			if d.publisher.publish(t.Context(), klog.Background()) {
				t.Error("it fails")
			}
		}
		if writes != want || queue.Status.Pending != 0 || queue.Status.Quota != "root" {
			t.Errorf("%s: after %d writes the status is %+v, want %d", name, writes, queue.Status, want)
		}
	}
	round("first", 1)
	queue.Status.Pending = 7
	round("changed", 2)
}

func TestWhatCannotBeShownIsTriedAgain(t *testing.T) {
	p, _ := publisherOf(t, nil)
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

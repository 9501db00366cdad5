package controller

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

func TestStatusPatchesFitTheirSchema(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	at := metav1.NewMicroTime(time.Unix(0, 0))
	for _, w := range []scheduler.Write{
		{Kind: scheduler.Dequeue, Key: "a/b", UID: "u", Version: 7, Queue: "q", Quota: "root/q", Attempt: 1},
		{Kind: scheduler.Explain, Key: "a/b", UID: "u", Version: 7, Reason: "QuotaExceeded", Message: long, Figures: true},
		{Kind: scheduler.Requeue, Key: "a/b", UID: "u", Version: 7, Reason: wellknown.ReasonSuspendedByUser, Message: "m",
			Requeue: backoff.State{Count: 4, Until: time.Unix(500, 0)}},
		{Kind: scheduler.Evict, Key: "a/b", UID: "u", Version: 7, Reason: wellknown.ReasonDeactivated, Message: long},
	} {
		patch, err := statusPatch(&w, at, nil)
		require.NoError(t, err)
		var got struct {
			Metadata struct{ UID, ResourceVersion string }
			Status   schedulingv1alpha1.QueueUnitStatus
		}
		require.NoError(t, yaml.Unmarshal(patch, &got))
		if got.Metadata.UID != "u" || got.Metadata.ResourceVersion != "7" {
			t.Errorf("%s: preconditions %+v", w.Kind, got.Metadata)
		}
		if w.Figures && !strings.HasSuffix(got.Status.Message, "... (at 1970-01-01T00:00:00Z)") {
			t.Errorf("%s: nothing says when the figures were read: %q", w.Kind, got.Status.Message)
		}
		if state := got.Status.RequeueState; w.Kind == scheduler.Requeue && (state == nil || state.Count != 4 || !state.RequeueAt.Equal(new(metav1.NewMicroTime(w.Requeue.Until)))) {
			t.Errorf("%s: requeueState is %+v", w.Kind, state)
		}
		messages := []string{got.Status.Message}
		for _, condition := range got.Status.Conditions {
			messages = append(messages, condition.Message)
		}
		for _, message := range messages {
			if n := len(message); n > lifecycle.MaxMessage {
				t.Errorf("%s: message of %d characters", w.Kind, n)
			}
		}
	}
	if _, err := statusPatch(&scheduler.Write{Kind: 99, Key: "a/b"}, at, nil); err == nil {
		t.Error("a kind that does not exist gave a patch")
	}
}

func TestAnEvictionChangesItsOwnConditionAndWhatIsShownAlone(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewMicroTime(time.Unix(200, 0))
	has := []metav1.Condition{
		{Type: wellknown.ConditionFinished, Status: metav1.ConditionFalse, Reason: "NotYet", LastTransitionTime: before},
		{Type: wellknown.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "all", LastTransitionTime: before},
	}
	for _, reason := range []wellknown.Reason{
		wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonQueueStopped,
	} {
		w := scheduler.Write{Kind: scheduler.Evict, Key: "a/b", Reason: reason, Message: "m", Queue: "another"}
		patch, err := statusPatch(&w, now, slices.Clone(has))
		require.NoError(t, err)
		var fields struct{ Status map[string]any }
		var got struct {
			Status schedulingv1alpha1.QueueUnitStatus
		}
		require.NoError(t, errors.Join(yaml.Unmarshal(patch, &fields), yaml.Unmarshal(patch, &got)))
		if names := slices.Sorted(maps.Keys(fields.Status)); !slices.Equal(names, []string{"conditions", "message", "reason"}) {
			t.Errorf("it writes %v", names)
		}
		evicted := metav1.Condition{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue,
			Reason: string(reason), Message: "m", LastTransitionTime: metav1.NewTime(now.Time)}
		if conditions := append(slices.Clone(has), evicted); !equality.Semantic.DeepEqual(got.Status.Conditions, conditions) {
			t.Errorf("conditions are %+v", got.Status.Conditions)
		}
	}
}

func TestOverQuotaIsAConditionAndNothingElse(t *testing.T) {
	now := metav1.NewMicroTime(time.Unix(200, 0))
	has := []metav1.Condition{{Type: wellknown.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: "Ready"}}
	for kind, want := range map[scheduler.Kind]metav1.ConditionStatus{scheduler.MarkOverQuota: metav1.ConditionTrue, scheduler.ClearOverQuota: metav1.ConditionFalse} {
		w := scheduler.Write{Kind: kind, Key: "a/b", Reason: wellknown.ReasonLimitExceeded, Message: "m", Queue: "q", Quota: "root"}
		patch, err := statusPatch(&w, now, slices.Clone(has))
		require.NoError(t, err)
		var fields struct{ Status map[string][]metav1.Condition }
		require.NoError(t, yaml.Unmarshal(patch, &fields))
		over := metav1.Condition{Type: wellknown.ConditionOverQuota, Status: want, Reason: string(w.Reason), Message: "m", LastTransitionTime: metav1.NewTime(now.Time)}
		if got := fields.Status["conditions"]; len(fields.Status) != 1 || !equality.Semantic.DeepEqual(got, append(slices.Clone(has), over)) {
			t.Errorf("%v writes %s", kind, patch)
		}
	}
}

func TestUnscheduledPodsAreAConditionAndNothingElse(t *testing.T) {
	now := metav1.NewMicroTime(time.Unix(200, 0))
	ready := metav1.Condition{Type: wellknown.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: "Ready"}
	shows := metav1.Condition{Type: wellknown.ConditionPodsScheduled, Status: metav1.ConditionFalse, Reason: string(wellknown.ReasonPodsUnschedulable),
		Message: "m", LastTransitionTime: metav1.NewTime(now.Time)}
	for kind, want := range map[scheduler.Kind][]metav1.Condition{scheduler.MarkUnscheduled: {ready, shows}, scheduler.ClearUnscheduled: {ready}} {
		w := scheduler.Write{Kind: kind, Key: "a/b", Reason: wellknown.ReasonPodsUnschedulable, Message: "m", Queue: "q", Quota: "root"}
		has := []metav1.Condition{ready}
		if kind == scheduler.ClearUnscheduled {
			has, w.Message = append(has, shows), ""
		}
		patch, err := statusPatch(&w, now, has)
		require.NoError(t, err)
		var fields struct{ Status map[string][]metav1.Condition }
		require.NoError(t, yaml.Unmarshal(patch, &fields))
		if got := fields.Status["conditions"]; len(fields.Status) != 1 || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%v writes %s", kind, patch)
		}
	}
}

func TestAWriteThatIsUnderWayIsNotCalledOffWhenTheProgramIsToEnd(t *testing.T) {
	came, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(came)
		select {
		case <-answer:
		case <-r.Context().Done():
			t.Error("it was called off")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"8"}}`)
	}))
	defer server.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	a := newApplier(client, clock.RealClock{}, newInbox())
	ctx, end := context.WithCancel(t.Context())
	defer end()
	a.add(scheduler.Plan{{Kind: scheduler.Dequeue, Key: "a/b", UID: "u", Version: 7, Attempt: 1}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.run(ctx, 1)
	}()
	<-came
	end()
	close(answer)
	<-ended
	if reported := len(a.inbox.take()); reported != 1 {
		t.Errorf("%d outcomes are known, want that of the write", reported)
	}
}

// If the API server denies or fails the first writes of the only worker, the worker still carries out the others.
func TestWritesThatFailHoldUpNoOthers(t *testing.T) {
	const unit = `{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"namespace":"n","name":"b","uid":"u","resourceVersion":"7"}}`
	var mutex sync.Mutex
	tries := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace := strings.Split(r.URL.Path, "/")[5]
		mutex.Lock()
		tries[namespace]++
		try := tries[namespace]
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch namespace {
		case "denied":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a policy denied request"}`)
		case "webhook": // it chooses the code
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"message":"admission webhook \"w\" denied the request: no"}`)
		case "large": // as ErrorToAPIStatus of the API server writes an error of etcd
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: request is too large"}`)
		case "failing":
			w.WriteHeader(http.StatusInternalServerError)
		case "unserved": // as from a proxy in front of the API server, or if the kind is not served
			http.NotFound(w, r)
		case "wrong": // an existing unit is reported as not found
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = io.WriteString(w, unit)
		case "changed": // the unit is reported once as not found
			w.WriteHeader([]int{http.StatusConflict, http.StatusNotFound, http.StatusOK}[min(try, 3)-1])
			_, _ = io.WriteString(w, unit)
		default:
			_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"8"}}`)
		}
	}))
	defer server.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	a := newApplier(client, testclock.NewFakeClock(time.Unix(1_700_000_000, 0)), newInbox())
	var plan scheduler.Plan
	for i, namespace := range []string{"denied", "webhook", "large", "failing", "unserved", "wrong", "changed", "good"} {
		plan = append(plan, scheduler.Write{Seq: uint64(i + 1), Kind: scheduler.Dequeue, Key: namespace + "/b", UID: "u", Version: 7, Attempt: 1})
	}
	a.add(plan)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.run(ctx, 1)
	}()
	var outcomes []input
	for len(outcomes) < 6 {
		select {
		case <-a.inbox.ready:
			outcomes = append(outcomes, a.inbox.take()...)
		case <-time.After(time.Minute):
			t.Fatalf("%d outcomes are known, want those of all but the failing writes", len(outcomes))
		}
	}
	end()
	<-ended
	if more := a.inbox.take(); len(more) > 0 {
		t.Errorf("%d outcomes of failing writes are known", len(more))
	}
	mutex.Lock()
	defer mutex.Unlock()
	if want := map[string]int{"denied": 1, "webhook": 1, "large": 1, "failing": 1, "unserved": 2, "wrong": 2, "changed": 3, "good": 1}; !maps.Equal(tries, want) {
		t.Errorf("requests are %v, want %v", tries, want)
	}
}

// Only the API server knows the pod sets of a unit.
func TestAUnitThatCanNeverFitIsReadForItsPodSets(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.Method+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"namespace":"a","name":"b","resourceVersion":"8"},
			"spec":{"podSets":[{"name":"head","count":1,"requests":{"cpu":"2"}},{"name":"submitter","count":1,"requests":{"cpu":"500m"}}]}}`)
	}))
	defer server.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	a := newApplier(client, clock.RealClock{}, newInbox())
	w := scheduler.Write{Kind: scheduler.Explain, Key: "a/b", UID: "u", Version: 7, Reason: wellknown.ReasonExceedsMaxQuota, Message: "it asks too much", Resource: "cpu", Asked: 2500}
	const want = `"message":"it asks too much; cpu by pod set: head 1 pod with 2, submitter 1 pod with 500m"`
	for range 2 { // a second try writes the same
		requests = nil
		version, err := a.try(t.Context(), &w, "a", "b", metav1.NewMicroTime(time.Unix(100, 0)))
		if err != nil || version != "8" || len(requests) != 2 || !strings.Contains(requests[1], want) {
			t.Errorf("version %q, %v, requests %q", version, err, requests)
		}
	}
	w.Reason, w.Resource = wellknown.ReasonQuotaExceeded, ""
	requests = nil
	if _, err := a.try(t.Context(), &w, "a", "b", metav1.NewMicroTime(time.Unix(100, 0))); err != nil || len(requests) != 1 {
		t.Errorf("%v, another unit costs the requests %q", err, requests)
	}
}

func TestTheStatusShowsWithHowManyPodsAUnitIsAdmitted(t *testing.T) {
	for kind, grants := range map[scheduler.Kind][]string{
		scheduler.Dequeue: {`"admittedPodSets":[{"name":"worker","count":5}]`, `"admittedPodSets":null`},
		scheduler.Reserve: {`"admittedPodSets":[{"name":"worker","count":5}]`, `"admittedPodSets":null`},
		scheduler.Requeue: {`"admittedPodSets":null`, `"admittedPodSets":null`},
	} {
		for i, grant := range []scheduler.Grant{{PodSet: "worker", Count: 5}, {}} {
			patch, err := statusPatch(&scheduler.Write{Kind: kind, Checks: "a", Grant: grant}, metav1.NewMicroTime(time.Unix(100, 0)), nil)
			if err != nil || !strings.Contains(string(patch), grants[i]) {
				t.Errorf("%v of %+v: %s (%v)", kind, grant, patch, err)
			}
		}
	}
}

package controller

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheEntriesOfOtherChecksAreKept(t *testing.T) {
	w := newWorld(t)
	w.reserve("budget", "nodes")
	before := w.entry("budget")
	w.settle(w.start())
	if w.entry("budget").State != before.State || w.entry("budget").LastTransitionTime != before.LastTransitionTime {
		t.Errorf("the entry of the other check is %v, and was %v", w.entry("budget"), before)
	}
	w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
}

// Template, request and entry; then one write for each answer of the autoscaler; then two deletions.
func TestAJobCostsFewWrites(t *testing.T) {
	w, c := requested(t)
	w.report("Accepted", "True", "Accepted", "")
	c = w.settle(c)
	w.report("Provisioned", "True", "Provisioned", "")
	c = w.settle(c)
	w.move(v1alpha1.PhaseDequeued)
	c = w.settle(c)
	w.move(v1alpha1.PhaseRunning)
	c = w.settle(c)
	w.move(v1alpha1.PhaseSucceeded)
	w.settle(c)
	want := "create podtemplates, create provisioningrequests, patch queueunits, patch queueunits, patch queueunits, delete provisioningrequests, delete podtemplates"
	if got := strings.Join(w.log, ", "); got != want {
		t.Errorf("the writes are %s", got)
	}
}

func TestAUnitWithoutAManagedResourceIsReadyAtOnce(t *testing.T) {
	w := newWorld(t)
	w.served = false
	w.change(configs, "", "gpus", func(object map[string]any) {
		object["spec"].(map[string]any)["managedResources"] = []any{"nvidia.com/gpu"}
	})
	w.reserve("nodes")
	c := w.settle(w.start())
	w.is("nodes", v1alpha1.CheckReady, "no pod set requests a managed resource")
	w.served = true
	w.settle(c)
	w.is("nodes", v1alpha1.CheckReady, "no pod set requests a managed resource")
	if w.writes != 1 {
		t.Errorf("the writes are %v", w.log)
	}
}

func TestAUnitWithoutARequestIsToldWhy(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", errors.New("exceeded quota"))
	byHand := func(w *world, managed string) {
		w.change(configs, "", "gpus", func(object map[string]any) {
			object["spec"].(map[string]any)["managedResources"] = []any{managed}
		})
		w.change(queueUnits, team, unitName, func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			delete(spec["consumerRef"].(map[string]any), "uid")
			delete(spec, "podSets")
			spec["resource"] = map[string]any{"cpu": "4"}
		})
	}
	for _, test := range []struct {
		name    string
		change  func(w *world)
		state   v1alpha1.CheckState
		message string
		// correct fixes what prevents a request; nil if nothing does, or if it stays.
		correct func(w *world)
	}{
		{"the API is missing", func(w *world) { w.served = false }, v1alpha1.CheckPending, "the cluster has no ProvisioningRequest API",
			func(w *world) { w.served = true }},
		{"the config is missing", func(w *world) { w.remove(configs, "", "gpus") }, v1alpha1.CheckPending,
			`ProvisioningRequestConfig "gpus" of AdmissionCheck "nodes" does not exist`, func(w *world) { w.add(configs, gpusConfig) }},
		{"the check has no parameters", func(w *world) {
			w.change(checks, "", "nodes", func(object map[string]any) { delete(object["spec"].(map[string]any), "parameters") })
		}, v1alpha1.CheckPending, "names no ProvisioningRequestConfig", nil},
		{"the API server refuses templates", func(w *world) { w.refuse["podtemplates"] = forbidden }, v1alpha1.CheckRetry, "exceeded quota", nil},
		{"the API server refuses requests", func(w *world) { w.refuse["provisioningrequests"] = forbidden }, v1alpha1.CheckRetry, "exceeded quota", nil},
		{"the API server fails once", func(w *world) {
			w.refuse["provisioningrequests"] = apierrors.NewInternalError(errors.New("broken"))
		}, v1alpha1.CheckPending, "waits for an autoscaler", nil},
		{"the unit has no job", func(w *world) { w.gone = reconciler.ErrNoJob }, v1alpha1.CheckRejected, "created by hand", nil},
		{"the kind is not enabled", func(w *world) { w.gone = reconciler.ErrNotEnabled }, v1alpha1.CheckRetry, "the kind Job is not enabled", nil},
		{"the job is gone", func(w *world) { w.gone = apierrors.NewNotFound(schema.GroupResource{}, "train") }, v1alpha1.CheckPending, "", nil},
		{"a unit that was created by hand", func(w *world) { byHand(w, "cpu") }, v1alpha1.CheckRejected, "created by hand", nil},
		{"one without a managed resource", func(w *world) { byHand(w, "nvidia.com/gpu") }, v1alpha1.CheckReady, "no pod set requests", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.change(w)
			w.reserve("nodes")
			c := w.settle(w.start())
			w.is("nodes", test.state, test.message)
			if test.correct != nil {
				test.correct(w)
				w.settle(c)
				w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
			}
		})
	}
}

func TestARequestThatIsDeletedByHandIsARetryOnlyBeforeTheRelease(t *testing.T) {
	for phase, want := range map[v1alpha1.QueueUnitPhase]v1alpha1.CheckState{
		v1alpha1.PhaseReserved: v1alpha1.CheckRetry, v1alpha1.PhaseDequeued: v1alpha1.CheckReady, v1alpha1.PhaseRunning: v1alpha1.CheckReady,
	} {
		w, c := requested(t)
		w.report("Provisioned", "True", "Provisioned", "")
		c = w.settle(c)
		w.move(phase)
		w.remove(provisioning.RequestResource, team, unitName+"-nodes-1")
		w.settle(c)
		if got := w.entry("nodes").State; got != want {
			t.Errorf("%s: the check is %s, not %s", phase, got, want)
		}
	}
}

// The cache of requests may not show a request that was just created.
func TestACacheThatLagsIsNoDeletion(t *testing.T) {
	w, c := requested(t)
	for _, obj := range c.requests.GetStore().List() {
		require.NoError(t, c.requests.GetIndexer().Delete(obj))
	}
	c.queueAll()
	key, _ := c.queue.Get()
	_, err := c.reconcile(t.Context(), key)
	require.NoError(t, err)
	w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
}

// A patched unit is not decided again before the cache shows its next version.
func TestAnOldVersionOfAUnitIsNotDecidedAgain(t *testing.T) {
	w := newWorld(t)
	w.reserve("nodes")
	c := w.start()
	key, _ := c.queue.Get()
	c.queue.Done(key)
	for range 2 {
		if _, err := c.reconcile(t.Context(), key); err != nil {
			t.Errorf("the second step fails: %v", err)
		}
	}
	if w.writes != 3 {
		t.Errorf("the writes are %v", w.log)
	}
}

func TestObjectsOfOthersAreReportedAndNotTouched(t *testing.T) {
	for _, owner := range []string{"", "ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: x, controller: true}]"} {
		w := newWorld(t)
		w.reserve("nodes")
		w.add(provisioning.RequestResource, `{apiVersion: autoscaling.x-k8s.io/v1, kind: ProvisioningRequest, metadata: {name: `+unitName+`-nodes-1, namespace: team, `+owner+`}}`)
		w.settle(w.start())
		w.is("nodes", v1alpha1.CheckRetry, "ProvisioningRequest "+unitName+"-nodes-1 exists and does not belong to QueueUnit "+unitName)
		if left := w.names(provisioning.RequestResource); len(left) != 1 {
			t.Errorf("%q: the requests are %v", owner, left)
		}
	}
}

// The former unit of the same name is gone, and the garbage collector is late.
func TestARequestOfAFormerUnitOfTheNameIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.reserve("nodes")
	w.add(provisioning.RequestResource, `{apiVersion: autoscaling.x-k8s.io/v1, kind: ProvisioningRequest, metadata: {name: `+unitName+`-nodes-1, namespace: team, uid: old,
		ownerReferences: [{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, name: `+unitName+`, uid: u0, controller: true}]}}`)
	w.settle(w.start())
	w.owned()
	w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
}

func TestWhatTheAutoscalerReportsIsAnEventOnTheJob(t *testing.T) {
	w, c := requested(t)
	w.report("Accepted", "True", "Accepted", "")
	c = w.settle(c)
	w.report("Provisioned", "False", "QuotaExceeded", "8 of 8 GPUs are used")
	c = w.settle(c)
	w.report("Failed", "True", "NoStock", "none left")
	w.settle(c)
	if len(w.events) != 3 || !strings.HasSuffix(w.events[0].Message, "is accepted: Accepted") {
		t.Fatalf("the events are %v", w.events)
	}
	pending, failed := w.events[1], w.events[2]
	if pending.Reason != wellknown.EventProvisioningPending || pending.Type != "Normal" || !strings.HasSuffix(pending.Message, "QuotaExceeded: 8 of 8 GPUs are used") {
		t.Errorf("the first event is %v", pending)
	}
	if failed.Reason != wellknown.EventProvisioningFailed || failed.Type != "Warning" || failed.Object.Kind != "Job" || failed.Object.UID != "j1" || failed.Object.Namespace != team {
		t.Errorf("the second event is %v", failed)
	}
}

// Autoscalers may report another estimate every few seconds.
func TestDetailsAreWrittenNowAndThen(t *testing.T) {
	w, c := requested(t)
	w.report("Provisioned", "False", "NotProvisioned", "9 minutes left")
	c = w.settle(c)
	w.is("nodes", v1alpha1.CheckPending, "9 minutes left")
	w.report("Provisioned", "False", "NotProvisioned", "8 minutes left")
	w.sync(c)
	key, _ := c.queue.Get()
	c.queue.Done(key)
	if after, err := c.reconcile(t.Context(), key); err != nil || after != detailEvery {
		t.Errorf("the next step is in %v (%v)", after, err)
	}
	w.is("nodes", v1alpha1.CheckPending, "9 minutes left")
	w.clock.Step(detailEvery)
	c = w.settle(c)
	w.is("nodes", v1alpha1.CheckPending, "8 minutes left")
	w.report("Provisioned", "True", "Provisioned", "")
	w.settle(c)
	w.is("nodes", v1alpha1.CheckReady, "is provisioned")
}

func TestTheLimitOfFailuresSurvivesRestarts(t *testing.T) {
	w := newWorld(t)
	w.change(configs, "", "gpus", func(object map[string]any) {
		object["spec"].(map[string]any)["retry"] = map[string]any{"limit": int64(2)}
	})
	for attempt, want := range []v1alpha1.CheckState{v1alpha1.CheckRetry, v1alpha1.CheckRetry, v1alpha1.CheckRejected} {
		w.reserve("nodes")
		w.settle(w.start())
		w.report("Failed", "True", "NoStock", "none left")
		w.settle(w.start())
		if got := w.entry("nodes").State; got != want {
			t.Errorf("attempt %d: the check is %s, not %s", attempt+1, got, want)
		}
		w.move(v1alpha1.PhaseBackoff)
		w.settle(w.start())
	}
}

func TestAFailedRequestStaysUntilTheUnitHasEnded(t *testing.T) {
	w, c := requested(t)
	w.report("Failed", "True", "NoStock", "none left")
	c = w.settle(c)
	w.move(v1alpha1.PhaseBackoff)
	c = w.settle(c)
	if left := w.names(provisioning.RequestResource); len(left) != 1 {
		t.Errorf("the requests of a queued unit are %v", left)
	}
	w.move(v1alpha1.PhaseFailed)
	w.settle(c)
	if left := w.names(provisioning.RequestResource); len(left) != 0 {
		t.Errorf("the requests of an ended unit are %v", left)
	}
}

// Any user may copy the labels.
func TestTemplatesOfOthersWithOurLabelsStay(t *testing.T) {
	w := newWorld(t)
	w.add(podTemplates, `{apiVersion: v1, kind: PodTemplate, metadata: {name: copy, namespace: team, uid: copy,
		labels: {kube-queue/queue-unit-uid: u1, kube-queue/admission-check: nodes}}, template: {}}`)
	w.reserve("nodes")
	c := w.settle(w.start())
	w.move(v1alpha1.PhaseEnqueued)
	w.settle(c)
	if left := w.names(podTemplates); len(left) != 1 || left[0] != "copy" {
		t.Errorf("the templates are %v", left)
	}
}

// The unit does not show all that a scheduler reads of the pods, so the job is read again.
func TestNodesForOtherPodsThanTheJobHasAreARetry(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(w *world)
		state   v1alpha1.CheckState
		message string
	}{
		{"nothing that a scheduler reads", func(w *world) { w.pods[0].Template.Spec.Containers[0].Command = []string{"sleep"} }, v1alpha1.CheckReady, "is provisioned"},
		{"the node selector", func(w *world) { w.pods[0].Template.Spec.NodeSelector["gpu"] = "b200" }, v1alpha1.CheckRetry, "the pods of the job changed"},
		{"the job is gone", func(w *world) { w.gone = apierrors.NewNotFound(schema.GroupResource{}, "train") }, v1alpha1.CheckPending, "waits for an autoscaler"},
		{"the kind is not enabled any more", func(w *world) { w.gone = reconciler.ErrNotEnabled }, v1alpha1.CheckRetry, "the kind Job is not enabled"},
	} {
		w, c := requested(t)
		test.change(w)
		w.report("Provisioned", "True", "Provisioned", "")
		c = w.settle(c)
		w.is("nodes", test.state, test.message)
		if updates := w.entry("nodes").PodSetUpdates; len(updates) != 1 {
			t.Errorf("%s: %d pod sets are updated", test.name, len(updates))
		}
		w.move(v1alpha1.PhaseBackoff)
		c = w.settle(c)
		w.gone = nil
		w.reserve("nodes")
		c = w.settle(c)
		w.report("Provisioned", "True", "Provisioned", "")
		w.settle(c)
		w.is("nodes", v1alpha1.CheckReady, "-nodes-2 is provisioned")
	}
}

// The cache of units may not show that the unit gave its quota back. An autoscaler must not provide nodes twice.
func TestTheRequestOfAnEarlierAttemptIsDeletedBeforeTheNextIsCreated(t *testing.T) {
	w, c := requested(t)
	w.reserve("nodes")
	w.settle(c)
	want := "create podtemplates, create provisioningrequests, patch queueunits, delete provisioningrequests, delete podtemplates, create podtemplates, create provisioningrequests, patch queueunits"
	if got := strings.Join(w.log, ", "); got != want {
		t.Errorf("the writes are %s", got)
	}
	w.owned()
}

// An administrator may remove the CRD, and install it again.
func TestAnAPIThatIsRemovedIsReportedAndUsedWhenItReturns(t *testing.T) {
	w := newWorld(t)
	w.reserve("nodes")
	c := w.start()
	key, _ := c.queue.Get()
	w.served = false
	if _, err := c.reconcile(t.Context(), key); !errors.Is(err, errNoAPI) {
		t.Errorf("nobody tries again: %v", err)
	}
	c.queue.Done(key)
	w.is("nodes", v1alpha1.CheckPending, "the cluster has no ProvisioningRequest API")
	// Or an upgrade of the autoscaler has replaced the version.
	d := w.start()
	d.Serves = func(gv schema.GroupVersion, _ ...string) (bool, error) { return gv == older.GroupVersion(), nil }
	d.api.set(apiReady)
	if _, err := d.reconcile(t.Context(), key); !errors.Is(err, errNoAPI) || d.api.requestsIn() != older {
		t.Errorf("the version is %s (%v)", d.api.requestsIn().Version, err)
	}
	w.served = true
	w.settle(c)
	w.is("nodes", v1alpha1.CheckPending, "waits for an autoscaler")
	w.owned()
}

// A unit that is evicted while it holds quota gets no request. Nor does one that is being deleted.
func TestUnitsThatAreLeavingGetNoRequest(t *testing.T) {
	for name, change := range map[string]func(object map[string]any){
		"evicted": func(object map[string]any) {
			object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Evicted", "status": "True", "reason": "Preempted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}
		},
		"being deleted": func(object map[string]any) {
			object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		},
	} {
		w := newWorld(t)
		w.reserve("nodes")
		w.change(queueUnits, team, unitName, change)
		w.settle(w.start())
		if w.writes > 0 {
			t.Errorf("%s: the writes are %v", name, w.log)
		}
	}
}

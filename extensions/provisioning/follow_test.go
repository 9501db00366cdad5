package provisioning

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// letters are the conditions, in the order of their letters in patterns.
var letters = []string{"Accepted", "Provisioned", "Failed", "BookingExpired", "CapacityRevoked"}

// expectedAnswer is what the check reports before the release. Each pattern has a letter for each condition: T for
// true, F for false, - for absent, * for any. The event is the one for a check that was pending before.
type expectedAnswer struct {
	pattern string
	state   v1alpha1.CheckState
	message string
	event   wellknown.EventReason
}

// expected returns the answer for the conditions. The first pattern that matches counts.
func expected(conditions string) expectedAnswer {
	all := []expectedAnswer{
		{"**T**", v1alpha1.CheckRetry, "failed: BecauseFailed: about Failed", wellknown.EventProvisioningFailed},
		{"****T", v1alpha1.CheckRetry, "taken away: BecauseCapacityRevoked: about CapacityRevoked", ""},
		{"***T*", v1alpha1.CheckRetry, "not used in time: BecauseBookingExpired: about BookingExpired", ""},
		{"*T***", v1alpha1.CheckReady, "is provisioned: BecauseProvisioned: about Provisioned", ""},
		{"*F***", v1alpha1.CheckPending, "is not provisioned yet: BecauseProvisioned: about Provisioned", wellknown.EventProvisioningPending},
		{"T-***", v1alpha1.CheckPending, "is accepted: BecauseAccepted: about Accepted", wellknown.EventProvisioningPending},
		{"F-***", v1alpha1.CheckPending, "is not accepted yet: BecauseAccepted: about Accepted", wellknown.EventProvisioningPending},
		{"--***", v1alpha1.CheckPending, "waits for an autoscaler", ""},
	}
	return all[slices.IndexFunc(all, func(a expectedAnswer) bool { return matches(a.pattern, conditions) })]
}

func matches(pattern, letters string) bool {
	for i := range pattern {
		if pattern[i] != '*' && pattern[i] != letters[i] {
			return false
		}
	}
	return true
}

// combinations returns all texts of n of the letters.
func combinations(n int) []string {
	if n == 0 {
		return []string{""}
	}
	var all []string
	for _, rest := range combinations(n - 1) {
		all = append(all, "T"+rest, "F"+rest, "-"+rest)
	}
	return all
}

func requestWith(unit *v1alpha1.QueueUnit, conditions string) *Request {
	r := &Request{ObjectMeta: metav1.ObjectMeta{Name: RequestName(unit, "nodes"), Annotations: map[string]string{
		wellknown.RequestedForAnnotation: podSetsOf(unit),
	}}}
	for i, letter := range conditions {
		status := map[rune]metav1.ConditionStatus{'T': metav1.ConditionTrue, 'F': metav1.ConditionFalse}[letter]
		if status != "" {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
				Type: letters[i], Status: status, Reason: "Because" + letters[i], Message: "about " + letters[i],
			})
		}
	}
	return r
}

func unitIn(phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	unit := &v1alpha1.QueueUnit{}
	unit.Namespace, unit.Name, unit.UID = "team", "train-job-0123456789", "u1"
	unit.Spec.ConsumerRef = v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "j1"}
	unit.Status.Phase, unit.Status.Reservations = phase, 1
	return unit
}

func requestedEntry(state v1alpha1.CheckState) v1alpha1.AdmissionCheckState {
	return v1alpha1.AdmissionCheckState{Name: "nodes", State: state, Message: "before",
		PodSetUpdates: []v1alpha1.PodSetUpdate{{Name: "main", Annotations: map[string]string{"a": "b"}}}}
}

func TestEachCombinationOfConditionsHasTheExpectedAnswerBeforeTheRelease(t *testing.T) {
	unit := unitIn(v1alpha1.PhaseReserved)
	for _, conditions := range combinations(len(letters)) {
		for _, state := range []v1alpha1.CheckState{v1alpha1.CheckPending, v1alpha1.CheckReady} {
			got := Follow(Observed{Unit: unit, Entry: requestedEntry(state), Request: requestWith(unit, conditions)})
			want := expected(conditions)
			if got.State != want.state || !strings.HasSuffix(got.Message, want.message) || !strings.Contains(got.Message, RequestName(unit, "nodes")) {
				t.Errorf("%s, %s: the answer is %s %q, not %s %q", conditions, state, got.State, got.Message, want.state, want.message)
			}
			if len(got.Updates) != 1 {
				t.Errorf("%s, %s: the updates of the pods are lost", conditions, state)
			}
		}
	}
}

// The pods of a released job may run: only nodes that are taken away end it.
func TestOnlyRevokedCapacityMattersAfterTheRelease(t *testing.T) {
	for _, phase := range []v1alpha1.QueueUnitPhase{v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning} {
		unit := unitIn(phase)
		for _, conditions := range combinations(len(letters)) {
			got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckReady), Request: requestWith(unit, conditions)})
			want := v1alpha1.CheckReady
			if conditions[4] == 'T' {
				want = v1alpha1.CheckRetry
			}
			if got.State != want || (want == v1alpha1.CheckReady) != (got.Message == "before") {
				t.Errorf("%s, %s: the answer is %s %q, not %s", phase, conditions, got.State, got.Message, want)
			}
		}
		if got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckReady)}); got.State != v1alpha1.CheckReady {
			t.Errorf("%s: a deleted request gives %s", phase, got.State)
		}
	}
}

func TestAFinalAnswerStaysWhateverTheRequestReports(t *testing.T) {
	for _, phase := range []v1alpha1.QueueUnitPhase{v1alpha1.PhaseReserved, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning} {
		for _, state := range []v1alpha1.CheckState{v1alpha1.CheckRetry, v1alpha1.CheckRejected} {
			for _, conditions := range combinations(len(letters)) {
				unit := unitIn(phase)
				got := Follow(Observed{Unit: unit, Entry: requestedEntry(state), Request: requestWith(unit, conditions)})
				if got.State != state || got.Message != "before" {
					t.Errorf("%s %s, %s: the answer is %s %q", phase, state, conditions, got.State, got.Message)
				}
			}
		}
	}
}

func TestADeletedRequestIsARetryBeforeTheRelease(t *testing.T) {
	unit := unitIn(v1alpha1.PhaseReserved)
	deleting := requestWith(unit, "TT---")
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, request := range map[string]*Request{"gone": nil, "being deleted": deleting} {
		got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckReady), Request: request})
		if got.State != v1alpha1.CheckRetry || !strings.Contains(got.Message, "was deleted") {
			t.Errorf("%s: the answer is %s %q", name, got.State, got.Message)
		}
	}
}

func TestARequestForOtherPodsIsARetry(t *testing.T) {
	unit := unitIn(v1alpha1.PhaseReserved)
	request := requestWith(unit, "TT---")
	unit.Spec.PodSets = []v1alpha1.PodSet{{Name: "main", Count: 7}}
	got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckPending), Request: request})
	if got.State != v1alpha1.CheckRetry || !strings.Contains(got.Message, "changed") {
		t.Errorf("the answer is %s %q", got.State, got.Message)
	}
}

func TestTheLimitOfFailedRequestsRejectsTheUnit(t *testing.T) {
	for _, test := range []struct {
		before string
		limit  *int32
		want   v1alpha1.CheckState
	}{
		{"", nil, v1alpha1.CheckRetry},
		{"99", nil, v1alpha1.CheckRetry},
		{"0", ptr.To[int32](0), v1alpha1.CheckRejected},
		{"", ptr.To[int32](0), v1alpha1.CheckRejected},
		{"0", ptr.To[int32](1), v1alpha1.CheckRetry},
		{"1", ptr.To[int32](1), v1alpha1.CheckRejected},
		{"2", ptr.To[int32](1), v1alpha1.CheckRejected},
		{"1", ptr.To[int32](2), v1alpha1.CheckRetry},
		{"-7", ptr.To[int32](1), v1alpha1.CheckRetry},
		{"many", ptr.To[int32](1), v1alpha1.CheckRetry},
	} {
		unit := unitIn(v1alpha1.PhaseReserved)
		request := requestWith(unit, "T-T--")
		request.Annotations[wellknown.FailedRequestsAnnotation] = test.before
		got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckPending), Request: request, Limit: test.limit})
		if got.State != test.want || got.Event != wellknown.EventProvisioningFailed {
			t.Errorf("%q failed before, limit %v: the answer is %s with event %q", test.before, ptr.Deref(test.limit, -1), got.State, got.Event)
		}
	}
}

func TestOnlyTheQuotaOfTheAutoscalerAndFailuresAreEvents(t *testing.T) {
	unit := unitIn(v1alpha1.PhaseReserved)
	for _, conditions := range combinations(len(letters)) {
		request := requestWith(unit, conditions)
		got := Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckPending), Request: request})
		if want := expected(conditions).event; got.Event != want {
			t.Errorf("%s: the event is %q, not %q", conditions, got.Event, want)
		}
	}
}

func TestAnEntryChangesOnlyWithItsMeaning(t *testing.T) {
	now, before := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(50, 0))
	old := requestedEntry(v1alpha1.CheckPending)
	old.LastTransitionTime = before
	same := Unchanged(old)
	if _, changed := same.Entry(old, now); changed {
		t.Error("an unchanged answer changes the entry")
	}
	other := same
	other.Message = "after"
	if entry, changed := other.Entry(old, now); !changed || entry.LastTransitionTime != before {
		t.Error("a message alone is no transition")
	}
	other.State = v1alpha1.CheckReady
	if entry, changed := other.Entry(old, now); !changed || entry.LastTransitionTime != now || len(entry.PodSetUpdates) != 1 {
		t.Errorf("the entry is %v", entry)
	}
	long := Answer{State: v1alpha1.CheckPending, Message: strings.Repeat("m", 2000), Updates: old.PodSetUpdates}
	entry, changed := long.Entry(old, now)
	if !changed || len(entry.Message) > 1024 {
		t.Errorf("a message of %d bytes is written", len(entry.Message))
	}
	if _, changed := long.Entry(entry, now); changed {
		t.Error("a long message is written again and again")
	}
}

func TestADetailIsDistinguishedFromACause(t *testing.T) {
	unit := unitIn(v1alpha1.PhaseReserved)
	follow := func(reason, message string) Answer {
		request := requestWith(unit, "TF---")
		request.Status.Conditions[1].Reason, request.Status.Conditions[1].Message = reason, message
		return Follow(Observed{Unit: unit, Entry: requestedEntry(v1alpha1.CheckPending), Request: request})
	}
	entry, _ := follow("NotProvisioned", "ready in 9 minutes").Entry(requestedEntry(v1alpha1.CheckPending), metav1.Time{})
	for _, test := range []struct {
		reason, message string
		want            bool
	}{
		{"NotProvisioned", "ready in 8 minutes", true}, {"QuotaExceeded", "ready in 9 minutes", false}, {"NotProvisioned", "", true},
	} {
		if got := follow(test.reason, test.message).OnlyDetail(entry); got != test.want {
			t.Errorf("%s %q: only a detail: %v", test.reason, test.message, got)
		}
	}
}

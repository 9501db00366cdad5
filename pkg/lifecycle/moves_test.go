package lifecycle

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheTableOfMovesIsThatOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/development/unit-lifecycle.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Who moves a unit\n\n")
	table, _, _ := strings.Cut(section, "\n\n")
	lines := []string{"| from | to | writer | when |", "|---|---|---|---|"}
	for _, m := range Moves() {
		lines = append(lines, row(m))
	}
	if want := strings.Join(lines, "\n"); table != want {
		t.Errorf("docs/development/unit-lifecycle.md, Who moves a unit: the table must be\n%s", want)
	}
}

const allPhases = 7

// row returns the row of a move in the table of the documentation.
func row(m Move) string {
	return "| " + strings.Join([]string{m.From.text(), m.To.text(), string(m.By), m.When}, " | ") + " |"
}

func (f From) text() string {
	switch len(f.Phases) {
	case 0:
		return "no unit"
	case allPhases:
		return "any"
	}
	text := names(f.Phases, ", ")
	has := func(e Eviction) bool { return slices.Contains(f.Evictions, e) }
	switch {
	case has(EvictionNone) && has(EvictionAsked):
		return text + "; not stopped yet"
	case has(EvictionNone):
		return text + "; not evicted"
	case has(EvictionAsked):
		return text + "; Evicted=True"
	case has(EvictionForGood):
		return text + "; Evicted=True with reason " + string(wellknown.ReasonMaximumExecutionTime)
	case has(EvictionStopped):
		return text + "; Evicted=True with reason " + string(wellknown.ReasonStopped)
	case has(EvictionByUser):
		return text + "; Evicted=True with reason " + string(wellknown.ReasonSuspendedByUser)
	case has(EvictionChanged):
		return text + "; Evicted=True with reason " + string(wellknown.ReasonJobChanged)
	}
	return text
}

func (to To) text() string {
	if to.Gone {
		return "gone"
	}
	parts := []string{"same"}
	if len(to.Phases) > 0 {
		parts[0] = names(to.Phases, ", ")
	}
	if to.Reason != "" {
		parts = append(parts, "reason "+string(to.Reason))
	}
	if to.Evicted != "" {
		parts = append(parts, "Evicted="+string(to.Evicted)+" with reason "+names(to.Reasons, ", "))
	}
	if to.Also != "" {
		parts = append(parts, to.Also)
	}
	return strings.Join(parts, "; ")
}

func names[S ~string](list []S, between string) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, between)
}

func TestEachStatusMakesItsMoveFromWhereverThatBegins(t *testing.T) {
	place, now, micro := Place{Quota: "root/a", Queue: "root-a"}, metav1.NewTime(noon), metav1.NewMicroTime(noon)
	type written = func(*v1alpha1.QueueUnit) Status
	// fixed is a status that does not depend on the unit.
	fixed := func(status Status) written { return func(*v1alpha1.QueueUnit) Status { return status } }
	// at is a status of job-extensions, which depends only on the unit.
	at := func(status func(*v1alpha1.QueueUnit, metav1.Time) Status) written {
		return func(u *v1alpha1.QueueUnit) Status { return status(u, now) }
	}
	requeued := func(reason wellknown.Reason, message string, count int32) Status {
		return Requeued(place, reason, message, count, micro, micro)
	}
	var evictions []written
	for _, reason := range []wellknown.Reason{wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonQueueStopped, wellknown.ReasonNotAdmitted, wellknown.ReasonPreempted,
		wellknown.ReasonReclaimed, wellknown.ReasonAdmissionCheckRetry, wellknown.ReasonAdmissionCheckRejected, wellknown.ReasonPodsReadyTimeout} {
		evictedFor := ""
		if reason == wellknown.ReasonPreempted || reason == wellknown.ReasonReclaimed {
			evictedFor = "uid"
		}
		evictions = append(evictions, func(u *v1alpha1.QueueUnit) Status {
			return Evicted(u.Status.Conditions, reason, "m", evictedFor, micro)
		})
	}
	statuses := map[Name][]written{
		Explain: {
			fixed(Explained(place, wellknown.ReasonQuotaExceeded, "m")),
			fixed(Explained(place, wellknown.ReasonBackoff, "m")),
		},
		MarkInvalid:  {func(u *v1alpha1.QueueUnit) Status { return Invalid(u, "m") }},
		MarkValid:    {fixed(Valid())},
		Reserve:      {fixed(Reserved(place, []string{"a"}, 1, wellknown.ReasonAdmissionCheckPending, "m", micro))},
		ExplainCheck: {fixed(Explained(place, wellknown.ReasonAdmissionCheckPending, "m"))},
		ReturnReserved: {
			fixed(requeued("", "", 0)),
			fixed(requeued(wellknown.ReasonBackoff, "m", 1)),
			fixed(Rejected(requeued(wellknown.ReasonAdmissionCheckRejected, "m", 0), 3, "m", micro)),
		},
		Dequeue:         {fixed(Dequeued(place, 1, micro)), fixed(AwaitingPods(Dequeued(place, 1, micro), micro))},
		ShowPlace:       {fixed(place.Status())},
		RequeueUnqueued: {fixed(requeued(wellknown.ReasonKindNotQueued, "m", 0))},
		MarkRunning:     {at(Running), at(RunningAndReady)},
		MarkPodsReady:   {at(PodsReady)},
		MarkRemains: {
			func(u *v1alpha1.QueueUnit) Status { return Remains(u, false, "RayCluster a", now) },
			func(u *v1alpha1.QueueUnit) Status { return Remains(u, true, "Pod a", now) },
		},
		MarkFinished: {
			func(u *v1alpha1.QueueUnit) Status { return Finished(u, true, "", "", now) },
			func(u *v1alpha1.QueueUnit) Status { return Finished(u, false, "", "", now) },
		},
		Expire:           {func(u *v1alpha1.QueueUnit) Status { return Expired(u.Status.Conditions, "m", micro) }},
		Evict:            evictions,
		MarkStopped:      {at(Stopped)},
		Requeue:          {fixed(requeued("", "", 1)), fixed(requeued(wellknown.ReasonBackoff, "m", 4))},
		MarkSuspended:    {at(SuspendedByUser)},
		RequeueSuspended: {fixed(requeued(wellknown.ReasonSuspendedByUser, "m", 4))},
		Resume:           {at(Resumed)},
		MarkChanged:      {at(JobChanged)},
		MarkNotReleased:  {at(NotReleased)},
		RequeueChanged:   {fixed(requeued(wellknown.ReasonJobChanged, "m", 1))},
		MarkOverQuota: {func(u *v1alpha1.QueueUnit) Status {
			return OverQuota(u.Status.Conditions, true, wellknown.ReasonLimitExceeded, "m", micro)
		}},
		ClearOverQuota: {func(u *v1alpha1.QueueUnit) Status {
			return OverQuota(u.Status.Conditions, false, wellknown.ReasonWithinLimits, "m", micro)
		}},
		MarkUnscheduled:  {func(u *v1alpha1.QueueUnit) Status { return Unscheduled(u.Status.Conditions, "m", micro) }},
		ClearUnscheduled: {func(u *v1alpha1.QueueUnit) Status { return Unscheduled(u.Status.Conditions, "", micro) }},
		AcceptChange:     {at(ChangeAccepted)},
	}
	for _, m := range Moves() {
		if len(m.From.Phases) == 0 || m.To.Gone || m.Name == Deactivate || m.Name == LowerRequests || m.Name == DecideCheck { // no status is written
			continue
		}
		if len(statuses[m.Name]) == 0 {
			t.Errorf("%s: no status makes this move", m.Name)
		}
		for _, unit := range beginnings(m) {
			for _, status := range statuses[m.Name] {
				checkMove(t, m, unit, patched(t, unit, status(unit)))
				checkRetired(t, m, unit, status)
			}
		}
	}
}

// beginnings returns units in which a move can begin, one for each phase and eviction.
func beginnings(m Move) (units []*v1alpha1.QueueUnit) {
	for _, phase := range m.From.Phases {
		for _, reason := range []wellknown.Reason{"", wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonQueueStopped,
			wellknown.ReasonStopped, wellknown.ReasonSuspendedByUser, wellknown.ReasonJobChanged} {
			unit := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Phase: phase, Conditions: []metav1.Condition{{
				Type: wellknown.ConditionPodsReady, Status: metav1.ConditionFalse, Reason: "PodsNotReady"}}}}
			if reason != "" {
				unit.Status.Conditions = append(unit.Status.Conditions, metav1.Condition{
					Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(reason), Message: "why"})
			}
			if m.Begins(unit) {
				units = append(units, unit)
			}
		}
	}
	return units
}

// patched returns the unit after the API server has merged the status into it.
func patched(t *testing.T, unit *v1alpha1.QueueUnit, status Status) *v1alpha1.QueueUnit {
	t.Helper()
	before, err := json.Marshal(unit)
	require.NoError(t, err)
	patch, err := json.Marshal(map[string]any{"status": status})
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	var now v1alpha1.QueueUnit
	require.NoError(t, json.Unmarshal(after, &now))
	return &now
}

func checkMove(t *testing.T, m Move, was, now *v1alpha1.QueueUnit) {
	t.Helper()
	if to := m.To.Phases; len(to) > 0 && !slices.Contains(to, now.Status.Phase) || len(to) == 0 && now.Status.Phase != was.Status.Phase {
		t.Errorf("%s: from %s it goes to %s", m.Name, was.Status.Phase, now.Status.Phase)
	}
	if m.To.Reason != "" && now.Status.Reason != m.To.Reason {
		t.Errorf("%s: the reason is %q", m.Name, now.Status.Reason)
	}
	if m.To.Evicted == "" {
		return
	}
	evicted := EvictedOf(now)
	if evicted == nil || evicted.Status != m.To.Evicted || !slices.Contains(m.To.Reasons, wellknown.Reason(evicted.Reason)) {
		t.Errorf("%s: condition Evicted is %+v", m.Name, evicted)
	}
}

// checkRetired checks that a unit of an older release loses exactly the retired conditions at each move that touches
// its phase or its conditions.
func checkRetired(t *testing.T, m Move, unit *v1alpha1.QueueUnit, status func(*v1alpha1.QueueUnit) Status) {
	t.Helper()
	older := unit.DeepCopy()
	for _, kind := range []string{wellknown.ConditionQuotaReserved, wellknown.ConditionAdmitted} {
		older.Status.Conditions = append(older.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	given := older.DeepCopy()
	now := patched(t, older, status(older))
	if !equality.Semantic.DeepEqual(older, given) {
		t.Errorf("%s: the cached unit was changed", m.Name)
	}
	if m.Name == Explain || m.Name == ExplainCheck || m.Name == ShowPlace || m.Name == MarkInvalid || m.Name == MarkValid { // these touch neither phase nor conditions
		return
	}
	if want := patched(t, unit, status(unit)); !equality.Semantic.DeepEqual(now, want) {
		t.Errorf("%s: a unit of an older release becomes\n%+v, not\n%+v", m.Name, now.Status, want.Status)
	}
}

// The policy that guards units and the CRD each list the phases.
func TestPolicyAndCRDListTheSamePhases(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../charts/kube-queue/" + name)
		require.NoError(t, err)
		return string(text)
	}
	policy := read("templates/policies/queueunits.yaml")
	var lists []string
	for _, found := range regexp.MustCompile(`phase\.orValue\(''\) in \[([^\]]*)\]`).FindAllStringSubmatch(policy, -1) {
		lists = append(lists, strings.ReplaceAll(found[1], "'", ""))
	}
	var holding, ended []v1alpha1.QueueUnitPhase
	for _, m := range Moves() {
		for _, p := range slices.Concat(m.From.Phases, m.To.Phases) {
			if p.HoldsQuota() && !slices.Contains(holding, p) {
				holding = append(holding, p)
			}
			if p.Ended() && !slices.Contains(ended, p) {
				ended = append(ended, p)
			}
		}
	}
	slices.SortFunc(holding, func(a, b v1alpha1.QueueUnitPhase) int { return order(a) - order(b) })
	if want := []string{names(holding, ", "), names(holding, ", "), names(ended, ", ")}; !slices.Equal(lists, want) {
		t.Errorf("the policy lists %q, not %q", lists, want)
	}
	for _, writer := range []Writer{Controller, Extensions} {
		if !strings.Contains(policy, "'system:serviceaccount:kube-queue:"+string(writer)+"'") {
			t.Errorf("the policy does not name %s", writer)
		}
	}
	crd := read("files/crds/scheduling.x-k8s.io_queueunits.yaml")
	_, enum, _ := strings.Cut(crd, "default: Enqueued")
	enum, _, _ = strings.Cut(enum, "type: string")
	for _, m := range Moves() {
		for _, p := range slices.Concat(m.From.Phases, m.To.Phases) {
			if !strings.Contains(enum, "- "+string(p)+"\n") {
				t.Errorf("the CRD does not list phase %s", p)
			}
		}
	}
}

// order returns the place of a phase in a unit's life.
func order(p v1alpha1.QueueUnitPhase) int {
	return slices.Index([]v1alpha1.QueueUnitPhase{v1alpha1.PhaseReserved, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning}, p)
}

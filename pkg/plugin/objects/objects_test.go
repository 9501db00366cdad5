package objects

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

var now = metav1.NewMicroTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func shown(t *testing.T, namespace, name, phase, quota, cpu string, priority int) units.Unit {
	t.Helper()
	var u units.Unit
	text := fmt.Sprintf(`{"metadata": {"namespace": %q, "name": %q}, "spec": {"priority": %d, "resource": {"cpu": %q}}, "status": {"phase": %q, "queue": "q", "quota": %q}}`, namespace, name, priority, cpu, phase, quota)
	require.NoError(t, json.Unmarshal([]byte(text), &u))
	return u
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func waiting() Read {
	return Read{Unit: &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "u"}, Spec: v1alpha1.QueueUnitSpec{Priority: 5, Resource: amounts("cpu", "2", "memory", "0")},
		Status: v1alpha1.QueueUnitStatus{Queue: "q", Quota: "root/team", Reason: wellknown.ReasonQuotaExceeded, Message: "insufficient cpu"}}}
}

func TestAUnitLacksWhatDoesNotFitFromItsQuotaToTheRoot(t *testing.T) {
	read := waiting()
	read.Quotas = []visibility.QuotaSummary{
		{Path: "root", Max: amounts("cpu", "4", "memory", "1Gi"), Used: amounts("cpu", "9", "memory", "2Gi")}, // before units ended
		{Path: "root/team", Max: amounts("cpu", "3"), Used: amounts("cpu", "1")},
		{Path: "root/team-2", Max: amounts("cpu", "1"), Used: amounts("cpu", "1")},
	}
	read.Units = []units.Unit{shown(t, "a", "u", "", "root/team", "2", 5), shown(t, "b", "small", "Running", "root/team", "500m", 0), shown(t, "b", "large", "Dequeued", "root/other", "3", 0), shown(t, "b", "waits", "", "root/other", "9", 0)}
	status := Why(read, now)
	// It fits in root/team, and memory is not requested.
	if want := []visibility.Lack{{Quota: "root", Bound: "Max", Resource: "cpu", Requested: "2", Used: "3500m", Limit: "4", Missing: "1500m"}}; fmt.Sprint(status.Lacks) != fmt.Sprint(want) {
		t.Errorf("lacks %+v", status.Lacks)
	}
	read.Unit.Status.Quota = "a" // as with the backend resourcequota: the tree is not updated
	if lacks := Why(read, now).Lacks; lacks != nil {
		t.Errorf("of a tree that is not in use it lacks %+v", lacks)
	}
	var holders []string
	for _, h := range status.Holders {
		used := h.Used["cpu"]
		holders = append(holders, fmt.Sprint(h.Quota, " ", h.Units, " ", used.String()))
	}
	if got := strings.Join(holders, ", "); got != "root/other 1 3, root/team 1 500m" {
		t.Errorf("held by %s", got)
	}
	if len(status.HoldingUnits) != 2 || status.HoldingUnits[0].Name != "large" {
		t.Errorf("units %+v", status.HoldingUnits)
	}
	if len(status.WouldAdmit) != 1 || status.WouldAdmit[0].Type != visibility.Wait || status.Phase != "Enqueued" {
		t.Errorf("%+v", status)
	}
}

func TestThePositionCountsThoseWhoWaitInTheQueue(t *testing.T) {
	read := waiting()
	held := shown(t, "c", "held", "", "root/team", "1", 99)
	held.Spec.Active = ptr.To(false)
	never := shown(t, "c", "never", "", "root/team", "1", 99)
	never.Status.Reason = string(wellknown.ReasonExceedsMaxQuota)
	other := shown(t, "c", "other-queue", "", "root/team", "1", 99)
	other.Status.Queue = "r"
	read.Units = []units.Unit{shown(t, "a", "u", "", "root/team", "2", 5), shown(t, "b", "urgent", "Backoff", "root/team", "1", 9), shown(t, "b", "later", "", "root/team", "1", 1), shown(t, "b", "runs", "Running", "root/team", "1", 9), held, never, other}
	read.Units[1].Status.DequeueTime = &now.Time // it was admitted, and waits again
	if status := Why(read, now); status.Position != 2 || status.Waiting != 3 || len(status.Ahead) != 1 || status.Ahead[0].Name != "urgent" || status.Ahead[0].Position != 1 || status.Ahead[0].DequeueTime != nil {
		t.Errorf("%d of %d, ahead %+v", status.Position, status.Waiting, status.Ahead)
	}
	// A priority above that of the queue is capped.
	read.Queue = &v1alpha1.Queue{Spec: v1alpha1.QueueSpec{MaxPriority: ptr.To(int32(5))}, Status: v1alpha1.QueueStatus{Policy: v1alpha1.PolicyBlock}}
	if status := Why(read, now); status.Position != 1 || status.Policy != "Block" {
		t.Errorf("with a cap: %d of %d, policy %s", status.Position, status.Waiting, status.Policy)
	}
	read.Unit.Spec.Active = ptr.To(false)
	if status := Why(read, now); status.Position != 0 {
		t.Errorf("a unit that is held has position %d", status.Position)
	}
}

func TestAUnitThatHoldsQuotaLacksNothing(t *testing.T) {
	read := waiting()
	read.Unit.Status.Phase, read.Unit.Status.Reason = v1alpha1.PhaseRunning, ""
	read.Quotas = []visibility.QuotaSummary{{Path: "root/team", Max: amounts("cpu", "1"), Used: amounts("cpu", "2")}}
	read.Units = []units.Unit{shown(t, "a", "u", "Running", "root/team", "2", 5)}
	read.Unit.Spec.PodSets = []v1alpha1.PodSet{{Name: "main", Count: 4, Requests: amounts("cpu", "500m")}}
	read.Unit.Status.AdmittedPodSets = []v1alpha1.AdmittedPodSet{{Name: "main", Count: 3}}
	if got := Why(read, now).Requests["cpu"]; got.String() != "1500m" {
		t.Errorf("with 3 of 4 pods, it requests %s", got.String())
	}
	if status := Why(read, now); status.Lacks != nil || status.Position != 0 || status.WouldAdmit != nil || status.Phase != "Running" {
		t.Errorf("%+v", status)
	}
}

func TestAUnitWithoutAReasonSaysWhatItsJobWasTold(t *testing.T) {
	read := waiting()
	read.Unit.Status.Reason, read.Unit.Status.Message = "", ""
	if status := Why(read, now); status.Reason != "" || !strings.Contains(status.Message, "has not decided about it yet, or does not run") {
		t.Errorf("%+v", status)
	}
	read.Down = "kube-queue-controller does not run"
	if status := Why(read, now); status.Message != read.Down {
		t.Errorf("%+v", status)
	}
}

func TestEachReasonForWaitingHasAnAdvice(t *testing.T) {
	for _, reason := range []wellknown.Reason{wellknown.ReasonNoQuota, wellknown.ReasonInvalidQuotaTree, wellknown.ReasonQuotaNotAllowed, wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs,
		wellknown.ReasonBorrowingPaused, wellknown.ReasonExceedsMaxQuota, wellknown.ReasonExceedsMinQuota, wellknown.ReasonInvalidRequest, wellknown.ReasonNotAtFront, wellknown.ReasonBackoff,
		wellknown.ReasonInactive, wellknown.ReasonQueueStopped, wellknown.ReasonSuspendedByUser, wellknown.ReasonJobChanged, wellknown.ReasonPreempting, wellknown.ReasonKindNotQueued, wellknown.ReasonTerminating,
		wellknown.ReasonWaitingForPods, wellknown.ReasonAdmissionCheckMissing, wellknown.ReasonAdmissionCheckRejected} {
		read := waiting()
		read.Unit.Status.Reason = reason
		status := Why(read, now)
		if len(status.WouldAdmit) != 1 || status.WouldAdmit[0].Message == "" {
			t.Errorf("%s: %+v", reason, status.WouldAdmit)
			continue
		}
		if waits := status.WouldAdmit[0].Type == visibility.Wait; waits && reason.NeedsAction() {
			t.Errorf("%s needs an action, and the advice is to wait", reason)
		}
	}
}

const oneTree = `
metadata: {name: t, namespace: kube-system}
spec:
  root:
    name: root
    min: {cpu: 4}
    children:
    - {name: team, namespaces: [a], max: {cpu: "3", kube-queue/max-jobs: 7}, children: null}
    - {name: new, namespaces: [b]}
status:
  conditions: [{type: Valid, status: "False", message: "root/new: max is missing"}]
  nodes:
  - {path: root, used: {cpu: 2}, request: {cpu: "3", memory: 1Gi}, jobs: 1}
  - {path: root/team, used: {cpu: 2}, borrowed: {cpu: 1}, unqueued: {cpu: 1}, request: {cpu: 2}, jobs: 1}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if err == nil {
		err = json.Unmarshal(data, &o.Object)
	}
	require.NoError(t, err)
	return o
}

func TestATreeShowsItsSpecAndItsStatus(t *testing.T) {
	quotas, problem := Tree(object(t, oneTree))
	if problem != "root/new: max is missing" || len(quotas) != 3 {
		t.Fatalf("problem %q, %d quotas", problem, len(quotas))
	}
	root, team, fresh := quotas[0], quotas[1], quotas[2]
	for _, c := range []struct {
		name       string
		list, want corev1.ResourceList
	}{
		{"min of the root", root.Min, amounts("cpu", "4")},
		{"what waits at the root", root.Requested, amounts("cpu", "1", "memory", "1Gi")},
		{"use of the root", root.Used, amounts("cpu", "2", "kube-queue/max-jobs", "1")},
		{"max of the team", team.Max, amounts("cpu", "3", "kube-queue/max-jobs", "7")},
		{"what the team has borrowed", team.Borrowed, amounts("cpu", "1")},
		{"what pods use", team.Unqueued, amounts("cpu", "1")},
		{"what waits at the team", team.Requested, amounts()},
	} {
		if len(c.list) != len(c.want) {
			t.Errorf("%s: %v", c.name, c.list)
		}
		for name, want := range c.want {
			if got := c.list[name]; got.Cmp(want) != 0 {
				t.Errorf("%s: %s %s, want %s", c.name, got.String(), name, want.String())
			}
		}
	}
	if fresh.Path != "root/new" || fresh.Used != nil || fresh.Queue != "root-new" || team.Queue != "root-team" || root.Queue != "" {
		t.Errorf("queues %q, %q, %q; the new node %+v", root.Queue, team.Queue, fresh.Queue, fresh)
	}
	if below := Below(quotas, "root/team"); len(below) != 1 || below[0].Path != "root/team" {
		t.Errorf("below root/team: %+v", below)
	}
	if Below(quotas, "root/tea") != nil {
		t.Error("a part of a name is a node")
	}
}

func TestASimulationProtectsJobsThatHaveJustStarted(t *testing.T) {
	limits := func(cpu string) map[string]resource.Quantity {
		return map[string]resource.Quantity{"cpu": resource.MustParse(cpu)}
	}
	root := tree.Node{Name: "root", Max: limits("4"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}, Min: limits("1"), Max: limits("4")}, {Name: "b", Namespaces: []string{"b"}, Min: limits("3"), Max: limits("4")}}}
	unit := func(namespace string) v1alpha1.QueueUnit {
		return v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "u", UID: types.UID(namespace), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
			Spec: v1alpha1.QueueUnitSpec{Resource: amounts("cpu", "3"), ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: "u"}}}
	}
	for age, want := range map[time.Duration]int{scheduler.DefaultMinRunTime - time.Second: 0, scheduler.DefaultMinRunTime: 2} { // both victims are named
		runs := []v1alpha1.QueueUnit{unit("a"), unit("a"), unit("b")}
		for i := range 2 {
			runs[i].Spec.Resource = amounts("cpu", "1500m")
			runs[i].Name, runs[i].UID = fmt.Sprint("u", i), types.UID(fmt.Sprint(i))
			runs[i].Status = v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Quota: "root/a", DequeueTime: ptr.To(metav1.NewMicroTime(now.Add(-age)))}
		}
		s, err := Simulate(Trial{Root: root, Units: runs}, now.Time)
		require.NoError(t, err)
		if len(s.Evicted) != want || len(s.Started) != want/2 {
			t.Errorf("after %s: evicted %+v, started %+v, waiting %+v", age, s.Evicted, s.Started, s.Waiting)
		}
	}
}

package units

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// unit decodes a QueueUnit like the plugin.
func unit(t testing.TB, name, queue, phase, reason string, priority, after int) Unit {
	t.Helper()
	var u Unit
	text := fmt.Sprintf(`{"metadata": {"namespace": "research", "name": %q, "creationTimestamp": %q, "managedFields": [{}]},
		"spec": {"consumerRef": {"apiVersion": "batch/v1", "kind": "Job", "name": %q}, "priority": %d, "resource": {"memory": "1024Mi", "cpu": 2, "x": "0"}},
		"status": {"queue": %q, "phase": %q, "reason": %q}}`, name, start.Add(time.Duration(after)*time.Second).Format(time.RFC3339), name, priority, queue, phase, reason)
	require.NoError(t, json.Unmarshal([]byte(text), &u))
	return u
}

func TestARequestIsReadHoweverItIsWritten(t *testing.T) {
	u := unit(t, "a", "q", "", "", 0, 0)
	if got := RequestText(u.Spec.Resource); got != "2 cpu, 1Gi memory" {
		t.Errorf("requests %q", got)
	}
	if got := RequestText(map[string]Amount{"memory": "8209715200", "nvidia.com/gpu": "4k"}); got != "8017300Ki memory, 4000 nvidia.com/gpu" {
		t.Errorf("requests %q, not as users write them", got)
	}
	if got := RequestText(map[string]Amount{"cpu": "much"}); got != "much cpu" {
		t.Errorf("what is no quantity: %q", got)
	}
	if u.Job() != "job/a" || u.Phase() != "Enqueued" || !u.Submitted().Equal(start) {
		t.Errorf("job %s, phase %s, submitted %v", u.Job(), u.Phase(), u.Submitted())
	}
	u.Spec.ConsumerRef.APIVersion = "example.com/v1"
	if u.Job() != "qu/a" || JobOf("Job", "a") != "qu/a" || JobOf("Job", "a-job-2e7d2c03a9") != "job/a" {
		t.Errorf("units are named %s, %s, %s", u.Job(), JobOf("Job", "a"), JobOf("Job", "a-job-2e7d2c03a9"))
	}
}

func TestAUnitThatHoldsQuotaRequestsWhatItsAdmittedPodsDo(t *testing.T) {
	for phase, want := range map[string]string{"": "2147483648 cpu", "Enqueued": "2147483648 cpu", "Running": "4 cpu"} {
		u := unit(t, "a", "q", phase, "", 0, 0)
		if err := json.Unmarshal([]byte(`{"spec": {"resource": {"cpu": "2147483648", "memory": 0}, "podSets": [{"name": "head", "count": 1, "requests": {"cpu": 1}},
			{"name": "main", "count": 2147483647, "requests": {"cpu": "1", "memory": "0"}}, {"name": "none", "count": 2}]},
			"status": {"admittedPodSets": [{"name": "main", "count": 3}, {"name": "none", "count": 1}, {"name": "gone", "count": 1}]}}`), &u); err != nil {
			t.Fatal(err)
		}
		if got := RequestText(u.Requests()); got != want {
			t.Errorf("in phase %q, it requests %s, want %s", phase, got, want)
		}
	}
}

func TestAFilterSelectsUnitsWhateverTheLetterCase(t *testing.T) {
	u := unit(t, "a", "company-research", "Backoff", "MaxJobs", 0, 0)
	for _, c := range []struct {
		name   string
		filter Filter
		want   bool
	}{
		{"everything", Filter{}, true},
		{"all that is so", Filter{Queues: []string{"other", "company-research"}, Kinds: []string{"job"}, Phases: []string{"backoff"}, Reasons: []string{"maxjobs"}}, true},
		{"another queue", Filter{Queues: []string{"company"}}, false},
		{"another kind", Filter{Kinds: []string{"TFJob"}}, false},
		{"another phase", Filter{Phases: []string{"Enqueued"}}, false},
		{"another reason", Filter{Reasons: []string{"QuotaExceeded"}}, false},
	} {
		if got := c.filter.Selects(&u); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhatWasProbablyMeantIsSuggested(t *testing.T) {
	for phase, want := range map[string]string{"Runing": `did you mean "Running"?`, "asleep": "the phases are Enqueued, Backoff", "running": ""} {
		err := Filter{Phases: []string{phase}}.CheckPhases()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", phase, err)
		}
	}
	var seen Seen
	for _, u := range []Unit{unit(t, "a", "company-research", "", "MaxJobs", 0, 0), unit(t, "b", "", "", "", 0, 0)} {
		seen.Add(&u)
	}
	for _, c := range []struct {
		filter      Filter
		flag, value string
	}{
		{Filter{Queues: []string{"company-reserch"}}, "queue", "company-research"},
		{Filter{Queues: []string{"company-research"}, Reasons: []string{"MaxJob"}}, "reason", "MaxJobs"},
		{Filter{Kinds: []string{"Jobb"}}, "kind", "Job"},
		{Filter{Queues: []string{"something-else"}}, "", ""},
	} {
		if flag, value := seen.Meant(c.filter); flag != c.flag || value != c.value {
			t.Errorf("%+v: --%s %s", c.filter, flag, value)
		}
	}
}

func TestUnitsAreSorted(t *testing.T) {
	list := []Unit{unit(t, "c", "q", "", "", 5, 0), unit(t, "a", "q", "", "", 0, 1), unit(t, "b", "q", "", "", 5, 2)}
	for order, want := range map[Order]string{ByName: "abc", ByAge: "cab", ByPriority: "bca"} {
		sorted := slices.Clone(list)
		Sort(sorted, order)
		got := ""
		for _, u := range sorted {
			got += u.Metadata.Name
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
	}
}

func TestTheGreaterPriorityIsAheadUpToTheMaximumOfTheQueue(t *testing.T) {
	early, late := unit(t, "early", "q", "", "", 0, 0), unit(t, "late", "q", "", "", 100, 9)
	if InQueue(&late, &early, nil) >= 0 || InQueue(&early, &late, nil) <= 0 {
		t.Error("the greater priority is not ahead")
	}
	if InQueue(&early, &late, &v1alpha1.Queue{Spec: v1alpha1.QueueSpec{MaxPriority: ptr.To[int32](0)}}) >= 0 {
		t.Error("a capped priority is ahead")
	}
	twin := unit(t, "twin", "q", "", "", 0, 0)
	if InQueue(&early, &twin, nil) >= 0 || InQueue(&early, &early, nil) != 0 {
		t.Error("the name does not decide")
	}
}

func TestTheShortestIsAheadWithItsPolicy(t *testing.T) {
	none, expected, long := unit(t, "none", "q", "", "", 0, 0), unit(t, "expected", "q", "", "", 0, 1), unit(t, "long", "q", "", "", 0, 2)
	expected.Spec.Expected, long.Spec.MaxSeconds = 3600, 4*3600 // the expected hour counts as 5
	for policy, want := range map[v1alpha1.QueuePolicy]string{v1alpha1.PolicyBlock: "none expected long", v1alpha1.PolicyShortestFirst: "long expected none"} {
		list := []*Unit{&expected, &none, &long}
		slices.SortFunc(list, func(a, b *Unit) int {
			return InQueue(a, b, &v1alpha1.Queue{Status: v1alpha1.QueueStatus{Policy: policy}})
		})
		if got := list[0].Metadata.Name + " " + list[1].Metadata.Name + " " + list[2].Metadata.Name; got != want {
			t.Errorf("with policy %s, the order is %s, want %s", policy, got, want)
		}
	}
}

func TestUnitsThatAreAlikeAreOneGroup(t *testing.T) {
	list := []Unit{
		unit(t, "a-2", "q", "", "MaxJobs", 0, 2), unit(t, "b", "q", "", "QuotaExceeded", 0, 0), unit(t, "a-1", "q", "Enqueued", "MaxJobs", 0, 1),
		unit(t, "a-3", "q", "", "MaxJobs", 0, 3), unit(t, "c", "q", "", "MaxJobs", 7, 0),
	}
	list[2].Spec.Resource = map[string]Amount{"cpu": "2000m", "memory": "1Gi"} // the same
	var got []string
	for _, g := range Together(list) {
		got = append(got, fmt.Sprintf("%d %s", g.Count, g.First.Metadata.Name))
	}
	if want := []string{"3 a-1", "1 b", "1 c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if singles := Singles(list); len(singles) != 5 || singles[4].First != &list[4] || singles[4].Count != 1 {
		t.Errorf("singles %v", singles)
	}
}

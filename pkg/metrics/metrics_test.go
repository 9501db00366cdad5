package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// scrape returns the metrics of a program, by line.
func scrape(t *testing.T, r *Registry) []string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return strings.Split(w.Body.String(), "\n")
}

func expect(t *testing.T, r *Registry, lines ...string) {
	t.Helper()
	got := scrape(t, r)
	for _, line := range lines {
		if !slices.Contains(got, line) {
			t.Errorf("it does not show %q", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "#") }), "\n"))
	}
}

func TestDefinitionsKeepToTheRulesOfPrometheus(t *testing.T) {
	name := regexp.MustCompile(`^kube_queue_[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, d := range Definitions() {
		switch {
		case !name.MatchString(d.Name):
			t.Errorf("%s is no good name", d.Name)
		case seen[d.Name]:
			t.Errorf("%s is defined twice", d.Name)
		case (d.Type == Counter) != strings.HasSuffix(d.Name, "_total"):
			t.Errorf("%s: a counter ends in _total, and nothing else does", d.Name)
		case d.Type == Histogram && !strings.HasSuffix(d.Name, "_seconds"):
			t.Errorf("%s does not say what it measures", d.Name)
		case (d.Type == Histogram) != (len(d.Buckets) > 0) || !slices.IsSorted(d.Buckets):
			t.Errorf("%s: its buckets are %v", d.Name, d.Buckets)
		case d.Help == "" || !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s is not explained", d.Name)
		}
		seen[d.Name] = true
	}
}

func TestAProgramShowsWhatIsDefinedForItAndNoMore(t *testing.T) {
	for _, program := range []string{ControllerProgram, ExtensionsProgram, "another"} {
		r := New(program, "v1.2.3")
		require.Says(t, program, strings.Join(scrape(t, r), "\n"), `kube_queue_build_info{go_version="`, `program="`+program+`",version="v1.2.3"} 1`)
		for _, d := range Definitions() {
			_, counter := r.counters[d.Name]
			_, gauge := r.gauges[d.Name]
			_, histogram := r.histograms[d.Name]
			if has := counter || gauge || histogram; has != (d.in(program) && !d.collected) {
				t.Errorf("%s has %s: %v", program, d.Name, has)
			}
		}
	}
}

func TestWhoLeadsAndIsReadySaysSo(t *testing.T) {
	r := New(ControllerProgram, "")
	expect(t, r, `kube_queue_leader{program="kube-queue-controller"} 0`)
	r.Lead(true)
	expect(t, r, `kube_queue_leader{program="kube-queue-controller"} 1`)
	r.Lead(false)
	expect(t, r, `kube_queue_leader{program="kube-queue-controller"} 0`)
}

func TestCountersAreThereBeforeTheyMove(t *testing.T) {
	expect(t, New(ControllerProgram, ""), "kube_queue_invariant_violations_total 0", "kube_queue_safety_flush_rescues_total 0",
		"kube_queue_quota_invalid 0", "kube_queue_decision_duration_seconds_count 0")
}

func TestWhatTheControllerCounts(t *testing.T) {
	r := New(ControllerProgram, "")
	c := NewController(r)
	c.Decided(2 * time.Millisecond)
	c.Dequeued("q", "Job", true, 90*time.Second)
	c.Dequeued("q", "Job", false, time.Hour)
	c.Dequeued("q", "TFJob", true, -time.Second) // the clocks of two machines differ
	c.Refused("QuotaExceeded")
	c.Estimated(true)
	c.Evicted("q", "Deactivated")
	c.Requeued("")
	c.Requeued("SuspendedByUser")
	c.RolledBack("Dequeue", true)
	c.RolledBack("Explain", false)
	c.Denied()
	c.Audited()
	c.Audited()
	for range 3 {
		c.Violated()
	}
	c.Flushed(2, 1)
	c.Queue(Queue{Name: "q", Pending: 1, Reserved: 2, Dequeued: 3, Running: 4, Waiting: true, Stopped: true,
		First: time.Unix(1000, 0), Mean: time.UnixMilli(1500500)})
	c.Quota(Quota{Nodes: []Node{{Path: "root", Resources: []Resource{{Name: "cpu", Used: 2.5, Borrowed: .5, Min: new(2.0)},
		{Name: "memory", Used: 0, Lent: 3, Pending: 5, Max: new(1024.0)}}}}}, true)
	expect(t, r,
		`kube_queue_decision_duration_seconds_bucket{le="0.005"} 1`,
		`kube_queue_decision_duration_seconds_bucket{le="0.001"} 0`,
		`kube_queue_dequeues_total{queue="q"} 3`,
		`kube_queue_start_estimates_total{result="held"} 1`,
		`kube_queue_start_estimates_total{result="missed"} 0`,
		`kube_queue_wait_seconds_count{framework="Job",queue="q"} 1`,
		`kube_queue_wait_seconds_sum{framework="Job",queue="q"} 90`,
		`kube_queue_wait_seconds_sum{framework="TFJob",queue="q"} 0`,
		`kube_queue_admission_attempts_total{reason="",result="admitted"} 3`,
		`kube_queue_admission_attempts_total{reason="",result="conflict"} 1`,
		`kube_queue_admission_attempts_total{reason="",result="denied"} 1`,
		`kube_queue_admission_attempts_total{reason="QuotaExceeded",result="refused"} 1`,
		`kube_queue_evictions_total{queue="q",reason="Deactivated"} 1`,
		`kube_queue_evictions_total{queue="q",reason="NotAdmitted"} 0`,
		`kube_queue_evictions_total{queue="",reason="NotAdmitted"} 0`,
		`kube_queue_first_submission_timestamp_seconds{queue="q"} 1000`,
		`kube_queue_mean_submission_timestamp_seconds{queue="q"} 1500.5`,
		`kube_queue_quota_lent{node="root",resource="memory"} 3`,
		`kube_queue_quota_pending{node="root",resource="memory"} 5`,
		`kube_queue_requeues_total{reason="Requeued"} 1`,
		`kube_queue_requeues_total{reason="SuspendedByUser"} 1`,
		`kube_queue_rollbacks_total{write="Dequeue"} 1`,
		`kube_queue_rollbacks_total{write="Explain"} 1`,
		`kube_queue_audits_total 2`,
		`kube_queue_invariant_violations_total 3`,
		`kube_queue_safety_flushes_total 2`,
		`kube_queue_safety_flush_rescues_total 1`,
		`kube_queue_pending_units{queue="q"} 1`,
		`kube_queue_reserved_units{queue="q"} 2`,
		`kube_queue_dequeued_units{queue="q"} 3`,
		`kube_queue_running_units{queue="q"} 4`,
		`kube_queue_queue_waiting{queue="q"} 1`,
		`kube_queue_queue_stopped{queue="q"} 1`,
		`kube_queue_quota_used{node="root",resource="cpu"} 2.5`,
		`kube_queue_quota_borrowed{node="root",resource="cpu"} 0.5`,
		`kube_queue_quota_min{node="root",resource="cpu"} 2`,
		`kube_queue_quota_used{node="root",resource="memory"} 0`,
		`kube_queue_quota_max{node="root",resource="memory"} 1024`,
		`kube_queue_quota_invalid 1`,
	)
}

func TestUseIsAddedUpToNowWhileNothingChanges(t *testing.T) {
	r := New(ControllerProgram, "")
	c := NewController(r)
	start := time.Unix(1000, 0)
	now := start
	show := func(total int64) {
		c.Quota(Quota{At: now, Now: func() time.Time { return now },
			Uses: []Use{{Node: "root", Namespace: "a", Resource: "cpu", Used: resources.Sum{}.Plus(1500), Total: resources.Sum{}.Plus(total)}}}, false)
	}
	shows := func(want string) {
		t.Helper()
		expect(t, r, `kube_queue_quota_used_seconds_total{job_namespace="a",node="root",resource="cpu"} `+want)
	}
	show(3e9)
	shows("3")
	now = start.Add(10 * time.Second)
	shows("18")
	c.QuotaChanges(now)
	now = start.Add(20 * time.Second)
	shows("18") // less may be used since then
	c.QuotaUnchanged()
	shows("33")
	c.QuotaChanges(now)
	show(33e9)
	now = start.Add(22 * time.Second)
	shows("36")
}

func TestAQueueInWhichNothingIsQueuedHasNoSubmissions(t *testing.T) {
	r := New(ControllerProgram, "")
	c := NewController(r)
	c.Queue(Queue{Name: "q", First: time.Unix(1000, 0), Mean: time.Unix(1000, 0)})
	c.Queue(Queue{Name: "q"})
	if shown := strings.Join(scrape(t, r), "\n"); strings.Contains(shown, "submission_timestamp_seconds{") {
		t.Error("it still shows one")
	}
}

func TestReleasesOfAQueueAreCountedFromZero(t *testing.T) {
	r := New(ControllerProgram, "")
	c := NewController(r)
	c.Queue(Queue{Name: "q"})
	expect(t, r, `kube_queue_dequeues_total{queue="q"} 0`)
	c.Dequeued("q", "Job", true, time.Second)
	c.Queue(Queue{Name: "q"})
	expect(t, r, `kube_queue_dequeues_total{queue="q"} 1`)
}

func TestWhatReportsOfAQueueOrANodeThatIsGoneIsGone(t *testing.T) {
	r := New(ControllerProgram, "")
	c := NewController(r)
	for _, name := range []string{"stays", "goes"} {
		c.Queue(Queue{Name: name})
		c.Dequeued(name, "Job", true, time.Second)
		c.Dequeued(name, other, true, time.Second)
	}
	c.Dequeued("never-shown", "Job", true, time.Second)
	c.Evicted("goes", "Preempted")
	c.Quota(Quota{Nodes: []Node{{Path: "goes", Resources: []Resource{{Name: "cpu"}}}}}, false)
	c.KeepQueues([]string{"stays", "goes", "never-shown"})
	if shown := strings.Join(scrape(t, r), "\n"); strings.Count(shown, `"goes"`) == 0 || strings.Count(shown, `"never-shown"`) == 0 {
		t.Error("what is kept is not shown")
	}
	c.KeepQueues([]string{"stays", "new"})
	c.Quota(Quota{}, false)
	for _, line := range scrape(t, r) {
		if strings.Contains(line, `"goes"`) || strings.Contains(line, `"never-shown"`) {
			t.Errorf("it still shows %s", line)
		}
	}
	expect(t, r, `kube_queue_pending_units{queue="stays"} 0`, `kube_queue_dequeues_total{queue="stays"} 2`)
}

func TestWhatJobExtensionsCounts(t *testing.T) {
	r := New(ExtensionsProgram, "")
	e := NewExtensions(r)
	e.Seen("Job")
	e.Released("Job", 30*time.Millisecond)
	e.Finished("Job", true)
	e.Finished("Job", false)
	e.Missing("tfjob", true)
	e.Missing("job", false)
	expect(t, r,
		`kube_queue_jobs_seen_total{framework="Job"} 1`,
		`kube_queue_jobs_released_total{framework="Job"} 1`,
		`kube_queue_release_duration_seconds_bucket{framework="Job",le="0.05"} 1`,
		`kube_queue_release_duration_seconds_bucket{framework="Job",le="0.025"} 0`,
		`kube_queue_jobs_finished_total{framework="Job",result="Succeeded"} 1`,
		`kube_queue_jobs_finished_total{framework="Job",result="Failed"} 1`,
		`kube_queue_kind_missing{extension="tfjob"} 1`,
		`kube_queue_kind_missing{extension="job"} 0`,
	)
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

func TestWritesAreCountedByVerbResourceAndAnswer(t *testing.T) {
	r := New(ControllerProgram, "")
	var status int
	writes := r.Writes(answers(func(*http.Request) (*http.Response, error) {
		if status == 0 {
			return nil, errors.New("no connection")
		}
		return &http.Response{StatusCode: status}, nil
	}))
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/apis/scheduling.x-k8s.io/v1alpha1/queueunits", 200},
		{"PATCH", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/queueunits/u/status", 200},
		{"PATCH", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/queueunits/v/status", 409},
		{"POST", "/api/v1/namespaces/a/events", 201},
		{"PUT", "/prefix/apis/coordination.k8s.io/v1/namespaces/kube-queue/leases/x", 0},
		{"DELETE", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/queueunits/u", 404},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", 201},
		{"POST", "/version", 500},
	} {
		status = c.status
		resp, err := writes.RoundTrip(httptest.NewRequest(c.method, "https://server"+c.path, nil))
		if (err == nil) != (c.status != 0) || err == nil && resp.StatusCode != c.status {
			t.Errorf("%s %s is answered %v, %v", c.method, c.path, resp, err)
		}
	}
	expect(t, r,
		`kube_queue_api_writes_total{code="200",resource="queueunits/status",verb="patch"} 1`,
		`kube_queue_api_writes_total{code="409",resource="queueunits/status",verb="patch"} 1`,
		`kube_queue_api_writes_total{code="201",resource="events",verb="create"} 1`,
		`kube_queue_api_writes_total{code="error",resource="leases",verb="update"} 1`,
		`kube_queue_api_writes_total{code="404",resource="queueunits",verb="delete"} 1`,
		`kube_queue_api_writes_total{code="201",resource="tokenreviews",verb="create"} 1`,
		`kube_queue_api_writes_total{code="500",resource="other",verb="create"} 1`,
	)
	if n := strings.Count(strings.Join(scrape(t, r), "\n"), "kube_queue_api_writes_total{"); n != 7 {
		t.Errorf("%d series, want 7", n)
	}
}

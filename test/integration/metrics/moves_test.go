package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/test/harness"
)

// elsewhere lists tests of metrics that would take a defect, five minutes or a race here. Each test contains the
// metric.
var elsewhere = map[string]testOf{
	"kube_queue_reserved_units":             {inController, "TestQueuesAndQuotaAreShownWithTheirStatus"},
	"kube_queue_start_estimates_total":      {"pkg/metrics/metrics_test.go", "TestWhatTheControllerCounts"},
	"kube_queue_rollbacks_total":            {inController, "TestAReleaseOfAUnitThatHasChangedIsRolledBack"},
	"kube_queue_audits_total":               {inController, "TestAnAuditCountsWhatIsBrokenAndDoesNotEndTheProgram"},
	"kube_queue_invariant_violations_total": {inController, "TestAnAuditCountsWhatIsBrokenAndDoesNotEndTheProgram"},
	"kube_queue_safety_flushes_total":       {inController, "TestWhatASafetyFlushFindsIsCounted"},
	"kube_queue_safety_flush_rescues_total": {inController, "TestWhatASafetyFlushFindsIsCounted"},
	"kube_queue_events_dropped_total":       {"pkg/events/refused_test.go", "TestAnEventThatIsRefusedIsDroppedAfterSomeTriesAndCountedByItsReason"},
	"kube_queue_watch_forbidden":            {"test/e2e/silence/forbidden_test.go", "TestAKindThatMayNotBeWatchedIsReported"},

	"kube_queue_webhook_requests_total":                       {ofWebhooks, "TestRequestsAndTheCertificateAreMeasured"},
	"kube_queue_webhook_duration_seconds":                     {ofWebhooks, "TestRequestsAndTheCertificateAreMeasured"},
	"kube_queue_webhook_certificate_expiry_timestamp_seconds": {ofWebhooks, "TestRequestsAndTheCertificateAreMeasured"},
}

const (
	inController = "pkg/controller/measure_test.go"
	ofWebhooks   = "extensions/hold/admission/admission_test.go"
)

// testOf is a test in a file.
type testOf struct{ file, name string }

func job(name, cpu string) string {
	return harness.Job{Name: name, CPU: cpu, Runs: harness.UntilFinished}.String()
}

// team returns a tree with a team that can borrow from another.
func team(min, max string) string {
	return fmt.Sprintf(`{name: team, namespaces: [measured], min: {cpu: "%s"}, max: {cpu: "%s"}}`, min, max)
}

const lends = `{name: lends, namespaces: [nobody], min: {cpu: "1"}}`

func TestEachMetricMovesWithItsCause(t *testing.T) {
	l := suite.Env(t, "measured")
	l.TreeOf(team("1", "2"), lends)
	controller, extensions := suite.Both(t, "job,tfjob", "--count-unqueued-pods") // there is no CRD of TFJob
	reader := suite.MetricsToken(t, "prometheus")
	c, x := watch(t, controller, reader), watch(t, extensions, reader)
	c.shows(`leader{program="kube-queue-controller"} 1`, `quota_invalid 0`, `invariant_violations_total 0`)
	x.shows(`leader{program="job-extensions"} 1`, `kind_missing{extension="tfjob"} 1`, `kind_missing{extension="job"} 0`)

	l.Apply(job("first", "2"))
	l.WaitForPhase("Job", "first", "Running")
	l.Apply(job("second", "2"))
	l.WaitForReason("Job", "second", "QuotaExceeded")
	c.shows(`pending_units{queue="root-team"} 1`, `queue_waiting{queue="root-team"} 1`, `running_units{queue="root-team"} 1`, `queue_stopped{queue="root-team"} 0`,
		`dequeues_total{queue="root-team"} 1`, `wait_seconds_count{framework="Job",queue="root-team"} 1`,
		`admission_attempts_total{reason="",result="admitted"} 1`, `admission_attempts_total{reason="QuotaExceeded",result="refused"} 1`,
		`quota_used{node="root/team",resource="cpu"} 2`, `quota_min{node="root/team",resource="cpu"} 1`,
		`quota_max{node="root/team",resource="cpu"} 2`, `quota_borrowed{node="root/team",resource="cpu"} 1`, `quota_lent{node="root/lends",resource="cpu"} 1`,
		`quota_pending{node="root/team",resource="cpu"} 2`,
		`quota_used{node="root/team",resource="kube-queue/max-jobs"} 1`,
		`api_writes_total{code="200",resource="queueunits/status",verb="patch"} 2`)
	x.shows(`jobs_seen_total{framework="Job"} 2`, `jobs_released_total{framework="Job"} 1`, `release_duration_seconds_count{framework="Job"} 1`,
		`api_writes_total{code="201",resource="queueunits",verb="create"} 2`)

	extensions.Stop()
	l.TreeOf(team("1", "4"), lends)
	c.shows(`dequeued_units{queue="root-team"} 1`, `pending_units{queue="root-team"} 0`)
	extensions.Start()
	l.WaitForPhase("Job", "second", "Running")
	l.Finish(harness.Jobs, "first")
	x.shows(`jobs_finished_total{framework="Job",result="Succeeded"} 1`)
	l.TreeOf(team("1", "1"), lends)
	c.shows(`quota_excess{node="root/team",resource="cpu"} 1`)
	l.TreeOf(team("1", "4"), lends)
	c.shows(`quota_excess{node="root/team",resource="cpu"} 0`)
	l.Patch(harness.Jobs, "second", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
	c.shows(`evictions_total{queue="root-team",reason="Deactivated"} 1`, `requeues_total{reason="Inactive"} 1`,
		`pending_units{queue="root-team"} 1`, `queue_waiting{queue="root-team"} 0`)

	l.EnsureNamespace("nobody")
	l.ApplyAsIs(`{apiVersion: v1, kind: Pod, metadata: {name: notebook, namespace: nobody}, spec: {containers: [{name: main, image: main, resources: {requests: {cpu: 500m}}}]}}`)
	c.shows(`quota_unqueued{node="root/lends",resource="cpu"} 0.5`, `quota_unqueued{node="root/team",resource="cpu"} 0`)

	l.PatchQueue("root-team", `{"spec":{"stop":"Hold"}}`)
	c.shows(`queue_stopped{queue="root-team"} 1`)
	l.PatchQueue("root-team", `{"spec":{"stop":"None"}}`)
	l.TreeOf(team("5", "4"), lends)
	c.shows(`quota_invalid 1`, `quota_max{node="root/team",resource="cpu"} 4`)
	l.TreeOf(`{name: others, namespaces: [measured]}`)
	c.shows(`quota_invalid 0`, `pending_units{queue="root-others"} 1`, `dequeues_total{queue="root-others"} 0`)
	c.forgets("root-team")
	c.forgets("root/team")

	for _, program := range []*watched{c, x} {
		program.scrape()
		for _, d := range metrics.Definitions() {
			if (d.Programs == nil || slices.Contains(d.Programs, program.Name)) && !program.moved[d.Name] && elsewhere[d.Name] == (testOf{}) {
				t.Errorf("nothing has moved %s of %s", d.Name, program.Name)
			}
		}
	}
}

func TestMetricsTestedElsewhere(t *testing.T) {
	defined := metrics.Definitions()
	for name, test := range elsewhere {
		text, err := os.ReadFile(filepath.Join(suite.Repository, test.file))
		harness.Must(t, err)
		_, body, found := strings.Cut(string(text), "\nfunc "+test.name+"(")
		body, _, _ = strings.Cut(body, "\n}\n")
		if !found || !strings.Contains(body, strings.TrimPrefix(name, "kube_queue_")) {
			t.Errorf("%s of %s is not there, or does not look at %s", test.name, test.file, name)
		}
		if !slices.ContainsFunc(defined, func(d metrics.Definition) bool { return d.Name == name }) {
			t.Errorf("%s is not defined", name)
		}
	}
}

package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

const (
	rulesFile     = "../../charts/kube-queue/files/alerts.yaml"
	dashboardFile = "../../charts/kube-queue/files/dashboards/kube-queue.json"
	docsFile      = "../../docs/reference/metrics.md"
	valuesFile    = "../../charts/kube-queue/values.yaml"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alertRules returns the alert rules of the chart.
func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, rulesFile)), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// firing evaluates rules over series for a time, once per minute as Prometheus does, and returns the alerts that fire
// at the end, with their texts.
func firing(t *testing.T, text string, during time.Duration, only func(rulefmt.Rule) bool) map[string][]string {
	t.Helper()
	scraped, engine := scraping(t, text, time.Unix(0, 0), time.Minute), newEngine(t)
	fired := map[string][]string{}
	for _, r := range alertRules(t) {
		if only(r) {
			if reported := play(t, r, engine, scraped, during); len(reported) > 0 {
				fired[r.Alert] = reported
			}
		}
	}
	return fired
}

func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{})})
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// play evaluates a rule once per minute. A result fires once it has been present continuously for the duration in the
// rule.
func play(t *testing.T, r rulefmt.Rule, engine *promql.Engine, scraped storage.Queryable, during time.Duration) (reported []string) {
	t.Helper()
	since := map[uint64]time.Duration{}
	for at := time.Duration(0); at <= during; at += time.Minute {
		query, err := engine.NewInstantQuery(t.Context(), scraped, nil, r.Expr, time.Unix(0, 0).Add(at))
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		found, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		before := since
		since, reported = map[uint64]time.Duration{}, nil
		for _, sample := range found {
			key := sample.Metric.Hash()
			begun, known := before[key]
			if !known {
				begun = at
			}
			since[key] = begun
			if at-begun >= time.Duration(r.For) {
				reported = append(reported, expand(t, r, sample))
			}
		}
		query.Close()
	}
	return reported
}

// expand returns the text of an alert for a result.
func expand(t *testing.T, r rulefmt.Rule, found promql.Sample) string {
	t.Helper()
	data := template.AlertTemplateData(found.Metric.Map(), nil, "", found)
	text := "{{$labels := .Labels}}{{$value := .Value}}" + r.Annotations["summary"] + "|" + r.Annotations["description"]
	query := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	expanded, err := template.NewTemplateExpander(t.Context(), text, r.Alert, data, 0, query, &url.URL{}, nil).Expand()
	if err != nil {
		t.Errorf("%s: %v", r.Alert, err)
	}
	return expanded
}

// healthy has the series of a healthy system for a day. In queue held, all units are held by their users.
const healthy = `
  kube_queue_leader{program="kube-queue-controller", instance="c1"} 1x1440
  kube_queue_leader{program="kube-queue-controller", instance="c2"} 0x1440
  kube_queue_leader{program="job-extensions", instance="x"} 1x1440
  kube_queue_invariant_violations_total{instance="c1"} 0x1440
  kube_queue_safety_flush_rescues_total{instance="c1"} 0x1440
  kube_queue_evictions_total{instance="c1", queue="", reason="NotAdmitted"} 0x1440
  kube_queue_evictions_total{instance="c1", reason="Deactivated"} 0+1x1440
  kube_queue_quota_used{node="root", resource="cpu"} 8x1440
  kube_queue_quota_max{node="root", resource="cpu"} 8x1440
  kube_queue_quota_used{node="root", resource="memory"} 8x1440
  kube_queue_quota_invalid{instance="c1"} 0x1440
  kube_queue_api_writes_total{instance="x", verb="patch", resource="jobs", code="200"} 0+600x1440
  kube_queue_api_writes_total{instance="x", verb="patch", resource="jobs", code="409"} 0+300x1440
  kube_queue_api_writes_total{instance="x", verb="patch", resource="jobs", code="500"} 0+6x1440
  kube_queue_decision_duration_seconds_bucket{instance="c1", le="0.001"} 0+60x1440
  kube_queue_decision_duration_seconds_bucket{instance="c1", le="1"} 0+60x1440
  kube_queue_decision_duration_seconds_bucket{instance="c1", le="+Inf"} 0+60x1440
  kube_queue_release_duration_seconds_bucket{framework="Job", le="1"} 0+60x1440
  kube_queue_release_duration_seconds_bucket{framework="Job", le="+Inf"} 0+60x1440
  kube_queue_pending_units{queue="busy"} 100x1440
  kube_queue_queue_waiting{queue="busy"} 1x1440
  kube_queue_reserved_units{queue="busy"} 0x1440
  kube_queue_dequeued_units{queue="busy"} 0x1440
  kube_queue_running_units{queue="busy"} 9x1440
  kube_queue_queue_stopped{queue="busy"} 0x1440
  kube_queue_dequeues_total{queue="busy"} 0+1x1440
  kube_queue_pending_units{queue="quick"} 1x1440
  kube_queue_queue_waiting{queue="quick"} 1x1440
  kube_queue_reserved_units{queue="quick"} 0x1440
  kube_queue_dequeued_units{queue="quick"} 0x1440
  kube_queue_running_units{queue="quick"} 0x1440
  kube_queue_queue_stopped{queue="quick"} 0x1440
  kube_queue_dequeues_total{queue="quick"} 0+1x1440
  kube_queue_pending_units{queue="stopped"} 100x1440
  kube_queue_queue_waiting{queue="stopped"} 1x1440
  kube_queue_reserved_units{queue="stopped"} 0x1440
  kube_queue_dequeued_units{queue="stopped"} 0x1440
  kube_queue_running_units{queue="stopped"} 0x1440
  kube_queue_queue_stopped{queue="stopped"} 1x1440
  kube_queue_pending_units{queue="held"} 3x1440
  kube_queue_queue_waiting{queue="held"} 0x1440
  kube_queue_reserved_units{queue="held"} 0x1440
  kube_queue_dequeued_units{queue="held"} 0x1440
  kube_queue_running_units{queue="held"} 0x1440
  kube_queue_queue_stopped{queue="held"} 0x1440
  kube_queue_dequeues_total{queue="held"} 0x1440
  kube_queue_kind_missing{extension="job"} 0x1440
  kube_queue_webhook_certificate_expiry_timestamp_seconds 31536000x1440
  apiserver_admission_webhook_rejection_count{name="hold-job.kube-queue.dev", error_type="no_error"} 0+1x1440
`

// missingDefaults are the kinds of the default enabledExtensions, in a cluster without their operators.
func missingDefaults(t *testing.T) (series string) {
	t.Helper()
	kinds := regexp.MustCompile(`(?m)^enabledExtensions: \[(.*)\]$`).FindStringSubmatch(read(t, valuesFile))
	if kinds == nil {
		t.Fatalf("%s has no enabledExtensions", valuesFile)
	}
	for kind := range strings.SplitSeq(kinds[1], ", ") {
		if kind != "" {
			series += fmt.Sprintf("kube_queue_kind_missing{extension=%q} 1x1440\n", kind)
		}
	}
	return series
}

func TestNoAlertFiresInAHealthySystem(t *testing.T) {
	healthy := healthy + missingDefaults(t)
	for alert, reported := range firing(t, healthy, 24*time.Hour, func(rulefmt.Rule) bool { return true }) {
		t.Errorf("%s fires: %q", alert, reported)
	}
}

func TestTheOverviewIsGreenInAHealthySystem(t *testing.T) {
	scraped, engine := scraping(t, healthy+missingDefaults(t), time.Unix(0, 0), time.Minute), newEngine(t)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if p.Type != "stat" {
				continue
			}
			query, err := engine.NewInstantQuery(t.Context(), scraped, nil, target.Expr, time.Unix(600, 0))
			if err != nil {
				t.Fatalf("%s: %v", p.Title, err)
			}
			found, err := query.Exec(t.Context()).Vector()
			if err != nil {
				t.Fatalf("%s: %v", p.Title, err)
			}
			for _, one := range found {
				color := ""
				for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
					if one.F >= step.Value {
						color = step.Color
					}
				}
				if color != "green" {
					t.Errorf("%s: %s is %s: %v", p.Title, target.LegendFormat, color, one)
				}
			}
			query.Close()
		}
	}
}

// cause makes an alert fire.
type cause struct {
	alert, series string
	// during is how long it lasts, and reported is the resulting text of the alert.
	during   time.Duration
	reported []string
	// tooShort is a duration without an alert.
	tooShort time.Duration
}

// causes has at least one cause for each alert.
var causes = []cause{
	{"KubeQueueControllerDown", `kube_queue_leader{program="kube-queue-controller"} 0x60
	  kube_queue_leader{program="job-extensions"} 1x60`, 5 * time.Minute, []string{"No kube-queue-controller is active."}, time.Minute},
	{"KubeQueueJobExtensionsDown", `kube_queue_leader{program="kube-queue-controller"} 1x60`, 5 * time.Minute, []string{"No job-extensions is active."}, time.Minute},
	{"KubeQueueInvariantViolated", `kube_queue_invariant_violations_total{instance="c"} 0x5 2x60`, 7 * time.Minute, []string{"The log of c lists the quota nodes and units"}, 5 * time.Minute},
	{"KubeQueueAdmissionForged", `kube_queue_evictions_total{instance="c", reason="NotAdmitted"} 0x5 1x60
	  kube_queue_evictions_total{instance="c", reason="Deactivated"} 0+1x60`, 7 * time.Minute, []string{"In 15 minutes, something other than kube-queue-controller admitted 1 units"}, 5 * time.Minute},
	{"KubeQueueSafetyFlushFoundWork", `kube_queue_safety_flush_rescues_total{instance="c"} 0x5 1x60`, 7 * time.Minute, []string{"flush of c found units that fit"}, 5 * time.Minute},
	{"KubeQueueQuotaOverMax", `kube_queue_quota_used{node="root/a", resource="cpu"} 9x100
	  kube_queue_quota_max{node="root/a", resource="cpu"} 8x100
	  kube_queue_quota_used{node="root/b", resource="cpu"} 8x100
	  kube_queue_quota_max{node="root/b", resource="cpu"} 8x100`, 61 * time.Minute, []string{"Quota root/a has been above its max for an hour: 9 cpu"}, 59 * time.Minute},
	{"KubeQueueQuotaInvalid", `kube_queue_quota_invalid 1x60`, 6 * time.Minute, []string{"The ElasticQuotaTree is invalid"}, 4 * time.Minute},
	{"KubeQueueAPIWritesFailing", `kube_queue_api_writes_total{instance="x", verb="patch", resource="jobs", code="200"} 0+60x60
	  kube_queue_api_writes_total{instance="x", verb="patch", resource="jobs", code="503"} 0+30x60
	  kube_queue_api_writes_total{instance="x", verb="create", resource="events", code="error"} 0+30x60`, 20 * time.Minute,
		[]string{"33.33% of the patch requests of x for jobs fail with code 503", "100% of the create requests of x for events fail with code error"}, 10 * time.Minute},
	{"KubeQueueDecisionsSlow", `kube_queue_decision_duration_seconds_bucket{instance="c", le="1"} 0+97x60
	  kube_queue_decision_duration_seconds_bucket{instance="c", le="5"} 0+100x60
	  kube_queue_decision_duration_seconds_bucket{instance="c", le="+Inf"} 0+100x60`, 20 * time.Minute, []string{"1% of the scheduling passes of c take 3.6"}, 14 * time.Minute},
	{"KubeQueueReleasesSlow", `kube_queue_release_duration_seconds_bucket{framework="Job", le="5"} 0+80x60
	  kube_queue_release_duration_seconds_bucket{framework="Job", le="15"} 0+80x60
	  kube_queue_release_duration_seconds_bucket{framework="Job", le="60"} 0+100x60
	  kube_queue_release_duration_seconds_bucket{framework="Job", le="+Inf"} 0+100x60`, 20 * time.Minute, []string{"10% of Job jobs"}, 14 * time.Minute},
	{"KubeQueueQueueStuck", `kube_queue_pending_units{queue="q"} 3x200
	  kube_queue_queue_waiting{queue="q"} 1x200
	  kube_queue_reserved_units{queue="q"} 0x200
	  kube_queue_dequeued_units{queue="q"} 0x200
	  kube_queue_running_units{queue="q"} 0x200
	  kube_queue_queue_stopped{queue="q"} 0x200
	  kube_queue_dequeues_total{queue="q"} 0x200`, 65 * time.Minute, []string{"3 units wait in queue q"}, 59 * time.Minute},
	{"KubeQueueWatchForbidden", `kube_queue_watch_forbidden{resource="rayjobs.ray.io", instance="x1"} 1x60
	  kube_queue_watch_forbidden{resource="jobs.batch"} 0x60`, 6 * time.Minute, []string{"cannot list or watch rayjobs.ray.io"}, 4 * time.Minute},
	{"KubeQueueKindMissing", `kube_queue_kind_missing{extension="rayjob", instance="x1"} 1x60
	  kube_queue_kind_missing{extension="rayjob", instance="x2"} 1x60
	  kube_queue_kind_missing{extension="job"} 0x60`, 16 * time.Minute, []string{"Extension rayjob is enabled"}, 14 * time.Minute},
	{"KubeQueueWebhookFailing", `apiserver_admission_webhook_rejection_count{name="hold-job.kube-queue.dev", error_type="calling_webhook_error"} 0x5 3x60
	  apiserver_admission_webhook_rejection_count{name="hold-job.kube-queue.dev", error_type="no_error"} 0+9x60
	  apiserver_admission_webhook_rejection_count{name="other.example.com", error_type="calling_webhook_error"} 0+9x60`, 7 * time.Minute,
		[]string{"webhook hold-job.kube-queue.dev did not answer"}, 5 * time.Minute},
	{"KubeQueueWebhookCertificateExpires", `kube_queue_webhook_certificate_expiry_timestamp_seconds{instance="x"} 600000x60
	  kube_queue_webhook_certificate_expiry_timestamp_seconds{instance="y"} 9000000x60
	  kube_queue_webhook_certificate_expiry_timestamp_seconds{instance="z"} 0x60`, 20 * time.Minute, []string{"refuse marked jobs, if it is of job-extensions, or reviews"}, 14 * time.Minute},
}

func TestEachAlertFiresWhenItsCauseOccurs(t *testing.T) {
	for _, c := range causes {
		t.Run(c.alert, func(t *testing.T) {
			this := func(r rulefmt.Rule) bool { return r.Alert == c.alert }
			if early := firing(t, c.series, c.tooShort, this); len(early) > 0 {
				t.Errorf("after %v it fires: %q", c.tooShort, early)
			}
			reported := firing(t, c.series, c.during, this)[c.alert]
			if len(reported) != len(c.reported) {
				t.Errorf("it reports %q", reported)
			}
			for _, want := range c.reported {
				if !slices.ContainsFunc(reported, func(text string) bool { return strings.Contains(text, want) }) {
					t.Errorf("it reports %q, not %q", reported, want)
				}
			}
		})
	}
}

func TestAStuckQueueThatReleasedBeforeFires(t *testing.T) {
	at := slices.IndexFunc(causes, func(c cause) bool { return c.alert == "KubeQueueQueueStuck" })
	stuck := strings.ReplaceAll(strings.ReplaceAll(causes[at].series, "total{queue=\"q\"} 0x200", "total{queue=\"q\"} 0+1x60 60x300"), "x200", "x400")
	this := func(r rulefmt.Rule) bool { return r.Alert == causes[at].alert }
	if early := firing(t, stuck, 150*time.Minute, this); len(early) > 0 {
		t.Errorf("it fires within two hours of the last release: %q", early)
	}
	if len(firing(t, stuck, 200*time.Minute, this)) == 0 {
		t.Error("it does not fire")
	}
}

func TestEachAlertHasACauseATextAndASectionOfTheDocs(t *testing.T) {
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(read(t, docsFile), -1) {
		sections[strings.ToLower(strings.ReplaceAll(heading[1], " ", "-"))] = true
	}
	seen := map[string]bool{}
	for _, r := range alertRules(t) {
		seen[r.Alert] = true
		page, section, _ := strings.Cut(r.Annotations["runbook"], "#")
		switch {
		case !slices.ContainsFunc(causes, func(c cause) bool {
			return c.alert == r.Alert
		}):
			t.Errorf("%s has no case", r.Alert)
		case r.Annotations["summary"] == "" || r.Annotations["description"] == "":
			t.Errorf("%s does not say what it is", r.Alert)
		case !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]):
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		case page != "docs/reference/metrics.md" || !sections[section]:
			t.Errorf("%s: there is no section %s", r.Alert, r.Annotations["runbook"])
		}
	}
	for _, c := range causes {
		if !seen[c.alert] {
			t.Errorf("there is no alert %s", c.alert)
		}
	}
}

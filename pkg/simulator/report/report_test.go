package report_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = "nvidia.com/gpu"

func quantities(pairs ...string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		list[pairs[i]] = resource.MustParse(pairs[i+1])
	}
	return list
}

// job of the tenant; times in hours.
func job(tenant, name string, submitted, runs float64, size string) simulator.Job {
	return simulator.Job{Namespace: tenant, Name: name, Requests: quantities(gpu, size),
		Submitted: time.Duration(submitted * float64(time.Hour)), Runs: time.Duration(runs * float64(time.Hour))}
}

func leaf(tenant, min, max string) tree.Node {
	return tree.Node{Name: tenant, Namespaces: []string{tenant}, Min: quantities(gpu, min), Max: quantities(gpu, max)}
}

func root(max string, children ...tree.Node) tree.Node {
	return tree.Node{Name: "root", Max: quantities(gpu, max), Children: children}
}

func of(t *testing.T, s simulator.Scenario) *report.Report {
	t.Helper()
	if s.Core.Policy == nil {
		s.Core = scheduler.Options{Policy: queue.Block}
	}
	result, err := simulator.Run(t.Context(), s)
	require.NoError(t, err)
	return report.Of(&s, result, report.Options{Name: s.Core.Policy.Name, Resource: gpu})
}

func hours(h float64) report.Seconds { return report.Seconds(h * float64(time.Hour)) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Two GPUs, a queue each. The first tenant has both for 2 hours and then one for 2
// more; the second waits 2 hours for its single GPU; one job can never run.
func small() simulator.Scenario {
	return simulator.Scenario{
		Jobs: []simulator.Job{
			job("a", "a1", 0, 2, "2"),
			job("a", "a2", 0, 2, "1"),
			job("b", "b1", 1, 4, "1"),
			job("b", "b2", 1, 1, "3"),
		},
		Tree: root("2", leaf("a", "1", "2"), leaf("b", "1", "2")),
	}
}

func TestWaitsUseAndFairnessOfASmallTrace(t *testing.T) {
	r := of(t, small())
	// Waits are 0 (a1), 2 h (a2, from 2 to 4) and 1 h (b1, from 2 to 6).
	if r.All.Jobs != 4 || r.All.Never != 1 || r.All.Mean != hours(1) || r.All.P50 != hours(1) || r.All.P90 != hours(2) || r.All.P99 != hours(2) || r.All.Max != hours(2) {
		t.Errorf("all: %+v", r.All)
	}
	// Slowdowns are 1, 2 and 1.25.
	near(t, "slowdown", r.All.Slowdown, 4.25/3)
	if len(r.Tenants) != 2 || r.Tenants[0].Name != "a" || r.Tenants[0].Mean != hours(1) || r.Tenants[1].Mean != hours(1) || r.Tenants[1].Never != 1 {
		t.Errorf("tenants: %+v", r.Tenants)
	}
	near(t, "hours of a", r.Tenants[0].Hours, 6)
	near(t, "hours of b", r.Tenants[1].Hours, 4)
	if len(r.Sizes) != 2 || r.Sizes[0].Name != "1" || r.Sizes[0].Jobs != 2 || r.Sizes[1].Name != "2-3" || r.Sizes[1].Jobs != 2 || r.Sizes[1].Never != 1 {
		t.Errorf("sizes: %+v", r.Sizes)
	}
	if r.Makespan != hours(6) {
		t.Errorf("makespan %s", r.Makespan)
	}
	// 10 of 2 × 6 GPU-hours. Until the last submission, at 1 h, 2 of 2.
	if len(r.Use) != 1 || r.Use[0].Resource != gpu || r.Use[0].Max != "2" {
		t.Fatalf("use: %+v", r.Use)
	}
	near(t, "used hours", r.Use[0].Hours, 10)
	near(t, "use", r.Use[0].Part, 10.0/12)
	near(t, "early use", r.Use[0].PartEarly, 1)
	near(t, "demand", r.Demand, 13)
	// Mean slowdowns are 1.5 and 1.25.
	near(t, "Jain's index", *r.Fairness.Jain, 2.75*2.75/(2*(1.5*1.5+1.25*1.25)))
	if r.Fairness.WorstTenant != "a" || r.Fairness.WorstMean != hours(1) {
		t.Errorf("fairness: %+v", r.Fairness)
	}
	// b lacks 1 GPU of its min from 1 h to 2 h; a never does.
	if len(r.Fairness.Shortfall) != 1 || r.Fairness.Shortfall[0].Worst != "root/b" {
		t.Fatalf("shortfall: %+v", r.Fairness.Shortfall)
	}
	near(t, "shortfall", r.Fairness.Shortfall[0].Hours, 1)
	if len(r.Never) != 1 || r.Never[0].Reason != "ExceedsMaxQuota" || r.Never[0].Jobs != 1 || r.Never[0].Job != "b/b2" || r.Never[0].Message == "" || r.Never[0].Advice == "" {
		t.Errorf("never: %+v", r.Never)
	}
}

func TestWhatNoJobHadIsNotReported(t *testing.T) {
	s := small()
	s.Tree.Max["cpu"] = resource.MustParse("4")
	if r := of(t, s); len(r.Use) != 1 || r.Use[0].Resource != gpu {
		t.Errorf("no job requests cpu, and its use is reported: %+v", r.Use)
	}
	s.Jobs = s.Jobs[3:] // it can never run
	r := of(t, s)
	if r.Fairness.Jain != nil {
		t.Errorf("no job ran, and Jain's index is %v", *r.Fairness.Jain)
	}
}

func TestPercentilesAreByNearestRank(t *testing.T) {
	// One GPU, and jobs of an hour that are submitted together: they wait 0 to n-1 hours.
	for n, want := range map[int][3]float64{1: {0, 0, 0}, 2: {0, 1, 1}, 10: {4, 8, 9}, 100: {49, 89, 98}, 101: {50, 90, 99}} {
		var jobs []simulator.Job
		for i := range n {
			jobs = append(jobs, job("a", fmt.Sprintf("job-%03d", i), 0, 1, "1"))
		}
		r := of(t, simulator.Scenario{Jobs: jobs, Tree: root("1", leaf("a", "0", "1"))})
		if got := [3]report.Seconds{r.All.P50, r.All.P90, r.All.P99}; got != [3]report.Seconds{hours(want[0]), hours(want[1]), hours(want[2])} {
			t.Errorf("%d jobs: P50, P90, P99 are %v, want %v hours", n, got, want)
		}
		if r.All.Mean != hours(float64(n-1)/2) || r.All.Max != hours(float64(n-1)) {
			t.Errorf("%d jobs: mean %s, max %s", n, r.All.Mean, r.All.Max)
		}
	}
}

func TestAShortRunCountsAsTenSecondsInASlowdown(t *testing.T) {
	second := 1.0 / 3600
	r := of(t, simulator.Scenario{Jobs: []simulator.Job{job("a", "first", 0, 20*second, "1"), job("b", "short", 0, second, "1"), job("c", "empty", 0, 0, "1")},
		Tree: root("1", leaf("a", "0", "1"), leaf("b", "0", "1"), leaf("c", "0", "1"))})
	// It waits 20 s and runs 1 s: 21/10. So does the empty one.
	near(t, "slowdown of b", r.Tenants[1].Slowdown, 2.1)
	near(t, "slowdown of c", r.Tenants[2].Slowdown, 2.1)
	near(t, "slowdown of a", r.Tenants[0].Slowdown, 1)
}

func TestShortfallIsNoMoreThanWhatWaitingJobsRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs []simulator.Job
		want float64
	}{
		{"one GPU of four is requested", []simulator.Job{job("b", "long", 0, 5, "8"), job("a", "one", 1, 1, "1")}, 4},
		{"more than the min is requested, in small jobs", []simulator.Job{job("b", "long", 0, 5, "8"), job("a", "one", 1, 1, "3"), job("a", "two", 2, 1, "3")}, 3*1 + 4*3},
		{"a job above the min is owed nothing", []simulator.Job{job("b", "long", 0, 5, "8"), job("a", "large", 1, 1, "5")}, 0},
		{"what is used counts", []simulator.Job{job("a", "running", 0, 9, "3"), job("b", "long", 0, 5, "5"), job("a", "one", 1, 1, "1"), job("a", "two", 1, 1, "2")}, 4},
		{"nobody waits", []simulator.Job{job("b", "some", 0, 5, "4"), job("a", "one", 1, 1, "1")}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := of(t, simulator.Scenario{Jobs: c.jobs, Tree: root("8", leaf("a", "4", "8"), leaf("b", "0", "8"))})
			near(t, "shortfall", r.Fairness.Shortfall[0].Hours, c.want)
		})
	}
}

func TestTheMinOfAnInnerNodeIsForTheJobsBelowIt(t *testing.T) {
	dept := func(min string, children ...tree.Node) tree.Node {
		return tree.Node{Name: "dept", Min: quantities(gpu, min), Max: quantities(gpu, "8"), Children: children}
	}
	for _, c := range []struct {
		name string
		jobs []simulator.Job
		tree tree.Node
		want float64
	}{
		{"others use it", []simulator.Job{job("b", "long", 0, 5, "8"), job("a", "one", 1, 1, "1")}, root("8", dept("4", leaf("a", "0", "8")), leaf("b", "0", "8")), 4},
		{"on two levels", []simulator.Job{job("b", "long", 0, 5, "8"), job("a", "one", 1, 1, "1")}, root("8", dept("4", leaf("a", "2", "8")), leaf("b", "0", "8")), 4 + 4},
		{"a job waits for the max below it", []simulator.Job{job("a", "long", 0, 5, "2"), job("a", "one", 1, 1, "1")}, root("8", dept("4", leaf("a", "0", "2")), leaf("b", "0", "8")), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			near(t, "shortfall", of(t, simulator.Scenario{Jobs: c.jobs, Tree: c.tree}).Fairness.Shortfall[0].Hours, c.want)
		})
	}
}

func TestSeriesAndDistributionOfASmallTrace(t *testing.T) {
	r := of(t, small())
	s := r.Series
	n := len(s.Waiting)
	if interval := time.Duration(s.Interval); n < 190 || n > 210 || interval*time.Duration(n) < 6*time.Hour || interval*time.Duration(n-1) > 6*time.Hour {
		t.Fatalf("%d points of %s", n, s.Interval)
	}
	near(t, "limit", s.Limit, 2)
	total := func(values []float64) (sum float64) {
		for _, v := range values {
			sum += v * time.Duration(s.Interval).Hours()
		}
		return sum
	}
	near(t, "GPU-hours of a", total(s.Use["a"]), 6)
	near(t, "GPU-hours of b", total(s.Use["b"]), 4)
	// a2 waits 2 h and b1 waits 1 h. b2 never runs and does not count.
	near(t, "hours of waiting", total(s.Waiting), 3)
	longest := report.Seconds(0)
	for k, v := range s.Waiting {
		if use := s.Use["a"][k] + s.Use["b"][k]; use > 2+1e-9 {
			t.Errorf("use is %v at point %d", use, k)
		}
		if (v > 0) != (s.Longest[k] > 0) {
			t.Errorf("point %d: %v wait, the longest %s", k, v, s.Longest[k])
		}
		longest = max(longest, s.Longest[k])
	}
	if longest != hours(2) {
		t.Errorf("longest wait %s", longest)
	}
	for k, at := range r.DistributionAt {
		want := 1.0 / 3
		if at >= hours(1) {
			want = 2.0 / 3
		}
		if at >= hours(2) {
			want = 1
		}
		near(t, fmt.Sprintf("part that waited at most %s", at), r.All.Distribution[k], want)
	}
	if last := r.DistributionAt[len(r.DistributionAt)-1]; last < hours(2) {
		t.Errorf("the distribution ends at %s", last)
	}
}

func TestAReportDependsOnNoOrderOfJobs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := simulator.Scenario{Tree: root("8", leaf("a", "3", "8"), leaf("b", "3", "8"), leaf("c", "0", "4"))}
	for i := range 300 {
		s.Jobs = append(s.Jobs, job(string('a'+rune(random.IntN(3))), fmt.Sprintf("job-%d", i), random.Float64()*20, random.Float64(), fmt.Sprint(random.IntN(6))))
	}
	first := of(t, s)
	for range 5 {
		random.Shuffle(len(s.Jobs), func(i, j int) { s.Jobs[i], s.Jobs[j] = s.Jobs[j], s.Jobs[i] })
		if again := of(t, s); !reflect.DeepEqual(first, again) {
			t.Fatal("another order of jobs gives another report")
		}
	}
}

func TestAReportOnNothingHasNoFigureThatIsNone(t *testing.T) {
	for _, s := range []simulator.Scenario{
		{Tree: root("0")},
		{Jobs: []simulator.Job{job("a", "impossible", 0, 1, "1")}, Tree: root("0", leaf("a", "0", "0"))},
		{Jobs: []simulator.Job{job("a", "empty", 0, 0, "0")}, Tree: tree.Node{Name: "root", Namespaces: []string{"a"}}},
	} {
		paper := &report.Paper{Reports: []*report.Report{of(t, s)}}
		var out strings.Builder
		// JSON has no NaN and no infinity.
		require.NoError(t, paper.JSON(&out))
		out.Reset()
		if err := paper.Table(&out); err != nil || strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Errorf("error %v, table\n%s", err, &out)
		}
	}
}

func TestAmountsOfMemoryAddUpBeyond64Bits(t *testing.T) {
	s := simulator.Scenario{Tree: tree.Node{Name: "root", Namespaces: []string{"a"}, Max: quantities("memory", "4Pi", "cpu", "100")}}
	for i := range 4 {
		s.Jobs = append(s.Jobs, simulator.Job{Namespace: "a", Name: fmt.Sprint(i), Requests: quantities("memory", "1Pi", "cpu", "500m"), Runs: 1000 * time.Hour})
	}
	r := of(t, s)
	if len(r.Use) != 2 || r.Use[1].Resource != "memory" {
		t.Fatalf("use: %+v", r.Use)
	}
	near(t, "use of memory", r.Use[1].Part, 1)
	near(t, "GiB-hours of memory", r.Use[1].Hours, 4*1024*1024*1000)
	near(t, "core-hours", r.Use[0].Hours, 2000)
	near(t, "use of cpu", r.Use[0].Part, 0.02)
}

func papers(t *testing.T) *report.Paper {
	t.Helper()
	start := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	p := &report.Paper{
		Trace: report.Trace{File: "jobs.csv", Jobs: 4, Tenants: 2, Start: &start, Span: hours(1), Resources: []string{gpu}, Skipped: []string{"7 skipped: canceled"}, Renamed: []string{}},
		Tree:  report.Tree{Source: "tree.yaml", Max: []string{gpu + " 2"}, OversellRate: "1"},
	}
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.Block} {
		s := small()
		s.Core = scheduler.Options{Policy: policy}
		s.Tree.Children[0].Warnings = []string{"odd"}
		p.Reports = append(p.Reports, of(t, s))
	}
	return p
}

func TestTheTableReportsEverythingAUserAsks(t *testing.T) {
	p := papers(t)
	var two, one strings.Builder
	require.NoError(t, p.Table(&two))
	p.Reports, p.Tree.PauseBorrowing, p.Tree.OversellRate = p.Reports[:1], true, "1.5"
	require.NoError(t, p.Table(&one))
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"two policies", two.String(), []string{"jobs.csv: 4 jobs of 2 tenants, submitted from 2026-01-31 08:00 within 1 h; 13 nvidia.com/gpu-hours", "7 skipped: canceled",
			"tree.yaml", "nvidia.com/gpu 2", "RoundRobin", "Block", "Warning root/a: odd", "83.3 %", "1 nvidia.com/gpu-hours  root/b",
			"1 job was never released (1 tenant: b). Reason: ExceedsMaxQuota", "can never fit in quota root/b", "To fix it, raise the max", "Not simulated: nodes"}},
		{"one policy", one.String(), []string{"P99", "HOURS", "every max is multiplied by 1.5", "borrowing is paused"}},
	} {
		plain := strings.Join(strings.Fields(c.text), " ")
		for _, word := range c.words {
			if !strings.Contains(plain, strings.Join(strings.Fields(word), " ")) {
				t.Errorf("%s: the table does not say %q:\n%s", c.name, word, c.text)
			}
		}
		for line := range strings.Lines(c.text) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 110 {
				t.Errorf("%s: a line of %d characters: %s", c.name, len(line), line)
			}
		}
	}
}

func TestCSVHasARowForEachPolicyAndGroup(t *testing.T) {
	var out strings.Builder
	require.NoError(t, papers(t).CSV(&out))
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	require.NoError(t, err)
	if len(rows) != 1+2*(1+2+2) {
		t.Errorf("%d rows:\n%s", len(rows), &out)
	}
	if got := strings.Join(rows[1], " "); got != "RoundRobin all all 4 1 3600 3600 7200 7200 7200 1.417 nvidia.com/gpu 10.000" {
		t.Errorf("first row is %s", got)
	}
}

func TestJSONHasAllFiguresInSeconds(t *testing.T) {
	var out strings.Builder
	require.NoError(t, papers(t).JSON(&out))
	var got struct {
		Trace    struct{ SpanSeconds float64 }
		Policies []struct {
			Name            string
			MakespanSeconds float64
			All             struct{ WaitMeanSeconds, BoundedSlowdownMean float64 }
			Tenants         []struct{ Name string }
			Series          struct {
				Waiting []float64
				Use     map[string][]float64
			}
			NeverReleased []struct{ Reason string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	if len(got.Policies) != 2 || got.Trace.SpanSeconds != 3600 {
		t.Fatalf("read %+v", got)
	}
	p := got.Policies[1]
	if p.Name != "Block" || p.MakespanSeconds != 6*3600 || p.All.WaitMeanSeconds != 3600 || len(p.Tenants) != 2 || len(p.Series.Use["a"]) != len(p.Series.Waiting) ||
		p.NeverReleased[0].Reason != "ExceedsMaxQuota" {
		t.Errorf("read %+v", p)
	}
}

func TestTimesAndNumbersAreReadable(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 400 * time.Millisecond: "0.4 s", 45 * time.Second: "45 s", 59*time.Second + 900*time.Millisecond: "59.9 s",
		90 * time.Second: "1.5 min", 90 * time.Minute: "1.5 h", 99 * time.Hour: "99 h", 300 * time.Hour: "12.5 d", 2400 * time.Hour: "100 d", 24 * 1200 * time.Hour: "1,200 d",
	} {
		if got := report.Seconds(d).String(); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 82247: "82,247", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := report.Count(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 1.25: "1.2", 20: "20", 99.99: "100", 978078: "978,078", 12.5e6: "12.5M", 3e12: "3,000G"} {
		if got := report.Amount(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

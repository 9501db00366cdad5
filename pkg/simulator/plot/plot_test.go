package plot_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/plot"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = "nvidia.com/gpu"

// element of a picture.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.attr(name), 64)
	if err != nil {
		t.Fatalf("%s of a %s: %v", name, e.XMLName.Local, err)
	}
	return v
}

// all returns the elements below with this value of the attribute.
func (e *element) all(name, value string) []element {
	var found []element
	for _, c := range e.Children {
		if c.attr(name) == value {
			found = append(found, c)
		}
		found = append(found, c.all(name, value)...)
	}
	return found
}

// texts of a class.
func (e *element) texts(class string) []string {
	var list []string
	for _, c := range e.all("class", class) {
		list = append(list, c.Text)
	}
	return list
}

// paper returns a paper on a trace with this number of tenants. The first one uses the most.
func paper(t *testing.T, tenants int, policies ...*queue.Policy) *report.Paper {
	t.Helper()
	var jobs []simulator.Job
	for i := range 200 {
		tenant := i % tenants
		jobs = append(jobs, simulator.Job{Namespace: fmt.Sprintf("tenant-%02d", tenant), Name: fmt.Sprintf("job-%d", i), Submitted: time.Duration(i) * 10 * time.Minute,
			Runs: time.Duration(tenants-tenant) * time.Hour, Requests: map[string]resource.Quantity{gpu: *resource.NewQuantity(int64(1+i/tenants%3), resource.DecimalSI)}})
	}
	capacity := map[string]resource.Quantity{gpu: *resource.NewQuantity(8, resource.DecimalSI)}
	p := &report.Paper{Trace: report.Trace{File: "jobs <&> more.csv", Jobs: len(jobs), Tenants: tenants}, Tree: report.Tree{Source: "tree.yaml"}}
	for _, policy := range policies {
		s := simulator.Scenario{Jobs: jobs, Tree: quotatree.Propose(quotatree.Elastic, jobs, capacity), Core: scheduler.Options{Policy: policy}}
		result, err := simulator.Run(t.Context(), s)
		require.NoError(t, err)
		p.Reports = append(p.Reports, report.Of(&s, result, report.Options{Name: policy.Name, Resource: gpu}))
	}
	return p
}

func parse(t *testing.T, picture []byte) *element {
	t.Helper()
	root := &element{}
	if err := xml.Unmarshal(picture, root); err != nil {
		t.Fatalf("%v\n%s", err, picture)
	}
	return root
}

var pair = regexp.MustCompile(`[ML](-?[0-9.]+) (-?[0-9.]+)`)

// corners of a path.
func corners(t *testing.T, path element) [][2]float64 {
	t.Helper()
	var list [][2]float64
	for _, m := range pair.FindAllStringSubmatch(path.attr("d"), -1) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if errX != nil || errY != nil {
			t.Fatal(m)
		}
		list = append(list, [2]float64{x, y})
	}
	return list
}

func series(panel element) []string {
	var names []string
	for _, class := range []string{"area", "line"} {
		for _, path := range panel.all("class", class) {
			names = append(names, path.attr("data-series"))
		}
	}
	return names
}

func TestAPictureHasItsPanelsAndSeries(t *testing.T) {
	all := []*queue.Policy{queue.RoundRobin, queue.Block, queue.Priority}
	three := []string{"tenant-00", "tenant-01", "tenant-02"}
	six := append(slices.Clone(three), "tenant-03", "tenant-04", "tenant-05")
	for _, c := range []struct {
		name     string
		tenants  int
		policies []*queue.Policy
		want     map[string][]string
	}{
		{"one policy: waits by tenant", 3, all[:1], map[string][]string{
			"use RoundRobin": three, "waiting": {"RoundRobin"}, "distribution": append(slices.Clone(three), "all tenants")}},
		{"three policies: waits by policy", 3, all, map[string][]string{
			"use RoundRobin": three, "use Block": three, "use Priority": three,
			"waiting": {"RoundRobin", "Block", "Priority"}, "distribution": {"RoundRobin", "Block", "Priority"}}},
		{"many tenants: the greatest, and all others together", 9, all[:2], map[string][]string{
			"use RoundRobin": append(slices.Clone(six), "3 other tenants"), "use Block": append(slices.Clone(six), "3 other tenants"),
			"waiting": {"RoundRobin", "Block"}, "distribution": {"RoundRobin", "Block"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := parse(t, plot.Draw(paper(t, c.tenants, c.policies...)))
			panels := root.all("class", "panel")
			if len(panels) != len(c.want) {
				t.Fatalf("%d panels, want %d", len(panels), len(c.want))
			}
			for _, panel := range panels {
				name := panel.attr("data-panel")
				want := c.want[name]
				if got := series(panel); !slices.Equal(got, want) {
					t.Errorf("panel %s has the series %v, want %v", name, got, want)
				}
				legend := panel.texts("legend")
				for _, s := range want {
					if !slices.Contains(legend, s) {
						t.Errorf("panel %s: the legend has no %s, only %v", name, s, legend)
					}
				}
			}
		})
	}
}

func TestNothingIsDrawnOutsideOfItsFrameOrLooksAlike(t *testing.T) {
	root := parse(t, plot.Draw(paper(t, 9, queue.Policies()...)))
	bottom := 0.0
	for _, panel := range root.all("class", "panel") {
		styles := map[string]string{}
		for _, line := range panel.all("class", "line") {
			name, style := line.attr("data-series"), line.attr("style")
			if styles[style] != "" {
				t.Errorf("panel %s: the lines of %s and %s look alike", panel.attr("data-panel"), styles[style], name)
			}
			styles[style] = name
		}
		frame := panel.all("class", "frame")[0]
		x, y := frame.number(t, "x"), frame.number(t, "y")
		right, low := x+frame.number(t, "width"), y+frame.number(t, "height")
		if y <= bottom {
			t.Errorf("panel %s begins at %v, in the panel above, which ends at %v", panel.attr("data-panel"), y, bottom)
		}
		bottom = low
		for _, class := range []string{"area", "line"} {
			for _, path := range panel.all("class", class) {
				points := corners(t, path)
				if len(points) < 10 {
					t.Errorf("%s has %d points", path.attr("data-series"), len(points))
				}
				for _, p := range points {
					if p[0] < x-0.1 || p[0] > right+0.1 || p[1] < y-0.1 || p[1] > low+0.1 {
						t.Fatalf("panel %s: a point of %s at %v is outside of the frame from %v, %v to %v, %v", panel.attr("data-panel"), path.attr("data-series"), p, x, y, right, low)
					}
				}
			}
		}
		for _, label := range panel.all("class", "legend") {
			if at := label.number(t, "y"); at > low+30 {
				t.Errorf("panel %s: the legend goes down to %v, below the frame's end at %v", panel.attr("data-panel"), at, low)
			}
		}
	}
	if height := root.number(t, "height"); bottom > height-30 {
		t.Errorf("the last panel ends at %v of %v", bottom, height)
	}
}

func TestWhatIsDrawnIsWhatIsReported(t *testing.T) {
	p := paper(t, 3, queue.RoundRobin)
	r := p.Reports[0]
	root := parse(t, plot.Draw(p))
	use, spread := root.all("data-panel", "use RoundRobin")[0], root.all("data-panel", "distribution")[0]
	// The limit line shows the scale: the lowest layer is as high as its values.
	frame, limit := use.all("class", "frame")[0], use.all("class", "limit")[0]
	low := frame.number(t, "y") + frame.number(t, "height")
	pixels := (low - limit.number(t, "y1")) / r.Series.Limit
	lowest := corners(t, use.all("data-series", "tenant-00")[0])
	for k, v := range r.Series.Use["tenant-00"] {
		if got := (low - lowest[2*k][1]) / pixels; got < v-0.02 || got > v+0.02 {
			t.Fatalf("point %d is drawn at %v, and is %v", k, got, v)
		}
	}
	top := corners(t, use.all("data-series", "tenant-02")[0])
	for k := range r.Series.Waiting {
		sum := r.Series.Use["tenant-00"][k] + r.Series.Use["tenant-01"][k] + r.Series.Use["tenant-02"][k]
		if got := (low - top[2*k][1]) / pixels; got < sum-0.02 || got > sum+0.02 {
			t.Fatalf("point %d of the whole is drawn at %v, and is %v", k, got, sum)
		}
	}
	// A distribution never falls, and ends at 100 %.
	frame = spread.all("class", "frame")[0]
	line := corners(t, spread.all("data-series", "all tenants")[0])
	for k := 1; k < len(line); k++ {
		if line[k][0] <= line[k-1][0] || line[k][1] > line[k-1][1] {
			t.Fatalf("the distribution goes from %v to %v", line[k-1], line[k])
		}
	}
	if end := line[len(line)-1]; end[1] != frame.number(t, "y") {
		t.Errorf("the distribution ends at %v, and the frame at %v", end[1], frame.number(t, "y"))
	}
}

func TestAPictureSaysWhatItShowsAndInWhichUnits(t *testing.T) {
	p := paper(t, 3, queue.RoundRobin)
	start := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	p.Trace.Start = &start
	root := parse(t, plot.Draw(p))
	labels := root.texts("label")
	for _, want := range []string{gpu, "jobs", "hours from the first submission, 2026-01-31 08:00", "wait from submission to release (logarithmic)", "1 min", "1 h", "100 %", "0", "8"} {
		if !slices.Contains(labels, want) {
			t.Errorf("no label says %q: %v", want, labels)
		}
	}
	if got := root.texts("title"); !slices.Equal(got, []string{"jobs <&> more.csv: 200 jobs of 3 tenants"}) {
		t.Errorf("the title is %q", got)
	}
	if got := root.texts("heading"); len(got) != 3 {
		t.Errorf("headings: %q", got)
	}
}

func TestTheSameReportGivesTheSamePicture(t *testing.T) {
	first := plot.Draw(paper(t, 9, queue.RoundRobin, queue.Block))
	for range 3 {
		if !bytes.Equal(first, plot.Draw(paper(t, 9, queue.RoundRobin, queue.Block))) {
			t.Fatal("the same report gives another picture")
		}
	}
}

func TestAPictureOfNextToNothingIsDrawn(t *testing.T) {
	for _, jobs := range [][]simulator.Job{
		nil,
		{{Namespace: "a", Name: "impossible", Runs: time.Hour, Requests: map[string]resource.Quantity{gpu: resource.MustParse("9")}}},
		{{Namespace: "a", Name: "empty"}},
		{{Namespace: "a", Name: "years", Runs: 400 * 24 * time.Hour, Requests: map[string]resource.Quantity{gpu: resource.MustParse("1")}},
			{Namespace: "a", Name: "later", Submitted: time.Hour, Runs: 100 * 24 * time.Hour, Requests: map[string]resource.Quantity{gpu: resource.MustParse("1")}}},
	} {
		capacity := map[string]resource.Quantity{gpu: resource.MustParse("1")}
		s := simulator.Scenario{Jobs: jobs, Tree: quotatree.Propose(quotatree.Single, jobs, capacity)}
		result, err := simulator.Run(t.Context(), s)
		require.NoError(t, err)
		p := &report.Paper{Reports: []*report.Report{report.Of(&s, result, report.Options{Name: "RoundRobin", Resource: gpu})}}
		picture := plot.Draw(p)
		if panels := parse(t, picture).all("class", "panel"); len(panels) != 3 {
			t.Errorf("%d panels", len(panels))
		}
		if strings.Contains(string(picture), "NaN") || strings.Contains(string(picture), "Inf") {
			t.Errorf("a point is nowhere:\n%s", picture)
		}
	}
}

package alerts

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"kube-queue.dev/kube-queue/test/require"
)

var update = flag.Bool("update", false, "write the pictures of the dashboard")

// The recording has this many scrapes, one every five seconds.
const (
	scrapes = 61
	every   = 5 * time.Second
)

// begins are the rows that start a picture.
var begins = map[string]string{"Overview": "queues", "Quota: $resource": "quotas", "Programs": "programs"}

// empty are panels that have no data in some recordings, and why.
var empty = map[string]string{
	"Rolled-back decisions": "nobody else changes units at the same time",
	"Failed API writes":     "the API server refuses no write",
	"Dropped events":        "the API server refuses no event",
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, dashboardFile)), &d))
	return d
}

// evaluate runs the queries of a panel with these values of the variables.
func (d *panel) evaluate(t *testing.T, engine *promql.Engine, scraped storage.Queryable, from time.Time, variables *strings.Replacer) {
	t.Helper()
	d.Title = variables.Replace(d.Title)
	for _, target := range d.Targets {
		query, err := engine.NewRangeQuery(t.Context(), scraped, nil, variables.Replace(target.Expr), from, from.Add((scrapes-1)*every), every)
		if err != nil {
			t.Fatalf("%s: %v", d.Title, err)
		}
		found, err := query.Exec(t.Context()).Matrix()
		if err != nil {
			t.Fatalf("%s: %v", d.Title, err)
		}
		for _, series := range found {
			one := result{values: slices.Repeat([]float64{math.NaN()}, scrapes)}
			one.name = reported.ReplaceAllStringFunc(target.LegendFormat, func(label string) string {
				return series.Metric.Get(reported.FindStringSubmatch(label)[1])
			})
			for _, point := range series.Floats {
				one.values[time.UnixMilli(point.T).Sub(from)/every] = point.F
			}
			if slices.ContainsFunc(one.values, func(v float64) bool { return !math.IsNaN(v) }) {
				d.lines = append(d.lines, one)
			}
		}
		query.Close()
	}
}

// "make dashboard" records the metrics of the programs. The pictures show them as Grafana would.
func TestThePicturesShowTheDashboardOfARecording(t *testing.T) {
	start, recorded, _ := strings.Cut(read(t, "testdata/recording.txt"), "\n")
	from, err := time.Parse("# "+time.RFC3339, start)
	require.NoError(t, err)
	engine, scraped, d := newEngine(t), scraping(t, recorded, from, every), readDashboard(t)
	var shown, replaced []string
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			value, text := v.AllValue, "All"
			if v.Name == "resource" {
				value, text = "nvidia.com/gpu", "nvidia.com/gpu"
			}
			shown, replaced = append(shown, v.Label+": "+text), append(replaced, "$"+v.Name, value)
		}
	}
	pictures, name := map[string][]*panel{}, ""
	for _, p := range d.Panels {
		if begun := begins[p.Title]; begun != "" {
			name = begun
		}
		pictures[name] = append(pictures[name], p)
		p.evaluate(t, engine, scraped, from, strings.NewReplacer(replaced...))
		if p.Type != "row" && len(p.lines) == 0 && empty[p.Title] == "" {
			t.Errorf("%s shows nothing, and no reason is listed", p.Title)
		}
	}
	for row, name := range begins {
		if len(pictures[name]) == 0 {
			t.Fatalf("there is no row %s", row)
		}
		file := "../../docs/images/dashboard-" + name + ".svg"
		drawn := draw(d.Title, strings.Join(shown, ", ")+from.Format(". 2006-01-02, UTC"), pictures[name], from)
		if *update {
			require.NoError(t, os.WriteFile(file, drawn, 0o644))
		} else if string(drawn) != read(t, file) {
			t.Errorf("%s is not up to date: run go test -C test/alerts -update", file)
		}
	}
}

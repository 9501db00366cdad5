package alerts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is a row of the table in the documentation.
type metric struct {
	histogram bool
	labels    []string
}

// defined returns the metrics by name, including the series of histograms.
func defined(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	row := regexp.MustCompile("(?m)^\\| `(kube_queue_[a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, docsFile), -1) {
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		all[m[1]] = metric{m[2] == "histogram", labels}
		if m[2] == "histogram" {
			all[m[1]+"_sum"], all[m[1]+"_count"] = metric{labels: labels}, metric{labels: labels}
			all[m[1]+"_bucket"] = metric{labels: append(slices.Clone(labels), "le")}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d metrics are defined", len(all))
	}
	// Metrics of the API server.
	all["apiserver_admission_webhook_rejection_count"] = metric{labels: []string{"name", "type", "operation", "error_type", "rejection_code"}}
	return all
}

// scraped are labels that Prometheus adds to scraped metrics.
var scraped = []string{"instance", "job", "pod", "namespace"}

// check reports undefined metrics and labels of a query, and records the used metrics.
func check(t *testing.T, where, query string, metrics map[string]metric, used map[string]bool) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	var known []string
	var grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			m, is := metrics[node.Name]
			if !is || m.histogram {
				t.Errorf("%s requests %s, which is not defined", where, node.Name)
				return nil
			}
			used[node.Name] = true
			known = append(known, m.labels...)
			for _, matcher := range node.LabelMatchers {
				if name := matcher.Name; name != model.MetricNameLabel && !slices.Contains(m.labels, name) {
					t.Errorf("%s requests %s by %s, which it does not have", where, node.Name, name)
				}
			}
		case *parser.AggregateExpr:
			grouped = append(grouped, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				grouped = append(grouped, node.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, name := range grouped {
		if !slices.Contains(known, name) && !slices.Contains(scraped, name) {
			t.Errorf("%s uses %s, which nothing in it has", where, name)
		}
	}
}

// reported matches the labels in a template.
var reported = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}`)

func TestRulesUseDefinedMetrics(t *testing.T) {
	metrics := defined(t)
	for _, r := range alertRules(t) {
		check(t, r.Alert, r.Expr, metrics, map[string]bool{})
	}
}

func TestDashboardShowsAllDefinedMetrics(t *testing.T) {
	dashboard := readDashboard(t)
	metrics, used := defined(t), map[string]bool{}
	var variables []string
	valuesOf := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "datasource" {
			continue
		}
		m := valuesOf.FindStringSubmatch(v.Definition)
		if m == nil || !slices.Contains(metrics[m[1]].labels, m[2]) {
			t.Errorf("variable %s is by %q, which is not defined", v.Name, v.Definition)
		}
	}
	variable := regexp.MustCompile(`\$(\w+)`)
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q is not as it should be", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			query := target.Expr
			for _, m := range variable.FindAllStringSubmatch(query, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("%s uses the variable %s, which there is not", p.Title, m[1])
				}
			}
			check(t, p.Title, query, metrics, used)
			for _, m := range reported.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(query, m[1]) && !slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(name string) bool {
					return strings.Contains(query, name) && slices.Contains(metrics[name].labels, m[1])
				}) {
					t.Errorf("%s names its lines by %s, which the query does not keep", p.Title, m[1])
				}
			}
		}
	}
	for name, m := range metrics {
		plain := strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
		if !m.histogram && !plain && !used[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

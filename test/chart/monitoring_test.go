package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

const alerts = `groups:
- name: example
  rules:
  - alert: Example
    expr: kube_queue_example > 0
    annotations:
      summary: "{{ $labels.queue }} has {{ $value }}"
`

// copied is a copy of the chart with further files.
func copied(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "kube-queue")
	if err := os.CopyFS(folder, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{"files/alerts.yaml", "files/dashboards"} {
		if err := os.RemoveAll(filepath.Join(folder, old)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestAlertsAndDashboardsAreInstalledAsTheyAre(t *testing.T) {
	folder := copied(t, map[string]string{"files/alerts.yaml": alerts, "files/dashboards/one.json": `{"title": "{{one}}"}`, "files/dashboards/two.json": `{}`})
	out, err := template(t, folder, "--set", "metrics.rules.enabled=true,metrics.dashboard.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	rendered := objects(t, out)
	want := objects(t, "apiVersion: v1\nkind: Rules\n"+alerts)[0].Object["groups"]
	rule := the(t, rendered, "PrometheusRule", "kube-queue")
	if got := rule.Object["spec"].(map[string]any)["groups"]; !reflect.DeepEqual(got, want) {
		t.Errorf("the alerts are %v, want %v", got, want)
	}
	dashboard := the(t, rendered, "ConfigMap", "kube-queue-dashboard")
	if got := dashboard.labels("data"); !reflect.DeepEqual(got, map[string]string{"one.json": `{"title": "{{one}}"}`, "two.json": `{}`}) {
		t.Errorf("the dashboards are %v", got)
	}
}

func TestMonitoringIsInstalledOnlyWhereItIsRequested(t *testing.T) {
	folder := copied(t, map[string]string{"files/alerts.yaml": alerts, "files/dashboards/one.json": `{}`})
	for _, args := range [][]string{nil, {"--set", "metrics.enabled=false,metrics.serviceMonitor.enabled=true,metrics.rules.enabled=true,metrics.dashboard.enabled=true"}} {
		out, err := template(t, folder, args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, unwanted := range []string{"PrometheusRule", "ConfigMap", "ServiceMonitor"} {
			if found := kind(objects(t, out), unwanted); len(found) > 0 {
				t.Errorf("%v has %v", args, found)
			}
		}
	}
}

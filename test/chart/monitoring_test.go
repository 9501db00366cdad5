package chart

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
)

func TestAlertsAndDashboardsAreInstalledAsTheyAre(t *testing.T) {
	rendered := render(t, "--set", "metrics.rules.enabled=true,metrics.dashboard.enabled=true")
	want := objects(t, "apiVersion: v1\nkind: Rules\n"+read(t, chart+"/files/alerts.yaml"))[0].Object["groups"]
	rule := the(t, rendered, "PrometheusRule", "kube-queue")
	if got := rule.Object["spec"].(map[string]any)["groups"]; got == nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the alerts are %v, want %v", got, want)
	}
	files, err := filepath.Glob(chart + "/files/dashboards/*")
	if err != nil {
		t.Fatal(err)
	}
	dashboards := map[string]string{}
	for _, file := range files {
		dashboards[filepath.Base(file)] = read(t, file)
	}
	dashboard := the(t, rendered, "ConfigMap", "kube-queue-dashboard")
	if got := dashboard.labels("data"); len(got) == 0 || !reflect.DeepEqual(got, dashboards) {
		t.Errorf("the dashboards are %v, want %v", got, dashboards)
	}
}

// test/alerts finds the page and the section of each runbook.
func TestAlertsLinkToTheirRunbooks(t *testing.T) {
	rendered := render(t, "--set", "metrics.rules.enabled=true,metrics.rules.runbookURL=https://git.example.com/kube-queue/blob/v0.2.0/")
	groups, _ := the(t, rendered, "PrometheusRule", "kube-queue").Object["spec"].(map[string]any)["groups"].([]any)
	for _, group := range groups {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			annotations := rule.(map[string]any)["annotations"].(map[string]any)
			if want := fmt.Sprint("https://git.example.com/kube-queue/blob/v0.2.0/", annotations["runbook"]); annotations["runbook_url"] != want {
				t.Errorf("an alert links to %v, want %s", annotations["runbook_url"], want)
			}
		}
	}
	if len(groups) == 0 {
		t.Error("no alert is installed")
	}
}

func TestMonitoringIsInstalledOnlyWhereItIsRequested(t *testing.T) {
	for _, args := range [][]string{nil, {"--set", "metrics.enabled=false,metrics.serviceMonitor.enabled=true,metrics.rules.enabled=true,metrics.dashboard.enabled=true"}} {
		rendered := render(t, args...)
		for _, unwanted := range []string{"PrometheusRule", "ConfigMap", "ServiceMonitor"} {
			if found := kind(rendered, unwanted); len(found) > 0 {
				t.Errorf("%v has %v", args, found)
			}
		}
	}
}

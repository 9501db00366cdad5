package cluster

import (
	"strings"
	"testing"
)

func TestInvalidRouteIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"kube-queue/hook:443":                  "must be NAMESPACE/SERVICE:PORT=",
		"hook:443=127.0.0.1:1":                 "must be NAMESPACE/SERVICE:PORT",
		"kube-queue/hook=127.0.0.1:1":          "must be NAMESPACE/SERVICE:PORT",
		"kube-queue/hook:https=127.0.0.1:1":    "must be NAMESPACE/SERVICE:PORT",
		"kube-queue/hook:443=127.0.0.1":        "missing port",
		"kube-queue/hook:443=:9443":            "must be HOST:PORT",
		"kube-queue/hook:443=127.0.0.1:http":   "must be HOST:PORT",
		"kube-queue/hook:443=":                 "missing port",
		"kube-queue/hook:443=127.0.0.1:100000": "must be HOST:PORT",
	} {
		if err := (Routes{}).ParseRoute(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestRouteIsReplacedAndOthersStay(t *testing.T) {
	var table routeTable
	for _, step := range []struct {
		merged     Routes
		one, other string
	}{
		{Routes{}, "", ""},
		{Routes{"a/one:443": "127.0.0.1:1", "a/other:443": "127.0.0.1:2"}, "127.0.0.1:1", "127.0.0.1:2"},
		{Routes{"a/one:443": "127.0.0.1:3"}, "127.0.0.1:3", "127.0.0.1:2"},
	} {
		table.merge(step.merged)
		if one, other := table.of("a/one:443"), table.of("a/other:443"); one != step.one || other != step.other {
			t.Errorf("after %v: got %q and %q", step.merged, one, other)
		}
	}
}

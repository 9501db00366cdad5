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
		"kube-queue/hook:443=127.0.0.1:1,":     "missing port",
		"kube-queue/hook:443=127.0.0.1:100000": "must be HOST:PORT",
	} {
		if err := (Routes{}).ParseRoute(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if err := new(routeTable).merge(Routes{"nonsense": {"127.0.0.1:1"}}); err == nil {
		t.Error("the table takes an invalid route")
	}
}

func TestAddressesOfARouteTakeTurns(t *testing.T) {
	routes := Routes{}
	for _, text := range []string{"a/one:443=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "a/other:80=127.0.0.1:4"} {
		if err := routes.ParseRoute(text); err != nil {
			t.Fatal(err)
		}
	}
	var table routeTable
	if got := table.of("a/one:443"); got != nil {
		t.Errorf("an empty table has %v", got)
	}
	if err := table.merge(routes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 2 3", "2 3 1", "3 1 2", "1 2 3"} {
		got := strings.ReplaceAll(strings.Join(table.of("a/one:443"), " "), "127.0.0.1:", "")
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRouteIsReplacedAndRemoved(t *testing.T) {
	var table routeTable
	for _, step := range []struct {
		merged     Routes
		one, other string
	}{
		{Routes{"a/one:443": {"127.0.0.1:1"}, "a/other:443": {"127.0.0.1:2"}}, "127.0.0.1:1", "127.0.0.1:2"},
		{Routes{"a/one:443": {"127.0.0.1:3"}}, "127.0.0.1:3", "127.0.0.1:2"},
		{Routes{"a/other:443": {}}, "127.0.0.1:3", ""},
		{Routes{"a/unknown:443": nil}, "127.0.0.1:3", ""},
	} {
		if err := table.merge(step.merged); err != nil {
			t.Fatal(err)
		}
		one, other := strings.Join(table.of("a/one:443"), ","), strings.Join(table.of("a/other:443"), ",")
		if one != step.one || other != step.other {
			t.Errorf("after %v: got %q and %q", step.merged, one, other)
		}
	}
}

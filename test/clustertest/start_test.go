package clustertest

import (
	"bytes"
	"strings"
	"testing"
)

func TestErrorOfAClusterThatDoesNotStart(t *testing.T) {
	var log bytes.Buffer
	cluster, err := Start(t.Context(), Options{Operators: []string{"no-such-operator"}, Log: &log})
	if err == nil {
		_ = cluster.Stop()
		t.Fatal("the cluster started with an unknown operator")
	}
	if !strings.Contains(err.Error(), "did not start") || !strings.Contains(log.String(), "no-such-operator") {
		t.Errorf("error %q, got %q", err, log.String())
	}
}

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// test/clustertest/services, in the main module, calls webhooks and aggregated API servers through
// Services.

// routes shows that a connection of the API server to a Service arrives at the address of its route: the
// API server opens a TLS connection to a webhook.
func routes(t *testing.T, ready *cluster.Ready) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	arrived := make(chan byte, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		first := make([]byte, 1)
		_, _ = connection.Read(first)
		arrived <- first[0]
		connection.Close()
	}()
	config, err := os.ReadFile(ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, authority, _ := strings.Cut(string(config), "certificate-authority-data: ")
	authority, _, _ = strings.Cut(authority, "\n")
	kubectl(t, ready, fmt.Sprintf(routedWebhook, authority), "create", "-f", "-")
	defer kubectl(t, ready, "", "delete", "validatingwebhookconfiguration", "routed")
	create := func() error {
		_, err := tryKubectl(ready, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: called, labels: {webhook: routed}}\n", "create", "--dry-run=server", "-f", "-")
		return err
	}
	eventually(t, "refused without a route", func() error {
		if err := create(); err == nil || !strings.Contains(err.Error(), "connection refused: Service default/routed, port 443: it has no ready endpoint") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	route := "default/routed:443=" + listener.Addr().String()
	succeed(t, "route", "--data", shared, route)
	if out := succeed(t, "route", "--data", shared).out; out != route+"\n" {
		t.Errorf("the routes are %q", out)
	}
	if err := create(); err == nil {
		t.Error("a server without TLS is accepted")
	}
	const handshake = 22
	if got := <-arrived; got != handshake {
		t.Errorf("the connection began with %d, want a TLS handshake", got)
	}
	succeed(t, "route", "--data", shared, "default/routed:443=")
	if out := succeed(t, "route", "--data", shared).out; out != "" {
		t.Errorf("the routes are %q after the removal", out)
	}
}

const routedWebhook = `apiVersion: v1
kind: Service
metadata: {name: routed}
spec: {ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: routed}
webhooks:
- name: routed.example.com
  clientConfig: {service: {namespace: default, name: routed}, caBundle: %s}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  objectSelector: {matchLabels: {webhook: routed}}
  admissionReviewVersions: [v1]
  sideEffects: None
`

func refusesOlderVersions(t *testing.T, ready *cluster.Ready) {
	for version, want := range map[string]string{
		ready.Kubernetes: "is not newer",
		"1.20":           `unknown version "1.20"`,
	} {
		if r := localcluster(t, "upgrade", "--data", shared, "--kubernetes", version); r.code == 0 || !strings.Contains(r.errs, want) {
			t.Errorf("%s: got %+v, want %s", version, r, want)
		}
	}
	if r := localcluster(t, "apiserver", "stop", "--data", shared); r.code != 1 || !strings.Contains(r.errs, "no second API server") {
		t.Errorf("got %+v", r)
	}
}

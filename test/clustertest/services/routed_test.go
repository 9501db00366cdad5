package services

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// routed is a webhook whose Service has no pods but routes to programs.
type routed struct {
	webhook
	service string
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	r := &routed{webhook: newWebhook(t, "routed"), service: clustertest.Namespace + "/routed:443"}
	apply(t, "apiVersion: v1\nkind: Service\nmetadata: {name: routed, namespace: "+clustertest.Namespace+"}\nspec: {ports: [{port: 443}]}\n")
	return r
}

func (r *routed) check(t *testing.T) {
	r.expectRefused(t, "connection refused: Service kube-queue/routed, port 443: it has no ready endpoint")
	one, other := r.serve(t, "one"), r.serve(t, "other")
	must(t, cluster.Route(t.Context(), r.service, one.address, other.address))
	r.expectBy(t, "one", "other")
	must(t, one.Close())
	r.expectBy(t, "other")
	must(t, other.Close())
	r.expectRefused(t, "connection refused")
	must(t, cluster.Route(t.Context(), r.service))
	r.expectRefused(t, "it has no ready endpoint")
}

// program is a server in the test's process.
type program struct {
	*http.Server
	address string
}

func (r *routed) serve(t *testing.T, name string) *program {
	t.Helper()
	pair, err := tls.X509KeyPair(r.certificate, r.key)
	must(t, err)
	server := webhookServer(name)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	return &program{server, listener.Addr().String()}
}

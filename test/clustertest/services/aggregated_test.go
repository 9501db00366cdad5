package services

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/clustertest"
)

const group = "test.kube-queue.dev"

// startAggregated starts an aggregated API server, at the address of an EndpointSlice.
func startAggregated(t *testing.T) {
	t.Helper()
	authentication, err := client(t).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	must(t, err)
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM([]byte(authentication.Data["requestheader-client-ca-file"])) {
		t.Fatalf("no authority in %v", authentication.Data)
	}
	certificate, key := certificate(t, "aggregated")
	pair, err := tls.X509KeyPair(certificate, key)
	must(t, err)
	listener, err := net.Listen("tcp", "127.77.255.1:0")
	must(t, err)
	server := &http.Server{
		Handler:   http.HandlerFunc(answerUser),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority},
	}
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	apply(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: aggregated, namespace: %[1]s}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: aggregated, namespace: %[1]s, labels: {kubernetes.io/service-name: aggregated}}
addressType: IPv4
ports: [{name: https, port: %[2]d}]
endpoints: [{addresses: [10.77.255.1], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.%[3]s}
spec:
  group: %[3]s
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {namespace: %[1]s, name: aggregated, port: 443}
  caBundle: %[4]s
`, clustertest.Namespace, listener.Addr().(*net.TCPAddr).Port, group, base64.StdEncoding.EncodeToString(certificate)))
}

// user is the answer of the aggregated API server.
type user struct {
	Client string
	Name   string
	Groups []string
}

func answerUser(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any = user{r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Get("X-Remote-User"), r.Header.Values("X-Remote-Group")}
	if !strings.HasSuffix(r.URL.Path, "/user") { // discovery
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group + "/v1"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// expectUser waits until the aggregated API server answers, with the user that asks.
func expectUser(t *testing.T) {
	t.Helper()
	eventually(t, "the aggregated API server answers", func(ctx context.Context) error {
		out, err := cluster.Kubectl(ctx, "get", "--raw", "/apis/"+group+"/v1/user")
		if err != nil {
			return err
		}
		var got user
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			return fmt.Errorf("%q: %w", out, err)
		}
		if got.Client != "front-proxy-client" || got.Name != "admin" || !slices.Contains(got.Groups, "system:masters") {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

package cluster

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
	"kube-queue.dev/kube-queue/test/require"
)

// apiWith returns a client of a fake API server with Services and EndpointSlices.
func apiWith(t *testing.T, services, slices string) func() *kube.Client {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/services":
			fmt.Fprintf(w, `{"items":[%s]}`, services)
		case strings.HasSuffix(r.URL.Path, "/endpointslices") && r.URL.Query().Get("labelSelector") == "kubernetes.io/service-name=hook":
			fmt.Fprintf(w, `{"items":[%s]}`, slices)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	api, err := kube.New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	require.NoError(t, err)
	return func() *kube.Client { return api }
}

// connect sends a CONNECT request to the proxy and returns the connection, or the status of the
// failure.
func connect(t *testing.T, e *egress, target string) (net.Conn, string) {
	t.Helper()
	proxy := httptest.NewServer(e)
	t.Cleanup(proxy.Close)
	connection, err := net.Dial("tcp", proxy.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target)
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		return nil, response.Status
	}
	return connection, ""
}

// greet listens at an address and sends each connection a greeting.
func greet(t *testing.T, address, greeting string) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			asked, _ := io.ReadAll(connection)
			fmt.Fprintf(connection, "%s %s", greeting, asked)
			connection.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// ask sends a question, closes its direction of the connection, and returns the answer.
func ask(t *testing.T, connection net.Conn) string {
	t.Helper()
	fmt.Fprint(connection, "hello")
	closeWrite(connection)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	return string(answer)
}

const hookService = `{"metadata":{"namespace":"other","name":"before"},"spec":{"clusterIP":"10.96.0.9","ports":[{"port":443}]}},
	{"metadata":{"namespace":"a","name":"hook"},"spec":{"clusterIP":"10.96.0.7","ports":[{"name":"metrics","port":80},{"name":"https","port":443}]}}`

func TestServiceLeadsToAReadyPodOfThisMachine(t *testing.T) {
	port := greet(t, "127.77.254.1:0", "pod")
	for _, address := range []string{"10.77.254.1", "fd00:77::a4d:fe01"} {
		slices := fmt.Sprintf(`{"ports":[{"name":"metrics","port":1},{"name":"https","port":%d}],"endpoints":[
			{"addresses":[%q]},{"addresses":["10.77.254.2"],"conditions":{"ready":false}}]}`, port, address)
		e := &egress{routes: &routeTable{}, api: apiWith(t, hookService, slices)}
		connection, failure := connect(t, e, "10.96.0.7:443")
		if failure != "" {
			t.Fatal(failure)
		}
		if got := ask(t, connection); got != "pod hello" {
			t.Errorf("%s: got %q", address, got)
		}
	}
}

func TestRefusedConnectionSaysWhy(t *testing.T) {
	notReady := `{"ports":[{"name":"https","port":1}],"endpoints":[{"addresses":["10.77.254.1"],"conditions":{"ready":false}}]}`
	e := &egress{routes: &routeTable{}, api: apiWith(t, hookService, notReady)}
	e.routes.merge(Routes{"a/hook:80": "127.0.0.1:1"})
	for target, want := range map[string]string{
		"10.96.0.7:443": "502 connection refused: Service a/hook, port 443: it has no ready endpoint",
		"10.96.0.7:80":  "502 connection refused: Service a/hook, port 80: dial tcp 127.0.0.1:1: connect: connection refused",
		"10.96.0.7:81":  "502 connection refused: Service a/hook has no port 81",
		"10.96.0.8:443": "502 connection refused: no Service has the address 10.96.0.8",
		"10.77.254.9:1": "502 dial tcp 127.77.254.9:1: connect: connection refused",
	} {
		if _, failure := connect(t, e, target); failure != want {
			t.Errorf("%s: got %q, want %q", target, failure, want)
		}
	}
}

func TestEndpointsThatTerminateGetConnectionsIfNoneIsReady(t *testing.T) {
	const (
		ready    = `{"addresses":["ready"],"conditions":{"ready":true,"serving":true}}`
		draining = `{"addresses":["draining"],"conditions":{"ready":false,"serving":true,"terminating":true}}`
		gone     = `{"addresses":["gone"],"conditions":{"ready":false,"serving":false,"terminating":true}}`
	)
	for name, test := range map[string]struct {
		endpoints []string
		want      []endpoint
	}{
		"ready ones only":     {[]string{draining, ready, gone}, []endpoint{{"ready", 9443}}},
		"draining ones":       {[]string{draining, gone}, []endpoint{{"draining", 9443}}},
		"none that is closed": {[]string{gone}, nil},
		"unknown is ready":    {[]string{`{"addresses":["unknown"]}`}, []endpoint{{"unknown", 9443}}},
		"without an address":  {[]string{`{"addresses":[]}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var slice discoveryv1.EndpointSlice
			text := `{"ports":[{"name":"metrics","port":8443},{"name":"https","port":9443}],"endpoints":[` + strings.Join(test.endpoints, ",") + `]}`
			require.NoError(t, json.Unmarshal([]byte(text), &slice))
			if got := readyEndpoints([]discoveryv1.EndpointSlice{slice}, "https"); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// Pods whose programs run on this machine have addresses in podNetworks. The program of the pod
// 10.77.x.y, or fd00:77::a4d:xxyy, listens on 127.77.x.y, because a loopback address is invalid in an EndpointSlice.
var (
	podNetworks    = []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("fd00:77::a4d:0/112")}
	serviceNetwork = netip.MustParsePrefix(serviceCIDR)
)

// dialTimeout limits a connection of the proxy. Simulated pods and nodes do not answer.
const dialTimeout = 10 * time.Second

// egress is the proxy through which the API server connects to Services, pods and nodes. It replaces kube-proxy and
// the pod network: it forwards a connection to a Service to the address of the Service's route or, without a route,
// to one of its endpoints. The API server connects directly to everything else, such as a webhook with a URL.
type egress struct {
	routes *routeTable
	// api returns the client of the API server.
	api func() *kube.Client
}

// writeEgressSelection writes the configuration of the API server that selects the proxy.
func (s *setup) writeEgressSelection(path string) error {
	data, err := json.Marshal(object{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []object{{
			"name": "cluster",
			"connection": object{
				"proxyProtocol": "HTTPConnect",
				"transport":     object{"uds": object{"udsName": s.folder.egressSocket()}},
			},
		}},
	})
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// listenEgress serves the proxy. Open connections end with the API server.
func (s *Supervisor) listenEgress() (close func(), err error) {
	socket := s.folder.egressSocket()
	server, err := serveSocket(socket, &egress{routes: &s.routes, api: s.client})
	if err != nil {
		return nil, err
	}
	return func() {
		server.Close()
		os.Remove(socket)
	}, nil
}

// ServeHTTP connects to the target of a CONNECT request. The API server includes the status line of a failure in its
// error.
func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy supports only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	target, failure := e.dial(r.Context(), r.Host)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		if target != nil {
			target.Close()
		}
		return
	}
	if failure != nil {
		defer client.Close()
		reason := strings.Join(strings.Fields(failure.Error()), " ")
		fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", http.StatusBadGateway, reason)
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		client.Close()
		target.Close()
		return
	}
	go func() {
		_, _ = io.Copy(target, buffered)
		closeWrite(target)
	}()
	_, _ = io.Copy(client, target)
	closeWrite(client)
	client.Close()
	target.Close()
}

// closeWrite ends one direction of a connection, so that the other side reads its end.
func closeWrite(connection net.Conn) {
	if half, is := connection.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite()
	}
}

// dial connects to an address in the network of the cluster.
func (e *egress) dial(ctx context.Context, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", target, err)
	}
	if address, err := netip.ParseAddr(host); err == nil && serviceNetwork.Contains(address) {
		return e.dialService(ctx, host, port)
	}
	// A pod, a node or the name of a Service of type ExternalName.
	return dialTCP(ctx, local(host), port)
}

// local returns the address on this machine of a pod whose program runs here, or the address itself.
func local(host string) string {
	address, err := netip.ParseAddr(host)
	if err != nil || !slices.ContainsFunc(podNetworks, func(n netip.Prefix) bool { return n.Contains(address) }) {
		return host
	}
	bytes := address.AsSlice()
	return netip.AddrFrom4([4]byte{127, 77, bytes[len(bytes)-2], bytes[len(bytes)-1]}).String()
}

func dialTCP(ctx context.Context, host string, port int) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// dialService connects to a port of the Service with an address.
func (e *egress) dialService(ctx context.Context, address string, port int) (net.Conn, error) {
	var list corev1.ServiceList
	if err := e.api().Get(ctx, "/api/v1/services", &list); err != nil {
		return nil, err
	}
	found := slices.IndexFunc(list.Items, func(s corev1.Service) bool { return s.Spec.ClusterIP == address })
	if found < 0 {
		return nil, fmt.Errorf("connection refused: no Service has the address %s", address)
	}
	s := list.Items[found]
	named := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == port })
	if named < 0 {
		return nil, fmt.Errorf("connection refused: Service %s/%s has no port %d", s.Namespace, s.Name, port)
	}
	connection, err := e.dialPort(ctx, s, s.Spec.Ports[named])
	if err != nil {
		return nil, fmt.Errorf("connection refused: Service %s/%s, port %d: %w", s.Namespace, s.Name, port, err)
	}
	return connection, nil
}

func (e *egress) dialPort(ctx context.Context, s corev1.Service, port corev1.ServicePort) (net.Conn, error) {
	route := fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, port.Port)
	if address := e.routes.of(route); address != "" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	var found discoveryv1.EndpointSliceList
	query := url.Values{"labelSelector": {"kubernetes.io/service-name=" + s.Name}}
	err := e.api().Get(ctx, "/apis/discovery.k8s.io/v1/namespaces/"+s.Namespace+"/endpointslices?"+query.Encode(), &found)
	if err != nil {
		return nil, err
	}
	ready := readyEndpoints(found.Items, port.Name)
	if len(ready) == 0 {
		return nil, errors.New("it has no ready endpoint")
	}
	// Like kube-proxy, it does not replace a chosen endpoint that refuses the connection.
	chosen := ready[rand.IntN(len(ready))]
	return dialTCP(ctx, local(chosen.address), chosen.port)
}

type endpoint struct {
	address string
	port    int
}

// readyEndpoints returns the endpoints of a port that get connections. Like kube-proxy, it prefers those that are
// ready to those that terminate and still serve.
func readyEndpoints(all []discoveryv1.EndpointSlice, portName string) []endpoint {
	var ready, draining []endpoint
	for _, slice := range all {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != portName || port.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				if len(e.Addresses) == 0 {
					continue
				}
				found := endpoint{e.Addresses[0], int(*port.Port)}
				switch conditions := e.Conditions; {
				case ptr.Deref(conditions.Ready, true):
					ready = append(ready, found)
				case ptr.Deref(conditions.Serving, false) && ptr.Deref(conditions.Terminating, false):
					draining = append(draining, found)
				}
			}
		}
	}
	if len(ready) == 0 {
		return draining
	}
	return ready
}

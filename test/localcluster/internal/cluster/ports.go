package cluster

import (
	"fmt"
	"net"
	"strings"
)

// Ports are the loopback ports of a cluster, by what they are for.
type Ports map[string]int

// Ports of the core parts.
const (
	portEtcdClient        = "etcd-client"
	portEtcdPeer          = "etcd-peer"
	portAPIServer         = "kube-apiserver"
	portControllerManager = "kube-controller-manager"
	portScheduler         = "kube-scheduler"
	portKwok              = "kwok"
)

func corePorts() []string {
	return []string{portEtcdClient, portEtcdPeer, portAPIServer, portControllerManager, portScheduler, portKwok}
}

// pickPorts finds free ports. They are held together until all are found, so
// that they differ. Between that and the moment a part binds its own, somebody
// else may take one; the start is then tried again with others.
func pickPorts(names []string) (Ports, error) {
	ports := Ports{}
	for _, name := range names {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port for %s: %w", name, err)
		}
		defer listener.Close()
		ports[name] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func (p Ports) address(name string) string {
	return fmt.Sprintf("127.0.0.1:%d", p[name])
}

// lostPort finds out from the end of a part's log whether it ended because somebody
// else had its port.
func lostPort(log string) bool {
	return strings.Contains(log, "address already in use")
}

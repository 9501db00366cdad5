package cluster

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Ports are the loopback ports of a cluster by name.
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

// pickPorts finds free ports. It opens all at the same time so that they differ. Another process may take a port
// before its part does. The start is then repeated with other ports.
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

// lostPort returns the part that exited because its port was in use, according to the end of its log.
func lostPort(err error) (part string, lost bool) {
	var crashed *crash
	if errors.As(err, &crashed) && strings.Contains(crashed.logEnd, "address already in use") {
		return crashed.part, true
	}
	return "", false
}

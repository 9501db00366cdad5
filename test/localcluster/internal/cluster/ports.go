package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"kube-queue.dev/kube-queue/test/freeport"
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

// pickPorts finds free ports. Another process that asks for one of them may take it before its part does. The start
// is then repeated with other ports.
func pickPorts(names []string) (Ports, error) {
	ports := Ports{}
	for _, name := range names {
		address, err := freeport.Address()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		ports[name] = int(netip.MustParseAddrPort(address).Port())
	}
	return ports, nil
}

func (p Ports) address(name string) string {
	return fmt.Sprintf("127.0.0.1:%d", p[name])
}

// lostPort returns the part that exited because its port was in use, according to the end of its log.
func lostPort(err error) (part string, lost bool) {
	if crashed, is := errors.AsType[*crash](err); is && strings.Contains(crashed.logEnd, "address already in use") {
		return crashed.part, true
	}
	return "", false
}

package clustertest

import (
	"fmt"
	"syscall"
)

// Pause freezes a part of the cluster, such as "kube-controller-manager", until resume is called.
// It simulates an overloaded machine.
func (c *Cluster) Pause(part string) (resume func() error, err error) {
	parts, err := c.Parts()
	if err != nil {
		return nil, fmt.Errorf("pause %s: %w", part, err)
	}
	for _, p := range parts {
		if p.Name == part && p.PID > 0 {
			return func() error { return syscall.Kill(p.PID, syscall.SIGCONT) }, syscall.Kill(p.PID, syscall.SIGSTOP)
		}
	}
	return nil, fmt.Errorf("pause %s: the cluster has no such part", part)
}

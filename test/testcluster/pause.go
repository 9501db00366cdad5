package testcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Pause has a part of the cluster, such as "kube-controller-manager", stand still, as
// on a machine that is overloaded, until resume is called.
func (c *Cluster) Pause(part string) (resume func() error, err error) {
	// localcluster keeps its status there.
	data, err := os.ReadFile(filepath.Join(c.Data, "state.json"))
	if err != nil {
		return nil, fmt.Errorf("pause %s: %w", part, err)
	}
	var status struct {
		Parts []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("pause %s: the state of the cluster: %w", part, err)
	}
	for _, p := range status.Parts {
		if p.Name == part && p.PID > 0 {
			return func() error { return syscall.Kill(p.PID, syscall.SIGCONT) }, syscall.Kill(p.PID, syscall.SIGSTOP)
		}
	}
	return nil, fmt.Errorf("pause %s: the cluster has no such part", part)
}

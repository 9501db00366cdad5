package clustertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Part is a running program of the cluster.
type Part struct {
	Name string
	PID  int
}

// Parts returns the programs of the cluster, such as "kube-apiserver".
func (c *Cluster) Parts() ([]Part, error) {
	// localcluster writes its status to this file.
	data, err := os.ReadFile(filepath.Join(c.Data, "state.json"))
	if err != nil {
		return nil, fmt.Errorf("the parts of the cluster: %w", err)
	}
	var status struct{ Parts []Part }
	if err := json.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("the parts of the cluster: its state: %w", err)
	}
	return status.Parts, nil
}

package clustertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Part is a program of the cluster that runs.
type Part struct {
	Name string
	PID  int
}

// Parts are the programs of the cluster, such as "kube-apiserver".
func (c *Cluster) Parts() ([]Part, error) {
	// localcluster keeps its status there.
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

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
	state, err := c.state()
	if err != nil {
		return nil, fmt.Errorf("the parts of the cluster: %w", err)
	}
	return state.Parts, nil
}

// state is the status that localcluster writes to a file.
type state struct {
	Ready Ready
	Parts []Part
}

func (c *Cluster) state() (state, error) {
	var s state
	data, err := os.ReadFile(filepath.Join(c.Data, "state.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the state of the cluster: %w", err)
	}
	return s, nil
}

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// Phase is the phase of a cluster.
type Phase string

// Phases of a cluster.
const (
	PhaseStarting Phase = "starting"
	PhaseReady    Phase = "ready"
	// PhaseUpgrading: the control plane is being replaced by another version.
	PhaseUpgrading Phase = "upgrading"
	PhaseStopping  Phase = "stopping"
	PhaseStopped   Phase = "stopped"
	// PhaseFailed: a part crashed or could not be started; the rest is stopped.
	PhaseFailed Phase = "failed"
)

// State is the state of a part.
type State string

// States of a part.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateCrashed  State = "crashed"
	StateStopped  State = "stopped"
)

// Status is the status of a cluster. The supervisor saves each change in the data folder, so the status is available
// even after the cluster has stopped.
type Status struct {
	Data       string           `json:"data"`
	Socket     string           `json:"socket"`
	Phase      Phase            `json:"phase"`
	Detail     string           `json:"detail,omitempty"`
	Failure    string           `json:"failure,omitempty"`
	Supervisor process.Identity `json:"supervisor"`
	Ready      *Ready           `json:"ready,omitempty"`
	Parts      []PartStatus     `json:"parts"`
}

// PartStatus is the status of one part.
type PartStatus struct {
	Name string `json:"name"`
	// Kind is core, operator or program.
	Kind  string `json:"kind"`
	State State  `json:"state"`
	process.Identity
	Log string `json:"log"`
	// Exit describes how the part ended.
	Exit string `json:"exit,omitempty"`
	// LogEnd is the end of the log after a crash.
	LogEnd string `json:"logEnd,omitempty"`
}

// Ready contains what is needed to use a cluster.
type Ready struct {
	Kubeconfig string `json:"kubeconfig"`
	Data       string `json:"data"`
	AuditLog   string `json:"auditLog"`
	Kubectl    string `json:"kubectl"`
	// Kubernetes is the minor version.
	Kubernetes string `json:"kubernetes"`
	Server     string `json:"server"`
	Logs       string `json:"logs"`
}

// AllReady reports whether all parts are ready, except for programs that were stopped on
// purpose.
func (s *Status) AllReady() bool {
	if s.Phase != PhaseReady {
		return false
	}
	return !slices.ContainsFunc(s.Parts, func(p PartStatus) bool { return p.State == StateStarting || p.State == StateCrashed })
}

func (f Folder) saveState(status *Status) error {
	data, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(f.Path(stateFile), data)
}

// errNoCluster means that the folder has never contained a cluster.
var errNoCluster = errors.New("no cluster")

// savedState returns the status that the last supervisor saved.
func (f Folder) savedState() (*Status, error) {
	data, err := os.ReadFile(f.Path(stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("data folder %s: %w", f, errNoCluster)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	status := &Status{}
	if err := json.Unmarshal(data, status); err != nil {
		return nil, fmt.Errorf("data folder: %s: %w", stateFile, err)
	}
	return status, nil
}

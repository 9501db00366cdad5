// Package cluster runs a real Kubernetes control plane with simulated nodes as
// ordinary processes below one data folder.
//
// Words:
//   - part: one program of the cluster. Core parts (etcd, kube-apiserver,
//     kube-controller-manager, kube-scheduler, kwok) and operators belong
//     together: when one crashes, the rest is stopped. Programs are extra ones
//     that somebody runs along; a crash of theirs is reported and no more.
//   - data folder: everything a cluster writes. It belongs to one cluster at a
//     time, whose supervisor holds a lock on it for as long as it lives.
//   - supervisor: the process that starts the parts, watches and stops them.
//
// Invariants: no part outlives its supervisor; every start begins with an empty
// data folder; two clusters share nothing but the cache of built programs.
package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Config is what a cluster is asked to be.
type Config struct {
	Nodes      int    `json:"nodes"`
	NodeCPU    string `json:"nodeCPU"`
	NodeMemory string `json:"nodeMemory"`
	NodeGPUs   int    `json:"nodeGPUs"`
	// Operators are names known to OperatorNames.
	Operators []string `json:"operators,omitempty"`
	// OnlyAPI leaves out all but etcd and kube-apiserver: no controller, no scheduler,
	// no node.
	OnlyAPI bool `json:"onlyAPI,omitempty"`
	// PodRunTime is how long a pod runs that does not say so itself.
	PodRunTime time.Duration `json:"podRunTime"`
	// AuditLevel is how much of each write the audit log holds.
	AuditLevel string `json:"auditLevel"`
	// AuditObjects are resources, as "jobs.batch", whose objects the audit log holds
	// in spite of level Metadata.
	AuditObjects []string `json:"auditObjects,omitempty"`
	// Built are the folders of the built components, by component.
	Built map[string]string `json:"built,omitempty"`
}

// DefaultConfig is a small cluster.
func DefaultConfig() Config {
	return Config{
		Nodes: 3, NodeCPU: "8", NodeMemory: "32Gi",
		PodRunTime: 8 * time.Second,
		AuditLevel: "RequestResponse",
	}
}

// AuditLevels are the known values of Config.AuditLevel.
var AuditLevels = []string{"RequestResponse", "Metadata"}

var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`)

// auditObject is a resource and its group, if that has a name.
var auditObject = regexp.MustCompile(`^[a-z]+(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)

// Validate reports what is wrong, and what would be right.
func (c Config) Validate() error {
	switch {
	case c.Nodes < 0:
		return fmt.Errorf("--nodes %d: must not be negative", c.Nodes)
	case !quantity.MatchString(c.NodeCPU):
		return fmt.Errorf("--node-cpu %q: must be a quantity such as 8 or 500m", c.NodeCPU)
	case !quantity.MatchString(c.NodeMemory):
		return fmt.Errorf("--node-memory %q: must be a quantity such as 32Gi", c.NodeMemory)
	case c.NodeGPUs < 0:
		return fmt.Errorf("--node-gpus %d: must not be negative", c.NodeGPUs)
	case c.OnlyAPI && len(c.Operators) > 0:
		return errors.New("--only-api: operators need the controllers and nodes that it leaves out: leave out --operators or --only-api")
	case c.PodRunTime < 0:
		return fmt.Errorf("--pod-run-time %v: must not be negative", c.PodRunTime)
	case !slices.Contains(AuditLevels, c.AuditLevel):
		return fmt.Errorf("--audit-level %q: known are %s", c.AuditLevel, strings.Join(AuditLevels, ", "))
	case len(c.AuditObjects) > 0 && c.AuditLevel != "Metadata":
		return fmt.Errorf("--audit-objects: at --audit-level %s the log holds all objects: leave it out, or say --audit-level Metadata", c.AuditLevel)
	}
	for _, name := range c.AuditObjects {
		if !auditObject.MatchString(name) {
			return fmt.Errorf("--audit-objects %q: must be a resource such as pods or jobs.batch, without its version and no subresource", name)
		}
	}
	for _, name := range c.Operators {
		if _, known := operators[name]; !known {
			return fmt.Errorf("operator %q: known are %s", name, strings.Join(OperatorNames(), ", "))
		}
	}
	return nil
}

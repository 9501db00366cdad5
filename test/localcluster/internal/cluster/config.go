// Package cluster runs a real Kubernetes control plane with simulated nodes as
// ordinary processes below one data folder.
//
// Terms:
//   - part: one program of the cluster. If a core part (etcd, kube-apiserver, kube-controller-manager,
//     kube-scheduler, kwok) or an operator crashes, all other parts are stopped. Programs are additional parts that a
//     user starts. Their crashes are only reported.
//   - data folder: contains all files of a cluster. It belongs to one cluster at a
//     time, whose supervisor holds a lock on it.
//   - supervisor: the process that starts, watches and stops the parts.
//
// Invariants: no part outlives its supervisor; every start begins with an empty data folder;
// two clusters share only the cache of built programs.
package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Config is the configuration of a cluster.
type Config struct {
	// Kubernetes is one of KubernetesVersions.
	Kubernetes string `json:"kubernetes"`
	// FeatureGates are NAME=true or NAME=false, for all programs of Kubernetes.
	FeatureGates []string `json:"featureGates,omitempty"`
	// APIs are APIs to serve or not to serve in addition to the defaults, such as
	// "scheduling.k8s.io/v1beta1=true".
	APIs []string `json:"apis,omitempty"`

	Nodes      int    `json:"nodes"`
	NodeCPU    string `json:"nodeCPU"`
	NodeMemory string `json:"nodeMemory"`
	NodeGPUs   int    `json:"nodeGPUs"`
	// Operators are names of OperatorNames.
	Operators []string `json:"operators,omitempty"`
	// OnlyAPI runs only etcd and kube-apiserver: no controllers, no scheduler, no nodes.
	OnlyAPI bool `json:"onlyAPI,omitempty"`
	// TypeCheck makes kube-controller-manager check the types of policy expressions. The schemas for this take a
	// third of the processor time of a cluster.
	TypeCheck bool `json:"typeCheck,omitempty"`
	// PodRunTime is the run time of pods that do not set their own.
	PodRunTime time.Duration `json:"podRunTime"`
	// AuditLevel is the level of the audit log.
	AuditLevel string `json:"auditLevel"`
	// AuditObjects are resources, such as "jobs.batch", whose objects are logged even at
	// level Metadata.
	AuditObjects []string `json:"auditObjects,omitempty"`
	// Built are the folders of the built components, by component.
	Built map[string]string `json:"built,omitempty"`
}

// DefaultConfig returns the configuration of a small cluster.
func DefaultConfig() Config {
	return Config{
		Kubernetes: defaultKubernetes,
		Nodes:      3, NodeCPU: "8", NodeMemory: "32Gi",
		PodRunTime: 8 * time.Second,
		AuditLevel: "RequestResponse",
	}
}

// AuditLevels are the valid values of Config.AuditLevel.
var AuditLevels = []string{"RequestResponse", "Metadata"}

var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`)

// switched is a feature gate or an API that is turned on or off.
var switched = regexp.MustCompile(`^[A-Za-z0-9./-]+=(true|false)$`)

// auditObject is a resource and its group, if the group has a name.
var auditObject = regexp.MustCompile(`^[a-z]+(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)

// Validate returns an error if the configuration is invalid.
func (c Config) Validate() error {
	switch {
	case !slices.Contains(KubernetesVersions(), c.Kubernetes):
		return fmt.Errorf("--kubernetes: unknown version %q; known versions: %s", c.Kubernetes, strings.Join(KubernetesVersions(), ", "))
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
		return fmt.Errorf("--audit-level: unknown level %q; known levels: %s", c.AuditLevel, strings.Join(AuditLevels, ", "))
	case len(c.AuditObjects) > 0 && c.AuditLevel != "Metadata":
		return fmt.Errorf("--audit-objects: the log contains all objects at --audit-level %s; remove the flag, or set --audit-level Metadata", c.AuditLevel)
	}
	for flag, settings := range map[string][]string{"feature-gates": c.FeatureGates, "runtime-config": c.APIs} {
		for _, setting := range settings {
			if !switched.MatchString(setting) {
				return fmt.Errorf("--%s %q: must be NAME=true or NAME=false", flag, setting)
			}
		}
	}
	for _, name := range c.AuditObjects {
		if !auditObject.MatchString(name) {
			return fmt.Errorf("--audit-objects %q: must be a resource such as pods or jobs.batch, without version and subresource", name)
		}
	}
	for _, name := range c.Operators {
		if _, known := operators[name]; !known {
			return fmt.Errorf("unknown operator %q; known operators: %s", name, strings.Join(OperatorNames(), ", "))
		}
	}
	for _, name := range c.allOperators() {
		if !c.accepts(name) {
			return fmt.Errorf("operator %s: Kubernetes %s does not accept its CRDs: use --kubernetes=%s or newer", name, c.Kubernetes, operators[name].since)
		}
	}
	return nil
}

// accepts reports whether the version of Kubernetes accepts the CRDs of the operator.
func (c Config) accepts(operator string) bool {
	known, since := KubernetesVersions(), operators[operator].since
	return since == "" || slices.Index(known, c.Kubernetes) >= slices.Index(known, since)
}

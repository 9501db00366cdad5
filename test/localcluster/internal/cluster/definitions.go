package cluster

import (
	"path"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
)

// crdFolder is the folder of a component with the CRDs of its operator.
const crdFolder = "crds"

// OperatorInfo is the origin of an operator and its CRDs.
type OperatorInfo struct {
	Name string `json:"name"`
	// Component is the folder in components/ whose module pins the operator's version.
	Component string `json:"component"`
	// Module contains the operator's CRDs.
	Module string `json:"module"`
	// CRDs are slash-separated paths of files in the module.
	CRDs []string `json:"crds"`
}

// Accepted returns the operators whose CRDs the version of Kubernetes accepts, sorted by name.
func (c Config) Accepted() []OperatorInfo {
	var all []OperatorInfo
	for _, name := range OperatorNames() {
		if c.accepts(name) {
			all = append(all, infoOf(name, operators[name].component))
		}
	}
	return all
}

func infoOf(name string, component build.Component) OperatorInfo {
	info := OperatorInfo{Name: name, Component: component.Name}
	for _, files := range component.Files {
		if files.Into != crdFolder {
			continue
		}
		info.Module = files.Module
		for _, file := range files.Paths {
			info.CRDs = append(info.CRDs, path.Clean(file))
		}
	}
	return info
}

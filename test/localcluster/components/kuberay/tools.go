//go:build tools

// Package kuberay pins the unmodified KubeRay operator, which runs RayCluster and RayJob.
package kuberay

import _ "github.com/ray-project/kuberay/ray-operator"

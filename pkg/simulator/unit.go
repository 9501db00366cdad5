package simulator

import "kube-queue.dev/kube-queue/pkg/resources"

// One is what a user calls one of a resource, in base units: a core, a gibibyte, a
// piece.
func One(resource string) int64 {
	switch {
	case resources.Format(resource, 1000) == "1":
		return 1000
	case resources.Format(resource, 1<<30) == "1Gi":
		return 1 << 30
	default:
		return 1
	}
}

package simulator

import "kube-queue.dev/kube-queue/pkg/resources"

// One returns the size, in base units, of the unit that users count a resource in: a core, a gibibyte, or a single
// item.
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

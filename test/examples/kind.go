package examples

import (
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

// find returns the queued kind that fits.
func find(fits func(framework.Kind) bool) (kind framework.Kind, queued bool) {
	for _, adapter := range registry.All() {
		if kind := adapter.Kind(); fits(kind) {
			return kind, true
		}
	}
	return framework.Kind{}, false
}

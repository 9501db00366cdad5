package registry_test

import (
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// The race detector finds a description that is changed while others read it.
func TestKindsMayBeDescribedByManyAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for _, adapter := range registry.All() {
		for range 2 {
			all.Go(func() {
				if adapter.Kind().Kind == "" {
					t.Error("a kind has no name")
				}
			})
		}
	}
	all.Wait()
}

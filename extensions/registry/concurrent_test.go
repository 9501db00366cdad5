package registry_test

import (
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// The race detector finds descriptions that are changed while they are read.
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

package options

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/backend/elasticquota"
	"kube-queue.dev/kube-queue/pkg/controller/backend/resourcequota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
)

// envBackend is the variable that older kube-queue releases read.
const envBackend = "QueueGroupPlugin"

// quotaBackend is a quota backend and its name in the setting.
type quotaBackend struct {
	name   string
	source func(*Options) backend.Source
	// idle lists the flags that have no effect with this backend.
	idle []string
}

// backends returns all quota backends, the default first.
func backends() []quotaBackend {
	return []quotaBackend{
		{"elasticquota", func(o *Options) backend.Source {
			return elasticquota.New(tree.Options{Oversell: o.Oversell, PauseBorrowing: o.PauseBorrowing, Reclaim: o.Reclaim},
				elasticquota.PodOptions{Rules: o.Devices.Rules, CountUnqueued: o.CountUnqueuedPods})
		}, nil},
		// The API server enforces the limits of a ResourceQuota unchanged and on all pods, and a ResourceQuota has no
		// guarantee to lend.
		{"resourcequota", func(o *Options) backend.Source { return resourcequota.New(o.Devices.Rules.Classes) }, []string{flagOversell, flagReclaim, flagPauseBorrowing, flagCountUnqueuedPods}},
	}
}

func backendNames() []string {
	var names []string
	for _, b := range backends() {
		names = append(names, b.name)
	}
	return names
}

func (o *Options) checkBackend() error {
	for _, b := range backends() {
		if strings.EqualFold(o.backendName, b.name) {
			o.backend = b
			return nil
		}
	}
	return fmt.Errorf("unknown quota backend %q; known backends: %s", o.backendName, strings.Join(backendNames(), ", "))
}

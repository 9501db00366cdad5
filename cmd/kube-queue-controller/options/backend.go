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

// quotaBackend is a quota backend by the name that its setting takes.
type quotaBackend struct {
	name   string
	source func(*Options) backend.Source
	// idle are the flags that have no effect with it.
	idle []string
}

// backends that there are, the default first.
func backends() []quotaBackend {
	return []quotaBackend{
		{"elasticquota", func(o *Options) backend.Source {
			return elasticquota.New(tree.Options{Oversell: o.Oversell, PauseBorrowing: o.PauseBorrowing})
		}, nil},
		// The API server keeps to the ResourceQuotas as they are, and they guarantee
		// nothing that could be lent.
		{"resourcequota", func(*Options) backend.Source { return resourcequota.New() }, []string{flagOversell, flagPauseBorrowing}},
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
	return fmt.Errorf("unknown quota backend %q; known are: %s", o.backendName, strings.Join(backendNames(), ", "))
}

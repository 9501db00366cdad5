package options

import (
	"fmt"
	"strings"

	quotasource "kube-queue.dev/kube-queue/pkg/quota/resourcequota/source"
	"kube-queue.dev/kube-queue/pkg/quota/source"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	treesource "kube-queue.dev/kube-queue/pkg/quota/tree/source"
)

// envBackend is the variable that older kube-queue releases read.
const envBackend = "QueueGroupPlugin"

// backend is a quota backend by the name that its setting takes.
type backend struct {
	name   string
	source func(*Options) source.Source
	// idle are the flags that have no effect with it.
	idle []string
}

// backends that there are, the default first.
func backends() []backend {
	return []backend{
		{"elasticquota", func(o *Options) source.Source {
			return treesource.New(tree.Options{Oversell: o.Oversell, PauseBorrowing: o.PauseBorrowing})
		}, nil},
		// The API server keeps to the ResourceQuotas as they are, and they guarantee
		// nothing that could be lent.
		{"resourcequota", func(*Options) source.Source { return quotasource.New() }, []string{flagOversell, flagPauseBorrowing}},
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

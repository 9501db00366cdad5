// Package registry lists the kinds of job that can be queued. To add one is to
// write its package and its line here.
package registry

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/tfjob"
)

// Default is what is enabled when nothing else is asked for.
const Default = "tfjob,pytorchjob"

// All returns an adapter for each known kind.
func All() []framework.Adapter {
	return []framework.Adapter{
		tfjob.New(),
		pytorchjob.New(),
		job.New(),
	}
}

// Names of all known kinds.
func Names() []string {
	var names []string
	for _, adapter := range All() {
		names = append(names, adapter.Kind().Name)
	}
	return names
}

// Parse returns the adapters that a list of names, parted by commas, asks for. An
// empty list asks for none.
func Parse(list string) ([]framework.Adapter, error) {
	known := map[string]framework.Adapter{}
	for _, adapter := range All() {
		known[adapter.Kind().Name] = adapter
	}
	var enabled []framework.Adapter
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		adapter, found := known[name]
		if !found {
			if isKnown(name) {
				continue // named twice
			}
			return nil, fmt.Errorf("unknown extension %q: the known ones are %s", name, strings.Join(Names(), ", "))
		}
		delete(known, name)
		enabled = append(enabled, adapter)
	}
	return enabled, nil
}

func isKnown(name string) bool {
	for _, known := range Names() {
		if known == name {
			return true
		}
	}
	return false
}

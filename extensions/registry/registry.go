// Package registry lists the kinds of job that can be queued. To add one is to
// write its package and its line here.
package registry

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/jaxjob"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/jobset"
	"kube-queue.dev/kube-queue/extensions/mpijob"
	"kube-queue.dev/kube-queue/extensions/paddlejob"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/sparkapplication"
	"kube-queue.dev/kube-queue/extensions/tfjob"
	"kube-queue.dev/kube-queue/extensions/trainjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/extensions/xgboostjob"
)

// Default is what is enabled when nothing else is asked for.
const Default = "tfjob,pytorchjob"

// All returns an adapter for each known kind.
func All() []framework.Adapter {
	return []framework.Adapter{
		tfjob.New(),
		pytorchjob.New(),
		xgboostjob.New(),
		paddlejob.New(),
		jaxjob.New(),
		mpijob.V1(),
		mpijob.V2beta1(),
		sparkapplication.New(),
		job.New(),
		jobset.New(),
		trainjob.New(),
		rayjob.New(),
		raycluster.New(),
		workflow.New(),
	}
}

// Names of all known kinds; some have more than one.
func Names() []string {
	var names []string
	for _, adapter := range All() {
		names = append(names, namesOf(adapter)...)
	}
	return names
}

func namesOf(adapter framework.Adapter) []string {
	kind := adapter.Kind()
	return append([]string{kind.Name}, kind.OtherNames...)
}

// Parse returns the adapters that a list of names, parted by commas, asks for, each
// once. An empty list asks for none.
func Parse(list string) ([]framework.Adapter, error) {
	known := map[string]framework.Adapter{}
	for _, adapter := range All() {
		for _, name := range namesOf(adapter) {
			known[name] = adapter
		}
	}
	asked := map[string]bool{}
	var enabled []framework.Adapter
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		adapter, found := known[name]
		if !found {
			return nil, fmt.Errorf("unknown extension %q: the known ones are %s", name, strings.Join(Names(), ", "))
		}
		if first := adapter.Kind().Name; !asked[first] {
			asked[first] = true
			enabled = append(enabled, adapter)
		}
	}
	return enabled, nil
}

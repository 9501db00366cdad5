// Package registry lists the kinds of jobs that can be queued. A new kind needs its
// package and a line here.
package registry

import (
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/jaxjob"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/jobset"
	"kube-queue.dev/kube-queue/extensions/mpijob"
	"kube-queue.dev/kube-queue/extensions/paddlejob"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/sparkapplication"
	"kube-queue.dev/kube-queue/extensions/tfjob"
	"kube-queue.dev/kube-queue/extensions/trainjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/extensions/xgboostjob"
)

// Default lists the kinds that are enabled by default.
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

// Pods returns the adapters of plain pods and of groups of pods, which are one extension.
func Pods() []framework.Adapter { return pod.Adapters() }

// Names returns the names of all known kinds; some have more than one.
func Names() []string {
	var names []string
	for _, adapter := range All() {
		names = append(names, namesOf(adapter)...)
	}
	return append(names, pod.Name)
}

func namesOf(adapter framework.Adapter) []string {
	kind := adapter.Kind()
	return append([]string{kind.Name}, kind.OtherNames...)
}

// Parse returns the adapters for a comma-separated list of names, each once, without those of Pods. An empty list
// returns none.
func Parse(list string) ([]framework.Adapter, error) {
	known := map[string]framework.Adapter{}
	for _, adapter := range All() {
		for _, name := range namesOf(adapter) {
			known[name] = adapter
		}
	}
	seen := map[string]bool{}
	var enabled []framework.Adapter
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || name == pod.Name {
			continue
		}
		adapter, found := known[name]
		switch {
		case found:
		case name == "mpijob": // of ack-kube-queue
			return nil, fmt.Errorf("unknown extension %q; use mpiv1 for MPIJobs of kubeflow.org/v1, or mpiv2beta1 for those of kubeflow.org/v2beta1", name)
		default:
			return nil, fmt.Errorf("unknown extension %q; known extensions are %s", name, strings.Join(Names(), ", "))
		}
		if first := adapter.Kind().Name; !seen[first] {
			seen[first] = true
			enabled = append(enabled, adapter)
		}
	}
	return enabled, nil
}

// Kinds are all known kinds, grouped by what marks their jobs.
type Kinds struct {
	// Enabled are marked by the annotation or, if possible, by their suspend field.
	Enabled []framework.Adapter
	// Annotated are marked only by the annotation.
	Annotated []framework.Adapter
	// Others are not queued.
	Others []framework.Adapter
	// Pods are the adapters of pods, if pods are queued.
	Pods []framework.Adapter
}

// Replace replaces the adapter of the same kind.
func (k *Kinds) Replace(by framework.Adapter) {
	for _, list := range [...][]framework.Adapter{k.Enabled, k.Annotated, k.Others} {
		for i, adapter := range list {
			if adapter.Kind().Name == by.Kind().Name {
				list[i] = by
			}
		}
	}
}

// Split returns the kinds in two lists of names, and those in neither. A kind in both lists is enabled.
func Split(enabled, annotated string) (Kinds, error) {
	var kinds Kinds
	var err error
	if kinds.Enabled, err = Parse(enabled); err != nil {
		return Kinds{}, err
	}
	byAnnotation, err := Parse(annotated)
	if err != nil {
		return Kinds{}, err
	}
	if slices.ContainsFunc(append(strings.Split(enabled, ","), strings.Split(annotated, ",")...), func(name string) bool { return strings.TrimSpace(name) == pod.Name }) {
		kinds.Pods = Pods()
	}
	has := func(list []framework.Adapter, adapter framework.Adapter) bool {
		return slices.Contains(NamesOf(list), adapter.Kind().Name)
	}
	for _, adapter := range All() {
		switch {
		case has(kinds.Enabled, adapter):
		case has(byAnnotation, adapter):
			kinds.Annotated = append(kinds.Annotated, adapter)
		default:
			kinds.Others = append(kinds.Others, adapter)
		}
	}
	return kinds, nil
}

// NamesOf returns the first names of kinds.
func NamesOf(adapters []framework.Adapter) []string {
	names := []string{}
	for _, adapter := range adapters {
		names = append(names, adapter.Kind().Name)
	}
	return names
}

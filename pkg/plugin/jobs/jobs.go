// Package jobs reads how users of the kubectl plugin name a job: by the name of its QueueUnit, by the name of the
// job, or by kind and name as in kubectl.
package jobs

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Kind is a kind of job, by API group and kind.
type Kind struct {
	schema.GroupKind
	// Resource is the name of the kind in API paths.
	Resource string
	// Versions are the versions that kube-queue reads, in order of preference.
	Versions []string
}

// Kinds returns the kinds that kube-queue can queue. It combines adapters of one kind.
func Kinds() []Kind {
	var kinds []Kind
	for _, adapter := range slices.Concat(registry.All(), registry.Pods()) {
		kind := adapter.Kind()
		at := slices.IndexFunc(kinds, func(k Kind) bool { return k.GroupKind == kind.GroupKind() })
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, Kind{GroupKind: kind.GroupKind(), Resource: kind.Resource})
		}
		for _, version := range kind.Versions() {
			if !slices.Contains(kinds[at].Versions, version) {
				kinds[at].Versions = append(kinds[at].Versions, version)
			}
		}
	}
	return kinds
}

// KindNames returns the names of the kinds, such as "Job", in alphabetical order.
func KindNames() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, kind.Kind)
	}
	slices.Sort(names)
	return names
}

// KindOf returns the kind that a consumerRef names; false if kube-queue does not queue it.
func KindOf(apiVersion, kind string) (Kind, bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Kind{}, false
	}
	for _, known := range Kinds() {
		if known.GroupKind == gv.WithKind(kind).GroupKind() {
			return known, true
		}
	}
	return Kind{}, false
}

// AdapterOf returns the adapter for a kind of object; nil if there is none.
func AdapterOf(gvk schema.GroupVersionKind) framework.Adapter {
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		if kind.GroupKind() == gvk.GroupKind() && slices.Contains(kind.Versions(), gvk.Version) {
			return adapter
		}
	}
	return nil
}

// Reference is a job or unit as a user named it.
type Reference struct {
	// Text is what the user wrote.
	Text string
	// Name is the name of a job. If Unit is set or Kinds is empty, it can be the name of a unit.
	Name string
	// Unit is true if the user named a unit.
	Unit bool
	// Kinds are the kinds of the job; empty if the user named none. MPIJob, for example, is one kind with several
	// versions.
	Kinds []Kind
}

// unitNames are the names of the kind QueueUnit.
var unitNames = []string{"queueunit", "queueunits", "qu"}

const unitGroup = "scheduling.x-k8s.io"

// Parse reads the arguments that name one job: "name", "kind/name" or "kind" and "name".
func Parse(args []string) (Reference, error) {
	text := strings.Join(args, " ")
	kind, name := "", ""
	switch {
	case len(args) == 2:
		kind, name = args[0], args[1]
	case len(args) == 1:
		name = args[0]
		if before, after, found := strings.Cut(args[0], "/"); found {
			kind, name = before, after
		}
	default:
		return Reference{}, fmt.Errorf("expected one job, as NAME, KIND/NAME or KIND NAME, not %d arguments", len(args))
	}
	if name == "" || strings.Contains(name, "/") || len(args) > 0 && kind == "" && strings.Contains(args[0], "/") {
		return Reference{}, fmt.Errorf("%q names no job; write NAME, KIND/NAME or KIND NAME", text)
	}
	r := Reference{Text: text, Name: name}
	if kind == "" {
		return r, nil
	}
	word, group, _ := strings.Cut(strings.ToLower(kind), ".")
	if slices.Contains(unitNames, word) && (group == "" || group == unitGroup || strings.HasSuffix(group, "."+unitGroup)) {
		r.Unit = true
		return r, nil
	}
	for _, known := range Kinds() {
		if known.is(word, group) {
			r.Kinds = append(r.Kinds, known)
		}
	}
	if len(r.Kinds) == 0 {
		hint := "; the kinds are " + strings.Join(KindNames(), ", ")
		if meant := spelling.Nearest(word, words()); meant != "" {
			hint = fmt.Sprintf("; did you mean %q?", meant)
		}
		return Reference{}, fmt.Errorf("%q is no kind of job that kube-queue knows%s", kind, hint)
	}
	return r, nil
}

// is reports whether a word such as "tfjobs", with a group such as "kubeflow.org" or "v1.kubeflow.org", names the
// kind. The first part of a group is enough.
func (k Kind) is(word, group string) bool {
	if word != k.Resource && word != strings.ToLower(k.Kind) {
		return false
	}
	if version, rest, found := strings.Cut(group, "."); found && slices.Contains(k.Versions, version) {
		group = rest
	}
	return group == "" || group == k.Group || strings.HasPrefix(k.Group, group+".")
}

// words returns the words that name a kind.
func words() []string {
	var words []string
	for _, kind := range Kinds() {
		words = append(words, strings.ToLower(kind.Kind), kind.Resource)
	}
	return append(words, unitNames...)
}

// String returns the kind as kubectl names it: "job.batch".
func (k Kind) String() string {
	if k.Group == "" {
		return strings.ToLower(k.Kind)
	}
	return strings.ToLower(k.Kind) + "." + k.Group
}

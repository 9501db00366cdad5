package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// chartKind is a resource whose objects are queued, in files/kinds.json of the chart. Paths have the form
// spec.suspend.
type chartKind struct {
	Kind       string           `json:"kind"`
	Group      string           `json:"group"`
	Resource   string           `json:"resource"`
	Extensions []chartExtension `json:"extensions"`

	SuspendPath     string             `json:"suspendPath"`
	MarkedBySuspend bool               `json:"markedBySuspend"`
	Native          bool               `json:"native"`
	ShowsQueuing    bool               `json:"showsQueuing"`
	Reads           []chartRead        `json:"reads,omitempty"`
	PartOf          []chartOwner       `json:"partOf,omitempty"`
	Maps            []string           `json:"maps,omitempty"`
	Sets            []chartSetting     `json:"sets,omitempty"`
	Holdable        []condition        `json:"holdable,omitempty"`
	Needs           string             `json:"needs,omitempty"`
	Fence           chartFence         `json:"fence"`
	PodLabel        framework.PodLabel `json:"podLabel"`
}

// chartExtension is an extension that enables versions of the kind. MPIJob has two.
type chartExtension struct {
	Name       string   `json:"name"`
	OtherNames []string `json:"otherNames,omitempty"`
	Versions   []string `json:"versions"`
	ManagedBy  string   `json:"managedBy,omitempty"`
	Operators  []string `json:"operators,omitempty"`
}

// chartOwner is a kind whose operator creates jobs of another kind as parts of its own.
type chartOwner struct {
	Kind     string `json:"kind"`
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// chartRead is a resource that is listed and watched together with the jobs of a kind.
type chartRead struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Why      string `json:"why"`
}

type chartSetting struct {
	Path       string `json:"path"`
	Value      any    `json:"value"`
	OlderPath  string `json:"olderPath,omitempty"`
	Annotation string `json:"annotation,omitempty"`
	Why        string `json:"why"`
}

type condition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// dataOf returns the data of the kinds, in the order of the registry. Kinds of the same
// resource are merged.
func dataOf(adapters []framework.Adapter) ([]chartKind, error) {
	var kinds []chartKind
	for _, adapter := range adapters {
		next, err := kindOf(adapter)
		if err != nil {
			return nil, fmt.Errorf("extension %s: %w", adapter.Kind().Name, err)
		}
		same := slices.IndexFunc(kinds, func(k chartKind) bool { return k.Group == next.Group && k.Kind == next.Kind })
		if same < 0 {
			kinds = append(kinds, next)
			continue
		}
		if err := kinds[same].join(next); err != nil {
			return nil, fmt.Errorf("extension %s: %w", adapter.Kind().Name, err)
		}
	}
	for i := range kinds {
		kinds[i].PartOf = ownersOf(kinds[i], adapters)
	}
	return kinds, check(kinds)
}

// ownersOf returns the kinds that have jobs of the kind as parts.
func ownersOf(part chartKind, adapters []framework.Adapter) []chartOwner {
	var owners []chartOwner
	for _, adapter := range adapters {
		kind := adapter.Kind()
		owner := chartOwner{Kind: kind.Kind, Group: kind.Group, Resource: kind.Resource}
		if slices.Contains(kind.Parts, schema.GroupKind{Group: part.Group, Kind: part.Kind}) && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners
}

func kindOf(adapter framework.Adapter) (chartKind, error) {
	kind := adapter.Kind()
	_, showsQueuing := adapter.(framework.QueuingPatcher)
	found := chartKind{
		Kind: kind.Kind, Group: kind.Group, Resource: kind.Resource,
		Extensions: []chartExtension{{
			Name: kind.Name, OtherNames: kind.OtherNames, ManagedBy: kind.ManagedBy, Operators: kind.Operators,
			Versions: append([]string{kind.Version}, kind.OlderVersions...),
		}},
		SuspendPath: dotted(kind.SuspendPath), MarkedBySuspend: kind.MarkedBySuspend, Native: kind.Native,
		ShowsQueuing: showsQueuing, Reads: readsOf(kind),
		Needs: kind.Doc.Needs, PodLabel: kind.PodLabel,
	}
	maps := [][]string{parent(kind.SuspendPath)}
	for _, setting := range kind.Sets {
		if at := dotted(parent(setting.Path)); at != "spec" && at != dotted(parent(kind.SuspendPath)) {
			return chartKind{}, fmt.Errorf("sets %s: the policy can set only fields of spec and of the parent of the suspend field", dotted(setting.Path))
		}
		found.Sets = append(found.Sets, chartSetting{
			Path: dotted(setting.Path), Value: setting.Value, OlderPath: dotted(setting.OlderPath), Annotation: setting.Annotation,
			Why: setting.Why,
		})
		if setting.OlderPath != nil {
			maps = append(maps, parent(setting.OlderPath))
		}
	}
	for _, path := range append(maps, kind.Maps...) {
		if at := dotted(path); at != "spec" && !slices.Contains(found.Maps, at) {
			found.Maps = append(found.Maps, at)
		}
	}
	for _, c := range kind.Holdable {
		found.Holdable = append(found.Holdable, condition(c))
	}
	if (len(kind.Places) > 0) == (kind.NoPlaces != "") {
		return chartKind{}, errors.New("either Places are where its jobs have the annotations of their pods, or NoPlaces explains why a release cannot add any")
	}
	if e := kind.Elastic; e != nil && (e.Path[0] != "spec" || len(e.Path) != 2 && len(e.Path) != 4) {
		return chartKind{}, fmt.Errorf("the elastic field %s must be in spec, or in an element of a map in spec", dotted(e.Path))
	}
	_, autoscaled := adapter.(framework.Autoscaled)
	fence, err := fenceOf(kind, autoscaled)
	if err != nil {
		return chartKind{}, err
	}
	found.Fence = fence
	return found, nil
}

// readsOf returns the resources that are read together with the jobs of a kind.
func readsOf(kind framework.Kind) []chartRead {
	var reads []chartRead
	if kind.Remains != "" {
		reads = append(reads, chartRead{kind.Group, kind.Remains,
			fmt.Sprintf("The quota of a %s is free when its %s is deleted.", kind.Kind, kind.RemainsKind)})
	}
	if related := kind.Related; related.Resource != "" {
		reads = append(reads, chartRead{related.Group, related.Resource,
			fmt.Sprintf("The %s of a %s contains its pod templates.", related.Kind, kind.Kind)})
	}
	return reads
}

// join merges another kind of the same resource. Only their versions and operators can differ. An older path of a
// field applies to both.
func (k *chartKind) join(other chartKind) error {
	k.Extensions = append(k.Extensions, other.Extensions...)
	k.ShowsQueuing = k.ShowsQueuing || other.ShowsQueuing
	for i := range min(len(k.Sets), len(other.Sets)) {
		if k.Sets[i].OlderPath == "" {
			k.Sets[i].OlderPath = other.Sets[i].OlderPath
		}
		other.Sets[i].OlderPath = k.Sets[i].OlderPath
	}
	other.Extensions, other.ShowsQueuing = k.Extensions, k.ShowsQueuing
	if !reflect.DeepEqual(*k, other) {
		return fmt.Errorf("kind %s also has extension %s and one policy holds both, but they differ:\n%+v\n%+v", k.Kind, k.Extensions[0].Name, *k, other)
	}
	return nil
}

// check rejects data that the templates cannot render.
func check(kinds []chartKind) error {
	policies := map[string]string{}
	for _, kind := range kinds {
		if kind.PodLabel.Key == "" {
			return fmt.Errorf("kind %s has no PodLabel, so its pods could not be found after it is deleted and they are orphaned", kind.Kind)
		}
		if !kind.Fence.sized {
			return fmt.Errorf("kind %s has no Fence, so a released %s could grow in a managed namespace", kind.Kind, kind.Kind)
		}
		policy := strings.ToLower(kind.Kind)
		if other, there := policies[policy]; there {
			return fmt.Errorf("kind %s of groups %s and %s would have the same hold policy", kind.Kind, kind.Group, other)
		}
		policies[policy] = kind.Group
		if kind.Resource != policy+"s" {
			return fmt.Errorf("kind %s: its resource is %s, but a policy finds the resource of an owner by adding an s to its kind", kind.Kind, kind.Resource)
		}
		for _, read := range kind.Reads {
			if !slices.ContainsFunc(kinds, func(k chartKind) bool { return k.Group == read.Group }) {
				return fmt.Errorf("kind %s reads %s of group %s, but the role covers only groups of queued kinds", kind.Kind, read.Resource, read.Group)
			}
		}
		paths := []string{kind.SuspendPath}
		for _, setting := range kind.Sets {
			paths = append(paths, setting.Path)
			if setting.OlderPath != "" {
				paths = append(paths, setting.OlderPath)
			}
			if err := settable(setting); err != nil {
				return fmt.Errorf("kind %s sets %s: %w", kind.Kind, setting.Path, err)
			}
		}
		for _, path := range append(paths, kind.Maps...) {
			if !strings.HasPrefix(path, "spec.") || strings.Count(path, ".") > 2 {
				return fmt.Errorf("kind %s: path %q must be one or two levels below spec", kind.Kind, path)
			}
		}
		for _, extension := range kind.Extensions {
			if extension.ManagedBy != kind.Extensions[0].ManagedBy && len(extension.Versions) > 1 {
				return fmt.Errorf("kind %s: managedBy depends on the version, so extension %s can have only one version", kind.Kind, extension.Name)
			}
		}
	}
	return nil
}

func settable(setting chartSetting) error {
	switch value := setting.Value.(type) {
	case string:
		if value == "" || setting.Annotation != "" {
			return fmt.Errorf("a string must not be empty, and cannot be restored")
		}
	case bool:
		if !value {
			return fmt.Errorf("false counts as unset")
		}
	default:
		return fmt.Errorf("%v is neither a string nor a bool", value)
	}
	return nil
}

func parent(path []string) []string { return path[:max(len(path)-1, 0)] }

func dotted(path []string) string { return strings.Join(path, ".") }

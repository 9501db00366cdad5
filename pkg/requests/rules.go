package requests

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rules are the administrator's rules for the requests of pods. The zero value has no rules.
type Rules struct {
	// Classes maps the name of a DeviceClass to the resource that its devices count as; empty for devices that are
	// not counted. CLASS/CAPACITY is the capacity of its devices that claims request.
	Classes map[string]corev1.ResourceName
	// Uncounted, if set, is called for claims. They then count as nothing, because Classes is unknown.
	Uncounted func()
	// extended maps the extended resources that containers request devices by to DeviceClasses in Classes.
	extended map[corev1.ResourceName]string
	// Types are the types of devices, by the resource that pods request.
	Types map[corev1.ResourceName]Types
	// Additional are the requests that are added to those of templates.
	Additional Additional
}

// Types are the types of the devices of one resource.
type Types struct {
	// Names maps a node label and its value to the name of a type.
	Names map[string]map[string]corev1.ResourceName
	// Default is the type for pods that do not select exactly one; empty for none.
	Default corev1.ResourceName
}

// ParseClasses reads Rules.Classes from entries CLASS=RESOURCE and CLASS/CAPACITY=RESOURCE,
// separated by commas.
func ParseClasses(text string) (map[string]corev1.ResourceName, error) {
	classes := map[string]corev1.ResourceName{}
	for _, entry := range entries(text) {
		key, name, both := strings.Cut(entry, "=")
		if !both {
			return nil, fmt.Errorf("%q must be CLASS=RESOURCE, for example gpu.nvidia.com=nvidia.com/gpu, or CLASS/CAPACITY=RESOURCE", entry)
		}
		class, capacity, shared := strings.Cut(key, "/")
		if faults := validation.IsDNS1123Subdomain(class); len(faults) > 0 {
			return nil, fmt.Errorf("%q is not the name of a DeviceClass: %s", class, faults[0])
		}
		if shared {
			if err := checkCapacity(capacity); err != nil {
				return nil, err
			}
		}
		if _, twice := classes[key]; twice {
			return nil, fmt.Errorf("DeviceClass %q is listed twice; remove one entry", key)
		}
		if name != "" {
			if err := checkName(name); err != nil {
				return nil, err
			}
		}
		classes[key] = corev1.ResourceName(name)
	}
	return classes, nil
}

// checkCapacity checks the name of a capacity: a C identifier, with or without the domain of a driver.
func checkCapacity(name string) error {
	domain, id, qualified := strings.Cut(name, "/")
	if !qualified {
		domain, id = "", name
	} else if faults := validation.IsDNS1123Subdomain(domain); len(faults) > 0 {
		return fmt.Errorf("%q is not the name of a capacity: %s", name, faults[0])
	}
	if faults := content.IsCIdentifier(id); len(faults) > 0 {
		return fmt.Errorf("%q is not the name of a capacity: %s", name, faults[0])
	}
	return nil
}

// ParseTypes reads Rules.Types from entries RESOURCE:LABEL=VALUE:TYPE, and RESOURCE::TYPE
// for a default, separated by commas.
func ParseTypes(text string) (map[corev1.ResourceName]Types, error) {
	all := map[corev1.ResourceName]Types{}
	for _, entry := range entries(text) {
		parts := strings.Split(entry, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q must be RESOURCE:LABEL=VALUE:TYPE, for example nvidia.com/gpu:nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB:gpu/a100, or RESOURCE::TYPE for all other pods", entry)
		}
		for _, name := range []string{parts[0], parts[2]} {
			if err := checkName(name); err != nil {
				return nil, err
			}
		}
		name := corev1.ResourceName(parts[0])
		types, err := all[name].with(name, parts[1], corev1.ResourceName(parts[2]))
		if err != nil {
			return nil, err
		}
		all[name] = types
	}
	return all, checkTypes(all)
}

// with adds a type, selected by a node label with a value, or a default.
func (t Types) with(name corev1.ResourceName, selector string, kind corev1.ResourceName) (Types, error) {
	if selector == "" {
		if t.Default != "" {
			return t, fmt.Errorf("resource %q has two types for all other pods, %s and %s; remove one", name, t.Default, kind)
		}
		t.Default = kind
		return t, nil
	}
	label, value, both := strings.Cut(selector, "=")
	if !both {
		return t, fmt.Errorf("%q must be LABEL=VALUE, for example nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB", selector)
	}
	if faults := validation.IsQualifiedName(label); len(faults) > 0 {
		return t, fmt.Errorf("%q is not a node label: %s", label, faults[0])
	}
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		return t, fmt.Errorf("%q is not a value of a node label: %s", value, faults[0])
	}
	if other, twice := t.Names[label][value]; twice {
		return t, fmt.Errorf("resource %q has two types for node label %s, %s and %s; remove one", name, selector, other, kind)
	}
	if t.Names == nil {
		t.Names = map[string]map[string]corev1.ResourceName{}
	}
	if t.Names[label] == nil {
		t.Names[label] = map[string]corev1.ResourceName{}
	}
	t.Names[label][value] = kind
	return t, nil
}

// checkTypes rejects a type that has types itself, because its amount would depend on the order of the rules.
func checkTypes(all map[corev1.ResourceName]Types) error {
	for _, name := range sortedKeys(all) {
		for _, kind := range all[name].all() {
			if _, itself := all[kind]; itself {
				return fmt.Errorf("type %q of resource %q is also a resource that has types; use another name for the type", kind, name)
			}
		}
	}
	return nil
}

// all returns all types, sorted.
func (t Types) all() []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	if t.Default != "" {
		names[t.Default] = true
	}
	for _, byValue := range t.Names {
		for _, name := range byValue {
			names[name] = true
		}
	}
	return sortedKeys(names)
}

// checkName checks that a resource can be a device: it is counted in whole units, and kube-queue gives its name no
// other meaning.
func checkName(name string) error {
	prefix, _, prefixed := strings.Cut(name, "/")
	faults := validation.IsQualifiedName(name)
	switch {
	case !prefixed:
		return fmt.Errorf("resource %q must be PREFIX/NAME, for example nvidia.com/gpu", name)
	case len(faults) > 0:
		return fmt.Errorf("%q is not the name of a resource: %s", name, faults[0])
	case prefix == "kube-queue", prefix == "kubernetes.io", strings.HasSuffix(prefix, ".kubernetes.io"), strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix):
		return fmt.Errorf("resource %q has a reserved prefix; use another one, for example nvidia.com/gpu", name)
	}
	return nil
}

func entries(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

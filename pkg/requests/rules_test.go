package requests

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/require"
)

func TestClassesAreRead(t *testing.T) {
	got, err := ParseClasses("gpu.example.com=example.com/gpu,nic.example.com=,slice/memory=example.com/memory,slice/example.com/cores=")
	want := map[string]corev1.ResourceName{"gpu.example.com": "example.com/gpu", "nic.example.com": "", "slice/memory": "example.com/memory", "slice/example.com/cores": ""}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v", got, err)
	}
	if got, err := ParseClasses(""); err != nil || len(got) != 0 {
		t.Errorf("an empty text came to %v, error %v", got, err)
	}
}

func TestTypesAreRead(t *testing.T) {
	got, err := ParseTypes("example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=h200:gpu/h100,example.com/gpu:zone=:gpu/z,example.com/gpu::gpu/other,x.com/y::x.com/z")
	want := map[corev1.ResourceName]Types{
		"example.com/gpu": {
			Names: map[string]map[string]corev1.ResourceName{
				"model": {"h100": "gpu/h100", "h200": "gpu/h100"}, "zone": {"": "gpu/z"},
			},
			Default: "gpu/other",
		},
		"x.com/y": {Default: "x.com/z"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestRulesThatCannotBeAppliedAreRefused(t *testing.T) {
	classes := func(text string) error { _, err := ParseClasses(text); return err }
	types := func(text string) error { _, err := ParseTypes(text); return err }
	tests := []struct {
		name  string
		parse func(string) error
		text  string
		err   string
	}{
		{"a class without a resource", classes, "gpu.example.com", `"gpu.example.com" must be CLASS=RESOURCE`},
		{"a class that is no name", classes, "GPU=example.com/gpu", `"GPU" is not the name of a DeviceClass`},
		{"a class without a name", classes, "=example.com/gpu", `"" is not the name of a DeviceClass`},
		{"an empty entry", classes, "a=x/y,", `"" must be CLASS=RESOURCE`},
		{"a class that is listed twice", classes, "a=x/y,a=", `DeviceClass "a" is listed twice`},
		{"a capacity that is listed twice", classes, "a/memory=x/y,a/memory=", `DeviceClass "a/memory" is listed twice`},
		{"a capacity without a name", classes, "a/=x/y", `"" is not the name of a capacity`},
		{"a capacity that is no identifier", classes, "a/gpu-memory=x/y", `"gpu-memory" is not the name of a capacity`},
		{"a capacity of no domain", classes, "a/_/memory=x/y", `"_/memory" is not the name of a capacity`},
		{"a capacity of a capacity", classes, "a/b/c/d=x/y", `"b/c/d" is not the name of a capacity`},
		{"a capacity of no class", classes, "/memory=x/y", `"" is not the name of a DeviceClass`},
		{"the name of a class for containers", classes, "a=deviceclass.resource.kubernetes.io/a", "reserved prefix"},
		{"a resource without a prefix", classes, "a=gpu", `resource "gpu" must be PREFIX/NAME`},
		{"CPU, which is not counted in whole units", types, "cpu::fast/cpu", `resource "cpu" must be PREFIX/NAME`},
		{"a resource that is no name", classes, "a=x/y/z", `"x/y/z" is not the name of a resource`},
		{"a key of quota trees", classes, "a=kube-queue/max-jobs", `resource "kube-queue/max-jobs" has a reserved prefix`},
		{"a resource of Kubernetes itself", types, "a/b::node.kubernetes.io/x", "reserved prefix"},
		{"the name of a ResourceQuota", types, "a/b::requests.a/b", "reserved prefix"},
		{"a type without a selector or a default", types, "example.com/gpu:gpu/h100", "must be RESOURCE:LABEL=VALUE:TYPE"},
		{"a selector without a value", types, "a/b:model:c/d", `"model" must be LABEL=VALUE`},
		{"a label that is no name", types, "a/b:mo del=x:c/d", `"mo del" is not a node label`},
		{"a value that no label has", types, "a/b:model=x y:c/d", `"x y" is not a value of a node label`},
		{"a label with two types", types, "a/b:model=x:c/d,a/b:model=x:c/e", `resource "a/b" has two types for node label model=x, c/d and c/e`},
		{"two defaults", types, "a/b::c/d,a/b::c/d", `resource "a/b" has two types for all other pods`},
		{"a type of a type", types, "a/b:model=x:c/d,c/d::e/f", `type "c/d" of resource "a/b" is also a resource that has types`},
		{"a type of itself", types, "a/b::a/b", `type "a/b" of resource "a/b" is also`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.ErrorSays(t, test.parse(test.text), test.err)
		})
	}
}

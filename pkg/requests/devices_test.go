package requests

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/test/require"
)

// classes returns DeviceClasses from NAME=EXTENDED-RESOURCE, each a second younger than the one before.
func classes(all ...string) []*resourcev1.DeviceClass {
	var list []*resourcev1.DeviceClass
	for i, text := range all {
		name, extended, _ := strings.Cut(text, "=")
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(i), 0)}}
		if extended != "" {
			class.Spec.ExtendedResourceName = &extended
		}
		list = append(list, class)
	}
	return list
}

// spelled is claiming with the DeviceClasses of the cluster, and with classes that are counted by capacity.
func spelled(t *testing.T) cluster {
	t.Helper()
	c := claiming(t, `{}`, `{}`)
	c.Devices.Classes["slice/memory"] = "example.com/gpu-memory"
	c.Devices.Classes["slice/cores"] = ""
	c.Devices.Classes["both"], c.Devices.Classes["both/memory"] = "example.com/gpu", "example.com/gpu-memory"
	c.Devices = c.Devices.WithClasses(classes("gpu=vendor.com/gpu", "npu=example.com/npu", "nic=vendor.com/nic", "slice=vendor.com/slice", "other=vendor.com/other"))
	return c
}

const implicit = "deviceclass.resource.kubernetes.io/"

func TestDevicesCountAsOneResourceByWhateverNameAPodRequestsThem(t *testing.T) {
	for _, test := range []struct{ name, spec, want string }{
		{"the name of the class", `{containers: [{name: a, resources: {limits: {"%sgpu": "4"}}}]}`, `{example.com/gpu: 4}`},
		{"the extended resource of the class", `{containers: [{name: a, resources: {limits: {vendor.com/gpu: 4}}}]}`, `{example.com/gpu: 4}`},
		{"an extended resource that the class is mapped to", `{containers: [{name: a, resources: {limits: {example.com/npu: 4}}}]}`, `{example.com/npu: 4}`},
		{"all names in one pod", `{containers: [{name: a, resources: {limits: {"%sgpu": 1, vendor.com/gpu: 2, example.com/gpu: 4}}}, {name: b, resources: {limits: {"%sgpu": 8}}}]}`, `{example.com/gpu: 15}`},
		{"an init container with another name than the others", `{initContainers: [{name: i, resources: {limits: {"%sgpu": 4}}}], containers: [{name: a, resources: {limits: {vendor.com/gpu: 4}}}]}`, `{example.com/gpu: 8}`},
		{"an init container with the same name", `{initContainers: [{name: i, resources: {limits: {"%sgpu": 4}}}], containers: [{name: a, resources: {limits: {"%sgpu": 3}}}]}`, `{example.com/gpu: 4}`},
		{"a sidecar", `{initContainers: [{name: i, restartPolicy: Always, resources: {limits: {"%sgpu": 4}}}], containers: [{name: a, resources: {limits: {vendor.com/gpu: 4}}}]}`, `{example.com/gpu: 8}`},
		{"a request below the limit, which only the name of the class may have", `{containers: [{name: a, resources: {requests: {"%sgpu": 1}, limits: {"%sgpu": 8}}}]}`, `{example.com/gpu: 1}`},
		{"a large number", `{containers: [{name: a, resources: {limits: {"%sgpu": 1e3}}}]}`, `{example.com/gpu: 1000}`},
		{"part of a device, of which the scheduler allocates none", `{containers: [{name: a, resources: {limits: {"%sgpu": 500m}}}]}`, `{example.com/gpu: 1}`},
		{"a class that is not counted", `{containers: [{name: a, resources: {limits: {"%snic": 4, cpu: 1}}}]}`, `{cpu: 1}`},
		{"its extended resource, which device plugins may provide too", `{containers: [{name: a, resources: {limits: {vendor.com/nic: 4}}}]}`, `{vendor.com/nic: 4}`},
		{"the extended resource of a class that is not mapped, which has no other name then", `{containers: [{name: a, resources: {limits: {vendor.com/other: 4}}}]}`, `{vendor.com/other: 4}`},
		{"none of a class that is not mapped", `{containers: [{name: a, resources: {limits: {"%sother": 0, cpu: 1}}}]}`, `{cpu: 1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := spelled(t)
			template := templateOf(t, strings.ReplaceAll(test.spec, "%s", implicit))
			size, err := Pod(template, "ns", c)
			if want := list(t, test.want); err != nil || !equality.Semantic.DeepEqual(size.Requests, want) {
				t.Errorf("requests are %v, want %v, error %v", size.Requests, want, err)
			}
			pod, err := Created(template, "ns", c)
			require.NoError(t, err)
			if got, want := c.Devices.OfPod(&corev1.Pod{Spec: *pod}), list(t, test.want); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("a real pod requests %v, want %v", got, want)
			}
		})
	}
}

func TestDevicesHaveTypesByWhateverNameAPodRequestsThem(t *testing.T) {
	c := spelled(t)
	c.Devices.Types = typesOf(t, someTypes)
	for _, name := range []string{implicit + "gpu", "vendor.com/gpu", "example.com/gpu"} {
		tryPod(t, fmt.Sprintf(`{nodeSelector: {model: h100}, containers: [{name: a, resources: {limits: {%q: 4}}}]}`, name), c,
			`{example.com/gpu: 4, gpu/h100: 4}`, `{example.com/gpu: 4}`)
	}
}

func TestDevicesThatCannotBeCountedAreRefusedByName(t *testing.T) {
	c := spelled(t)
	for _, test := range []struct{ name, resources, err string }{
		{"a class that is not mapped", `{limits: {"%sother": 1}}`, `resource deviceclass.resource.kubernetes.io/other: devices of DeviceClass "other" cannot be counted`},
		{"even as a limit alone", `{requests: {"%sother": 0}, limits: {"%sother": 1}}`, `devices of DeviceClass "other" cannot be counted`},
		{"no class", `{limits: {"%s": 1}}`, `devices of DeviceClass "" cannot be counted`},
		{"a name that no class has", `{limits: {"%sGPU": 1}}`, `devices of DeviceClass "GPU" cannot be counted`},
		{"a key of the setting that is no class", `{limits: {"%sslice/memory": 1}}`, `devices of DeviceClass "slice/memory" cannot be counted`},
		{"a class that is counted by capacity", `{limits: {"%sslice": 1}}`, `devices of DeviceClass "slice" are counted by capacity "memory"`},
		{"its extended resource", `{limits: {vendor.com/slice: 1}}`, `resource vendor.com/slice: devices of DeviceClass "slice" are counted by capacity "memory"`},
		{"a negative number", `{limits: {"%sgpu": -1}}`, `must be 0 or more`},
		{"names that together are more than can be counted", `{limits: {"%sgpu": 8E, vendor.com/gpu: 8E}}`, `the amount of example.com/gpu exceeds the maximum`},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := fmt.Sprintf(`{containers: [{name: a, resources: %s}]}`, strings.ReplaceAll(test.resources, "%s", implicit))
			_, err := Pod(templateOf(t, spec), "ns", c)
			require.ErrorSays(t, err, test.err)
		})
	}
	if _, err := Declared(list(t, `{deviceclass.resource.kubernetes.io/other: 1}`), c.Devices); err == nil {
		t.Error("a declared request is not refused")
	}
	if got, err := Declared(list(t, `{deviceclass.resource.kubernetes.io/gpu: 1, vendor.com/gpu: 2}`), c.Devices); err != nil || !equality.Semantic.DeepEqual(got, list(t, `{example.com/gpu: 3}`)) {
		t.Errorf("a declared request came to %v, error %v", got, err)
	}
}

func TestWithoutMappedClassesTheNameOfAClassIsRefused(t *testing.T) {
	const spec = `{containers: [{name: a, resources: {limits: {"deviceclass.resource.kubernetes.io/gpu": 1}}}]}`
	_, err := Pod(templateOf(t, spec), "ns", clusterOf(t))
	require.ErrorSays(t, err, "devices.classes")
}

func TestOfClassesWithOneExtendedResourceTheNewestIsUsed(t *testing.T) {
	for _, test := range []struct {
		classes []string
		want    string
	}{
		{[]string{"gpu=x.com/y", "npu=x.com/y"}, "npu"},
		{[]string{"npu=x.com/y", "gpu=x.com/y"}, "gpu"},
		{[]string{"gpu=x.com/y", "other=x.com/y"}, "gpu"}, // other is not mapped
		{[]string{"gpu", "npu"}, ""},
	} {
		got := claiming(t, `{}`, `{}`).Devices.WithClasses(classes(test.classes...))
		if class, _ := got.classOf("x.com/y"); class != test.want {
			t.Errorf("of %v, %q is used, want %q", test.classes, class, test.want)
		}
	}
	young := classes("npu=x.com/y", "gpu=x.com/y")
	young[0].CreationTimestamp = young[1].CreationTimestamp
	if class, _ := claiming(t, `{}`, `{}`).Devices.WithClasses(young).classOf("x.com/y"); class != "gpu" {
		t.Errorf("of two classes of one second %q is used", class)
	}
}

func TestCapacitiesOfClaimsCountAsTheyAreMapped(t *testing.T) {
	c := spelled(t)
	for _, test := range []struct{ name, request, want, err string }{
		{"a capacity", `exactly: {deviceClassName: slice, capacity: {requests: {memory: 10Gi}}}`, `{example.com/gpu-memory: 10Gi}`, ""},
		{"of each device", `exactly: {deviceClassName: slice, count: 3, capacity: {requests: {memory: 10Gi}}}`, `{example.com/gpu-memory: 30Gi}`, ""},
		{"and a capacity that is not counted", `exactly: {deviceClassName: slice, capacity: {requests: {memory: 1, cores: 4}}}`, `{example.com/gpu-memory: 1}`, ""},
		{"in whole units", `exactly: {deviceClassName: slice, count: 2, capacity: {requests: {memory: 1500m}}}`, `{example.com/gpu-memory: 4}`, ""},
		{"beside devices", `exactly: {deviceClassName: both, count: 2, capacity: {requests: {memory: 1Gi}}}`, `{example.com/gpu: 2, example.com/gpu-memory: 2Gi}`, ""},
		{"of alternatives the greatest", `firstAvailable: [{name: x, deviceClassName: slice, capacity: {requests: {memory: 1Gi}}}, {name: y, deviceClassName: slice, count: 3, capacity: {requests: {memory: 1Gi}}}, {name: z, deviceClassName: gpu}]`,
			`{example.com/gpu: 1, example.com/gpu-memory: 3Gi}`, ""},
		{"of a class that counts devices, none", `exactly: {deviceClassName: gpu, capacity: {requests: {memory: 10Gi}}}`, `{example.com/gpu: 1}`, ""},
		{"for administrators, none", `exactly: {deviceClassName: slice, adminAccess: true}`, `{}`, ""},
		{"a capacity that is not requested", `exactly: {deviceClassName: slice}`, "", `devices of DeviceClass "slice" are counted by capacity "memory"`},
		{"another capacity instead", `exactly: {deviceClassName: slice, capacity: {requests: {cores: 1}}}`, "", `counted by capacity "memory"`},
		{"nothing of a capacity", `exactly: {deviceClassName: slice, capacity: {requests: {memory: 0}}}`, "", `counted by capacity "memory"`},
		{"less than nothing", `exactly: {deviceClassName: slice, capacity: {requests: {memory: -1Gi}}}`, "", `counted by capacity "memory"`},
		{"a capacity that is not mapped", `exactly: {deviceClassName: slice, capacity: {requests: {memory: 1, bandwidth: 1}}}`, "", `capacity "bandwidth" of DeviceClass "slice" cannot be counted`},
		{"the capacity of another driver", `exactly: {deviceClassName: slice, capacity: {requests: {vendor.com/memory: 1}}}`, "", `are counted by capacity "memory"`},
		{"all devices", `exactly: {deviceClassName: slice, allocationMode: All, capacity: {requests: {memory: 1}}}`, "", `allocationMode All`},
		{"more than can be counted", `exactly: {deviceClassName: slice, count: 9223372036854775807, capacity: {requests: {memory: 8E}}}`, "", `the amount of example.com/gpu-memory exceeds the maximum`},
		{"an amount that only exponents can write", `exactly: {deviceClassName: slice, count: 9223372036854775807, capacity: {requests: {memory: 1e400}}}`, "", `exceeds the maximum`},
		{"an amount that takes forever to be written", `exactly: {deviceClassName: slice, count: 2, capacity: {requests: {memory: 1e2000000000}}}`, "", `exceeds the maximum`},
	} {
		t.Run(test.name, func(t *testing.T) {
			parse(t, fmt.Sprintf(`{t: {devices: {requests: [{name: a, %s}]}}}`, test.request), &c.ClaimTemplates)
			template := templateOf(t, `{resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{name: a}]}`)
			size, err := Pod(template, "ns", c)
			switch {
			case test.err != "":
				require.ErrorSays(t, err, `claim "x": ResourceClaimTemplate "t": `, test.err)
			case err != nil || !equality.Semantic.DeepEqual(size.Requests, list(t, test.want)):
				t.Errorf("requests are %v, want %s, error %v", size.Requests, test.want, err)
			}
		})
	}
}

// spellings are the names that the property uses for devices: the resource that containers request, and what it counts
// as.
var spellings = map[corev1.ResourceName]corev1.ResourceName{
	implicit + "gpu": "example.com/gpu", "vendor.com/gpu": "example.com/gpu", "example.com/gpu": "example.com/gpu",
	implicit + "npu": "example.com/npu", "example.com/npu": "example.com/npu",
}

// For any names and any order of containers, a pod is charged the devices that the scheduler allocates. The scheduler
// allocates devices separately for each name: those of the containers that run together, and any more that an init
// container needs beyond those of the containers that start after it.
func TestPropertyAPodIsChargedTheDevicesThatTheSchedulerAllocates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Classes: map[string]corev1.ResourceName{"gpu": "example.com/gpu", "npu": "example.com/npu"}}
		rules = rules.WithClasses(classes("gpu=vendor.com/gpu", "npu=example.com/npu"))
		spec := corev1.PodSpec{}
		draw := func(label string) corev1.Container {
			devices := corev1.ResourceList{}
			container := corev1.Container{Name: label, Resources: corev1.ResourceRequirements{Requests: devices, Limits: devices}}
			for name := range spellings {
				if rapid.Bool().Draw(t, string(name)) {
					devices[name] = *resource.NewQuantity(rapid.Int64Range(0, 4).Draw(t, label), resource.DecimalSI)
				}
			}
			return container
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "init containers") {
			container := draw(fmt.Sprint("init-", i))
			if rapid.Bool().Draw(t, "sidecar") {
				container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}
			spec.InitContainers = append(spec.InitContainers, container)
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			spec.Containers = append(spec.Containers, draw(fmt.Sprint("main-", i)))
		}
		want := map[corev1.ResourceName]int64{}
		for name, counted := range spellings {
			want[counted] += allocated(&spec, name)
		}
		got := rules.OfPod(&corev1.Pod{Spec: spec})
		for name, devices := range want {
			if have := got[name]; have.Value() != devices {
				t.Fatalf("the pod is charged %s %s, and the scheduler allocates %d", have.String(), name, devices)
			}
		}
		for name := range got {
			if _, counted := want[name]; !counted {
				t.Fatalf("the pod is charged %s", name)
			}
		}
		cluster := cluster{Devices: rules}
		if size, err := Pod(&corev1.PodTemplateSpec{Spec: spec}, "ns", cluster); err != nil || !equality.Semantic.DeepEqual(size.Requests, got) {
			t.Fatalf("a template is charged %v, error %v, and its pod %v", size.Requests, err, got)
		}
	})
}

// allocated returns how many devices the scheduler allocates for one name.
func allocated(spec *corev1.PodSpec, name corev1.ResourceName) int64 {
	value := func(container corev1.Container) int64 { q := container.Resources.Requests[name]; return q.Value() }
	lasting, more := int64(0), int64(0)
	for _, container := range spec.Containers {
		lasting += value(container)
	}
	later := lasting
	for i := len(spec.InitContainers) - 1; i >= 0; i-- {
		container := spec.InitContainers[i]
		if container.RestartPolicy != nil {
			lasting, later = lasting+value(container), later+value(container)
			continue
		}
		more = max(more, value(container)-later)
	}
	return lasting + more
}

func TestAQuotaCountsADeviceUnderEachNameOfItsClass(t *testing.T) {
	rules := spelled(t).Devices
	for key, want := range map[string]string{
		"requests.deviceclass.resource.kubernetes.io/gpu": "requests.example.com/gpu",
		"gpu.deviceclass.resource.k8s.io/devices":         "requests.example.com/gpu",
		"requests.vendor.com/gpu":                         "requests.example.com/gpu",
		"requests.example.com/gpu":                        "requests.example.com/gpu",
		"vendor.com/gpu":                                  "vendor.com/gpu",
		"requests.deviceclass.resource.kubernetes.io/nic": "requests.deviceclass.resource.kubernetes.io/nic",
		"other.deviceclass.resource.k8s.io/devices":       "other.deviceclass.resource.k8s.io/devices",
		".deviceclass.resource.k8s.io/devices":            ".deviceclass.resource.k8s.io/devices",
		"requests.cpu":                                    "requests.cpu",
		"pods":                                            "pods",
	} {
		if got := rules.QuotaKey(key); got != want {
			t.Errorf("%s counts by %s, want %s", key, got, want)
		}
	}
}

func TestAQuotaOfPodsIsNoneOfAClassWithThatName(t *testing.T) {
	rules := Rules{Classes: map[string]corev1.ResourceName{"cpu": "example.com/cpu", "pods": "example.com/pods"}}
	for key, want := range map[string]string{"cpu": "cpu", "pods": "pods", "requests.cpu": "requests.cpu",
		"cpu.deviceclass.resource.k8s.io/devices": "requests.example.com/cpu"} {
		if got := rules.QuotaKey(key); string(got) != want {
			t.Errorf("%s counts by %s, want %s", key, got, want)
		}
	}
}

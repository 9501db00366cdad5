package requests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestARealPodRequestsWhatItsContainersDoAndTheTypesOfItsDevices(t *testing.T) {
	rules := Rules{Types: typesOf(t, someTypes+",example.com/gpu::gpu/any,example.com/npu::gpu/h100")}
	for _, test := range []struct{ name, pod, want string }{
		{"a selected type", `{spec: {nodeSelector: {model: h100}, containers: [{resources: {requests: {cpu: 1, example.com/gpu: 2}}}, {resources: {requests: {cpu: 2}}}]}}`,
			`{cpu: 3, example.com/gpu: 2, gpu/h100: 2}`},
		{"the default type, wherever the pod runs", `{spec: {nodeName: h100, containers: [{resources: {requests: {example.com/gpu: 2}}}]}}`,
			`{example.com/gpu: 2, gpu/any: 2}`},
		{"two resources with one type", `{spec: {nodeSelector: {model: h100}, containers: [{resources: {requests: {example.com/gpu: 1, example.com/npu: 4}}}]}}`,
			`{example.com/gpu: 1, example.com/npu: 4, gpu/h100: 5}`},
		{"sidecars and overhead", `{spec: {overhead: {cpu: 250m}, initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}], containers: [{resources: {requests: {cpu: 2}}}]}}`,
			`{cpu: 4250m}`},
		{"a container before it shrinks", `{spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}, status: {containerStatuses: [{name: main, allocatedResources: {cpu: 3}, resources: {requests: {cpu: 3}}}]}}`,
			`{cpu: 3}`},
		{"a pod before it shrinks", `{spec: {resources: {requests: {cpu: 1}}, containers: [{name: main}]}, status: {allocatedResources: {cpu: 3}, resources: {requests: {cpu: 3}}}}`,
			`{cpu: 3}`},
		{"no claim, which Count counts", `{spec: {resourceClaims: [{name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimName: n}], containers: [{resources: {requests: {cpu: 1}, claims: [{name: a}, {name: b}]}}]}}`,
			`{cpu: 1}`},
		{"the same after its end", `{spec: {containers: [{resources: {requests: {example.com/gpu: 1}}}]}, status: {phase: Succeeded}}`,
			`{example.com/gpu: 1, gpu/any: 1}`},
		{"more than 64 bits hold", `{spec: {containers: [{resources: {requests: {example.com/gpu: 8E, example.com/npu: 8E}}}, {resources: {requests: {example.com/npu: 8E}}}]}}`,
			`{example.com/gpu: 8E, example.com/npu: 16E, gpu/any: 8E, gpu/h100: 16E}`},
		{"nothing", `{spec: {containers: [{}]}}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			parse(t, test.pod, pod)
			before := pod.DeepCopy()
			if got, want := rules.OfPod(pod), list(t, test.want); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if !equality.Semantic.DeepEqual(pod, before) {
				t.Error("the pod was changed")
			}
		})
	}
}

// realClaims are claims of real pods, some of them with an allocation.
const realClaims = `
own: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2, allocationMode: ExactCount}}]}}}
named: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 8}}]}}}
unset: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}}
all: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}]}}}
all-allocated:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}]}}
  status: {allocation: {devices: {results: [{request: a, device: x}, {request: a, device: y}, {request: a, device: z}]}}}
first:
  spec: {devices: {requests: [{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 4}, {name: w, deviceClassName: npu}]}]}}
first-allocated:
  spec: {devices: {requests: [{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 4}, {name: w, deviceClassName: npu}]}]}}
  status: {allocation: {devices: {results: [{request: a/w, device: x}]}}}
admin: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, adminAccess: true}}, {name: b, exactly: {deviceClassName: npu}}]}}}
admin-allocated:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, adminAccess: true}}]}}
  status: {allocation: {devices: {results: [{request: a, device: x, adminAccess: true}]}}}
unmapped: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: other, count: 2}}, {name: b, exactly: {deviceClassName: nic}}]}}}
part: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: slice, capacity: {requests: {memory: 1, bandwidth: 1}}}}]}}}
part-allocated:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: slice, capacity: {requests: {memory: 1}}}}]}}
  status: {allocation: {devices: {results: [{request: a, device: x, consumedCapacity: {memory: 1Gi, cores: 4}}]}}}
whole: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: slice}}]}}}
whole-allocated:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: both}}]}}
  status: {allocation: {devices: {results: [{request: a, device: x, consumedCapacity: {memory: 80Gi}}]}}}
huge: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: slice, capacity: {requests: {memory: 1e2000000000}}}}]}}}
empty: {}
`

func TestARealPodRequestsWhatItsClaimsHave(t *testing.T) {
	rules := spelled(t).Devices
	rules.Types = typesOf(t, someTypes)
	all := map[string]*resourcev1.ResourceClaim{}
	parse(t, realClaims, &all)
	// The annotation that marks claims of the scheduler is ignored.
	all["named"].Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claimed := func(namespace, name string) Claimed {
		if claim := all[name]; claim != nil && namespace == "ns" {
			return rules.OfClaim(claim)
		}
		return Claimed{}
	}
	for _, test := range []struct{ claim, want string }{
		{"own", `{example.com/gpu: 2}`},
		{"unset", `{example.com/gpu: 1}`},
		{"all", `{example.com/gpu: 32}`},
		{"all-allocated", `{example.com/gpu: 3}`},
		{"first", `{example.com/gpu: 4, example.com/npu: 1}`},
		{"first-allocated", `{example.com/npu: 1}`},
		{"admin", `{example.com/npu: 1}`},
		{"admin-allocated", `{}`},
		{"unmapped", `{deviceclass.resource.kubernetes.io/other: 2}`},
		{"part", `{example.com/gpu-memory: 1}`},
		{"part-allocated", `{example.com/gpu-memory: 1Gi}`},
		{"whole", `{}`},
		{"whole-allocated", `{example.com/gpu: 1, example.com/gpu-memory: 80Gi}`},
		{"huge", `{example.com/gpu-memory: 9223372036854775807}`},
		{"empty", `{}`},
		{"gone", `{}`},
	} {
		t.Run("a claim of its own: "+test.claim, func(t *testing.T) {
			pod := &corev1.Pod{}
			parse(t, `{metadata: {namespace: ns}, spec: {resourceClaims: [{name: x, resourceClaimTemplateName: t}, {name: later, resourceClaimTemplateName: t}], containers: [{}]},
				status: {resourceClaimStatuses: [{name: x, resourceClaimName: `+test.claim+`}, {name: later}]}}`, pod)
			own, shared, _ := rules.Count(rules.DevicesOf(pod), claimed)
			if want := list(t, test.want); !equality.Semantic.DeepEqual(own, want) || len(shared) > 0 {
				t.Errorf("it requests %v and %v, want %v", own, shared, want)
			}
		})
	}
	for _, test := range []struct{ name, pod, own, shared string }{
		{"claims that it may share are apart, with its types",
			`{spec: {nodeSelector: {model: h100}, resourceClaims: [{name: x, resourceClaimTemplateName: t}, {name: y, resourceClaimName: named}, {name: z, resourceClaimName: named}], containers: [{resources: {requests: {cpu: 1, vendor.com/gpu: 1}}}]},
			status: {resourceClaimStatuses: [{name: x, resourceClaimName: own}]}}`,
			`{cpu: 1, example.com/gpu: 3, gpu/h100: 3}`, `{named/example.com/gpu: {requests: {example.com/gpu: 8, gpu/h100: 8}, default: {example.com/gpu: 8}}}`},
		{"the claim that the scheduler makes for its containers counts by capacity alone",
			`{spec: {containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/both": 1}}}]}, status: {extendedResourceClaimStatus: {resourceClaimName: whole-allocated}}}`,
			`{example.com/gpu: 1, example.com/gpu-memory: 80Gi}`, `{}`},
		{"or beside their own name", `{spec: {containers: [{resources: {requests: {vendor.com/slice: 1}}}]}, status: {extendedResourceClaimStatus: {resourceClaimName: part-allocated}}}`,
			`{vendor.com/slice: 1, example.com/gpu-memory: 1Gi}`, `{}`},
		{"devices of classes that are not mapped keep their names", `{spec: {containers: [{resources: {requests: {cpu: 1, "deviceclass.resource.kubernetes.io/other": 4}}}]}}`,
			`{cpu: 1, deviceclass.resource.kubernetes.io/other: 4}`, `{}`},
		{"more than 64 bits hold", `{spec: {containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/gpu": 8E, vendor.com/gpu: 8E}}}]}}`, `{example.com/gpu: 16E}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, want := &corev1.Pod{}, map[string]SharedDevices{}
			parse(t, test.pod, pod)
			parse(t, test.shared, &want)
			pod.Namespace = "ns"
			devices := rules.DevicesOf(pod)
			for range 2 { // counting changes nothing
				own, shared, _ := rules.Count(devices, claimed)
				if !equality.Semantic.DeepEqual(own, list(t, test.own)) || !equality.Semantic.DeepEqual(shared, want) {
					t.Errorf("it requests %v and %v, want %s and %s", own, shared, test.own, test.shared)
				}
			}
		})
	}
}

func TestOnlyPodsThatMayHaveDevicesDependOnOtherObjects(t *testing.T) {
	rules := spelled(t).Devices
	for _, test := range []struct {
		name, pod   string
		with, alone bool
	}{
		{"no device", `{spec: {containers: [{resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi}}}]}}`, false, false},
		{"an extended resource", `{spec: {containers: [{resources: {requests: {new.com/gpu: 1}}}]}}`, true, false},
		{"a claim", `{spec: {resourceClaims: [{name: x, resourceClaimName: n}], containers: [{}]}}`, true, false},
		{"devices that cannot be counted, which are reported", `{spec: {containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/other": 1}}}]}}`, true, true},
	} {
		pod := &corev1.Pod{}
		parse(t, test.pod, pod)
		if with, alone := rules.DevicesOf(pod) != nil, (Rules{}).DevicesOf(pod) != nil; with != test.with || alone != test.alone {
			t.Errorf("%s: %t with mapped classes and %t without", test.name, with, alone)
		}
	}
}

package facts

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestScopesMatchPodsAsInTheAPIServer(t *testing.T) {
	plain, best := Class{}, Class{bestEffort: true}
	ending, crossing := Class{terminating: true}, Class{crossing: true}
	high, low := Class{priority: "high"}, Class{priority: "low"}
	for _, test := range []struct {
		name     corev1.ResourceQuotaScope
		operator corev1.ScopeSelectorOperator
		values   []string
		in, out  []Class
	}{
		{"BestEffort", "Exists", nil, []Class{best}, []Class{plain, high}},
		{"NotBestEffort", "Exists", nil, []Class{plain, high}, []Class{best}},
		{"Terminating", "Exists", nil, []Class{ending}, []Class{plain}},
		{"NotTerminating", "Exists", nil, []Class{plain}, []Class{ending}},
		{"CrossNamespacePodAffinity", "Exists", nil, []Class{crossing}, []Class{plain}},
		{"PriorityClass", "Exists", nil, []Class{high, low}, []Class{plain}},
		{"PriorityClass", "DoesNotExist", nil, []Class{plain}, []Class{high}},
		{"PriorityClass", "In", []string{"high"}, []Class{high}, []Class{plain, low}},
		{"PriorityClass", "NotIn", []string{"high"}, []Class{plain, low}, []Class{high}},
		{"Another", "Exists", nil, nil, []Class{plain, high, best}},
	} {
		t.Run(string(test.name)+string(test.operator), func(t *testing.T) {
			q := Quota{scopes: []corev1.ScopedResourceSelectorRequirement{{ScopeName: test.name, Operator: test.operator, Values: test.values}}}
			for _, c := range test.in {
				if !q.Matches(c) {
					t.Errorf("%+v does not match", c)
				}
			}
			for _, c := range test.out {
				if q.Matches(c) {
					t.Errorf("%+v matches", c)
				}
			}
		})
	}
}

func TestKeysOfQuotasThatCountPods(t *testing.T) {
	for key, want := range map[string]string{
		"cpu": "requests.cpu", "requests.memory": "requests.memory", "ephemeral-storage": "requests.ephemeral-storage",
		"limits.memory": "limits.memory", "hugepages-2Mi": "requests.hugepages-2Mi", "requests.hugepages-2Mi": "requests.hugepages-2Mi",
		"requests.nvidia.com/gpu": "requests.nvidia.com/gpu", "pods": "pods", "count/pods": "count/pods",
		"nvidia.com/gpu": "", "limits.nvidia.com/gpu": "", "requests.storage": "", "services": "", "count/jobs.batch": "",
	} {
		if of, pods := counts(key); pods != (want != "") || pods && of != want {
			t.Errorf("%s counts %q (%t), want %q", key, of, pods, want)
		}
	}
}

func TestPodsOfRequestsAndAnswersAreRead(t *testing.T) {
	const spec = `{"metadata":{"name":"p"},"spec":{"priorityClassName":"high","activeDeadlineSeconds":0,"overhead":{"cpu":"1","memory":"1"},
"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"namespaceSelector":{}}}]}},
"containers":[{"resources":{"limits":{"cpu":"2"}}}],"initContainers":[{"resources":{"limits":{"cpu":"3"}}}]},"status":{"phase":"Pending","qosClass":"BestEffort"}}`
	body, err := parsePod("Pod", &meta{}, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	pod := body.(*Pod)
	if want := (Class{true, true, true, "high"}); pod.Class != want {
		t.Errorf("class %+v, want %+v", pod.Class, want)
	}
	// A limit is also a request. Overhead is added to requests, and to limits that are set.
	if want := (Amounts{"cpu": 4000}); !pod.Limits.Equal(want) {
		t.Errorf("limits %v, want %v", pod.Limits, want)
	}
	if want := (Amounts{"cpu": 4000, "memory": 1}); !pod.Requests.Equal(want) {
		t.Errorf("requests %v, want %v", pod.Requests, want)
	}
}

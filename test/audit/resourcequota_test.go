package audit

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestScopesMatchPodsAsInTheAPIServer(t *testing.T) {
	plain, best := class{}, class{bestEffort: true}
	ending, crossing := class{terminating: true}, class{crossing: true}
	high, low := class{priority: "high"}, class{priority: "low"}
	for _, test := range []struct {
		name     corev1.ResourceQuotaScope
		operator corev1.ScopeSelectorOperator
		values   []string
		in, out  []class
	}{
		{"BestEffort", "Exists", nil, []class{best}, []class{plain, high}},
		{"NotBestEffort", "Exists", nil, []class{plain, high}, []class{best}},
		{"Terminating", "Exists", nil, []class{ending}, []class{plain}},
		{"NotTerminating", "Exists", nil, []class{plain}, []class{ending}},
		{"CrossNamespacePodAffinity", "Exists", nil, []class{crossing}, []class{plain}},
		{"PriorityClass", "Exists", nil, []class{high, low}, []class{plain}},
		{"PriorityClass", "DoesNotExist", nil, []class{plain}, []class{high}},
		{"PriorityClass", "In", []string{"high"}, []class{high}, []class{plain, low}},
		{"PriorityClass", "NotIn", []string{"high"}, []class{plain, low}, []class{high}},
		{"Another", "Exists", nil, nil, []class{plain, high, best}},
	} {
		t.Run(string(test.name)+string(test.operator), func(t *testing.T) {
			q := quotaFacts{scopes: []corev1.ScopedResourceSelectorRequirement{{ScopeName: test.name, Operator: test.operator, Values: test.values}}}
			for _, c := range test.in {
				if !q.matches(c) {
					t.Errorf("%+v does not match", c)
				}
			}
			for _, c := range test.out {
				if q.matches(c) {
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
	body, err := readPod(&metav1.ObjectMeta{}, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	pod := body.(*podFacts)
	if want := (class{true, true, true, "high"}); pod.class != want {
		t.Errorf("class %+v, want %+v", pod.class, want)
	}
	// A limit is also a request. Overhead is added to requests, and to limits that are set.
	if want := (amounts{"cpu": 4000}); !pod.limits.equal(want) {
		t.Errorf("limits %v, want %v", pod.limits, want)
	}
	if want := (amounts{"cpu": 4000, "memory": 1}); !pod.requests.equal(want) {
		t.Errorf("requests %v, want %v", pod.requests, want)
	}
}

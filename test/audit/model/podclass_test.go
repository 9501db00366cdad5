package model

import (
	"encoding/json"
	"testing"
)

func TestScopesMatchPodsAsInTheAPIServer(t *testing.T) {
	plain, best := class{}, class{bestEffort: true}
	ending, crossing := class{terminating: true}, class{crossing: true}
	high, low := class{priority: "high"}, class{priority: "low"}
	for _, test := range []struct {
		name, operator string
		values         []string
		in, out        []class
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
		t.Run(test.name+test.operator, func(t *testing.T) {
			q := QuotaFacts{scopes: []quotaScope{{test.name, test.operator, test.values}}}
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

func TestClassAndLimitsOfAPod(t *testing.T) {
	const spec = `{"metadata":{"name":"p"},"spec":{"priorityClassName":"high","activeDeadlineSeconds":0,"overhead":{"cpu":"1","memory":"1"},
"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"namespaceSelector":{}}}]}},
"containers":[{"resources":{"limits":{"cpu":"2"}}}],"initContainers":[{"resources":{"limits":{"cpu":"3"}}}]},"status":{"phase":"Pending","qosClass":"BestEffort"}}`
	body, err := parsePod(newDecoder(), "Pod", &meta{}, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	pod := body.(*podFacts)
	if want := (class{true, true, true, "high"}); pod.Class != want {
		t.Errorf("class %+v, want %+v", pod.Class, want)
	}
	want, _ := Quantities{"cpu": json.RawMessage("4")}.Ceil()
	if d := pod.Limits.Differences(want, "got", "want"); d != "" {
		t.Error(d)
	}
}

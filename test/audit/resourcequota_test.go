package audit

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

func TestAPodRequestsItsOverheadToo(t *testing.T) {
	const spec = `{"metadata":{"name":"p"},"spec":{"overhead":{"cpu":"1","memory":"1"},
"containers":[{"resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"initContainers":[{"resources":{"limits":{"cpu":"3"},"requests":{"cpu":"3"}}}]},
"status":{"phase":"Pending"}}`
	body, err := readPod(&metav1.ObjectMeta{}, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	pod := body.(*podFacts)
	// Overhead is added to requests, and to limits that are set.
	if want := (amounts{"cpu": 4000}); !pod.limits.equal(want) {
		t.Errorf("limits %v, want %v", pod.limits, want)
	}
	if want := (amounts{"cpu": 4000, "memory": 1}); !pod.requests.equal(want) {
		t.Errorf("requests %v, want %v", pod.requests, want)
	}
}

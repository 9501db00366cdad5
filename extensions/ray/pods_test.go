package ray

import (
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

func TestWorkers(t *testing.T) {
	tests := []struct {
		name, group string
		want        int32
	}{
		{"a group that says nothing has none", `{}`, 0},
		{"as many replicas as are requested", `{replicas: 3, minReplicas: 1, maxReplicas: 5}`, 3},
		{"no fewer than the least", `{replicas: 1, minReplicas: 2, maxReplicas: 5}`, 2},
		{"no more than the most", `{replicas: 7, minReplicas: 2, maxReplicas: 5}`, 5},
		{"the minimum if nothing is requested", `{minReplicas: 2, maxReplicas: 5}`, 2},
		{"each replica has its hosts", `{replicas: 3, numOfHosts: 4}`, 12},
		{"a version without hosts has one for each", `{replicas: 3, numOfHosts: 0}`, 3},
		{"a suspended group has none", `{replicas: 3, minReplicas: 2, suspend: true}`, 0},
		{"a group that is not suspended has its own", `{replicas: 3, suspend: false}`, 3},
		{"the most that can be counted", `{replicas: 2147483647}`, 2147483647},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := workers(group(t, test.group), "there"); err != nil || got != test.want {
				t.Errorf("%d pods, error %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestWorkersRefuses(t *testing.T) {
	tests := []struct{ name, group, err string }{
		{"negative replicas", `{replicas: -1}`, "there.replicas must be 0 or more, not -1"},
		{"a negative least", `{replicas: 1, minReplicas: -2}`, "there.minReplicas must be 0 or more, not -2"},
		{"a negative most", `{replicas: 1, maxReplicas: -3}`, "there.maxReplicas must be 0 or more, not -3"},
		{"negative hosts", `{replicas: 1, numOfHosts: -4}`, "there.numOfHosts must be 0 or more, not -4"},
		{"negative numbers of a suspended group", `{replicas: -1, suspend: true}`, "must be 0 or more"},
		{"bounds the wrong way round", `{replicas: 1, minReplicas: 3, maxReplicas: 2}`, "minReplicas 3 is greater than maxReplicas 2"},
		{"more hosts than can be counted", `{replicas: 65536, numOfHosts: 32768}`, "65536 replicas with 32768 hosts each exceed the maximum of 2147483647 pods"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := workers(group(t, test.group), "there")
			require.ErrorSays(t, err, test.err)
		})
	}
}

func TestNoTwoGroupsOfPodsAreNamedAlike(t *testing.T) {
	tests := []struct {
		name string
		// groups and want are separated by spaces.
		groups, want string
	}{
		{"groups use their own names", "small large", "small large"},
		{"one named as the head is renamed", "head small", "worker-head small"},
		{"one named as the submitter is renamed", "submitter", "worker-submitter"},
		{"not to the name of another group", "head worker-head", "worker-worker-head worker-head"},
		{"whichever is first", "worker-head head", "worker-head worker-worker-head"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var groups []rayv1.WorkerGroupSpec
			for _, name := range strings.Fields(test.groups) {
				groups = append(groups, rayv1.WorkerGroupSpec{GroupName: name})
			}
			names, err := groupNames(groups, "spec")
			if got := strings.Join(setNames(names), " "); err != nil || got != test.want {
				t.Errorf("names are %q, error %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestPodsLeavesTheClusterAsItIs(t *testing.T) {
	cluster := &rayv1.RayClusterSpec{}
	text := `{enableInTreeAutoscaling: true, headGroupSpec: {template: {spec: {containers: [{name: a}]}}},
		workerGroupSpecs: [{groupName: g, replicas: 1, template: {spec: {containers: [{name: a}], initContainers: [{name: b}]}}}]}`
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), cluster))
	// A careless append would write to spare capacity behind a slice.
	for _, template := range Templates(cluster) {
		template.Spec.Containers = append(make([]corev1.Container, 0, 4), template.Spec.Containers...)
		template.Spec.InitContainers = append(make([]corev1.Container, 0, 4), template.Spec.InitContainers...)
	}
	beside := append(make([]corev1.Container, 0, 4), Submitter())
	sets, err := Pods(cluster, "spec", beside...)
	require.NoError(t, err)
	if head := sets[0].Template.Spec.Containers; len(head) != 3 {
		t.Errorf("the head has %d containers, not its own, the submitter and the autoscaler", len(head))
	}
	if worker := sets[1].Template.Spec.InitContainers; len(worker) != 2 || worker[0].Name != "b" {
		t.Errorf("the init containers of the workers are %v", worker)
	}
	for _, template := range Templates(cluster) {
		for _, containers := range [][]corev1.Container{template.Spec.Containers, template.Spec.InitContainers} {
			if more := containers[len(containers):cap(containers)]; more[0].Name != "" {
				t.Errorf("container %q was written into the cluster", more[0].Name)
			}
		}
	}
	if beside = beside[:2]; beside[1].Name != "" {
		t.Errorf("container %q was written behind what was given", beside[1].Name)
	}
}

func group(t *testing.T, text string) *rayv1.WorkerGroupSpec {
	t.Helper()
	g := &rayv1.WorkerGroupSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), g))
	return g
}

package decision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/jobset"
	"kube-queue.dev/kube-queue/extensions/mpijob"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/sparkapplication"
	"kube-queue.dev/kube-queue/extensions/tfjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/test/require"
)

// Quota is given back when the owner or the autoscaler of a job lowers its size, but not because of what its pods do.
func TestTheAdmittedUnitFollowsTheSpecOfItsJobDownwards(t *testing.T) {
	const (
		one   = `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
		named = `metadata: {name: a}, `
	)
	rayOf := func(replicas string) string {
		return `{` + named + `spec: {enableInTreeAutoscaling: true, headGroupSpec: {` + one + `},
			workerGroupSpecs: [{groupName: w, minReplicas: 1, maxReplicas: 9, ` + replicas + one + `}]}}`
	}
	fixed := func(cluster string) string { return strings.Replace(cluster, "enableInTreeAutoscaling: true, ", "", 1) }
	torchOf := func(workers string) string {
		return `{` + named + `spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 9}, pytorchReplicaSpecs: {Worker: {` + workers + one + `}}}}`
	}
	mpiOf := func(workers string) string {
		return `{` + named + `spec: {mpiReplicaSpecs: {Launcher: {replicas: 1, ` + one + `}, Worker: {` + workers + one + `}}}}`
	}
	sparkOf := func(executors, status string) string {
		return `{` + named + `spec: {type: Scala, sparkVersion: "3.5", driver: {cores: 1, memory: 1g},
			executor: {cores: 1, memory: 1g, ` + executors + `}, status: {` + status + `}}`
	}
	tests := []struct {
		name     string
		adapter  framework.Adapter
		was, now string
		// cpu is the admitted CPU after that; empty if nothing is lowered.
		cpu string
	}{
		{"a Job of lower parallelism", job.New(), `{spec: {parallelism: 4, ` + one + `}}`, `{spec: {parallelism: 1, ` + one + `}}`, "1"},
		{"an elastic Job", job.New(), `{spec: {parallelism: 4, completions: 4, completionMode: Indexed, ` + one + `}}`,
			`{spec: {parallelism: 2, completions: 2, completionMode: Indexed, ` + one + `}}`, "2"},
		{"not a Job of higher parallelism", job.New(), `{spec: {parallelism: 1, ` + one + `}}`, `{spec: {parallelism: 8, ` + one + `}}`, ""},
		{"not a Job whose pods have ended", job.New(), `{spec: {parallelism: 4, completions: 6, ` + one + `}}`,
			`{spec: {parallelism: 4, completions: 6, ` + one + `}, status: {succeeded: 5, active: 1}}`, ""},
		{"nor one that went on after some had ended", job.New(), `{spec: {parallelism: 4, completions: 6, ` + one + `}, status: {succeeded: 4}}`,
			`{spec: {parallelism: 4, completions: 6, ` + one + `}, status: {succeeded: 5, active: 1}}`, ""},
		{"a Job of lower parallelism whose pods have ended", job.New(), `{spec: {parallelism: 4, completions: 6, ` + one + `}}`,
			`{spec: {parallelism: 3, completions: 6, ` + one + `}, status: {succeeded: 5, active: 1}}`, "3"},
		{"not a Job that has become invalid", job.New(), `{spec: {parallelism: 4, ` + one + `}}`, `{spec: {parallelism: -1, ` + one + `}}`, ""},
		{"a Job with a minimum count that it no longer has", job.New(),
			`{metadata: {annotations: {kube-queue/min-count: main=3}}, spec: {parallelism: 4, ` + one + `}}`,
			`{metadata: {annotations: {kube-queue/min-count: main=3}}, spec: {parallelism: 2, ` + one + `}}`, "2"},
		{"a RayCluster that its autoscaler has scaled down", raycluster.New(), rayOf(`replicas: 5, `), rayOf(`replicas: 2, `), "3500m"},
		{"not one that it has scaled up", raycluster.New(), rayOf(`replicas: 2, `), rayOf(`replicas: 5, `), ""},
		{"a RayCluster with a suspended group", raycluster.New(), fixed(rayOf(`replicas: 2, `)), fixed(rayOf(`replicas: 2, suspend: true, `)), "1"},
		{"not one that scales, because the operator rejects it", raycluster.New(), rayOf(`replicas: 2, `), rayOf(`replicas: 2, suspend: true, `), ""},
		{"an elastic PyTorchJob", pytorchjob.New(), torchOf(`replicas: 4, `), torchOf(`replicas: 2, `), "2"},
		{"an elastic MPIJob", mpijob.V2beta1(), mpiOf(`replicas: 4, `), mpiOf(`replicas: 1, `), "2"},
		{"an MPIJob v1", mpijob.V1(), mpiOf(`replicas: 4, `), mpiOf(`replicas: 1, `), "2"},
		{"a JobSet of fewer replicas", jobset.New(),
			`{spec: {replicatedJobs: [{name: a, replicas: 3, template: {spec: {parallelism: 2, completions: 2, ` + one + `}}}]}}`,
			`{spec: {replicatedJobs: [{name: a, replicas: 1, template: {spec: {parallelism: 2, completions: 2, ` + one + `}}}]}}`, "2"},
		{"a SparkApplication of fewer executors", sparkapplication.New(), sparkOf(`instances: 4}`, ``), sparkOf(`instances: 2}`, ``), "3"},
		{"a SparkApplication that begins with fewer", sparkapplication.New(), sparkOf(`}, dynamicAllocation: {enabled: true, initialExecutors: 4}`, ``),
			sparkOf(`}, dynamicAllocation: {enabled: true, initialExecutors: 2}`, ``), "3"},
		{"not a SparkApplication whose executors have ended", sparkapplication.New(), sparkOf(`instances: 4}`, ``),
			sparkOf(`instances: 4}`, `applicationState: {state: RUNNING}, executorState: {a: COMPLETED, b: FAILED}`), ""},
		{"a Workflow of smaller size", workflow.New(), `{metadata: {annotations: {kube-queue/min-resources: "cpu: 4"}}}`,
			`{metadata: {annotations: {kube-queue/min-resources: "cpu: 3"}}}`, "3"},
		{"not a Workflow that has lost its size", workflow.New(), `{metadata: {annotations: {kube-queue/min-resources: "cpu: 4"}}}`, `{}`, ""},
		{"nor one whose size cannot be read", workflow.New(), `{metadata: {annotations: {kube-queue/min-resources: "cpu: 4"}}}`,
			`{metadata: {annotations: {kube-queue/min-resources: "cpu: few"}}}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			was := desiredOf(t, test.adapter, test.was)
			if was.Invalid != "" {
				t.Fatal(was.Invalid)
			}
			fields := decision.LoweredOf(test.adapter, decode(t, test.adapter, test.now), nil, nil, adaptertest.Usual(), &v1alpha1.QueueUnit{Spec: was.Spec})
			if got := cpuOf(t, fields); got != test.cpu {
				t.Errorf("lowered to %q cpu, not %q: %v", got, test.cpu, fields)
			}
		})
	}
}

// The autoscaler of a RayJob changes its RayCluster, not the job.
func TestTheAdmittedUnitFollowsTheAutoscalerOfItsRayJob(t *testing.T) {
	const template = `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
	rayJob := func(replicas string) string {
		return `{metadata: {name: a}, spec: {submissionMode: HTTPMode, rayClusterSpec: {enableInTreeAutoscaling: true, headGroupSpec: {` + template + `},
			workerGroupSpecs: [{groupName: small, ` + replicas + `minReplicas: 1, maxReplicas: 9, ` + template + `}, {groupName: head, replicas: 2, ` + template + `}]}}}`
	}
	cluster := func(small, head string) string {
		return `{metadata: {name: a-x, labels: {a: b}}, spec: {headGroupSpec: {` + template + `}, workerGroupSpecs: [
			{groupName: head, ` + head + template + `}, {groupName: small, ` + small + template + `}]}, status: {state: ready}}`
	}
	tests := []struct{ name, job, cluster, cpu string }{
		{"as it was created", rayJob(`replicas: 4, `), cluster(`replicas: 4, `, `replicas: 2, `), ""},
		{"one group is scaled down", rayJob(`replicas: 4, `), cluster(`replicas: 2, `, `replicas: 2, `), "5500m"},
		{"one down, one up", rayJob(`replicas: 4, `), cluster(`replicas: 6, `, `replicas: 1, `), "6500m"},
		{"below its minimum", rayJob(`replicas: 4, `), cluster(`replicas: 0, `, `replicas: 2, `), "4500m"},
		{"the job itself has fewer", rayJob(`replicas: 3, `), cluster(`replicas: 4, `, `replicas: 2, `), "6500m"},
		{"the cluster does not have the numbers", rayJob(`replicas: 4, `), cluster(``, ``), ""},
		{"the cluster has other groups", rayJob(`replicas: 4, `), `{spec: {workerGroupSpecs: [{groupName: other, replicas: 1}]}}`, ""},
		{"there is no cluster", rayJob(`replicas: 4, `), ``, ""},
	}
	adapter := rayjob.New()
	reader := adapter.(framework.ScaledReader)
	was := desiredOf(t, adapter, rayJob(`replicas: 4, `))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var scaled framework.Object
			if test.cluster != "" {
				scaled = reader.NewScaled()
				require.NoError(t, yaml.Unmarshal([]byte(test.cluster), scaled))
				reader.SlimScaled(scaled)
			}
			object := decode(t, adapter, test.job)
			given := object.DeepCopyObject()
			fields := decision.LoweredOf(adapter, object, nil, scaled, adaptertest.Usual(), &v1alpha1.QueueUnit{Spec: was.Spec})
			if got := cpuOf(t, fields); got != test.cpu {
				t.Errorf("lowered to %q cpu, not %q: %v", got, test.cpu, fields)
			}
			if !equality.Semantic.DeepEqual(object, given) {
				t.Error("the cached job was changed")
			}
		})
	}
}

func TestAJobWhosePodsRequestNothingIsEmpty(t *testing.T) {
	const nothing, something = `template: {spec: {containers: [{name: a}]}}`, `template: {spec: {containers: [{name: a}, {name: b, resources: {requests: {cpu: 1m}}}]}}`
	tests := []struct {
		name    string
		adapter framework.Adapter
		job     string
		want    bool
	}{
		{"no container requests anything", job.New(), `{spec: {parallelism: 500, ` + nothing + `}}`, true},
		{"one requests 0", job.New(), `{spec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: 0}}}]}}}}`, true},
		{"one container requests something", job.New(), `{spec: {` + something + `}}`, false},
		{"one has a limit", job.New(), `{spec: {template: {spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`, false},
		{"a Job without pods", job.New(), `{spec: {parallelism: 0, ` + nothing + `}}`, false},
		{"one role requests something", pytorchjob.New(), `{spec: {pytorchReplicaSpecs: {Master: {` + something + `}, Worker: {` + nothing + `}}}}`, false},
		{"only a role without pods does", tfjob.New(), `{spec: {tfReplicaSpecs: {PS: {replicas: 0, ` + something + `}, Worker: {` + nothing + `}}}}`, true},
		{"the operator adds something", raycluster.New(), `{metadata: {name: a}, spec: {headGroupSpec: {` + nothing + `},
			workerGroupSpecs: [{groupName: w, replicas: 1, ` + nothing + `}]}}`, false},
		{"its requests are unknown", workflow.New(), `{}`, false},
		{"its owner has declared that it needs nothing", workflow.New(), `{metadata: {annotations: {kube-queue/min-resources: "cpu: 0"}}}`, false},
		{"it is invalid", job.New(), `{spec: {parallelism: -1, ` + nothing + `}}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := desiredOf(t, test.adapter, test.job); got.Empty != test.want {
				t.Errorf("it is empty: %v, requests %v, invalid %q", got.Empty, got.Spec.Resource, got.Invalid)
			}
		})
	}
}

func decode(t *testing.T, adapter framework.Adapter, text string) framework.Object {
	t.Helper()
	object := adapter.New()
	require.NoError(t, yaml.Unmarshal([]byte(text), object))
	return object
}

// cpuOf returns the amount in the patch; empty if there is none.
func cpuOf(t *testing.T, fields map[string]any) string {
	t.Helper()
	if fields == nil {
		return ""
	}
	data, err := json.Marshal(fields["resource"])
	require.NoError(t, err)
	var list corev1.ResourceList
	require.NoError(t, json.Unmarshal(data, &list))
	return list.Cpu().String()
}

func TestGrown(t *testing.T) {
	cluster := func(autoscaled bool) string {
		return fmt.Sprintf(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"enableInTreeAutoscaling": %v, "workerGroupSpecs": [
			{"groupName": "a", "replicas": 2}, {"groupName": "head", "replicas": 9, "numOfHosts": 2}, {"groupName": "new", "replicas": 9}, {"groupName": "unset"}]}}`, autoscaled)
	}
	torch := func(role string, workers int, policy string) string {
		return fmt.Sprintf(`{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {%s "pytorchReplicaSpecs": {"Master": {"replicas": 1}, %q: {"replicas": %d}}}}`, policy, role, workers)
	}
	elastic := `"elasticPolicy": {"maxReplicas": 9},`
	runs := &v1alpha1.QueueUnit{
		Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "head", Count: 1}, {Name: "a", Count: 2}, {Name: "worker-head", Count: 8},
			{Name: "unset", Count: 1}, {Name: "master", Count: 1}, {Name: "worker", Count: 4}}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning},
	}
	evicting := runs.DeepCopy()
	evicting.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(wellknown.ReasonPreempted)}}
	for _, test := range []struct {
		name    string
		adapter framework.Adapter
		job     string
		unit    *v1alpha1.QueueUnit
		want    []framework.Growth
	}{
		{"a cluster", raycluster.New(), cluster(true), evicting, []framework.Growth{{PodSet: "worker-head", Field: "/spec/workerGroupSpecs/1/replicas", Now: 9, Admitted: 4}}},
		{"without an autoscaler its owner has scaled it", raycluster.New(), cluster(false), evicting, nil},
		{"while it is not evicted", raycluster.New(), cluster(true), runs, nil},
		{"without a unit", raycluster.New(), cluster(true), nil, nil},
		{"a PyTorchJob", pytorchjob.New(), torch("worker", 6, elastic), evicting, []framework.Growth{{PodSet: "worker", Field: "/spec/pytorchReplicaSpecs/worker/replicas", Now: 6, Admitted: 4}}},
		{"one that has not grown", pytorchjob.New(), torch("Worker", 4, elastic), evicting, nil},
		{"one without an autoscaler", pytorchjob.New(), torch("Worker", 6, ""), evicting, nil},
		{"a kind that is not scaled", job.New(), `{"spec": {"parallelism": 9}}`, evicting, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := decision.GrownOf(test.adapter, decode(t, test.adapter, test.job), test.unit); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("it has grown by %+v, want %+v", got, test.want)
			}
		})
	}
}

// Nothing lowers what an owner has raised. The autoscaler of a RayJob has scaled a RayCluster that is deleted.
func TestAnEvictedJobRequestsTheSizeThatItsOwnerWrote(t *testing.T) {
	const fewer = `kube-queue/min-count: "main=2", kube-queue/original-count: "main=4", kube-queue/admitted-count: "main=2"`
	const ray = `{metadata: {name: a}, spec: {submissionMode: HTTPMode, rayClusterSpec: {enableInTreeAutoscaling: true, autoscalerOptions: {version: v2},
		headGroupSpec: {` + onePod + `}, workerGroupSpecs: [{groupName: w, replicas: 2, maxReplicas: 9, ` + onePod + `}]}}}`
	for _, test := range []struct {
		name        string
		adapter     framework.Adapter
		job, scaled string
		// has is the size before the eviction, and requests are the pod sets afterwards.
		has      map[string]int32
		requests string
	}{
		{"a Job that was raised", job.New(), jobWith("", "parallelism: 6"), "", map[string]int32{"main": 6}, "main=-/6"},
		{"one that was released with fewer pods", job.New(), jobWith(fewer, "parallelism: 2"), "", map[string]int32{"main": 2}, "main=2/4"},
		{"one that was then raised", job.New(), jobWith(fewer, "parallelism: 6"), "", map[string]int32{"main": 6}, "main=2/6"},
		{"a RayJob", rayjob.New(), ray, `{spec: {workerGroupSpecs: [{groupName: w, replicas: 9}]}}`, map[string]int32{"w": 9}, "head=-/1 w=-/2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var scaled framework.Object
			if reader, scales := test.adapter.(framework.ScaledReader); scales {
				scaled = reader.NewScaled()
				require.NoError(t, yaml.Unmarshal([]byte(test.scaled), scaled))
			}
			object := decode(t, test.adapter, test.job)
			if has := test.adapter.(framework.Growing).Growing(object, scaled); !maps.Equal(has, test.has) {
				t.Errorf("before the eviction it has %v", has)
			}
			patch, err := decision.Restored(test.adapter, object)
			require.NoError(t, err)
			if got := counts(desiredOf(t, test.adapter, patched(t, test.job, patch)).Spec.PodSets); got != test.requests {
				t.Errorf("it requests %s, want %s", got, test.requests)
			}
		})
	}
	grown := []*v1alpha1.QueueUnit{growingUnit(4, v1alpha1.PhaseRunning)}
	growth, err := decision.GrowthOf(growingUnit(2, v1alpha1.PhaseEnqueued), grown, map[string]int32{"workers": 6}, nil, "")
	if err != nil || len(growth.Leave) != 1 || len(growth.Create)+len(growth.Resize) > 0 {
		t.Errorf("its growth does not leave: %+v, %v", growth, err)
	}
}

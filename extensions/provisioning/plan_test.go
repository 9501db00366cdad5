package provisioning

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// podSet is a pod set of a unit and the template of its job.
type podSet struct {
	name     string
	count    int32
	template string
}

func inputOf(t *testing.T, sets ...podSet) Input {
	t.Helper()
	in := Input{Unit: unitIn(v1alpha1.PhaseReserved), Check: "nodes", ConfigName: "gpus", Cluster: adaptertest.Usual(),
		Config: &v1alpha1.ProvisioningRequestConfigSpec{ProvisioningClassName: "class.example.com"}}
	for _, set := range sets {
		template := &corev1.PodTemplateSpec{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(set.template), template))
		size, err := requests.Pod(template, in.Unit.Namespace, in.Cluster)
		require.NoError(t, err)
		in.Pods = append(in.Pods, framework.PodSet{Name: set.name, Count: set.count, Template: template})
		in.Unit.Spec.PodSets = append(in.Unit.Spec.PodSets, v1alpha1.PodSet{Name: set.name, Count: set.count, Requests: size.Requests})
	}
	return in
}

func planOf(t *testing.T, in Input) *Plan {
	t.Helper()
	plan, refused := PlanOf(in)
	if refused != nil {
		t.Fatalf("refused: %s %s", refused.State, refused.Message)
	}
	return plan
}

const (
	cpuPod = `{spec: {containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]}}`
	gpuPod = `{spec: {containers: [{name: main, image: train, resources: {limits: {nvidia.com/gpu: 8}}}]}}`
)

func TestOnlyPodSetsThatRequestAManagedResourceCount(t *testing.T) {
	in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod}, podSet{"none", 0, gpuPod})
	for _, test := range []struct {
		managed []corev1.ResourceName
		want    string
	}{
		{nil, "launcher worker"},
		{[]corev1.ResourceName{gpu}, "worker"},
		{[]corev1.ResourceName{"cpu"}, "launcher"},
		{[]corev1.ResourceName{"cpu", gpu}, "launcher worker"},
		{[]corev1.ResourceName{"memory"}, ""},
	} {
		in.Config.ManagedResources = test.managed
		var names []string
		for _, set := range Managed(in.Unit, in.Config) {
			names = append(names, set.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%v: the managed pod sets are %q, not %q", test.managed, got, test.want)
		}
	}
	in.Unit.Spec.Resource = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	if IsManaged(in.Unit, in.Config) {
		t.Error("the total counts although there are pod sets")
	}
	byHand := in.Unit.DeepCopy()
	byHand.Spec.PodSets = nil
	if !IsManaged(byHand, in.Config) {
		t.Error("the total of a unit without pod sets does not count")
	}
	in.Unit.Spec.PodSets[0].Requests["memory"] = resource.MustParse("0")
	in.Config.ManagedResources = []corev1.ResourceName{"memory"}
	if got := Managed(in.Unit, in.Config); len(got) > 0 {
		t.Error("a request of 0 counts")
	}
}

func TestARequestIsForThePodsOfTheUnit(t *testing.T) {
	in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod})
	in.Failed = 2
	plan := planOf(t, in)
	r := plan.Request
	if r.Name != "train-job-0123456789-nodes-1" || r.Namespace != "team" || r.Spec.ProvisioningClassName != "class.example.com" {
		t.Errorf("the request is %s/%s of class %s", r.Namespace, r.Name, r.Spec.ProvisioningClassName)
	}
	if len(plan.Templates) != 2 || len(r.Spec.PodSets) != 2 || r.Spec.PodSets[0].Count != 1 || r.Spec.PodSets[1].Count != 4 {
		t.Fatalf("%d templates, pod sets %v", len(plan.Templates), r.Spec.PodSets)
	}
	objects := []metav1.Object{r}
	for i, template := range plan.Templates {
		objects = append(objects, template)
		if r.Spec.PodSets[i].PodTemplateRef.Name != template.Name {
			t.Errorf("pod set %d refers to %s, not %s", i, r.Spec.PodSets[i].PodTemplateRef.Name, template.Name)
		}
	}
	for _, object := range objects {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.APIVersion != "scheduling.x-k8s.io/v1alpha1" || owner.Kind != "QueueUnit" || owner.Name != in.Unit.Name || owner.UID != "u1" {
			t.Errorf("%s is owned by %v", object.GetName(), owner)
		}
		if labels := object.GetLabels(); labels["kube-queue/queue-unit-uid"] != "u1" || labels["kube-queue/admission-check"] != "nodes" {
			t.Errorf("%s has the labels %v", object.GetName(), labels)
		}
	}
	r.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue}}
	if r.FailedInARow() != 3 {
		t.Errorf("%d failed in a row, not 3", r.FailedInARow())
	}
}

func TestPodsGetTheAnnotationsThatAutoscalersRead(t *testing.T) {
	in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod})
	in.Config.ManagedResources = []corev1.ResourceName{gpu}
	answer := Requested(in, planOf(t, in).Request)
	want := map[string]string{}
	for _, prefix := range []string{"cluster-autoscaler.kubernetes.io/", "autoscaling.x-k8s.io/"} {
		want[prefix+"consume-provisioning-request"] = "train-job-0123456789-nodes-1"
		want[prefix+"provisioning-class-name"] = "class.example.com"
	}
	if len(answer.Updates) != 1 || answer.Updates[0].Name != "worker" || !maps.Equal(answer.Updates[0].Annotations, want) {
		t.Errorf("the updates are %v", answer.Updates)
	}
	if answer.State != v1alpha1.CheckPending {
		t.Errorf("the state is %s", answer.State)
	}
}

// Commands and environments do not affect which nodes are needed; everything that a scheduler reads does.
func TestPodSetsThatNeedTheSameNodesAreMerged(t *testing.T) {
	const same = `{metadata: {annotations: {a: b}}, spec: {containers: [{name: main, image: train, command: [other], env: [{name: TOKEN, value: secret}], resources: {requests: {cpu: 1000m}}}]}}`
	for _, test := range []struct {
		name, other string
		counts      []int32
	}{
		{"equal templates", cpuPod, []int32{7}},
		{"another command and the same amount in other words", same, []int32{7}},
		{"another amount", gpuPod, []int32{3, 4}},
		{"another node selector", `{spec: {nodeSelector: {a: b}, containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]}}`, []int32{3, 4}},
		{"a label that an affinity may select", `{metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]}}`, []int32{3, 4}},
	} {
		in := inputOf(t, podSet{"first", 3, cpuPod}, podSet{"second", 4, test.other})
		plan := planOf(t, in)
		var counts []int32
		for _, set := range plan.Request.Spec.PodSets {
			counts = append(counts, set.Count)
		}
		if !slices.Equal(counts, test.counts) || len(plan.Templates) != len(test.counts) {
			t.Errorf("%s: the pod sets have %v pods, not %v", test.name, counts, test.counts)
		}
		if updates := Requested(in, plan.Request).Updates; len(updates) != 2 {
			t.Errorf("%s: %d pod sets are updated, not both", test.name, len(updates))
		}
	}
}

func TestATemplateHasWhatASchedulerReadsAndNothingElse(t *testing.T) {
	in := inputOf(t, podSet{"main", 1, `
metadata: {labels: {app: train}, annotations: {note: SECRET}}
spec:
  serviceAccountName: SECRET
  schedulerName: gang
  priorityClassName: high
  runtimeClassName: sandbox
  hostNetwork: false
  nodeSelector: {model: h100}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {matchLabels: {app: train}}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: key, secret: {secretName: SECRET}}]
  initContainers: [{name: sidecar, image: log, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]
  containers:
  - {name: main, image: train, command: [SECRET], args: [SECRET], env: [{name: A, value: SECRET}], workingDir: /SECRET,
     ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}], volumeMounts: [{name: key, mountPath: /SECRET}],
     resources: {limits: {cpu: 2, nvidia.com/gpu: 8}}}
  - {name: helper, resources: {requests: {memory: 1Gi}}}`})
	template := planOf(t, in).Templates[0].Template
	data, err := json.Marshal(template)
	require.NoError(t, err)
	if strings.Contains(string(data), "SECRET") {
		t.Errorf("the template has more than a scheduler reads: %s", data)
	}
	want := `
metadata: {labels: {app: train}}
spec:
  schedulerName: gang
  priorityClassName: high
  runtimeClassName: sandbox
  overhead: {cpu: 250m, memory: 64Mi}
  nodeSelector: {model: h100}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {matchLabels: {app: train}}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  initContainers: [{name: sidecar, image: log, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]
  containers:
  - {name: main, image: train, ports: [{containerPort: 81, hostPort: 81}], resources: {limits: {cpu: 2, nvidia.com/gpu: 8}, requests: {cpu: 2, nvidia.com/gpu: 8}}}
  - {name: helper, image: unset, resources: {requests: {memory: 1Gi}}}`
	wanted := &corev1.PodTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(want), wanted))
	if encoded, err := json.Marshal(wanted); err != nil || string(encoded) != string(data) {
		t.Errorf("the template is\n%s\nnot\n%s (%v)", data, encoded, err)
	}
}

// The autoscaler has provided nodes for the pods of the request.
func TestARequestIsForThePodsThatTheJobHasNow(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(in *Input)
		message string
	}{
		{"nothing", func(*Input) {}, ""},
		{"what no scheduler reads", func(in *Input) { in.Pods[1].Template.Spec.Containers[0].Command = []string{"sleep"} }, ""},
		{"the pods of a pod set without a managed resource", func(in *Input) { in.Pods[0].Template.Spec.NodeSelector = map[string]string{"a": "b"} }, ""},
		{"the config", func(in *Input) {
			in.Config.ManagedResources, in.Config.MaxPodSets = []corev1.ResourceName{"cpu"}, ptr.To[int32](1)
		}, ""},
		{"the node selector", func(in *Input) { in.Pods[1].Template.Spec.NodeSelector = map[string]string{"a": "b"} }, "the pods of the job changed"},
		{"the tolerations", func(in *Input) { in.Pods[1].Template.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }, "the pods of the job changed"},
		{"one of two equal pod sets", func(in *Input) { in.Pods[2].Template.Labels = map[string]string{"a": "b"} }, "the pods of the job changed"},
		{"the number of pods", func(in *Input) { in.Unit.Spec.PodSets[1].Count++ }, "the pods of the job changed"},
		{"the RuntimeClass, to one that does not exist", func(in *Input) { in.Pods[1].Template.Spec.RuntimeClassName = ptr.To("none") }, `RuntimeClass "none"`},
		{"a LimitRange that pods that exist do not obey", func(in *Input) {
			cluster := adaptertest.Usual()
			cluster.Ranges = map[string][]*corev1.LimitRange{in.Unit.Namespace: {{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{gpu: resource.MustParse("1")}}}}}}}
			in.Cluster, in.Pods[1].Created, in.Pods[2].Created = cluster, true, true
		}, ""},
		{"the names of the pod sets", func(in *Input) { in.Pods = in.Pods[:1] }, "no pod set"},
	} {
		in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod}, podSet{"evaluator", 1, gpuPod})
		in.Config.ManagedResources = []corev1.ResourceName{gpu}
		request := planOf(t, in).Request
		entry := v1alpha1.AdmissionCheckState{Name: in.Check, PodSetUpdates: Requested(in, request).Updates}
		test.change(&in)
		switch answer := Changed(in, entry, request); {
		case answer == nil:
			if test.message != "" {
				t.Errorf("%s: it is not noticed", test.name)
			}
		case test.message == "" || answer.State != v1alpha1.CheckRetry || !strings.Contains(answer.Message, test.message):
			t.Errorf("%s: the answer is %+v", test.name, answer)
		}
	}
}

func TestFailuresCountForTheSamePodsOnly(t *testing.T) {
	in := inputOf(t, podSet{"main", 1, gpuPod})
	in.Failed = 2
	request := planOf(t, in).Request
	request.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue}}
	if got := FailedBefore(in.Unit, []*Request{request}); got != 3 {
		t.Errorf("%d requests have failed, not 3", got)
	}
	in.Unit.Spec.PodSets[0].Count++
	if got := FailedBefore(in.Unit, []*Request{request}); got != 0 {
		t.Errorf("%d requests have failed for the changed job", got)
	}
}

func TestParametersOfTheJobPrecedeItsRunTimeAndThatTheConfig(t *testing.T) {
	const vendor = "queued-provisioning.gke.io"
	for _, test := range []struct {
		name, class string
		config, job map[string]string
		most        *int32
		want        map[string]string
	}{
		{"the config alone", "a.b", map[string]string{"ValidUntilSeconds": "60"}, nil, nil, map[string]string{"ValidUntilSeconds": "60"}},
		{"the job replaces and adds", "a.b", map[string]string{"x": "config", "y": "config"}, map[string]string{"provreq.kube-queue/x": "job", "provreq.kube-queue/z": "job"},
			nil, map[string]string{"x": "job", "y": "config", "z": "job"}},
		{"the prefix of Kueue", "a.b", nil, map[string]string{"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}, nil, map[string]string{"maxRunDurationSeconds": "600"}},
		{"the maximum execution time for a class that takes it", vendor, nil, nil, ptr.To[int32](900), map[string]string{"maxRunDurationSeconds": "900"}},
		{"not for a class that may not", "check-capacity.autoscaling.x-k8s.io", nil, nil, ptr.To[int32](900), map[string]string{}},
		{"instead of a default in the config", "a.b", map[string]string{"maxRunDurationSeconds": "3600"}, nil, ptr.To[int32](900), map[string]string{"maxRunDurationSeconds": "900"}},
		{"the default for jobs without one", "a.b", map[string]string{"maxRunDurationSeconds": "3600"}, nil, nil, map[string]string{"maxRunDurationSeconds": "3600"}},
		{"but not instead of what the job says", vendor, nil, map[string]string{"provreq.kube-queue/maxRunDurationSeconds": "600"}, ptr.To[int32](900),
			map[string]string{"maxRunDurationSeconds": "600"}},
		{"other annotations are no parameters", "a.b", nil, map[string]string{"kube-queue/after": "x"}, nil, map[string]string{}},
	} {
		in := inputOf(t, podSet{"main", 1, cpuPod})
		in.Config.ProvisioningClassName, in.Config.Parameters = test.class, test.config
		in.Unit.Annotations, in.Unit.Spec.MaximumExecutionTimeSeconds = test.job, test.most
		before := maps.Clone(test.config)
		if got := planOf(t, in).Request.Spec.Parameters; !maps.Equal(got, test.want) {
			t.Errorf("%s: the parameters are %v, not %v", test.name, got, test.want)
		}
		if !maps.Equal(before, test.config) {
			t.Errorf("%s: the config is changed", test.name)
		}
	}
}

func TestWhatCannotBeRequestedIsRefusedWithAReason(t *testing.T) {
	many := map[string]string{}
	for i := range 101 {
		many["provreq.kube-queue/p"+strconv.Itoa(i)] = ""
	}
	for _, test := range []struct {
		name    string
		change  func(in *Input)
		state   v1alpha1.CheckState
		message string
	}{
		{"more pod sets than the config allows", func(in *Input) { in.Config.MaxPodSets = ptr.To[int32](1) }, v1alpha1.CheckRejected, "2 different pod sets that need nodes (first, second)"},
		{"too many pods of one template", func(in *Input) {
			in.Pods[1].Template = in.Pods[0].Template
			in.Unit.Spec.PodSets[0].Count, in.Unit.Spec.PodSets[1].Count = 1<<31-1, 1
		}, v1alpha1.CheckRejected, "2147483648 pods"},
		{"a size that is declared as a sum", func(in *Input) {
			in.Pods[0] = framework.PodSet{Name: "first", Count: 1, Declared: corev1.ResourceList{"cpu": resource.MustParse("100")}}
		}, v1alpha1.CheckRejected, "declared as a sum"},
		{"a pod set that the job no longer has", func(in *Input) { in.Pods = in.Pods[1:] }, v1alpha1.CheckRetry, `no pod set "first" any more`},
		{"pods that cannot be created", func(in *Input) { in.Pods[0].Template.Spec.RuntimeClassName = ptr.To("none") }, v1alpha1.CheckRetry, `RuntimeClass "none"`},
		{"a parameter that is too long", func(in *Input) {
			in.Unit.Annotations = map[string]string{"provreq.kube-queue/x": strings.Repeat("x", 256)}
		}, v1alpha1.CheckRetry, "annotation provreq.kube-queue/x"},
		{"too many parameters", func(in *Input) { in.Unit.Annotations = many }, v1alpha1.CheckRetry, "101 parameters"},
	} {
		in := inputOf(t, podSet{"first", 1, cpuPod}, podSet{"second", 2, gpuPod})
		test.change(&in)
		_, refused := PlanOf(in)
		if refused == nil || refused.State != test.state || !strings.Contains(refused.Message, test.message) {
			t.Errorf("%s: the answer is %+v", test.name, refused)
		}
	}
}

func TestMorePodSetsThanTheAPIAllowsAreRejected(t *testing.T) {
	var sets []podSet
	for i := range 33 {
		sets = append(sets, podSet{"s" + strconv.Itoa(i), 1, `{spec: {nodeSelector: {a: "` + strconv.Itoa(i) + `"}, containers: [{name: main}]}}`})
	}
	if _, refused := PlanOf(inputOf(t, sets...)); refused == nil || refused.State != v1alpha1.CheckRejected {
		t.Errorf("the answer to 33 pod sets is %+v", refused)
	}
	if plan := planOf(t, inputOf(t, sets[:32]...)); len(plan.Request.Spec.PodSets) != 32 {
		t.Errorf("32 pod sets become %d", len(plan.Request.Spec.PodSets))
	}
}

func TestNodesAreRequestedForThePodsThatWereAdmitted(t *testing.T) {
	in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod})
	in.Unit.Status.AdmittedPodSets = []v1alpha1.AdmittedPodSet{{Name: "worker", Count: 3}}
	request := planOf(t, in).Request
	if sets := request.Spec.PodSets; len(sets) != 2 || sets[0].Count != 1 || sets[1].Count != 3 {
		t.Errorf("nodes are requested for %+v", sets)
	}
	entry := v1alpha1.AdmissionCheckState{Name: in.Check, PodSetUpdates: Requested(in, request).Updates}
	if answer := Changed(in, entry, request); answer != nil {
		t.Errorf("the request is not for the pods that were admitted: %s", answer.Message)
	}
	in.Unit.Status.AdmittedPodSets[0].Count = 2
	if Changed(in, entry, request) == nil {
		t.Error("the request is for pods that were not admitted")
	}
}

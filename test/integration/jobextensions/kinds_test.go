package jobextensions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
)

const rayClusterSpec = `{headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 1}}}]}}}}`

var (
	rayJob = kind{"RayJob", schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}, []string{"spec", "suspend"},
		`{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {suspend: true, submissionMode: HTTPMode, rayClusterSpec: ` + rayClusterSpec + `}}`}
	oldRayJob = kind{"RayJob", schema.GroupVersionResource{Group: "ray.io", Version: "v1alpha1", Resource: "rayjobs"}, []string{"spec", "suspend"},
		`{apiVersion: ray.io/v1alpha1, kind: RayJob, metadata: {name: a}, spec: {suspend: true, rayClusterSpec: ` + rayClusterSpec + `}}`}
	workflow = kind{"Workflow", schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}, []string{"spec", "suspend"},
		`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: a}, spec: {suspend: true, entrypoint: main, templates: [
			{name: kube-queue-suspend, suspend: {}}, {name: main, container: {image: busybox, command: [sleep]}}]}}`}
	mpiReplicas = `{Launcher: {template: {spec: {containers: [{name: mpi, image: main, resources: {requests: {cpu: 1}}}]}}}}`
	mpiV1       = kind{"MPIJob", schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"}, []string{"spec", "runPolicy", "suspend"},
		`{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: a}, spec: {mpiReplicaSpecs: ` + mpiReplicas + `}}`}
	mpiV2beta1 = kind{"MPIJob", schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}, []string{"spec", "runPolicy", "suspend"},
		`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a}, spec: {mpiReplicaSpecs: ` + mpiReplicas + `}}`}
)

// kindsCluster has no operators. The tests write the status of jobs.
func kindsCluster(t *testing.T, operators ...string) *clustertest.Cluster {
	t.Helper()
	t.Parallel()
	return clustertest.ForTest(t, clustertest.Options{Nodes: 1, CRDs: operators})
}

func startFor(t *testing.T, c *clustertest.Cluster, enabled string) (stop func()) {
	t.Helper()
	stop, err := startExtensions(c, enabled)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// hasWarning waits for an inactive unit with this message, and for the Warning event.
func (s *story) hasWarning(part string) {
	s.Helper()
	s.hasUnit("invalid because of "+part, func(u *v1alpha1.QueueUnit) bool {
		return !*u.Spec.Active && u.Status.Reason == "InvalidRequest" && strings.Contains(u.Status.Message, part)
	})
	s.event(corev1.EventTypeWarning, "Queued", part)
}

// setStatus writes the status of the job like its operator.
func (s *story) setStatus(status string) {
	s.Helper()
	job := s.get()
	var value map[string]any
	s.must(yaml.Unmarshal([]byte(status), &value))
	s.must(unstructured.SetNestedMap(job.Object, value, "status"))
	_, err := s.jobs.UpdateStatus(s.Context(), job, metav1.UpdateOptions{})
	s.must(err)
}

// field reads a field of the job as text.
func (s *story) field(path ...string) string {
	s.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(s.get().Object, path...)
	if !found || err != nil {
		return ""
	}
	return fmt.Sprint(value)
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	defer startFor(t, c, "workflow")()

	t.Run("one that names its size is charged that", func(t *testing.T) {
		s := begin(t, c, workflow, `{metadata: {annotations: {kube-queue/min-resources: "{cpu: 5, memory: 5G}"}}}`)
		s.hasUnit("of 5 cpu and 5G", func(u *v1alpha1.QueueUnit) bool {
			return u.Spec.Resource.Cpu().Value() == 5 && u.Spec.Resource.Memory().Value() == 5_000_000_000 && *u.Spec.Active
		})
		s.admit()
		s.becomesSuspended(false)
	})
	t.Run("one without a size is charged nothing, and its owner warned once", func(t *testing.T) {
		s := begin(t, c, workflow)
		s.hasUnit("of no size", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.Resource) == 0 && *u.Spec.Active })
		s.event(corev1.EventTypeWarning, "UnknownSize", "kube-queue/min-resources")
		s.admit()
		s.becomesSuspended(false)
		warnings := 0
		for _, event := range s.events() {
			if event.Type == corev1.EventTypeWarning {
				warnings++
			}
		}
		if warnings != 1 {
			t.Errorf("%d warnings, want one: %v", warnings, s.events())
		}
	})
	t.Run("one without a size in a managed namespace is not admitted", func(t *testing.T) {
		s := begin(t, c, workflow, `{metadata: {annotations: {kube-queue/managed: "true"}}}`)
		s.hasWarning("kube-queue/min-resources")
		s.change(`{metadata: {annotations: {kube-queue/min-resources: "{cpu: 1}"}}}`)
		s.hasUnit("active once it has a size", func(u *v1alpha1.QueueUnit) bool { return *u.Spec.Active && u.Spec.Resource.Cpu().Value() == 1 })
	})
	t.Run("one whose size cannot be read is not admitted", func(t *testing.T) {
		begin(t, c, workflow, `{metadata: {annotations: {kube-queue/min-resources: "cpu: many"}}}`).hasWarning("many")
	})
	t.Run("a suspended one without the template is left alone", func(t *testing.T) {
		s := begin(t, c, workflow, `{spec: {templates: [{name: main}]}}`)
		begin(t, c, workflow).enqueued() // its unit shows that all earlier jobs were seen
		if s.unit() != nil {
			t.Error("it has a unit")
		}
	})
	t.Run("malformed ones exist beside good ones", func(t *testing.T) {
		bad := []*story{
			begin(t, c, workflow, annotated, `{spec: {templates: {}}}`),
			begin(t, c, workflow, annotated, `{spec: {entrypoint: [1], templates: [5]}}`),
			begin(t, c, workflow, annotated, `{spec: {podPriorityClassName: 7}}`),
			begin(t, c, workflow, annotated, `{status: {phase: [Running]}}`),
		}
		begin(t, c, workflow).enqueued()
		for _, s := range bad {
			s.enqueued()
		}
		bad[0].hasWarning("spec.templates")
		bad[2].hasWarning("spec.podPriorityClassName")
	})
}

func TestRayJobsThatUpstreamWouldRefuse(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	defer startFor(t, c, "rayjob")()

	t.Run("one that sets no shutdownAfterJobFinishes gets it while it is held", func(t *testing.T) {
		s := begin(t, c, rayJob)
		s.enqueued()
		if got := s.field("spec", "shutdownAfterJobFinishes"); got != "true" {
			t.Errorf("shutdownAfterJobFinishes is %q while it is held", got)
		}
		s.admit()
		s.becomesSuspended(false)
		if got := s.field("spec", "shutdownAfterJobFinishes"); got != "false" {
			t.Errorf("shutdownAfterJobFinishes is %q after the release", got)
		}
		s.evict("Preempted")
		s.becomesSuspended(true)
		if got := s.field("spec", "shutdownAfterJobFinishes"); got != "true" {
			t.Errorf("shutdownAfterJobFinishes is %q after the eviction", got)
		}
	})
	for name, part := range map[string]string{
		"clusterSelector": `{spec: {suspend: false, clusterSelector: {ray.io/cluster: mine}}}`,
		"deletionRules": `{spec: {suspend: false, deletionStrategy: {deletionRules: [
			{policy: DeleteCluster, condition: {jobStatus: SUCCEEDED, ttlSeconds: 10}}]}}}`,
	} {
		t.Run("one with "+name+" is left as it is and says why", func(t *testing.T) {
			s := begin(t, c, rayJob, annotated, part)
			s.hasWarning(name)
			if s.suspended() || s.field("spec", "shutdownAfterJobFinishes") == "true" {
				t.Errorf("it was changed: %v", s.get().Object["spec"])
			}
		})
	}
}

// A RayJob gives back the workers that its autoscaler has removed from its cluster. After its end it
// keeps its quota while the cluster exists.
func TestARayJobFollowsItsClusterAndEndsWithIt(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	defer startFor(t, c, "rayjob")()
	s := begin(t, c, rayJob, `{spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: w, replicas: 3, minReplicas: 1, maxReplicas: 5, rayStartParams: {},
		template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 1}}}]}}}]}}}`)
	s.hasUnit("of 4 cpu", s.requests("4"))
	s.admit()
	s.becomesSuspended(false)
	client, err := dynamic.NewForConfig(c.Config())
	s.must(err)
	clusters := client.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}).Namespace(s.ns)
	var manifest map[string]any
	s.must(yaml.Unmarshal(fmt.Appendf(nil, `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a-x, ownerReferences: [
		{apiVersion: ray.io/v1, kind: RayJob, name: a, uid: %s, controller: true}]}}`, s.job), &manifest))
	manifest["spec"] = s.manifest["spec"].(map[string]any)["rayClusterSpec"]
	_, err = clusters.Create(t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	s.must(err)
	scale := func(replicas int) {
		t.Helper()
		patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": %d}]`, replicas)
		_, err := clusters.Patch(t.Context(), "a-x", types.JSONPatchType, patch, metav1.PatchOptions{})
		s.must(err)
	}
	scale(1)
	s.hasUnit("of 2 cpu", s.requests("2"))
	scale(5)
	s.setStatus(`{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`)
	s.hasUnit("that says what remains", func(u *v1alpha1.QueueUnit) bool {
		return u.Status.Phase == v1alpha1.PhaseRunning && u.Status.Reason == "PodsRemain" && strings.Contains(u.Status.Message, "a-x")
	})
	if unit := s.unit(); !s.requests("2")(unit) {
		t.Errorf("the unit requests %v after the cluster has grown again", unit.Spec.Resource)
	}
	s.must(clusters.Delete(t.Context(), "a-x", metav1.DeleteOptions{}))
	s.inPhase(v1alpha1.PhaseSucceeded)
}

// A patch in an older version would remove fields that only the newer version has.
func TestRayJobsAreReadInTheBestVersionServed(t *testing.T) {
	c := kindsCluster(t, "kuberay")
	serveV1 := func(crd string, served bool) {
		t.Helper()
		out, err := c.Kubectl(t.Context(), "get", "crd", crd, "-o", "jsonpath={.spec.versions[*].name}")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.Index(strings.Fields(out), "v1")
		if _, err := c.Kubectl(t.Context(), "patch", "crd", crd, "--type=json", "-p",
			fmt.Sprintf(`[{"op": "replace", "path": "/spec/versions/%d/served", "value": %t}]`, i, served)); err != nil {
			t.Fatal(err)
		}
	}
	serveV1("rayjobs.ray.io", false)
	serveV1("rayclusters.ray.io", false)
	defer startFor(t, c, "rayjobv1alpha1")()

	old := begin(t, c, oldRayJob, `{spec: {entrypoint: python main.py, runtimeEnvYAML: "a: b"}}`)
	if unit := old.enqueued(); unit.Spec.ConsumerRef.APIVersion != "ray.io/v1alpha1" {
		t.Errorf("the unit names version %s", unit.Spec.ConsumerRef.APIVersion)
	}
	before := old.get().Object["spec"].(map[string]any)
	old.admit()
	old.becomesSuspended(false)
	after := old.get().Object["spec"].(map[string]any)
	for field := range before {
		if _, kept := after[field]; !kept {
			t.Errorf("the release has lost spec.%s", field)
		}
	}

	// The API server ends the watch of RayJobs while v1 is not established.
	serveV1("rayjobs.ray.io", true)
	between := begin(t, c, oldRayJob, `{spec: {entrypoint: python main.py}}`)
	between.hasUnit("of version v1alpha1", func(u *v1alpha1.QueueUnit) bool { return u.Spec.ConsumerRef.APIVersion == "ray.io/v1alpha1" })
	serveV1("rayclusters.ray.io", true)
	now := begin(t, c, rayJob, `{spec: {backoffLimit: 3}}`)
	now.hasUnit("without the submitter that v1alpha1 would have", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.PodSets) == 1 })
	next := begin(t, c, rayJob)
	next.hasUnit("of version v1", func(u *v1alpha1.QueueUnit) bool { return u.Spec.ConsumerRef.APIVersion == "ray.io/v1" })
	now.admit()
	now.becomesSuspended(false)
	if got := now.field("spec", "submissionMode") + now.field("spec", "backoffLimit"); got != "HTTPMode3" {
		t.Errorf("the release through an older version has lost fields: %q is left", got)
	}
	if unit := old.unit(); unit == nil || unit.Status.Phase != v1alpha1.PhaseDequeued {
		t.Errorf("the unit of before is %v", unit)
	}
}

// The two versions of MPIJob are two kinds with the same name. A cluster has one at a time.
func TestBothVersionsOfMPIJob(t *testing.T) {
	c := kindsCluster(t, "mpi-operator")
	defer startFor(t, c, "mpiv1,mpiv2beta1")()
	new := begin(t, c, mpiV2beta1, annotated)
	new.hasUnit("of v2beta1", func(u *v1alpha1.QueueUnit) bool { return u.Spec.ConsumerRef.APIVersion == "kubeflow.org/v2beta1" })
	new.admit()
	new.becomesSuspended(false)

	if _, err := c.Kubectl(t.Context(), "delete", "crd", "mpijobs.kubeflow.org"); err != nil {
		t.Fatal(err)
	}
	if err := c.InstallCRDs(t.Context(), "training-operator"); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := begin(t, c, mpiV1, annotated)
	old.hasUnit("of v1", func(u *v1alpha1.QueueUnit) bool { return u.Spec.ConsumerRef.APIVersion == "kubeflow.org/v1" })
	old.admit()
	old.becomesSuspended(false)
	old.stays("its unit is left alone by the other version", func() string {
		if old.unit() == nil {
			return "it is gone"
		}
		return ""
	})
}

// Jobs of a disabled kind are not changed. After the kind is enabled again, they continue.
func TestAKindIsDisabledAndEnabledAgain(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	stop := startFor(t, c, "job")
	waits, goesOn := begin(t, c, batchJob, annotated), begin(t, c, batchJob, annotated)
	unit := waits.enqueued()
	goesOn.enqueued()
	stop()

	stop = startFor(t, c, "jobset")
	goesOn.admit()
	unseen := begin(t, c, batchJob, annotated)
	waits.stays("a job of a kind that is off is left as it is", func() string {
		switch {
		case !waits.suspended() || !goesOn.suspended() || !unseen.suspended():
			return "one is not suspended"
		case waits.unit() == nil || unseen.unit() != nil:
			return "a unit was made or deleted"
		}
		return ""
	})
	stop()

	defer startFor(t, c, "job,jobset")()
	unseen.enqueued()
	goesOn.becomesSuspended(false)
	if again := waits.enqueued(); again.UID != unit.UID || !again.Spec.SubmissionTime.Equal(unit.Spec.SubmissionTime) {
		t.Error("the job has lost its place")
	}
}

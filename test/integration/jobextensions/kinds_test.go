package jobextensions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

const rayClusterSpec = `{headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 1}}}]}}}}`

var (
	rayJob = kind{"RayJob", schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}, []string{"spec", "suspend"},
		`{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {suspend: true, submissionMode: HTTPMode, rayClusterSpec: ` + rayClusterSpec + `}}`}
	oldRayJob = kind{"RayJob", schema.GroupVersionResource{Group: "ray.io", Version: "v1alpha1", Resource: "rayjobs"}, []string{"spec", "suspend"},
		`{apiVersion: ray.io/v1alpha1, kind: RayJob, metadata: {name: a}, spec: {suspend: true, rayClusterSpec: ` + rayClusterSpec + `}}`}
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

// setStatus writes the status of the job, as its operator does.
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

// A patch in an older version would remove fields that only the newer version has.
func TestRayJobsAreReadInTheBestVersionServed(t *testing.T) {
	c := kindsCluster(t, "kuberay")
	serveV1 := func(crd string, served bool) {
		t.Helper()
		out, err := c.Kubectl(t.Context(), "get", "crd", crd, "-o", "jsonpath={.spec.versions[*].name}")
		harness.Must(t, err)
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
	harness.Must(t, c.InstallCRDs(t.Context(), "training-operator"))
	harness.Must(t, c.Install(t.Context()))
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

// Jobs of a disabled kind are not changed. When the kind is enabled again, they continue.
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

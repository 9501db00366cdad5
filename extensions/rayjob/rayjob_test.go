package rayjob

import (
	"os"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/test/require"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestClustersOfEndedJobsAreShutDownIfTheAdministratorWantsThat(t *testing.T) {
	cluster := &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "head"}}}}}}
	noted := map[string]string{wellknown.ShutdownAnnotation: "false"}
	for _, test := range []struct {
		name      string
		shutsDown bool
		noted     bool
		strategy  *rayv1.DeletionStrategy
		ttl       int32
		shut      any // what the release sets; nil for nothing
		fault     bool
	}{
		{name: "the owner has not set it", noted: true, shut: false},
		{name: "it is kept", shutsDown: true, noted: true},
		{name: "the owner has set it", shutsDown: true},
		{name: "the owner has a strategy", shutsDown: true, noted: true, strategy: &rayv1.DeletionStrategy{}, shut: false},
		{name: "it has a time to live", noted: true, ttl: 60, shut: false, fault: true},
		{name: "it has a time to live, and is shut down", shutsDown: true, noted: true, ttl: 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := New()
			if test.shutsDown {
				a = ShuttingDown()
			}
			job := &job{Spec: spec{RayJobSpec: rayv1.RayJobSpec{Suspend: true, ShutdownAfterJobFinishes: true, DeletionStrategy: test.strategy,
				TTLSecondsAfterFinished: test.ttl, SubmissionMode: rayv1.HTTPMode, RayClusterSpec: cluster}}}
			if test.noted {
				job.Annotations = noted
			}
			patch := a.SuspendPatch(job, false)
			if got := patch["spec"].(map[string]any)["shutdownAfterJobFinishes"]; got != test.shut {
				t.Errorf("the release sets it to %v, want %v", got, test.shut)
			}
			if _, removed := patch["metadata"]; removed != test.noted {
				t.Errorf("the annotation is removed: %v", removed)
			}
			if _, err := a.Pods(job); (err != nil) != test.fault {
				t.Errorf("the fault is %v", err)
			}
		})
	}
}

func TestWhyTheClusterOfAnEndedJobIsKept(t *testing.T) {
	keeper := New().(framework.RemainsKeeper)
	of := func(policy rayv1.DeletionPolicyType) *rayv1.DeletionPolicy {
		return &rayv1.DeletionPolicy{Policy: &policy}
	}
	strategy := spec{RayJobSpec: rayv1.RayJobSpec{ShutdownAfterJobFinishes: true,
		DeletionStrategy: &rayv1.DeletionStrategy{OnSuccess: of(rayv1.DeleteCluster), OnFailure: of(rayv1.DeleteWorkers)}}}
	for name, test := range map[string]struct {
		spec   spec
		status rayv1.JobStatus
		want   bool
	}{
		"nothing deletes it":                 {spec{}, rayv1.JobStatusSucceeded, true},
		"the operator deletes it":            {spec{RayJobSpec: rayv1.RayJobSpec{ShutdownAfterJobFinishes: true, TTLSecondsAfterFinished: 60}}, rayv1.JobStatusFailed, false},
		"its owner has a strategy":           {strategy, rayv1.JobStatusSucceeded, false},
		"the strategy keeps its head":        {strategy, rayv1.JobStatusFailed, true},
		"its owner has a policy":             {spec{DeletionPolicy: rayv1.DeleteCluster}, rayv1.JobStatusFailed, false},
		"its owner's policy keeps its head":  {spec{DeletionPolicy: rayv1.DeleteWorkers}, rayv1.JobStatusFailed, true},
		"its owner's strategy has no policy": {spec{RayJobSpec: rayv1.RayJobSpec{DeletionStrategy: &rayv1.DeletionStrategy{}}}, rayv1.JobStatusFailed, false},
	} {
		if got := keeper.Keeps(&job{Spec: test.spec, Status: rayv1.RayJobStatus{JobStatus: test.status}}); (got != "") != test.want {
			t.Errorf("%s: it is kept because %q", name, got)
		}
	}
}

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestTheAcceptanceManifestRequestsWhatItsPodsWill(t *testing.T) {
	manifest, err := os.ReadFile("../../test/acceptance/rayjob.yaml")
	require.NoError(t, err)
	data, err := yaml.YAMLToJSON(manifest)
	require.NoError(t, err)
	seen, err := decision.Observe(New(), data, nil, adaptertest.Usual())
	if err != nil || seen.Invalid != "" || !seen.Marked {
		t.Fatalf("error %v, invalid %q, marked %v", err, seen.Invalid, seen.Marked)
	}
	want := corev1.ResourceList{"cpu": resource.MustParse("900m"), "memory": resource.MustParse("456Mi")}
	if !equality.Semantic.DeepEqual(seen.Spec.Resource, want) {
		t.Errorf("the requests are %v, want %v", seen.Spec.Resource, want)
	}
}

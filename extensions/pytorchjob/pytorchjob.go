// Package pytorchjob is the adapter of kubeflow.org/v1 PyTorchJob.
package pytorchjob

import (
	"slices"
	"strings"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

type adapter struct {
	kubeflow.Base[*training.PyTorchJob]
}

// New returns the adapter.
func New() framework.Adapter {
	kind := kubeflow.TrainingKind("pytorchjob", training.PyTorchJobKind, training.PyTorchJobPlural)
	kind.Elastic = &framework.Elastic{Needs: "`spec.elasticPolicy`"}
	kind.Doc.Partial = "the workers that start form the group, if `elasticPolicy.minReplicas` permits it"
	kind.Fence.Frozen = [][]string{{"spec", "elasticPolicy"}}
	return adapter{kubeflow.Base[*training.PyTorchJob]{
		Named:   kind,
		Field:   "pytorchReplicaSpecs",
		Scaled:  training.PyTorchJobReplicaTypeWorker,
		Elastic: "job.spec.?elasticPolicy.?maxReplicas.hasValue()",
		Most:    "job.spec.?elasticPolicy.?maxReplicas.orValue(0)",
		Needs:   needs,
		Roles: []kubeflow.Role{
			{Name: training.PyTorchJobReplicaTypeMaster, Unset: 1},
			{Name: training.PyTorchJobReplicaTypeWorker, Unset: 1},
		},
		AnyCase: true,
		Empty:   func() *training.PyTorchJob { return &training.PyTorchJob{} },
		Parts: func(job *training.PyTorchJob) kubeflow.Parts {
			return kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.PyTorchReplicaSpecs, &job.Status)
		},
		Inject: inject,
	}}
}

// Grown implements framework.Autoscaled: the operator creates a HorizontalPodAutoscaler for elasticPolicy.metrics.
func (a adapter) Grown(object framework.Object, admitted map[string]int32) []framework.Growth {
	job := framework.As[training.PyTorchJob](object)
	if job.Spec.ElasticPolicy == nil {
		return nil
	}
	elastic := a.Kind().Elastic
	was, is := admitted[elastic.PodSet]
	for role, spec := range job.Spec.PyTorchReplicaSpecs {
		if !is || spec == nil || !strings.EqualFold(string(role), elastic.Path[2]) || ptr.Deref(spec.Replicas, 0) <= was {
			continue
		}
		return []framework.Growth{{
			PodSet: elastic.PodSet, Field: "/spec/" + elastic.Path[1] + "/" + string(role) + "/replicas", Now: *spec.Replicas, Admitted: was,
		}}
	}
	return nil
}

// needs returns the minimum number of workers of an elastic job. The operator passes minReplicas and maxReplicas to the
// workers as the range of nodes; if only one of them is set, it is both. If none is set, the operator uses the number
// of replicas. A gang scheduler starts no pod of a job with fewer pods than minAvailable.
func needs(job *training.PyTorchJob) (least int32, why string) {
	policy := job.Spec.ElasticPolicy
	switch {
	case policy == nil:
		return 0, "a PyTorchJob without spec.elasticPolicy needs all its workers; set it"
	case policy.MinReplicas != nil:
		least = *policy.MinReplicas
	case policy.MaxReplicas != nil:
		least = *policy.MaxReplicas
	}
	if gang := job.Spec.RunPolicy.SchedulingPolicy; gang != nil && gang.MinAvailable != nil {
		least = int32(max(int64(least), int64(*gang.MinAvailable)-others(job)))
	}
	return least, ""
}

// others returns how many pods of the job are not workers.
func others(job *training.PyTorchJob) (n int64) {
	for role, spec := range job.Spec.PyTorchReplicaSpecs {
		if spec != nil && !strings.EqualFold(string(role), string(training.PyTorchJobReplicaTypeWorker)) {
			n += int64(max(ptr.Deref(spec.Replicas, 1), 0))
		}
	}
	return n
}

// inject adds the operator's init container, which waits for the master. A pod requests
// the maximum of init containers and containers, so this affects only tiny workers.
func inject(job *training.PyTorchJob, role training.ReplicaType, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if role != training.PyTorchJobReplicaTypeWorker || !hasMaster(job) {
		return template
	}
	injected := *template
	injected.Spec.InitContainers = append(slices.Clone(template.Spec.InitContainers), corev1.Container{
		Name: "init-pytorch",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("10Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("20Mi")},
		},
	})
	return &injected
}

func hasMaster(job *training.PyTorchJob) bool {
	for role, spec := range job.Spec.PyTorchReplicaSpecs {
		if spec != nil && strings.EqualFold(string(role), string(training.PyTorchJobReplicaTypeMaster)) {
			return true
		}
	}
	return false
}

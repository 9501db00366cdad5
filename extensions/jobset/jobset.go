// Package jobset is the adapter of jobset.x-k8s.io/v1alpha2 JobSet: a set of Jobs that
// run together, in groups of equal Jobs.
//
// A group of Jobs is one pod set, with all pods of all its Jobs. Groups may start one after another, by startupPolicy
// or dependsOn, but a JobSet holds its quota until its end, so it requests the sum of all groups. The controller adds
// no container and no request to the pods, but some get an affinity: see exclusive.go. Jobs of a group that have
// succeeded do not run again, so their pods are no longer requested.
//
// The controller recreates the Jobs when one fails and may be retried: a JobSet has ended
// only when the controller reports a final state.
package jobset

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
)

type adapter struct{}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

func (adapter) Kind() framework.Kind {
	return framework.Kind{
		Name:             "jobset",
		GroupVersionKind: jobset.GroupVersion.WithKind("JobSet"),
		Resource:         "jobsets",
		SuspendPath:      []string{"spec", "suspend"},
		MarkedBySuspend:  true,
		ManagedBy:        jobset.JobSetControllerName,
		Parts:            []schema.GroupKind{job.New().Kind().GroupKind()},
		Operators:        []string{"system:serviceaccount:jobset-system:jobset-controller-manager", "system:serviceaccount:jobset-system:jobset-controller"},
		PodLabel:         framework.PodLabel{Key: jobset.JobSetUIDKey, IsUID: true},
		Fence: framework.Fence{
			// The controller creates the objects that these describe before it looks at suspend, and users can add
			// these fields.
			Frozen: [][]string{{"spec", "network"}, {"spec", "volumeClaimPolicies"}, {"spec", "coordinator"}},
			Groups: []framework.Groups{{
				Path: []string{"spec", "replicatedJobs"}, Key: "name", Sizes: []string{"replicas"}, Size: "group.?replicas.orValue(1)",
			}},
			Ended: framework.Ended{Conditions: []string{string(jobset.JobSetCompleted), string(jobset.JobSetFailed)}},
		},
		Places: []framework.Place{{
			Path: []string{"spec", "replicatedJobs"}, Key: "name", Below: []string{"template", "spec", "template", "metadata", "annotations"},
		}},
		Doc: framework.Doc{
			Shows:  "SUSPENDED `true`",
			Counts: "all pods of all its Jobs, without those of Jobs that have succeeded",
			Ready:  "each of its Jobs has all its pods ready or succeeded; Jobs that wait for others (`dependsOn`) do not count until then",
			Frees:  "condition Completed or Failed, or `terminalState`",
			Stops:  "condition Suspended, and all its Jobs are suspended or finished, none is active",
			Gang:   "the webhook of JobSet forbids changing `schedulingGroup` of the pod templates of an existing JobSet",
		},
	}
}

func (adapter) New() framework.Object { return &jobset.JobSet{} }

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	set := framework.As[jobset.JobSet](object)
	var pods framework.Pods
	var total int64
	named := map[string]bool{}
	for i := range set.Spec.ReplicatedJobs {
		group := &set.Spec.ReplicatedJobs[i]
		count, err := count(group)
		switch {
		case err != nil:
		case group.Name == "":
			err = errors.New("name is empty; set a name")
		case named[group.Name]:
			err = errors.New("the name is used twice; give each replicated job its own name")
		}
		if err != nil {
			return framework.Pods{}, fmt.Errorf("spec.replicatedJobs[%d] (%q): %w", i, group.Name, err)
		}
		total += int64(count)
		named[group.Name] = true
		ended := ended(set, group)
		pods.Sets = append(pods.Sets, framework.PodSet{
			Name: group.Name, Count: count - ended, Ended: ended, Template: &group.Template.Spec.Template, CrossesNamespaces: exclusive(set, group),
		})
	}
	if total > math.MaxInt32 {
		return framework.Pods{}, fmt.Errorf("spec.replicatedJobs has %d pods in total, but at most %d are allowed; reduce the replicas", total, math.MaxInt32)
	}
	return pods, nil
}

// count returns how many pods of a group run at the same time. It checks both factors,
// because the product of two negative numbers is positive.
func count(group *jobset.ReplicatedJob) (int32, error) {
	replicas, each := int64(group.Replicas), int64(job.PodsAtOnce(&group.Template.Spec, 0))
	switch {
	case replicas < 0:
		return 0, fmt.Errorf("replicas must be 0 or more, not %d", replicas)
	case each < 0:
		return 0, fmt.Errorf("template.spec.parallelism must be 0 or more, not %d", each)
	case replicas*each > math.MaxInt32:
		return 0, fmt.Errorf("%d replicas of %d pods each exceed the maximum of %d pods; reduce them", replicas, each, math.MaxInt32)
	}
	return int32(replicas * each), nil
}

// ended returns how many pods of a group do not run again: the pods of its succeeded Jobs, which a JobSet keeps when
// it is suspended. The count restarts at 0 if the JobSet recreates all its Jobs.
func ended(set *jobset.JobSet, group *jobset.ReplicatedJob) int32 {
	status := find(set.Status.ReplicatedJobsStatus, group.Name)
	if status == nil {
		return 0
	}
	return min(max(status.Succeeded, 0), group.Replicas) * job.PodsAtOnce(&group.Template.Spec, 0)
}

func (adapter) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	set := framework.As[jobset.JobSet](object)
	templates := make([]*corev1.PodTemplateSpec, len(set.Spec.ReplicatedJobs))
	for i := range set.Spec.ReplicatedJobs {
		templates[i] = &set.Spec.ReplicatedJobs[i].Template.Spec.Template
	}
	return templates
}

func (adapter) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}

func (adapter) State(object framework.Object) framework.JobState {
	set := framework.As[jobset.JobSet](object)
	return framework.JobState{
		Suspended: ptr.Deref(set.Spec.Suspend, false),
		ManagedBy: ptr.Deref(set.Spec.ManagedBy, ""),
		Started:   started(&set.Status),
		Running:   running(&set.Status),
		Ready:     ready(set),
		Stopped:   apimeta.IsStatusConditionTrue(set.Status.Conditions, string(jobset.JobSetSuspended)) && idle(set),
		End:       end(&set.Status),
	}
}

package reconciler

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// byJob indexes units by the kind of their job, and by its kind and name; successive jobs can have the same name.
const byJob = "job"

// unitCache holds all units of all kinds.
type unitCache struct {
	cache.SharedIndexInformer
}

func newUnitCache(config *rest.Config, report lenient.Report) (*unitCache, error) {
	client, err := lenient.NewForConfig(config, lenient.Kind{
		GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"), Resource: "queueunits",
		New: func() lenient.Object { return &v1alpha1.QueueUnit{} },
	})
	if err != nil {
		return nil, err
	}
	informer, err := lenient.Informer(client, report, "queueunits", cache.Indexers{byJob: indexJob}, transformUnit)
	if err != nil {
		return nil, err
	}
	return &unitCache{informer}, nil
}

// transformUnit replaces an unreadable unit by its readable part. If it is the unit of a
// job, the rest differs from the desired spec and is corrected.
func transformUnit(obj any) (any, error) {
	if bad, isBad := obj.(*lenient.Unreadable); isBad && bad.Partial != nil {
		obj = bad.Partial
	}
	if unit, isUnit := obj.(*v1alpha1.QueueUnit); isUnit {
		slimUnit(unit)
	}
	return obj, nil
}

// jobOf returns the job of a unit. If a unit names no job in its own namespace, or no UID, a user created it, and it
// is not ours.
func jobOf(unit *v1alpha1.QueueUnit) (schema.GroupKind, types.NamespacedName, bool) {
	ref := unit.Spec.ConsumerRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || ref.UID == "" || ref.Namespace != "" && ref.Namespace != unit.Namespace {
		return schema.GroupKind{}, types.NamespacedName{}, false
	}
	return gv.WithKind(ref.Kind).GroupKind(), types.NamespacedName{Namespace: unit.Namespace, Name: ref.Name}, true
}

func indexJob(obj any) ([]string, error) {
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	if !isUnit {
		return nil, nil
	}
	kind, job, ours := jobOf(unit)
	if !ours {
		return nil, nil
	}
	return []string{kind.String(), jobIndex(kind, job)}, nil
}

func jobIndex(kind schema.GroupKind, job types.NamespacedName) string {
	return kind.String() + "/" + job.String()
}

// of returns the units of all jobs of the kind that have or had the name.
func (c *unitCache) of(kind schema.GroupKind, job types.NamespacedName) []*v1alpha1.QueueUnit {
	return c.indexed(jobIndex(kind, job))
}

// ofKind returns the units of all jobs of the kind.
func (c *unitCache) ofKind(kind schema.GroupKind) []*v1alpha1.QueueUnit {
	return c.indexed(kind.String())
}

func (c *unitCache) indexed(value string) []*v1alpha1.QueueUnit {
	// The only error is an index that does not exist.
	objects, _ := c.GetIndexer().ByIndex(byJob, value)
	units := make([]*v1alpha1.QueueUnit, 0, len(objects))
	for _, object := range objects {
		if unit, isUnit := object.(*v1alpha1.QueueUnit); isUnit {
			units = append(units, unit)
		}
	}
	return units
}

// slimUnit removes unused fields from a unit. A unit that has ended or is not ours keeps only its reference to the job
// and its phase. If it has not ended and has admission checks, it also keeps these and its request.
func slimUnit(unit *v1alpha1.QueueUnit) {
	unit.ManagedFields = nil
	unit.Annotations = lifecycle.Restored(decision.ParametersOf(unit), unit.Annotations[wellknown.ReleasedAnnotation])
	if _, _, ours := jobOf(unit); !ours || unit.Status.Phase.Ended() {
		spec := v1alpha1.QueueUnitSpec{ConsumerRef: unit.Spec.ConsumerRef}
		status := v1alpha1.QueueUnitStatus{Phase: unit.Status.Phase}
		if checks := unit.Status.AdmissionChecks; len(checks) > 0 && !status.Phase.Ended() {
			spec.PodSets, spec.Resource, status.AdmissionChecks = unit.Spec.PodSets, unit.Spec.Resource, checks
			status.AdmittedPodSets = unit.Status.AdmittedPodSets
		}
		unit.Spec, unit.Status = spec, status
	}
}

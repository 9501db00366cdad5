package framework

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

const (
	// byJob finds the units of all jobs, one after the other, that had one name.
	byJob = "job"
	// byKind finds the units of all jobs of a kind.
	byKind = "kind"
)

// unitCache holds all units of all kinds.
type unitCache struct {
	cache.SharedIndexInformer
}

func newUnitCache(config *rest.Config) (*unitCache, error) {
	kind := v1alpha1.SchemeGroupVersion.WithKind("QueueUnit")
	in, err := rawAccess(config, kind, "queueunits")
	if err != nil {
		return nil, err
	}
	informer, err := newInformer(in(metav1.NamespaceAll), rawExample(kind), cache.Indexers{byJob: indexJob, byKind: indexKind}, decodeUnit)
	if err != nil {
		return nil, err
	}
	return &unitCache{informer}, nil
}

// decodeUnit reads each unit on its own: anybody may make one by hand, and its
// schema does not keep out all that cannot be read.
func decodeUnit(obj any) (any, error) {
	text, isRaw := obj.(*raw)
	if !isRaw {
		return obj, nil
	}
	unit := &v1alpha1.QueueUnit{}
	if err := json.Unmarshal(text.data, unit); err != nil {
		return &undecodable{TypeMeta: text.TypeMeta, ObjectMeta: text.ObjectMeta, err: err}, nil
	}
	slimUnit(unit)
	return unit, nil
}

// jobOf tells which job a unit stands for. A unit that names none in its own
// namespace, or none by UID, was made by hand and is not ours.
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
	return []string{jobIndex(kind, job)}, nil
}

func indexKind(obj any) ([]string, error) {
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	if !isUnit {
		return nil, nil
	}
	kind, _, ours := jobOf(unit)
	if !ours {
		return nil, nil
	}
	return []string{kind.String()}, nil
}

func jobIndex(kind schema.GroupKind, job types.NamespacedName) string {
	return kind.String() + "/" + job.String()
}

// of returns the units of all jobs of the kind that have or had the name.
func (c *unitCache) of(kind schema.GroupKind, job types.NamespacedName) []*v1alpha1.QueueUnit {
	return c.indexed(byJob, jobIndex(kind, job))
}

// ofKind returns the units of all jobs of the kind.
func (c *unitCache) ofKind(kind schema.GroupKind) []*v1alpha1.QueueUnit {
	return c.indexed(byKind, kind.String())
}

func (c *unitCache) indexed(index, value string) []*v1alpha1.QueueUnit {
	// The only error is an index that does not exist.
	objects, _ := c.GetIndexer().ByIndex(index, value)
	units := make([]*v1alpha1.QueueUnit, 0, len(objects))
	for _, object := range objects {
		if unit, isUnit := object.(*v1alpha1.QueueUnit); isUnit {
			units = append(units, unit)
		}
	}
	return units
}

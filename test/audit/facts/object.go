package facts

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// meta is the part of an object's metadata that is read.
type meta struct {
	Name                       string            `json:"name"`
	GenerateName               string            `json:"generateName"`
	Namespace                  string            `json:"namespace"`
	UID                        string            `json:"uid"`
	ResourceVersion            string            `json:"resourceVersion"`
	Generation                 int64             `json:"generation"`
	CreationTimestamp          string            `json:"creationTimestamp"`
	DeletionTimestamp          string            `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds"`
	Labels                     map[string]string `json:"labels"`
	Annotations                map[string]string `json:"annotations"`
	OwnerReferences            []Owner           `json:"ownerReferences"`
	Finalizers                 []string          `json:"finalizers"`
}

// Owner is an owner reference.
type Owner struct {
	Kind       string `json:"kind"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// gone reports whether an object that a write returned no longer exists: it was being deleted and
// has no finalizer.
func (m *meta) gone() bool {
	return m.DeletionTimestamp != "" && len(m.Finalizers) == 0 &&
		(m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds == 0)
}

// until returns the end of the grace period of an object that is being deleted, or zero. The
// deletion timestamp already includes the grace period.
func (m *meta) until() time.Time {
	at, err := time.Parse(time.RFC3339, m.DeletionTimestamp)
	if err != nil || m.DeletionGracePeriodSeconds == nil {
		return time.Time{}
	}
	return at.Add(time.Duration(*m.DeletionGracePeriodSeconds) * time.Second)
}

func (m *meta) controller() Owner {
	i := slices.IndexFunc(m.OwnerReferences, func(o Owner) bool { return o.Controller })
	if i < 0 {
		return Owner{}
	}
	return m.OwnerReferences[i]
}

// object is a decoded job. Users may write anything into it.
type object = map[string]any

// at returns the value at a path whose parts are joined by dots; zero if there is none of this type.
func at[T any](o object, path string) (value T) {
	found, _, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	value, _ = found.(T)
	return value
}

// objects returns the objects in the list at a path.
func objects(o object, path string) (list []object) {
	for _, item := range at[[]any](o, path) {
		if fields, ok := item.(object); ok {
			list = append(list, fields)
		}
	}
	return list
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// trueConditions returns the types of the conditions of a job that are true.
func trueConditions(o object) (types []string) {
	for _, c := range objects(o, "status.conditions") {
		if at[string](c, "status") == "True" {
			types = append(types, at[string](c, "type"))
		}
	}
	return types
}

package v1alpha1

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Nothing stores a review, keeps it in a cache or changes it, so copies of reviews need not be fast.

// DeepCopyObject implements runtime.Object.
func (r *QueueUnitReview) DeepCopyObject() runtime.Object { return copyOf(r) }

// DeepCopyObject implements runtime.Object.
func (r *QueueReview) DeepCopyObject() runtime.Object { return copyOf(r) }

// DeepCopyObject implements runtime.Object.
func (r *QuotaReview) DeepCopyObject() runtime.Object { return copyOf(r) }

// copyOf encodes and decodes a review, which cannot fail for these types.
func copyOf[T any](review *T) *T {
	data, err := json.Marshal(review)
	utilruntime.Must(err)
	result := new(T)
	utilruntime.Must(json.Unmarshal(data, result))
	return result
}

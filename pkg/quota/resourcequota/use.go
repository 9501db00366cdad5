package resourcequota

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Class of a pod is what the scopes of ResourceQuotas tell apart.
type Class struct {
	// BestEffort, Terminating and CrossNamespacePodAffinity as the scopes of these
	// names have it.
	BestEffort, Terminating, CrossNamespacePodAffinity bool
	// PriorityClass by name; empty for none.
	PriorityClass string
}

// ClassOf pods that match the scopes, and have the PriorityClass.
func ClassOf(scopes []corev1.ResourceQuotaScope, priorityClass string) Class {
	return Class{
		BestEffort:                slices.Contains(scopes, corev1.ResourceQuotaScopeBestEffort),
		Terminating:               slices.Contains(scopes, corev1.ResourceQuotaScopeTerminating),
		CrossNamespacePodAffinity: slices.Contains(scopes, corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		PriorityClass:             priorityClass,
	}
}

// Pods are a number of equal pods.
type Pods struct {
	Class Class
	Count int64
	// Ended pods use nothing any more, and are still there.
	Ended bool
	// Requests and Limits of one pod.
	Requests, Limits corev1.ResourceList
	// Name of the pods, and Unset, by key of a quota, the containers that say nothing
	// of it; for those that are still to be created.
	Name  string
	Unset map[corev1.ResourceName]string
}

// Keys of quotas that count pods: those that use anything, and all that there are.
const (
	keyPods      = "pods"
	keyCountPods = "count/pods"
)

// dimension is one thing that pods of one class use. Its name, which has an ID like a
// resource's, is the key of quotas that weigh it and, where it is not the zero one,
// the class.
type dimension struct {
	key   string
	class Class
	// unset, for what containers say nothing of, names pods and containers.
	unset string
}

func (d dimension) name() string {
	name := d.key
	if d.unset != "" {
		name += " of " + d.unset
	}
	if d.class == (Class{}) {
		return name
	}
	return fmt.Sprintf("%s (%+v)", name, d.class)
}

func (b *Backend) id(d dimension) resources.ID {
	id := b.names.ID(d.name())
	b.dimensions[id] = d
	return id
}

// Use is what all the pods use. The error says what cannot be counted; it counts as
// the most that can.
func (b *Backend) Use(all ...Pods) (resources.Vector, error) {
	use := usage{backend: b, amounts: map[resources.ID]int64{}}
	for _, pods := range all {
		use.add(pods)
	}
	vector := make(resources.Vector, 0, len(use.amounts))
	for _, id := range slices.Sorted(maps.Keys(use.amounts)) {
		vector = append(vector, resources.Amount{ID: id, Value: use.amounts[id]})
	}
	return vector, errors.Join(use.faults...)
}

// usage is summed up.
type usage struct {
	backend *Backend
	amounts map[resources.ID]int64
	faults  []error
}

func (u *usage) add(pods Pods) {
	u.count(dimension{key: keyCountPods, class: pods.Class}, 1, pods.Count)
	if pods.Ended {
		return
	}
	u.count(dimension{key: keyPods, class: pods.Class}, 1, pods.Count)
	u.list(requestsPrefix, pods.Requests, pods)
	u.list(limitsPrefix, pods.Limits, pods)
	for _, key := range slices.Sorted(maps.Keys(pods.Unset)) {
		unset := fmt.Sprintf("%s (container %s)", pods.Name, pods.Unset[key])
		u.count(dimension{key: string(key), class: pods.Class, unset: unset}, 1, 1)
	}
}

func (u *usage) list(prefix string, list corev1.ResourceList, pods Pods) {
	for _, resource := range slices.Sorted(maps.Keys(list)) {
		key, weighed := keyOf(prefix + string(resource))
		if !weighed {
			continue
		}
		quantity := list[resource]
		one, err := resources.RequestValue(string(resource), quantity)
		if err != nil {
			u.faults = append(u.faults, err)
			one = 0
			if quantity.Sign() > 0 {
				one = resources.MaxRequest
			}
		}
		u.count(dimension{key: key, class: pods.Class}, one, pods.Count)
	}
}

// count adds so many times what one pod uses.
func (u *usage) count(d dimension, one, times int64) {
	if one <= 0 || times <= 0 {
		return
	}
	id := u.backend.id(d)
	high, low := bits.Mul64(uint64(one), uint64(times))
	if high > 0 || low > resources.MaxRequest || u.amounts[id]+int64(low) > resources.MaxRequest {
		u.faults = append(u.faults, fmt.Errorf("%s: %d times %s is more than can be asked for, %s", d.key, times,
			resources.Format(d.key, one), resources.Format(d.key, resources.MaxRequest)))
		u.amounts[id] = resources.MaxRequest
		return
	}
	u.amounts[id] += int64(low)
}

const (
	requestsPrefix = "requests."
	limitsPrefix   = "limits."
)

// keyOf is the key under which what a quota limits is known here: "cpu" and
// "requests.cpu" are the same. Of keys that are not about pods it says so.
//
// The rule is that of the API server: cpu, memory and ephemeral-storage by request and
// limit; huge pages and extended resources by request.
func keyOf(key string) (string, bool) {
	if key == keyPods || key == keyCountPods {
		return key, true
	}
	if limited, is := strings.CutPrefix(key, limitsPrefix); is {
		return key, basic(limited)
	}
	requested, is := strings.CutPrefix(key, requestsPrefix)
	switch {
	case basic(requested), strings.HasPrefix(requested, corev1.ResourceHugePagesPrefix):
		return requestsPrefix + requested, true
	default: // an extended resource counts by the prefix alone
		return key, is && strings.Contains(requested, "/")
	}
}

func basic(resource string) bool {
	switch corev1.ResourceName(resource) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	default:
		return false
	}
}

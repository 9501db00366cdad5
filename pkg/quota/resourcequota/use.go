package resourcequota

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Class of a pod is what the scopes of ResourceQuotas distinguishes.
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

// Use is what pods use, in the keys of quotas.
type Use struct {
	Class   Class
	amounts []amount
}

type amount struct {
	key   string
	unset string
	value int64
}

// Weigh the pods. The error says what cannot be counted; it counts as the most that
// can.
func Weigh(pods Pods) (Use, error) {
	w := weighing{Use: Use{Class: pods.Class}, times: pods.Count}
	w.count(keyCountPods, 1)
	if !pods.Ended {
		w.count(keyPods, 1)
		w.list(requestsPrefix, pods.Requests)
		w.list(limitsPrefix, pods.Limits)
		for _, key := range slices.Sorted(maps.Keys(pods.Unset)) {
			w.amounts = append(w.amounts, amount{key: string(key), value: 1, unset: fmt.Sprintf("%s (container %s)", pods.Name, pods.Unset[key])})
		}
	}
	w.amounts = slices.Clip(w.amounts)
	return w.Use, errors.Join(w.faults...)
}

type weighing struct {
	Use
	times  int64
	faults []error
}

func (w *weighing) list(prefix string, list corev1.ResourceList) {
	for _, resource := range slices.Sorted(maps.Keys(list)) {
		key, weighed := keyOf(prefix + string(resource))
		if !weighed {
			continue
		}
		quantity := list[resource]
		one, err := resources.RequestValue(string(resource), quantity)
		if err != nil {
			w.faults = append(w.faults, err)
			one = 0
			if quantity.Sign() > 0 {
				one = resources.MaxRequest
			}
		}
		// Many pods are kept that use the same few keys.
		w.count(unique.Make(key).Value(), one)
	}
}

// count adds what one pod uses, times their number.
func (w *weighing) count(key string, one int64) {
	if one <= 0 || w.times <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(one), uint64(w.times))
	if high > 0 || low > resources.MaxRequest {
		w.faults = append(w.faults, fmt.Errorf("%s: %d times %s exceeds the largest possible request, %s", key, w.times,
			resources.Format(key, one), resources.Format(key, resources.MaxRequest)))
		low = resources.MaxRequest
	}
	w.amounts = append(w.amounts, amount{key: key, value: int64(low)})
}

// Vector is the sum of all that is used. The error says what is more than can be
// counted; it counts as the most that can.
func (b *Backend) Vector(all ...Use) (resources.Vector, error) {
	sums := map[resources.ID]int64{}
	var faults []error
	for _, use := range all {
		for _, a := range use.amounts {
			id := b.id(dimension{key: a.key, class: use.Class, unset: a.unset})
			if sums[id] += a.value; sums[id] > resources.MaxRequest {
				sums[id] = resources.MaxRequest
				faults = append(faults, fmt.Errorf("%s: the sum of the requests exceeds the largest possible request, %s", a.key, resources.Format(a.key, resources.MaxRequest)))
			}
		}
	}
	vector := make(resources.Vector, 0, len(sums))
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		vector = append(vector, resources.Amount{ID: id, Value: sums[id]})
	}
	return vector, errors.Join(faults...)
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

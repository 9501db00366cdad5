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

// Class is what the scopes of ResourceQuotas distinguish about a pod.
type Class struct {
	// BestEffort, Terminating and CrossNamespacePodAffinity report whether the pod matches the scope of that name.
	BestEffort, Terminating, CrossNamespacePodAffinity bool
	// PriorityClass is the name of the PriorityClass; empty if none.
	PriorityClass string
}

// ClassOf returns the class of pods that match the scopes and have the PriorityClass.
func ClassOf(scopes []corev1.ResourceQuotaScope, priorityClass string) Class {
	return Class{
		BestEffort:                slices.Contains(scopes, corev1.ResourceQuotaScopeBestEffort),
		Terminating:               slices.Contains(scopes, corev1.ResourceQuotaScopeTerminating),
		CrossNamespacePodAffinity: slices.Contains(scopes, corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		PriorityClass:             priorityClass,
	}
}

// Pods are a number of identical pods.
type Pods struct {
	Class Class
	Count int64
	// Ended is whether the pods have ended. Ended pods that still exist use nothing.
	Ended bool
	// Requests and Limits are those of one pod.
	Requests, Limits corev1.ResourceList
	// Name is the name of the pods. Unset lists, by key of a quota, the containers that do not set it. Both are used
	// only for pods that do not exist yet.
	Name  string
	Unset map[corev1.ResourceName]string
}

// Keys of quotas that count pods: pods that have not ended, and all existing pods.
const (
	keyPods      = "pods"
	keyCountPods = "count/pods"
)

// dimension is one thing that pods of one class use. Its name, which has an ID like the name of a resource, consists
// of the key of the quotas that count it, unset if it is not empty, and the class if it is not zero.
type dimension struct {
	key   string
	class Class
	// unset, if not empty, lists the pods and containers that do not set the key.
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

// Use is what pods use, by the keys of quotas.
type Use struct {
	Class   Class
	amounts []amount
}

type amount struct {
	key   string
	unset string
	value int64
}

// Weigh returns what the pods use. The error reports amounts that are too large; they count as the
// largest possible amount.
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
		// Many pods share a few keys, so each key is stored once.
		w.count(unique.Make(key).Value(), one)
	}
}

// count adds what one pod uses, multiplied by the number of pods.
func (w *weighing) count(key string, one int64) {
	if one <= 0 || w.times <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(one), uint64(w.times))
	if high > 0 || low > resources.MaxRequest {
		w.faults = append(w.faults, fmt.Errorf("%s: %d times %s exceeds the largest possible request, %s; request less", key, w.times,
			resources.Format(key, one), resources.Format(key, resources.MaxRequest)))
		low = resources.MaxRequest
	}
	w.amounts = append(w.amounts, amount{key: key, value: int64(low)})
}

// Vector returns the sum of what is used. The error reports sums that are too large; they count as the
// largest possible amount.
func (b *Backend) Vector(all ...Use) (resources.Vector, error) {
	sums := map[resources.ID]int64{}
	var faults []error
	for _, use := range all {
		for _, a := range use.amounts {
			id := b.id(dimension{key: a.key, class: use.Class, unset: a.unset})
			if sums[id] += a.value; sums[id] > resources.MaxRequest {
				sums[id] = resources.MaxRequest
				faults = append(faults, fmt.Errorf("%s: the sum of the requests exceeds the largest possible request, %s; request less", a.key, resources.Format(a.key, resources.MaxRequest)))
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

// keyOf returns this package's name for a key in a quota, so that "cpu" and "requests.cpu" are the same, and whether
// the key is about pods.
//
// The rule is that of the API server: cpu, memory and ephemeral-storage are counted by request and by limit, huge
// pages and extended resources by request.
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
	default: // an extended resource counts only with the prefix
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

package resourcequota

import (
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// amounts are sums by dimension, without zeros.
type amounts map[resources.ID]resources.Sum

func (a amounts) add(v resources.Vector) {
	for _, amount := range v {
		a.set(amount.ID, a[amount.ID].Plus(amount.Value))
	}
}

func (a amounts) take(v resources.Vector) {
	for _, amount := range v {
		a.set(amount.ID, a[amount.ID].Minus(amount.Value))
	}
}

func (a amounts) set(id resources.ID, sum resources.Sum) {
	if sum == (resources.Sum{}) {
		delete(a, id)
	} else {
		a[id] = sum
	}
}

// vector returns the sums except one, clamped to an int64.
func (a amounts) vector(except resources.ID) resources.Vector {
	var v resources.Vector
	for _, id := range slices.Sorted(maps.Keys(a)) {
		if id != except {
			v = append(v, resources.Amount{ID: id, Value: a[id].Clamp()})
		}
	}
	return v
}

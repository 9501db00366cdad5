package autoscaler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pool is capacity that several requests share. Requests get nodes in the order of creation, each when all its nodes
// fit. One that does not fit yet makes later ones wait too. The share of a request is free again when its last node
// is gone.
type Pool struct {
	// Limit is the most that the nodes in the pool may have together. Resources that it does not name
	// are not limited.
	Limit corev1.ResourceList
}

// shares are what the requests hold in all pools. Only the loop of the Autoscaler uses them.
type shares map[types.UID]share

type share struct {
	pool   *Pool
	amount corev1.ResourceList
}

// lacking describes the resources that the pool has too little left of for the amount.
func (s shares) lacking(pool *Pool, amount corev1.ResourceList) string {
	used := corev1.ResourceList{}
	for _, held := range s {
		if held.pool == pool {
			add(used, held.amount)
		}
	}
	var short []string
	for name, limit := range pool.Limit {
		requested, inUse := amount[name], used[name]
		sum := requested.DeepCopy()
		sum.Add(inUse)
		if !requested.IsZero() && sum.Cmp(limit) > 0 {
			short = append(short, fmt.Sprintf("%s: requested %s, used %s of %s", name, requested.String(), inUse.String(), limit.String()))
		}
	}
	slices.Sort(short)
	return strings.Join(short, "; ")
}

// add adds the amounts to a sum.
func add(sum, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

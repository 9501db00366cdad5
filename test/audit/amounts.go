package audit

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts are base units by resource: thousandths for cpu, units for all other resources.
type amounts map[string]int64

// amountsOf returns the amounts rounded up to base units, like requests.
func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, quantity := range list {
		out[string(name)] = -floorOf(string(name), new(big.Rat).Neg(exact(quantity)))
	}
	return out
}

// floorOf returns an amount rounded down to base units.
func floorOf(name string, amount *big.Rat) int64 {
	if ofCPU(name) {
		amount = new(big.Rat).Mul(amount, big.NewRat(1000, 1))
	}
	units := new(big.Int).Div(amount.Num(), amount.Denom())
	if !units.IsInt64() {
		return int64(amount.Sign()) * (math.MaxInt64 / 1000) // so that some can be added up
	}
	return units.Int64()
}

func exact(q resource.Quantity) *big.Rat {
	rat, _ := new(big.Rat).SetString(q.AsDec().String())
	return rat
}

// ofCPU reports whether a key is about cpu, including keys of a ResourceQuota.
func ofCPU(name string) bool {
	return strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.") == "cpu"
}

// figure formats an amount as a quantity for people.
func figure(name string, n int64) string {
	switch {
	case !ofCPU(name):
		return strconv.FormatInt(n, 10)
	case n%1000 == 0:
		return strconv.FormatInt(n/1000, 10)
	}
	return strconv.FormatInt(n, 10) + "m"
}

// addTimes adds a multiple of the other amounts.
func (a amounts) addTimes(other amounts, times int64) {
	for name, n := range other {
		a[name] += n * times
	}
}

// times returns a multiple.
func (a amounts) times(times int64) amounts {
	out := amounts{}
	out.addTimes(a, times)
	return out
}

// above returns by how much the amounts exceed others.
func (a amounts) above(other amounts) amounts {
	out := amounts{}
	for name, n := range a {
		if n > other[name] {
			out[name] = n - other[name]
		}
	}
	return out
}

func (a amounts) names() []string { return slices.Sorted(maps.Keys(a)) }

// equal reports whether the amounts are the same. A missing resource counts as zero.
func (a amounts) equal(other amounts) bool {
	return len(a.above(other)) == 0 && len(other.above(a)) == 0
}

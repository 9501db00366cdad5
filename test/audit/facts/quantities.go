package facts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are base units by resource: thousandths for cpu, units for all other resources.
type Amounts map[string]int64

// Quantities are amounts as users write them: strings or plain numbers, or anything else.
type Quantities map[corev1.ResourceName]json.RawMessage

// read parses the quantities.
func (q Quantities) read() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, raw := range q {
		text := strings.Trim(string(raw), `"`)
		if at := strings.IndexAny(text, "eE"); at >= 0 && len(text)-at > len("e-99") {
			return nil, fmt.Errorf("%s: %q is no quantity", name, text) // parsing it would take minutes
		}
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no quantity", name, text)
		}
		list[name] = parsed
	}
	return list, nil
}

// Ceil returns the amounts rounded up to base units, like requests.
func (q Quantities) Ceil() (Amounts, error) {
	list, err := q.read()
	return ceil(list), err
}

func ceil(list corev1.ResourceList) Amounts {
	out := Amounts{}
	for name, quantity := range list {
		out[string(name)] = baseUnits(string(name), exact(quantity), true)
	}
	return out
}

func exact(q resource.Quantity) *big.Rat {
	rat, _ := new(big.Rat).SetString(q.AsDec().String())
	return rat
}

// ofCPU reports whether a key is about cpu, also a key of a ResourceQuota.
func ofCPU(name string) bool {
	return strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.") == "cpu"
}

func baseUnits(name string, exact *big.Rat, up bool) int64 {
	if ofCPU(name) {
		exact = new(big.Rat).Mul(exact, big.NewRat(1000, 1))
	}
	quotient, rest := new(big.Int).DivMod(exact.Num(), exact.Denom(), new(big.Int))
	if up && rest.Sign() != 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return math.MaxInt64 / 1000 // of which some can be added up
	}
	return quotient.Int64()
}

// AddTimes adds a multiple of the other amounts.
func (a Amounts) AddTimes(other Amounts, times int64) {
	for name, n := range other {
		a[name] += n * times
	}
}

// Above returns by how much amounts are above others.
func (a Amounts) Above(other Amounts) Amounts {
	above := Amounts{}
	for name, n := range a {
		if n > other[name] {
			above[name] = n - other[name]
		}
	}
	return above
}

// Names returns the sorted resource names.
func (a Amounts) Names() []string { return slices.Sorted(maps.Keys(a)) }

// Differences describes where two amounts differ. A missing resource counts as zero.
func (a Amounts) Differences(other Amounts, mine, theirs string) string {
	all := Amounts{}
	maps.Copy(all, a)
	maps.Copy(all, other)
	var parts []string
	for _, name := range all.Names() {
		if x, y := a[name], other[name]; x != y {
			parts = append(parts, fmt.Sprintf("%s: %s %s, %s %s", name, mine, Figure(name, x), theirs, Figure(name, y)))
		}
	}
	return strings.Join(parts, "; ")
}

// Equal reports whether the amounts are the same.
func (a Amounts) Equal(other Amounts) bool { return a.Differences(other, "", "") == "" }

// Figure formats an amount as a quantity for people.
func Figure(name string, n int64) string {
	switch {
	case !ofCPU(name):
		return strconv.FormatInt(n, 10)
	case n%1000 == 0:
		return strconv.FormatInt(n/1000, 10)
	}
	return strconv.FormatInt(n, 10) + "m"
}

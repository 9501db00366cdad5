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

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are base units by resource: thousandths for cpu, units for all other resources.
type Amounts map[string]int64

// Quantities are amounts as written in objects: strings or plain numbers.
type Quantities map[string]json.RawMessage

// Ceil returns the amounts rounded up to base units, like requests.
func (q Quantities) Ceil() (Amounts, error) {
	out := Amounts{}
	for name, raw := range q {
		exact, err := readQuantity(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = baseUnits(name, exact, true)
	}
	return out, nil
}

// exact returns limits without rounding. Negative limits are errors.
func (q Quantities) exact() (map[string]*big.Rat, error) {
	out := map[string]*big.Rat{}
	for name, raw := range q {
		exact, err := readQuantity(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case exact.Sign() < 0:
			return nil, fmt.Errorf("%s: it is negative", name)
		}
		out[name] = exact
	}
	return out, nil
}

func readQuantity(raw json.RawMessage) (*big.Rat, error) {
	text := strings.Trim(string(raw), `"`)
	if at := strings.IndexAny(text, "eE"); at >= 0 && len(text)-at > len("e-99") {
		return nil, fmt.Errorf("%q is no quantity", text) // parsing it would take minutes
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no quantity", text)
	}
	exact, ok := new(big.Rat).SetString(parsed.AsDec().String())
	if !ok {
		return nil, fmt.Errorf("%q is no quantity", text)
	}
	return exact, nil
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

// Raise raises each amount to the other amount if that is larger.
func (a Amounts) Raise(other Amounts) {
	for name, n := range other {
		a[name] = max(a[name], n)
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

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are exact numbers of base units by resource: thousandths for cpu, units for all other
// resources.
type Amounts map[string]*big.Int

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
		out[name] = BaseUnits(name, exact, true)
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

var thousand = big.NewRat(1000, 1)

func BaseUnits(name string, exact *big.Rat, up bool) *big.Int {
	if strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.") == "cpu" {
		exact = new(big.Rat).Mul(exact, thousand)
	}
	return round(exact, up)
}

func round(exact *big.Rat, up bool) *big.Int {
	quotient, rest := new(big.Int).DivMod(exact.Num(), exact.Denom(), new(big.Int))
	if up && rest.Sign() != 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

func (a Amounts) Get(name string) *big.Int {
	if n, ok := a[name]; ok {
		return n
	}
	return new(big.Int)
}

// AddTimes adds a multiple of the other amounts.
func (a Amounts) AddTimes(other Amounts, times int64) {
	for name, n := range other {
		product := new(big.Int).Mul(n, big.NewInt(times))
		a[name] = product.Add(product, a.Get(name))
	}
}

// most raises each amount to the other amount if that is larger.
func (a Amounts) most(other Amounts) {
	for name, n := range other {
		if n.Cmp(a.Get(name)) > 0 {
			a[name] = n
		}
	}
}

// Names returns the sorted resource names of both.
func (a Amounts) Names(other Amounts) []string {
	all := maps.Clone(a)
	if all == nil {
		all = Amounts{}
	}
	maps.Copy(all, other)
	return slices.Sorted(maps.Keys(all))
}

// Differences describes where two amounts differ. A missing resource counts as zero.
func (a Amounts) Differences(other Amounts, mine, theirs string) string {
	var parts []string
	for _, name := range a.Names(other) {
		if x, y := a.Get(name), other.Get(name); x.Cmp(y) != 0 {
			parts = append(parts, fmt.Sprintf("%s: %s %s, %s %s", name, mine, Figure(name, x), theirs, Figure(name, y)))
		}
	}
	return strings.Join(parts, "; ")
}

// Figure formats an amount as a quantity for people.
func Figure(name string, n *big.Int) string {
	if strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.") != "cpu" {
		return n.String()
	}
	if whole, rest := new(big.Int).QuoRem(n, big.NewInt(1000), new(big.Int)); rest.Sign() == 0 {
		return whole.String()
	}
	return n.String() + "m"
}

package resources

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// MaxRequest is the largest amount of one resource that a unit may request, in base units: nine trillion cores, or 8
// PiB. A larger request is a mistake. The sum of a thousand such requests still fits an int64.
const MaxRequest = 1 << 53

// Request returns the request of a unit: amounts rounded up to base units, without zeros. The error
// lists, in the order of names, each resource that is negative, is above MaxRequest, or has no
// name.
func Request[K ~string](n *Names, list map[K]resource.Quantity) (Vector, error) {
	v := make(Vector, 0, len(list))
	var faults []string
	// Sorted, so that neither IDs nor the error depend on the order of the map.
	for _, key := range slices.Sorted(maps.Keys(list)) {
		value, err := RequestValue(string(key), list[key])
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		if value != 0 {
			v = append(v, Amount{ID: n.ID(string(key)), Value: value})
		}
	}
	if faults != nil {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	slices.SortFunc(v, func(a, b Amount) int { return int(a.ID) - int(b.ID) })
	return v, nil
}

// RequestValue returns the quantity of one resource in base units, rounded up. It fails if the
// quantity is negative or above MaxRequest. The error names the resource.
func RequestValue(name string, q resource.Quantity) (int64, error) {
	if err := check(name, q); err != nil {
		return 0, err
	}
	value, exact, fits := floor(q, isCPU(name))
	if fits && !exact && value <= MaxRequest {
		value++
	}
	if !fits || value > MaxRequest {
		return 0, fmt.Errorf("%s: %s exceeds the largest possible request, %s; request less", name, text(q), Format(name, MaxRequest))
	}
	return value, nil
}

// LimitValue returns the quantity of one resource in base units, rounded down and capped at the largest int64. It fails
// if the quantity is negative. The error names the resource.
func LimitValue(name string, q resource.Quantity) (int64, error) {
	if err := check(name, q); err != nil {
		return 0, err
	}
	value, _, _ := floor(q, isCPU(name))
	return value, nil
}

// UsedValue returns a used quantity in base units, rounded up and capped at the largest int64. It returns 0 for a
// negative quantity.
func UsedValue(name string, q resource.Quantity) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	value, exact, fits := floor(q, isCPU(name))
	if fits && !exact && value < math.MaxInt64 {
		value++
	}
	return value
}

// Quantities converts a vector back into exact quantities by name.
func Quantities[K ~string](n *Names, v Vector) map[K]resource.Quantity {
	list := make(map[K]resource.Quantity, len(v))
	for _, a := range v {
		name := n.Name(a.ID)
		list[K(name)] = Quantity(name, a.Value)
	}
	return list
}

// Quantity returns an amount in base units of the named resource. API objects show it with the suffix that Format
// uses.
func Quantity(name string, value int64) resource.Quantity {
	switch {
	case isCPU(name):
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case isBytes(name) && strings.HasSuffix(formatBytes(value), "i"):
		return *resource.NewQuantity(value, resource.BinarySI)
	default:
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
}

// Rewrite gives the quantities of a list the suffixes that Format uses. The suffix of a sum depends on its first term:
// 8G plus 200Mi is 8209715200.
func Rewrite[K ~string](list map[K]resource.Quantity) {
	for key, q := range list {
		if value, exact := q.AsInt64(); exact && isBytes(string(key)) {
			list[key] = Quantity(string(key), value)
		}
	}
}

func check(name string, q resource.Quantity) error {
	if name == "" {
		return fmt.Errorf("the resource with quantity %s has no name; set one, such as cpu", text(q))
	}
	if q.Sign() < 0 {
		return fmt.Errorf("%s: %s is negative; set it to 0 or more", name, text(q))
	}
	return nil
}

// floor returns a non-negative quantity in whole units or thousandths, rounded down; whether the result is exact; and
// whether it fits an int64. A value that does not fit becomes the largest int64.
func floor(q resource.Quantity, milli bool) (value int64, exact, fits bool) {
	if q.IsZero() {
		return 0, true, true
	}
	if v, ok := q.AsInt64(); ok && !milli {
		return v, true, true
	} else if ok && v <= math.MaxInt64/1000 {
		return v * 1000, true, true
	}
	dec := q.AsDec()
	digits, exponent := dec.UnscaledBig(), -int64(dec.Scale())
	if milli {
		exponent += 3
	}
	// The exponent comes from the user and may be huge, as in 1e2000000000, so a power of ten is
	// computed only if it is known to be small.
	result, rest := new(big.Int), new(big.Int)
	switch {
	case exponent > 18:
		return math.MaxInt64, false, false
	case exponent >= 0:
		result.Mul(digits, power(exponent))
	case -exponent > int64(digits.BitLen()):
		return 0, false, true
	default:
		result.QuoRem(digits, power(-exponent), rest)
	}
	if !result.IsInt64() {
		return math.MaxInt64, false, false
	}
	return result.Int64(), rest.Sign() == 0, true
}

func power(exponent int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)
}

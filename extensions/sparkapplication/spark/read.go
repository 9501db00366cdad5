package spark

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Units of a size that is given without a unit.
const (
	bytes int64 = 1
	mib   int64 = 1 << 20
)

// sizeForm matches Spark's sizes in lower case: binary units, no fractions.
var sizeForm = regexp.MustCompile(`^([0-9]+)(?:([kmgtp])b?|b)?$`)

// size reads a size, rounded down to whole units. Given is false if none of the keys is
// set.
func (c conf) size(unit int64, keys ...string) (amount int64, given bool, err error) {
	found, given := c.first(keys...)
	if !given {
		return 0, false, nil
	}
	text := strings.ToLower(strings.TrimSpace(found.text))
	parts := sizeForm.FindStringSubmatch(text)
	if parts == nil {
		alone := "bytes"
		if unit == mib {
			alone = "MiB"
		}
		return 0, true, found.wrong("is not a valid Spark size; write an integer with unit b, k, m, g, t or p, for example 512m or 2g (without a unit: %s)", alone)
	}
	multiple := unit
	switch {
	case parts[2] != "":
		multiple = 1 << (10 * (1 + strings.Index("kmgtp", parts[2])))
	case strings.HasSuffix(text, "b"):
		multiple = 1
	}
	number, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || number > math.MaxInt64/multiple {
		return 0, true, found.wrong("is too large; the maximum is %d bytes", int64(math.MaxInt64))
	}
	return number * multiple / unit, true, nil
}

// positive reads a size that must not be 0.
func (c conf) positive(unit int64, unset int64, key string) (int64, error) {
	amount, given, err := c.size(unit, key)
	if err != nil || !given {
		return unset, err
	}
	// A size of less than one unit is not 0.
	if exact, _, err := c.size(bytes, key); err == nil && exact == 0 {
		return 0, c[key].wrong("must be greater than 0")
	}
	return amount, nil
}

func (c conf) whole(key string, least, unset int32) (int32, error) {
	found, given := c.first(key)
	if !given {
		return unset, nil
	}
	number, err := strconv.ParseInt(strings.TrimSpace(found.text), 10, 32)
	if err != nil || number < int64(least) {
		return 0, found.wrong("must be an integer from %d to %d", least, math.MaxInt32)
	}
	return int32(number), nil
}

// factor reads a fraction of the memory.
func (c conf) factor(unset float64, keys ...string) (float64, error) {
	found, given := c.first(keys...)
	if !given {
		return unset, nil
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(found.text), 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) || number < 0 {
		return 0, found.wrong("must be a number of 0 or more, for example 0.1")
	}
	return number, nil
}

// on reads a switch.
func (c conf) on(keys ...string) (bool, error) {
	found, given := c.first(keys...)
	on := strings.EqualFold(strings.TrimSpace(found.text), "true")
	if given && !on && !strings.EqualFold(strings.TrimSpace(found.text), "false") {
		return false, found.wrong("must be true or false")
	}
	return on, nil
}

// quantity reads a quantity that Spark passes to Kubernetes unchanged; nil if it is unset.
func (c conf) quantity(key string) (*resource.Quantity, error) {
	found, given := c.first(key)
	if !given {
		return nil, nil
	}
	quantity, err := parseQuantity(found.text)
	if err != nil || quantity.Sign() < 0 {
		return nil, found.wrong("must be a Kubernetes quantity of 0 or more, for example 2 or 500m")
	}
	return &quantity, nil
}

// hugeExponent matches an exponent with so many digits that parsing or comparing the
// quantity could take forever.
var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)

func parseQuantity(text string) (resource.Quantity, error) {
	if hugeExponent.MatchString(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// devices reads the settings spark.ROLE.resource.NAME.amount and .vendor, which
// become limits called VENDOR/NAME.
func (c conf) devices(role string) (corev1.ResourceList, error) {
	devices := corev1.ResourceList{}
	prefix := "spark." + role + ".resource."
	// Sorted, so that the same error is reported each time if there are several.
	for _, key := range slices.Sorted(maps.Keys(c)) {
		name, is := strings.CutPrefix(key, prefix)
		if !is {
			continue
		}
		name, _, _ = strings.Cut(name, ".")
		amount, err := c.whole(prefix+name+".amount", 0, -1)
		vendor, _ := c.first(prefix + name + ".vendor")
		switch {
		case err != nil:
			return nil, err
		case amount < 0:
			return nil, c[key].wrong("requires %s%s.amount; set it", prefix, name)
		case amount > 0 && vendor.text == "":
			return nil, c[key].wrong("requires %s%s.vendor; set it, for example to nvidia.com", prefix, name)
		case amount > 0:
			devices[corev1.ResourceName(vendor.text+"/"+name)] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
		}
	}
	return devices, nil
}

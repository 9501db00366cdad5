package resources

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxText is the maximum length of the text of a quantity. Useful texts are far shorter.
	maxText = 64
	// maxExponent is the maximum power of ten in the text of a quantity.
	maxExponent = 64
)

// Parse parses a quantity that a user wrote. Unlike resource.ParseQuantity, it is fast for every text and never returns
// a number that differs from the text: an exponent of minus one billion, or one that overflows, is an error.
func Parse(s string) (resource.Quantity, error) {
	s = strings.TrimSpace(s)
	if len(s) > maxText {
		return resource.Quantity{}, fmt.Errorf("quantity %q... is longer than %d characters; write it shorter, such as 2, 500m, 1.5 or 4Gi", s[:maxText], maxText)
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 && s[at:] != "E" && s[at:] != "Ei" {
		exponent, err := strconv.Atoi(s[at+1:])
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			if !isNumber(s[:at]) { // a word with an e, such as twelve
				return resource.Quantity{}, notAQuantity(s)
			}
			return resource.Quantity{}, fmt.Errorf("quantity %q: the exponent must be an integer from -%d to %d", s, maxExponent, maxExponent)
		}
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return resource.Quantity{}, notAQuantity(s)
	}
	return q, nil
}

// isNumber reports whether the text has digits and contains only characters of a number.
func isNumber(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "+-.0123456789") == ""
}

func notAQuantity(s string) error {
	if meant := meantQuantities(s); meant != "" {
		return fmt.Errorf("quantity %q is not a number with a suffix that Kubernetes knows; did you mean %s?", s, meant)
	}
	return fmt.Errorf("quantity %q is not a number with an optional suffix, such as 2, 500m, 1.5 or 4Gi", s)
}

// meantQuantities returns what a user probably meant by a quantity with a suffix that other programs know, such as
// 10Gb, 10GiB or 10gi; empty if nothing is likely.
func meantQuantities(s string) string {
	at := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789.", r) })
	if at <= 0 {
		return ""
	}
	number, suffix := s[:at], strings.ToLower(strings.TrimSpace(s[at:]))
	prefix := strings.TrimSuffix(strings.TrimSuffix(suffix, "b"), "i")
	if len(prefix) != 1 || !strings.Contains("kmgtpe", prefix) {
		return ""
	}
	binary, decimal := strings.ToUpper(prefix)+"i", strings.ToUpper(prefix)
	if decimal == "K" {
		decimal = "k"
	}
	if strings.Contains(suffix, "i") {
		return strconv.Quote(number + binary)
	}
	return fmt.Sprintf("%q or %q", number+binary, number+decimal)
}

// Format returns the text of an amount in base units of the named resource, as users write it: "500m" and "3" for cpu,
// "4Gi" and "5G" for memory, digits for counts. It never rounds. Otherwise, amounts that differ could look equal, and
// those that do not fit together could look as if they did. Nothing else writes amounts for users.
func Format(name string, value int64) string {
	switch {
	case isCPU(name) && value%1000 != 0:
		var text [24]byte
		return string(append(strconv.AppendInt(text[:0], value, 10), 'm'))
	case isCPU(name):
		return strconv.FormatInt(value/1000, 10)
	case isBytes(name):
		return formatBytes(value)
	default:
		return strconv.FormatInt(value, 10)
	}
}

// FormatQuantity is Format for a quantity. A quantity that is not a whole number of base units keeps its own text.
func FormatQuantity(name string, q resource.Quantity) string {
	if q.Sign() >= 0 {
		if value, exact, _ := floor(q, isCPU(name)); exact {
			return Format(name, value)
		}
	}
	return text(q)
}

// Float converts an amount in base units of the named resource into the unit that Kubernetes uses
// for it: cores, bytes or a count.
func Float(name string, value int64) float64 {
	if isCPU(name) {
		return float64(value) / 1000
	}
	return float64(value)
}

// FloatSeconds converts base units of the named resource times microseconds into the unit of Float times seconds.
func FloatSeconds(name string, s Sum) float64 {
	if isCPU(name) {
		return s.Float() / 1e9
	}
	return s.Float() / 1e6
}

// The suffixes of the powers of 1024 and of 1000 that an int64 can have.
var (
	binarySuffixes  = [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	decimalSuffixes = [...]string{"", "k", "M", "G", "T", "P", "E"}
)

// formatBytes uses the suffix with the shorter text, because it is most likely the one that the
// user wrote.
func formatBytes(value int64) string {
	var b, d [24]byte
	binary, decimal := appendBytes(b[:0], value, 1024, &binarySuffixes), appendBytes(d[:0], value, 1000, &decimalSuffixes)
	if len(decimal) < len(binary) {
		return string(decimal)
	}
	return string(binary)
}

// appendBytes appends the value with the largest suffix that needs no fraction.
func appendBytes(text []byte, value, base int64, suffixes *[7]string) []byte {
	power := 0
	for ; value != 0 && value%base == 0; power++ {
		value /= base
	}
	return append(strconv.AppendInt(text, value, 10), suffixes[power]...)
}

// isCPU reports whether the base unit is a thousandth.
func isCPU(name string) bool {
	return plain(name) == "cpu"
}

// isBytes reports whether the base unit is a byte.
func isBytes(name string) bool {
	switch name = plain(name); name {
	case "memory", "storage", "ephemeral-storage":
		return true
	default:
		return strings.HasPrefix(name, "hugepages-")
	}
}

// plain returns the resource of a quota key such as "requests.cpu" or "limits.memory".
func plain(name string) string {
	for _, prefix := range []string{"requests.", "limits."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// text returns the quantity for a message, shortened if it is very long.
func text(q resource.Quantity) string {
	const most = 40
	s := q.String()
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

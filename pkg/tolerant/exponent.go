package tolerant

import (
	"regexp"
)

// hugeExponent matches a JSON string that resource.ParseQuantity may sit over for
// minutes, or use up all memory for, as "1e-1000000000".
var hugeExponent = regexp.MustCompile(`"(\s*[+-]?[0-9.]+[eE][+-]?[0-9]{3,}\s*)"`)

// disarm makes such strings unreadable as quantities. It changes the length of a
// text that holds one, and returns any other as it is.
func disarm(data []byte) []byte {
	if !suspicious(data) {
		return data
	}
	return hugeExponent.ReplaceAll(data, []byte(`"$1 (an exponent of more than two digits)"`))
}

// suspicious tells in one fast pass whether the text may hold such a string: a
// digit, an e, and three digits.
func suspicious(data []byte) bool {
	for i := 1; i+3 < len(data); i++ {
		if data[i]|0x20 != 'e' || !digit(data[i-1]) && data[i-1] != '.' {
			continue
		}
		at := i + 1
		if data[at] == '+' || data[at] == '-' {
			at++
		}
		if at+2 < len(data) && digit(data[at]) && digit(data[at+1]) && digit(data[at+2]) {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

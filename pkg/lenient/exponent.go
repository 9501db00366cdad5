package lenient

import (
	"bytes"
	"regexp"
	"unicode"
)

// hugeExponent matches a JSON string such as "1e-1000000000", which can cost resource.ParseQuantity minutes or all
// memory.
var hugeExponent = regexp.MustCompile(`"(` + space + `*[+-]?[0-9.]+[eE][+-]?[0-9]{3,}` + space + `*)"`)

// space matches what unicode.IsSpace accepts. It can surround a quantity.
const space = `[\s\v\x{85}\p{Z}]`

// disarm replaces matches of hugeExponent with text that is not a quantity. It changes the length of such a text, and
// returns any other text unchanged.
func disarm(data []byte) []byte {
	if !suspicious(data) {
		return data
	}
	return hugeExponent.ReplaceAll(data, []byte(`"$1 (an exponent of more than two digits)"`))
}

// suspicious reports whether the text contains a match of hugeExponent, in a fraction of the time.
func suspicious(data []byte) bool {
	for at := 1; ; at++ {
		// Most letters e are in words and identifiers, next to other letters.
		for ; at < len(data) && (data[at]|0x20 != 'e' || !numeric(data[at-1])); at++ {
		}
		if at >= len(data) {
			return false
		}
		if quotedBefore(data[:at]) && hugeAfter(data[at+1:]) {
			return true
		}
	}
}

// quotedBefore reports whether the text ends with the start of a string that can still be a number.
func quotedBefore(text []byte) bool {
	text = bytes.TrimRight(text, "0123456789.")
	if n := len(text); n > 0 && (text[n-1] == '+' || text[n-1] == '-') {
		text = text[:n-1]
	}
	text = bytes.TrimRightFunc(text, unicode.IsSpace)
	return bytes.HasSuffix(text, []byte{'"'})
}

// hugeAfter reports whether the text begins with an exponent of at least three digits that ends its
// string.
func hugeAfter(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	rest := bytes.TrimLeft(text, "0123456789")
	return len(text)-len(rest) >= 3 && bytes.HasPrefix(bytes.TrimLeftFunc(rest, unicode.IsSpace), []byte{'"'})
}

func numeric(c byte) bool { return '0' <= c && c <= '9' || c == '.' }

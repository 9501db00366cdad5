package lenient

import (
	"bytes"
	"regexp"
	"unicode"
)

// hugeExponent matches a JSON string that resource.ParseQuantity may sit over for
// minutes, or use up all memory for, as "1e-1000000000".
var hugeExponent = regexp.MustCompile(`"(` + space + `*[+-]?[0-9.]+[eE][+-]?[0-9]{3,}` + space + `*)"`)

// space is what unicode.IsSpace calls so: a quantity may stand among it.
const space = `[\s\v\x{85}\p{Z}]`

// disarm makes such strings unreadable as quantities. It changes the length of a
// text that holds one, and returns any other as it is.
func disarm(data []byte) []byte {
	if !suspicious(data) {
		return data
	}
	return hugeExponent.ReplaceAll(data, []byte(`"$1 (an exponent of more than two digits)"`))
}

// suspicious reports whether the text holds such a string: what hugeExponent matches, at a
// fraction of the time.
func suspicious(data []byte) bool {
	for at := 1; ; at++ {
		// Most letters e stand in words and in identifiers, after or before other letters.
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

// quotedBefore reports whether the text ends as a string begins that is a number up to here.
func quotedBefore(text []byte) bool {
	text = bytes.TrimRight(text, "0123456789.")
	if n := len(text); n > 0 && (text[n-1] == '+' || text[n-1] == '-') {
		text = text[:n-1]
	}
	text = bytes.TrimRightFunc(text, unicode.IsSpace)
	return bytes.HasSuffix(text, []byte{'"'})
}

// hugeAfter reports whether an exponent of three digits or more begins the text and ends its
// string.
func hugeAfter(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	rest := bytes.TrimLeft(text, "0123456789")
	return len(text)-len(rest) >= 3 && bytes.HasPrefix(bytes.TrimLeftFunc(rest, unicode.IsSpace), []byte{'"'})
}

func numeric(c byte) bool { return '0' <= c && c <= '9' || c == '.' }

package lenient

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSuspiciousIsWhatTheExpressionMatches(t *testing.T) {
	for text, want := range map[string]bool{
		`{"cpu":"1e-1000000000"}`:                          true,
		`{"cpu":" +1.5E100  "}`:                            true,
		`{"cpu":"1e99"}`:                                   false,
		`{"uid":"9d1c7a3b-1e1000-4b7e-9a51-0f3b6a3c9d10"}`: false,
		`{"uid":"7e4571c2-1d1a-4b7e-9a51-0f3b6a3c9d10"}`:   false,
		`{"f:a":{},"at":"12:00:00.5e100Z"}`:                false,
		`{"cpu":"1e10`:                                     false,
		`{"cpu":"1e1000`:                                   false,
		"\"\u00a01e-1000000000\u3000\"":                    true,
		"\"\u00851e-1000000000\u2003\"":                    true,
		"\"\u200b1e-1000000000\"":                          false, // neither a space nor a quantity
		"":                                                 false,
		"e1000":                                            false,
		"\"1e1000\"":                                       true,
		`{"cpu":"1e1000","memory":1},{"name":"1e1000","b":{}`: true,
	} {
		if got := suspicious([]byte(text)); got != want || got != hugeExponent.MatchString(text) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	part := rapid.SampledFrom([]string{`"`, " ", "+", "-", ".", "1", "0", "e", "E", "100", "1e", `"1`, "a", "é", "\u00a0", "\u0085", "\u3000", "\u200b"})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, one := range rapid.SliceOfN(part, 0, 20).Draw(t, "parts") {
			text += one
		}
		if got, want := suspicious([]byte(text)), hugeExponent.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

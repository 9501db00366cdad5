package audit

import (
	"encoding/json"
	"testing"
)

func TestCompareCountsConfirmedFields(t *testing.T) {
	parse := func(text string) map[string]any {
		var fields map[string]any
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	for _, c := range []struct {
		name, asked, before, own, now string
		confirmed                     int
		denied                        bool
	}{
		{"all is there", `{"a":1,"b":{"c":2}}`, `{}`, `{}`, `{"a":1,"b":{"c":2}}`, 2, false},
		{"a part is not", `{"a":1,"b":{"c":2}}`, `{}`, `{}`, `{"a":1,"b":{"c":3}}`, 2, true},
		{"it was so before", `{"a":1}`, `{"a":1}`, `{}`, `{"a":1}`, 0, false},
		{"the next one set it", `{"a":1,"b":2}`, `{}`, `{"a":3}`, `{"a":3,"b":2}`, 1, false},
		{"the next one replaced it", `{"b":{"c":2}}`, `{}`, `{"b":null}`, `{}`, 0, false},
		{"a field taken away", `{"a":null}`, `{"a":1}`, `{}`, `{}`, 1, false},
		{"a field not taken away", `{"a":null}`, `{"a":1}`, `{}`, `{"a":1}`, 1, true},
		{"a list", `{"a":[1,{"b":2}]}`, `{}`, `{}`, `{"a":[1,{"b":2}]}`, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			confirmed, denied := compare(parse(c.asked), parse(c.before), parse(c.own), parse(c.now))
			if confirmed != c.confirmed || denied != c.denied {
				t.Errorf("%d fields confirmed, denied %t; want %d and %t", confirmed, denied, c.confirmed, c.denied)
			}
		})
	}
}

package spark

import "testing"

func TestSizesAreReadAsSparkReadsThem(t *testing.T) {
	const wrong = -1
	tests := []struct {
		name, text  string
		mebi, alone int64
	}{
		{"a small unit", "512m", 512, 512 << 20},
		{"a capital one", "2G", 2048, 2 << 30},
		{"a long one", "3Tb", 3 << 20, 3 << 40},
		{"the largest one", "1p", 1 << 30, 1 << 50},
		{"bytes, of which whole MiB count", "3145727b", 2, 3145727},
		{"less than one MiB", "1023k", 0, 1023 << 10},
		{"a bare number", "1024", 1024, 1024},
		{"spaces around it", " 1g\n", 1024, 1 << 30},
		{"nothing", "0", 0, 0},
		{"the most that can be counted", "9223372036854775807b", 8796093022207, 9223372036854775807},
		{"more than can be counted", "9223372036854775808b", wrong, wrong},
		{"more than can be counted in its unit", "8192p", wrong, wrong},
		{"a fraction", "1.5g", wrong, wrong},
		{"a unit of Kubernetes", "1Gi", wrong, wrong},
		{"a unit of nobody", "500ub", wrong, wrong},
		{"an unknown large unit", "1e", wrong, wrong},
		{"a sign", "-1g", wrong, wrong},
		{"space inside", "1 g", wrong, wrong},
		{"a second line", "1g\n2g", wrong, wrong},
		{"no text", "", wrong, wrong},
		{"a unit alone", "m", wrong, wrong},
		{"other digits", "٣m", wrong, wrong},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := conf{"key": {text: test.text, field: "spec.field"}}
			for unit, want := range map[int64]int64{mib: test.mebi, bytes: test.alone} {
				got, given, err := c.size(unit, "old", "key")
				switch {
				case !given:
					t.Errorf("%q is not seen", test.text)
				case (err != nil) != (want == wrong), err == nil && got != want:
					t.Errorf("%q in units of %d is %d (%v), not %d", test.text, unit, got, err, want)
				}
			}
		})
	}
}

func TestTheFirstNameWinsOverOlderOnes(t *testing.T) {
	c := conf{"new": {text: "1"}, "old": {text: "2"}}
	if got, _ := c.first("new", "old"); got.text != "1" {
		t.Errorf("the older name won: %v", got)
	}
	if got, _ := c.first("newest", "old"); got.text != "2" {
		t.Errorf("the older name is not read: %v", got)
	}
	if got, given := c.first("newest"); given {
		t.Errorf("what is not set is %v", got)
	}
}

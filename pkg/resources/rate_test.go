package resources

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "1.0": "1", "01.000": "1", "1.2": "1.2", "1.25": "1.25", ".5": "0.5", "0.5": "0.5", "0.000000001": "0.000000001",
		"2": "2", "10": "10", "999999999.999999999": "999999999.999999999", "1.10": "1.1", "000000000001": "1",
	} {
		r, err := ParseRate(text)
		if err != nil || r.String() != want {
			t.Errorf("ParseRate(%q) = %s, %v, want %s", text, r, err, want)
		}
		if isOne := r == (Rate{}); isOne != (want == "1") {
			t.Errorf("ParseRate(%q) is the zero Rate: %v", text, isOne)
		}
	}
}

func TestParseRateSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "not a decimal"}, {".", "not a decimal"}, {"1.", "not a decimal"}, {"-1", "not a decimal"}, {"+1", "not a decimal"},
		{"1e3", "not a decimal"}, {"NaN", "not a decimal"}, {"Inf", "not a decimal"}, {"1.2.3", "not a decimal"}, {"120%", "not a decimal"},
		{" 1", "not a decimal"}, {"1,2", "not a decimal"}, {"٣", "not a decimal"},
		{"0", "greater than 0"}, {"0.0", "greater than 0"}, {"000", "greater than 0"},
		{"1000000000", "digits"}, {"0.0000000001", "digits"}, {strings.Repeat("9", 1000), "digits"},
	} {
		if r, err := ParseRate(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("ParseRate(%q) = %s, %v, want an error that says %q", c.text, r, err, c.says)
		}
	}
}

func TestTheZeroRateIsOne(t *testing.T) {
	var r Rate
	if r.String() != "1" || r.Floor(7) != 7 || r.Floor(math.MaxInt64) != math.MaxInt64 || r.Floor(math.MinInt64) != math.MinInt64 {
		t.Errorf("the zero Rate is %s", r)
	}
}

func FuzzRate(f *testing.F) {
	f.Add("1.2", int64(10))
	f.Add("1.2", int64(-10))
	f.Add("1.2", int64(math.MaxInt32)) // no number means unlimited
	f.Add("1.2", int64(math.MaxInt64))
	f.Add("0.333333333", int64(math.MaxInt64))
	f.Add("999999999.999999999", int64(math.MinInt64))
	f.Add("000.10", int64(-1))
	f.Add("1", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, s string, value int64) {
		if r, err := ParseRate(s); err == nil {
			compareFloor(t, r, s, value)
		}
	})
}

func TestFloorIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[0-9]{0,9}\.[0-9]{1,9}`).Draw(t, "rate")
		r, err := ParseRate(s)
		if err != nil {
			t.Skip(err)
		}
		compareFloor(t, r, s, rapid.Int64().Draw(t, "value"))
	})
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func compareFloor(t failer, r Rate, text string, value int64) {
	t.Helper()
	rate, ok := new(big.Rat).SetString("0" + text)
	if !ok {
		t.Errorf("%q was read as a rate", text)
		return
	}
	product := rate.Mul(rate, new(big.Rat).SetInt64(value))
	floor := new(big.Int).Div(product.Num(), product.Denom())
	want := floor.Int64()
	if !floor.IsInt64() {
		want = math.MaxInt64
		if floor.Sign() < 0 {
			want = math.MinInt64
		}
	}
	if got := r.Floor(value); got != want {
		t.Errorf("%s.Floor(%d) = %d, want %d", text, value, got, want)
	}
	if back, err := ParseRate(r.String()); err != nil || back != r {
		t.Errorf("%s was written as %s and read as %s, %v", text, r, back, err)
	}
}

package resources

import (
	"math"
	"math/big"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

type list = map[string]resource.Quantity

func TestQuantitiesBecomeBaseUnits(t *testing.T) {
	for _, c := range []struct {
		why, name, text string
		request, limit  int64
	}{
		{"cpu counts thousandths", "cpu", "3", 3000, 3000},
		// Older systems rounded cpu to cores.
		{"cpu with a suffix", "cpu", "100m", 100, 100},
		{"cpu as a decimal", "cpu", "1.5", 1500, 1500},
		{"a request below a thousandth is one, a limit none", "cpu", "100u", 1, 0},
		{"a part of a thousandth is rounded", "cpu", "1500u", 2, 1},
		{"requests.cpu counts thousandths too", "requests.cpu", "2", 2000, 2000},
		{"limits.cpu counts thousandths too", "limits.cpu", "2", 2000, 2000},
		{"binary suffix", "memory", "4Gi", 4 << 30, 4 << 30},
		{"binary suffix with a fraction", "memory", "1.5Gi", 3 << 29, 3 << 29},
		{"decimal suffix", "memory", "5G", 5e9, 5e9},
		{"zero with a suffix", "memory", "0M", 0, 0},
		{"a part of a byte is rounded", "memory", "100m", 1, 0},
		{"a part of a byte above a whole one", "memory", "1000100m", 1001, 1000},
		{"plain integer", "nvidia.com/gpu", "64", 64, 64},
		{"exponent", "pods", "1e3", 1000, 1000},
		{"negative zero is zero", "pods", "-0", 0, 0},
		{"a number longer than an int64 with a small value", "memory", "1.00000000000000000000000000", 1, 1},
		{"the greatest request", "memory", "8Pi", MaxRequest, MaxRequest},
		// Older systems stored requests in 32 bits, and treated a limit of 2^31-1 or more as unlimited.
		{"more memory than 31 bits hold", "memory", "2Gi", 1 << 31, 1 << 31},
		{"more jobs than 32 bits hold", "kube-queue/max-jobs", "10000000000", 1e10, 1e10},
	} {
		q := resource.MustParse(c.text)
		if got, err := RequestValue(c.name, q); err != nil || got != c.request {
			t.Errorf("%s: request %s %s = %d, %v, want %d", c.why, c.name, c.text, got, err, c.request)
		}
		if got, err := LimitValue(c.name, q); err != nil || got != c.limit {
			t.Errorf("%s: limit %s %s = %d, %v, want %d", c.why, c.name, c.text, got, err, c.limit)
		}
	}
}

func TestHugeQuantitiesAreErrorsInRequestsAndTheGreatestNumberInLimits(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"memory", "1e30"},
		{"memory", "9223372036854775808"},
		{"memory", "1e2147483647"},
		{"cpu", "1e2147483647"},
		{"cpu", "9223372036854775807"},
		{"cpu", "9223372036854775.808"},
		{"cpu", "9999999999999999999999"},
	} {
		q := resource.MustParse(c.text)
		if got, err := LimitValue(c.name, q); err != nil || got != math.MaxInt64 {
			t.Errorf("limit %s %s = %d, %v, want the greatest int64", c.name, c.text, got, err)
		}
		if got, err := RequestValue(c.name, q); err == nil {
			t.Errorf("request %s %s = %d, want an error", c.name, c.text, got)
		}
	}
	for _, text := range []string{"9007199254740993", "9007199254740992.001", "9007199254740992100m"} {
		if got, err := RequestValue("memory", resource.MustParse(text)); err == nil {
			t.Errorf("request %s = %d, want an error: it is above MaxRequest", text, got)
		}
	}
	if got, err := LimitValue("cpu", resource.MustParse("9223372036854775.807")); err != nil || got != math.MaxInt64 {
		t.Errorf("the greatest cpu that fits = %d, %v", got, err)
	}
}

func TestExponentsOutOfRangeCostNothing(t *testing.T) {
	tiny, huge := resource.MustParse("7"), resource.MustParse("7")
	tiny.AsDec().SetScale(math.MaxInt32)
	huge.AsDec().SetScale(math.MinInt32)
	if got, err := RequestValue("cpu", tiny); err != nil || got != 1 {
		t.Errorf("request of next to nothing = %d, %v, want 1", got, err)
	}
	if got, err := LimitValue("cpu", tiny); err != nil || got != 0 {
		t.Errorf("limit of next to nothing = %d, %v, want 0", got, err)
	}
	if got, err := LimitValue("cpu", huge); err != nil || got != math.MaxInt64 {
		t.Errorf("limit beyond all numbers = %d, %v", got, err)
	}
	scaled := *resource.NewScaledQuantity(1, -math.MaxInt32)
	if got, err := RequestValue("memory", scaled); err != nil || got != 1 {
		t.Errorf("request of next to nothing = %d, %v, want 1", got, err)
	}
	zero := *resource.NewScaledQuantity(0, math.MaxInt32)
	if got, err := RequestValue("memory", zero); err != nil || got != 0 {
		t.Errorf("zero with an exponent = %d, %v, want 0", got, err)
	}
}

func TestARequestDropsZeros(t *testing.T) {
	n := NewNames()
	quantities := list{"cpu": resource.MustParse("0"), "memory": resource.MustParse("1")}
	request, err := Request(n, quantities)
	if want := (Vector{{n.ID("memory"), 1}}); err != nil || !request.Equal(want) {
		t.Errorf("Request = %v, %v, want %v", request, err, want)
	}
}

func TestErrorsListResourcesInOrderOfNames(t *testing.T) {
	wrong := list{
		"memory": resource.MustParse("-1Gi"), "cpu": resource.MustParse("-100m"),
		"z": resource.MustParse("1e30"), "a": resource.MustParse("1"), "": resource.MustParse("1"),
	}
	for range 20 {
		_, err := Request(NewNames(), wrong)
		want := "the resource with quantity 1 has no name; set one, such as cpu; cpu: -100m is negative; set it to 0 or more; memory: -1Gi is negative; set it to 0 or more; " +
			"z: 1e30 exceeds the largest possible request, 9007199254740992; request less"
		if err == nil || err.Error() != want {
			t.Fatalf("error %q, want %q", err, want)
		}
	}
}

func TestIDsDoNotDependOnTheOrderOfAMap(t *testing.T) {
	for range 20 {
		n, one := NewNames(), resource.MustParse("1")
		v, err := Request(n, list{"d": one, "b": one, "a": one, "c": one})
		if err != nil || len(v) != 4 || n.Name(0) != "a" || n.Name(3) != "d" {
			t.Fatalf("%v, %v: a is %d", v, err, n.ID("a"))
		}
	}
}

func TestQuantitiesComeBackExactly(t *testing.T) {
	names := []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"}
	rapid.Check(t, func(t *rapid.T) {
		n := NewNames()
		var v Vector
		for i, name := range names {
			v = v.With(n.ID(name), rapid.Int64Range(1, MaxRequest).Draw(t, names[i]))
		}
		back, err := Request(n, Quantities[string](n, v))
		if err != nil || !back.Equal(v) {
			t.Fatalf("%v came back as %v, %v", v, back, err)
		}
	})
	n := NewNames()
	got := Quantities[string](n, Vector{{n.ID("cpu"), 1500}, {n.ID("memory"), 456 << 20}, {n.ID("ephemeral-storage"), 4e9}, {n.ID("gpu"), 1000}})
	for name, want := range map[string]string{"cpu": "1500m", "memory": "456Mi", "ephemeral-storage": "4G", "gpu": "1k"} {
		if q := got[name]; q.String() != want {
			t.Errorf("%s = %s, want %s", name, q.String(), want)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{
		"0", "-0", "1", "100u", "100m", "1500u", "1n", "0.5Ki", "7Ei", "8Ei", "16Ei", "1e30", "1E", "1e-9", "-1", "+5",
		"9223372036854775807", "9223372036854775808", "9007199254740992", "9007199254740993", "9223372036854775.807",
		"1.00000000000000000000000000000001", ".5", "5.", "12345678901234567890123456789", "4Gi", "1e18", "1e19", "1.G",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := Parse(s)
		if err != nil {
			return
		}
		for _, name := range []string{"cpu", "memory"} {
			whole, exact := reference(name, q)
			limit, err := LimitValue(name, q)
			switch {
			case whole.Sign() < 0 || !exact && q.Sign() < 0:
				if err == nil {
					t.Errorf("limit %s %q is negative, and is %d", name, s, limit)
				}
			case !whole.IsInt64():
				if err != nil || limit != math.MaxInt64 {
					t.Errorf("limit %s %q = %d, %v, want the greatest", name, s, limit, err)
				}
			case err != nil || limit != whole.Int64():
				t.Errorf("limit %s %q = %d, %v, want %s", name, s, limit, err, whole)
			}
			up := new(big.Int).Set(whole)
			if !exact {
				up.Add(up, big.NewInt(1))
			}
			request, err := RequestValue(name, q)
			switch {
			case q.Sign() < 0 || up.Cmp(big.NewInt(MaxRequest)) > 0:
				if err == nil {
					t.Errorf("request %s %q = %d, want an error", name, s, request)
				}
			case err != nil || request != up.Int64():
				t.Errorf("request %s %q = %d, %v, want %s", name, s, request, err, up)
			}
		}
	})
}

// reference uses fractions to return the quantity in base units, rounded down, and whether that is exact.
func reference(name string, q resource.Quantity) (*big.Int, bool) {
	dec := q.AsDec()
	fraction := new(big.Rat).SetInt(dec.UnscaledBig())
	scale := int64(dec.Scale())
	if name == "cpu" {
		scale -= 3
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(scale, -scale)), nil)
	if scale > 0 {
		fraction.Quo(fraction, new(big.Rat).SetInt(ten))
	} else {
		fraction.Mul(fraction, new(big.Rat).SetInt(ten))
	}
	return new(big.Int).Div(fraction.Num(), fraction.Denom()), fraction.IsInt()
}

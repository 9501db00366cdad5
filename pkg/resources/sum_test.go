package resources

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSumsAreExactWhateverIsAddedAndTakenOut(t *testing.T) {
	amounts := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 0, 1, -1}))
	rapid.Check(t, func(t *rapid.T) {
		var s Sum
		want := new(big.Int)
		added := rapid.SliceOfN(amounts, 0, 20).Draw(t, "added")
		for _, v := range added {
			s = s.Plus(v)
			want.Add(want, big.NewInt(v))
			expectClamped(t, s.Clamp(), want)
		}
		other, exact := Sum{}, new(big.Int)
		for _, v := range rapid.SliceOfN(amounts, 0, 20).Draw(t, "others") {
			other = other.Plus(v)
			exact.Add(exact, big.NewInt(v))
		}
		if got := s.Compare(other); got != want.Cmp(exact) {
			t.Fatalf("%v compared with %v gives %d", want, exact, got)
		}
		times := rapid.Int64Range(0, 1<<50).Draw(t, "times")
		expectClamped(t, s.Times(times).Clamp(), new(big.Int).Mul(want, big.NewInt(times)))
		if float, _ := new(big.Float).SetInt(want).Float64(); want.Sign() >= 0 && math.Abs(s.Float()-float) > float*1e-15 {
			t.Fatalf("%v is %v as a float", want, s.Float())
		}
		if got := s.Add(other).Sub(s); got != other {
			t.Fatalf("what was added is %v once the rest is taken out, not %v", got, other)
		}
		limit := amounts.Draw(t, "limit")
		expectClamped(t, s.Below(limit), new(big.Int).Sub(big.NewInt(limit), want))
		for _, v := range slices.Backward(added) {
			s = s.Minus(v)
		}
		if s != (Sum{}) {
			t.Fatalf("left over: %+v", s)
		}
	})
}

func expectClamped(t *rapid.T, got int64, exact *big.Int) {
	want := exact.Int64()
	if !exact.IsInt64() {
		want = math.MaxInt64
		if exact.Sign() < 0 {
			want = math.MinInt64
		}
	}
	if got != want {
		t.Fatalf("%d, want %d, exactly %s", got, want, exact)
	}
}

func TestASumOfMoreThanThereAreNumbersIsTheGreatest(t *testing.T) {
	amounts := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.SampledFrom([]int64{0, 1, math.MaxInt64 - 1, math.MaxInt64}))
	rapid.Check(t, func(t *rapid.T) {
		sum, value := amounts.Draw(t, "sum"), amounts.Draw(t, "value")
		times := rapid.IntRange(0, 1000).Draw(t, "times")
		want := new(big.Int).Mul(big.NewInt(value), big.NewInt(int64(times)))
		expectClamped(t, AddTimes(sum, value, times), want.Add(want, big.NewInt(sum)))
	})
}

func TestASumExceedsWhatItIsGreaterThan(t *testing.T) {
	amounts := rapid.OneOf(rapid.Int64Range(math.MinInt64, math.MaxInt64), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	rapid.Check(t, func(t *rapid.T) {
		sum, exact := Sum{}, new(big.Int)
		for range rapid.IntRange(0, 4).Draw(t, "amounts") {
			v := amounts.Draw(t, "amount")
			sum = sum.Plus(v)
			exact.Add(exact, big.NewInt(v))
		}
		limit := max(amounts.Draw(t, "limit"), 0)
		if got := sum.Exceeds(limit); got != (exact.Cmp(big.NewInt(limit)) > 0) {
			t.Fatalf("%s exceeds %d: %t", exact, limit, got)
		}
	})
}

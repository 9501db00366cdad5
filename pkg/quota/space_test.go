package quota_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
)

func TestSharesOfMinGoBeforeSharesOfMaxAndTheseBeforeNone(t *testing.T) {
	ordered := []quota.Share{
		{Kind: quota.OfMin, Used: 1, Due: 2},
		{Kind: quota.OfMin, Used: 2, Due: 3},
		{Kind: quota.OfMin, Used: 9, Due: 1},
		{Kind: quota.OfMax, Used: 1, Due: 9},
		{Kind: quota.OfMax, Used: 1, Due: 1},
		{Kind: quota.OfNothing},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			got := a.Compare(b)
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%+v compared with %+v gives %d", a, b, got)
			}
		}
	}
	if (quota.Share{Used: 1, Due: 3}).Compare(quota.Share{Used: 2, Due: 6}) != 0 {
		t.Error("a third is not two sixths")
	}
}

func TestComparingSharesIsExact(t *testing.T) {
	amount := func(t *rapid.T, label string, least int64) int64 {
		return rapid.OneOf(rapid.Int64Range(least, 10), rapid.Int64Range(math.MaxInt64-10, math.MaxInt64), rapid.Int64Range(least, math.MaxInt64)).Draw(t, label)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := quota.Share{Used: amount(t, "used", 0), Due: amount(t, "due", 1)}
		b := quota.Share{Used: amount(t, "other used", 0), Due: amount(t, "other due", 1)}
		if got, want := a.Compare(b), big.NewRat(a.Used, a.Due).Cmp(big.NewRat(b.Used, b.Due)); got != want {
			t.Fatalf("%+v compared with %+v gives %d, want %d", a, b, got, want)
		}
	})
}

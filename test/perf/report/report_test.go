package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

func TestPercentilesUseTheNearestRank(t *testing.T) {
	hundred := make(Durations, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		of   Durations
		p    float64
		want time.Duration
	}{
		{hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
		{Durations{7}, 0.5, 7}, {Durations{3, 1, 2}, 0.5, 2}, {Durations{4, 3, 1, 2}, 0.5, 2}, {nil, 0.5, 0},
	} {
		if got := c.of.Percentile(c.p); got != c.want {
			t.Errorf("%v of %v is %d, want %d", c.p, c.of, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("Percentile sorted the durations in place")
	}
}

func TestTheFileHasTheFiguresAndWhetherTheirBarsAreMet(t *testing.T) {
	r := New("units")
	s := r.Section("in all")
	s.Add("wall", 84.25, "s", AtMost(new(85.0)))
	s.Add("rate", 250, "units/s", AtLeast(new(300.0)))
	s.Add("units", 15000, "", AtMost(nil))
	path := filepath.Join(t.TempDir(), "new", "report.json")
	require.NoError(t, r.WriteFile(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	read := &Report{}
	require.NoError(t, json.Unmarshal(data, read))
	wall, rate, units := read.Find("in all", "wall"), read.Find("in all", "rate"), read.Find("in all", "units")
	if wall == nil || wall.Value != 84.25 || wall.AtMost == nil || *wall.AtMost != 85 || wall.Met == nil || !*wall.Met {
		t.Errorf("wall is %+v", wall)
	}
	if rate == nil || rate.Met == nil || *rate.Met {
		t.Errorf("rate is %+v", rate)
	}
	if units == nil || units.Value != 15000 || units.Met != nil {
		t.Errorf("units are %+v", units)
	}
}

package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPercentilesUseTheNearestRank(t *testing.T) {
	hundred := make(Durations, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		name string
		of   Durations
		p    float64
		want time.Duration
	}{
		{"half of a hundred", hundred, 0.5, 50},
		{"99 % of a hundred", hundred, 0.99, 99},
		{"all is the greatest", hundred, 1, 100},
		{"none is the smallest", hundred, 0, 1},
		{"of one it is that one", Durations{7}, 0.5, 7},
		{"of three the middle", Durations{3, 1, 2}, 0.5, 2},
		{"of four the second", Durations{4, 3, 1, 2}, 0.5, 2},
		{"of nothing it is 0", nil, 0.5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.of.Percentile(c.p); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("Percentile sorted the durations in place")
	}
}

func TestMeanAndLongerThan(t *testing.T) {
	d := Durations{1, 2, 6}
	if d.Mean() != 3 || Durations(nil).Mean() != 0 {
		t.Errorf("means %d and %d", d.Mean(), Durations(nil).Mean())
	}
	if got := d.LongerThan(2); got != 1 {
		t.Errorf("%d are longer than 2", got)
	}
}

func example() *Report {
	r := New("units", "baseline", "v1", []string{"--policy=Block"})
	s := r.Section("in all")
	s.Add("wall", 84.25, "s", AtMost(85))
	s.Add("rate", 250, "units/s", AtLeast(300))
	s.Count("units", 15000)
	return r
}

func TestTableShowsWhetherBarsAreMet(t *testing.T) {
	var out strings.Builder
	if err := example().Print(&out); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "\n\n")
	want := "in all\n" +
		"  wall   84.25  s        <= 85   met\n" +
		"  rate   250    units/s  >= 300  not met\n" +
		"  units  15000                   \n"
	if table != want {
		t.Errorf("got\n%q\nwant\n%q", table, want)
	}
	if missed := example().Missed(); len(missed) != 1 || missed[0] != "in all, rate: 250 units/s, must be >= 300" {
		t.Errorf("the missed figures are %q", missed)
	}
}

func TestJSONContainsTheFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "report.json")
	if err := example().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := &Report{}
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatal(err)
	}
	wall, units := read.Find("in all", "wall"), read.Find("in all", "units")
	if wall == nil || wall.Value != 84.25 || wall.AtMost == nil || *wall.AtMost != 85 || wall.Met == nil || !*wall.Met {
		t.Errorf("wall is %+v", wall)
	}
	if units == nil || units.Value != 15000 || units.Met != nil {
		t.Errorf("units are %+v", units)
	}
	if read.Find("in all", "nothing") != nil || read.Cores == 0 || read.Flags[0] != "--policy=Block" {
		t.Errorf("read %+v", read)
	}
}

func TestNumbersHaveSignificantDigits(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 15000: "15000", 1234.56: "1235", 123.456: "123.5", 1.234: "1.23", 0.01234: "0.0123"} {
		if got := number(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}

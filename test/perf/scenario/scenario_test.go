package scenario

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const small = `
about: a small one
parents: {count: 2, max: {cpu: 10}}
leaves: {count: 2, min: {cpu: 1}, max: {cpu: 4}}
classes:
- {name: a, count: 2, requests: {cpu: 500m}, runTime: 2s, priority: 1, every: 100ms}
- {name: b, count: 1, requests: {cpu: 2, memory: 1Gi}, runTime: 1s, priority: 2}
`

const waiting = `
kind: Backlog
parents: {count: 1}
leaves: {count: 2}
classes:
- {name: a, count: 10, requests: {cpu: 2}, shapes: 3}
backlog: {settle: 1s, idle: 1s, room: 4, more: 1}
`

func read(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Read("folder/test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuiltInScenarios(t *testing.T) {
	for name, want := range map[string]struct {
		units, leaves int
		floor         float64 // seconds
	}{
		"baseline":      {15000, 30, 66},
		"large":         {50000, 1000, 0},
		"deep":          {100000, 1, 0},
		"wide":          {100000, 1000, 0},
		"smoke":         {200, 4, 0},
		"smoke-backlog": {120, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Units() != want.units || len(s.Arrivals()) != want.units || s.LeafCount() != want.leaves || s.Name != name || s.Policy != "Priority" {
				t.Errorf("%s has %d units in %d leaves, policy %s", s.Name, s.Units(), s.LeafCount(), s.Policy)
			}
			if floor := s.Work() / s.Capacity(); want.floor > 0 && math.Abs(floor-want.floor) > 1e-9 {
				t.Errorf("its work needs %v s, want %v", floor, want.floor)
			}
		})
	}
	for _, name := range Names() {
		if _, err := Load(name); err != nil {
			t.Error(err)
		}
	}
}

func TestScenarioIsReadFromAPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil || s.Name != "mine" || s.Kind != Stream {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestUnitsArriveAtTheIntervalsOfTheirClasses(t *testing.T) {
	s := read(t, small)
	want := []Arrival{
		{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0},
		{0, 0, 1, 0}, {0, 1, 1, 0}, {0, 2, 1, 0}, {0, 3, 1, 0},
		{100 * time.Millisecond, 0, 0, 1}, {100 * time.Millisecond, 1, 0, 1},
		{100 * time.Millisecond, 2, 0, 1}, {100 * time.Millisecond, 3, 0, 1},
	}
	if got := s.Arrivals(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	// 4 leaves × (2 × 0.5 cpu × 2 s + 2 cpu × 1 s)
	if s.Work() != 16 || s.Capacity() != 20 {
		t.Errorf("work %v, capacity %v", s.Work(), s.Capacity())
	}
}

func TestStretch(t *testing.T) {
	s, err := Load("baseline")
	if err != nil {
		t.Fatal(err)
	}
	s.Stretch(2)
	arrivals := s.Arrivals()
	if last, want := arrivals[len(arrivals)-1].At, 2*49*1200*time.Millisecond; last != want {
		t.Errorf("the last arrives after %v, not %v", last, want)
	}
	if got, want := s.Work()/s.Capacity(), 132.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("its work takes %v s, not %v", got, want)
	}
	if got, want := *s.Bars.WallSeconds, 170.0; got != want {
		t.Errorf("the bar is %v s, not %v", got, want)
	}
}

func TestShapesAlternate(t *testing.T) {
	class := &read(t, waiting).Classes[0]
	var got []string
	for number := range 4 {
		got = append(got, class.RequestsOf(number)["cpu"])
	}
	if want := []string{"2", "4", "6", "2"}; !slices.Equal(got, want) {
		t.Errorf("they request %v", got)
	}
}

func TestTreeListsTheNamespaceOfEachLeaf(t *testing.T) {
	s := read(t, small)
	manifest, err := s.Tree()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"perf-1","max":{"cpu":"10"},"children":[` +
		`{"name":"perf-1-0","namespaces":["perf-1-0"],"min":{"cpu":"1"},"max":{"cpu":"4"}},` +
		`{"name":"perf-1-1","namespaces":["perf-1-1"],"min":{"cpu":"1"},"max":{"cpu":"4"}}]}`
	if !json.Valid(manifest) || !strings.Contains(string(manifest), want) {
		t.Errorf("got %s", manifest)
	}
	if got := s.Namespaces(); !slices.Equal(got, []string{"perf-0-0", "perf-0-1", "perf-1-0", "perf-1-1"}) {
		t.Errorf("namespaces %v", got)
	}
}

func TestQuotaOfABacklogIsThatOfItsUnits(t *testing.T) {
	s := read(t, waiting)
	none, err := s.Tree()
	if err != nil {
		t.Fatal(err)
	}
	// The first four of a leaf request 2, 4, 6 and 2.
	four, err := s.TreeWithRoom(4)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(none), `"max":{"cpu":"0"}`) || !strings.Contains(string(four), `"max":{"cpu":"14"}`) {
		t.Errorf("got\n%s\n%s", none, four)
	}
}

func TestErrorsContainFileAndField(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"an unknown field", small, "about:", "abuot:", `unknown field "abuot"`},
		{"an unknown field of a class", small, "every:", "evry:", `evry`},
		{"an unknown kind", waiting, "Backlog", "Backlogs", "unknown kind \"Backlogs\"; known kinds: Stream, Backlog"},
		{"an unknown policy", small, "about: a small one", "policy: Random", "unknown policy \"Random\"; known policies: RoundRobin"},
		{"no leaves", small, "leaves: {count: 2", "leaves: {count: 0", "leaves.count: must be at least 1, not 0"},
		{"an amount that is none", small, "max: {cpu: 10}", "max: {cpu: ten}", `parents.max.cpu: "ten" is not a quantity`},
		{"a negative amount", small, "cpu: 500m", "cpu: -1", "classes[0].requests.cpu: -1 must not be negative"},
		{"a duration that is none", small, "runTime: 2s", "runTime: 2 sec", `classes[0].runTime: "2 sec" is not a duration`},
		{"a pause that is none", waiting, "settle: 1s", "settle: short", `backlog.settle: "short" is not a duration`},
		{"no run time", small, "runTime: 1s, ", "", "classes[1].runTime: is required"},
		{"two classes of one name", small, "name: b", "name: a", "classes[1].name: duplicate name a"},
		{"a name that cannot be one of a unit", small, "name: b", "name: B_1", `classes[1].name: "B_1"`},
		{"no units", small, "count: 1,", "count: 0,", "classes[1].count: 0"},
		{"too many units", small, "count: 1,", "count: 1999999,", "the maximum is 2000000"},
		{"nothing requested", small, "requests: {cpu: 500m}, ", "", "classes[0].requests: is required"},
		{"a backlog in a stream", small, "about: a small one", "backlog: {room: 1}", "backlog: has no effect in kind Stream"},
		{"a limit in a backlog", waiting, "leaves: {count: 2}", "leaves: {count: 2, max: {cpu: 1}}", "remove them"},
		{"more room than units", waiting, "room: 4", "room: 10", "exceed the 10 units of a leaf"},
		{"a run time in a backlog", waiting, "shapes: 3", "runTime: 1s", "runTime and every have no effect"},
		{"no wait", waiting, "settle: 1s, ", "", "backlog.settle, backlog.idle: both must be positive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(c.text, c.old, c.new, 1)
			if text == c.text {
				t.Fatalf("%q is not in the scenario", c.old)
			}
			_, err := Read("folder/test.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "folder/test.yaml") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Load("none"); err == nil || !strings.Contains(err.Error(), "known scenarios: baseline") {
		t.Errorf("got %v", err)
	}
}

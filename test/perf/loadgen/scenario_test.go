package loadgen

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
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
parents: {count: 1}
leaves: {count: 2}
classes:
- {name: a, count: 10, requests: {cpu: 2}, shapes: 3}
backlog: {settle: 1s, idle: 1s, room: 4, more: 1}
`

// parse loads a scenario from a file.
func parse(t *testing.T, text string) (*Scenario, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(path)
}

func TestBuiltInScenarios(t *testing.T) {
	for _, name := range Names() {
		s, err := Load(name)
		require.NoError(t, err)
		if s.Name != name || len(s.Arrivals()) != s.Units() {
			t.Errorf("%s is named %s and has %d arrivals of %d units", name, s.Name, len(s.Arrivals()), s.Units())
		}
		if floor := s.Work() / s.Capacity(); name == "baseline" && math.Abs(floor-66) > 1e-9 {
			t.Errorf("the work of %s needs %v s", name, floor)
		}
	}
}

func TestUnitsArriveAtTheIntervalsOfTheirClasses(t *testing.T) {
	s, err := parse(t, small)
	require.NoError(t, err)
	const later = 100 * time.Millisecond
	want := []Arrival{
		{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0},
		{0, 0, 1, 0}, {0, 1, 1, 0}, {0, 2, 1, 0}, {0, 3, 1, 0},
		{later, 0, 0, 1}, {later, 1, 0, 1}, {later, 2, 0, 1}, {later, 3, 0, 1},
	}
	if got := s.Arrivals(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	// 4 leaves × (2 × 0.5 cpu × 2 s + 2 cpu × 1 s)
	if s.Work() != 16 || s.Capacity() != 20 {
		t.Errorf("work %v, capacity %v", s.Work(), s.Capacity())
	}
	s.Bars.WallSeconds = new(85.0)
	s.Stretch(2)
	if arrivals := s.Arrivals(); arrivals[11].At != 2*later || s.Work() != 32 || *s.Bars.WallSeconds != 170 {
		t.Errorf("stretched, the last arrives at %v, the work is %v, and the bar %v", arrivals[11].At, s.Work(), *s.Bars.WallSeconds)
	}
}

func TestTreeHasTheNamespaceOfEachLeafAndTheQuotaOfABacklog(t *testing.T) {
	s, err := parse(t, small)
	require.NoError(t, err)
	tree, err := json.Marshal(s.Tree(0))
	require.NoError(t, err)
	want := `{"name":"perf-1","max":{"cpu":"10"},"children":[` +
		`{"name":"perf-1-0","namespaces":["perf-1-0"],"min":{"cpu":"1"},"max":{"cpu":"4"}},` +
		`{"name":"perf-1-1","namespaces":["perf-1-1"],"min":{"cpu":"1"},"max":{"cpu":"4"}}]}`
	require.Says(t, "the tree", string(tree), want)
	backlog, err := parse(t, waiting)
	require.NoError(t, err)
	// The first four of a leaf request 2, 4, 6 and 2.
	for room, want := range map[int]int64{0: 0, 4: 14} {
		for _, leaf := range backlog.Tree(room).Children[0].Children {
			if got := leaf.Max.Cpu().Value(); got != want {
				t.Errorf("the max of leaf %s is %d, want %d", leaf.Name, got, want)
			}
		}
	}
}

func TestErrorsContainTheFileAndWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, old, new, want string }{
		{small, "about:", "abuot:", `unknown field "abuot"`},
		{small, "about: a small one", "policy: Random", "unknown policy \"Random\"; known policies: RoundRobin"},
		{small, "leaves: {count: 2", "leaves: {count: 0", "leaves.count: must be at least 1"},
		{small, "max: {cpu: 10}", "max: {cpu: ten}", "quantities must match"},
		{small, "runTime: 2s", "runTime: 2 sec", "unknown unit"},
		{small, "runTime: 1s, ", "", "class b: set the runTime"},
		{small, "requests: {cpu: 500m}, ", "", "class a: set the requests"},
		{small, "about: a small one", "backlog: {room: 1}", "runTime and every have no effect"},
		{waiting, "leaves: {count: 2}", "leaves: {count: 2, max: {cpu: 1}}", "remove them"},
		{waiting, "shapes: 3", "runTime: 1s", "runTime and every have no effect"},
		{waiting, "settle: 1s, ", "", "backlog.settle, backlog.idle: both must be positive"},
	} {
		_, err := parse(t, strings.Replace(c.text, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "mine.yaml") {
			t.Errorf("%s: got %v, want %q", c.new, err, c.want)
		}
	}
}

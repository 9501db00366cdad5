package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScenariosOfJobsAreRead(t *testing.T) {
	for _, name := range JobsNames() {
		if s, err := LoadJobs(name); err != nil || s.Jobs < 1000 || s.RunTime != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	file := filepath.Join(t.TempDir(), "own.yaml")
	for content, want := range map[string]string{
		"jobs: 7\nrate: 2.5\nroom: 3\nrunTime: 20ms": "",
		"job: 7":        "unknown field \"job\"",
		"jobs: -1":      "jobs: -1: must not be negative",
		"rate: -1":      "rate: -1: must not be negative",
		"room: -1":      "room: -1: must not be negative",
		"runTime: soon": `runTime: "soon" is not a duration`,
		"runTime: -1s":  "runTime: -1s: must not be negative",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := LoadJobs(file)
		if want == "" {
			if err != nil || s.Jobs != 7 || s.Rate != 2.5 || s.Room != 3 || s.RunTime.Duration != 20*time.Millisecond {
				t.Errorf("got %+v, %v", s, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: got %v", content, err)
		}
	}
	if _, err := LoadJobs("nope"); err == nil || !strings.Contains(err.Error(), "known scenarios: ample, burst, steady, waiting") {
		t.Errorf("got %v", err)
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// recorded is the profile of make test with one package. The package starts two clusters, and uses the processor only
// in its first ten seconds: those of its first test. Its second test takes the other ten.
func recorded(t *testing.T) *Profile {
	t.Helper()
	folder := t.TempDir()
	for _, u := range []Usage{
		{Name: "test-a", From: began, Wall: 720, CPU: 900},
		{Name: "test-b", From: began, Wall: 60, CPU: 60, Failed: true},
		{Name: "example.com/a", Test: true, From: began, Wall: 20, CPU: 8, Clusters: 2, Samples: []Sample{
			{At: began}, {At: began.Add(10 * time.Second), CPU: 8}, {At: began.Add(20 * time.Second), CPU: 8}}},
	} {
		require.NoError(t, record(folder, u))
	}
	var events strings.Builder
	event := func(after int, action, test string, elapsed float64) {
		fmt.Fprintf(&events, `{"Time":%q,"Action":%q,"Package":"example.com/a","Test":%q,"Elapsed":%v}`+"\n",
			began.Add(time.Duration(after)*time.Second).Format(time.RFC3339), action, test, elapsed)
	}
	event(0, "run", "TestWorks", 0)
	event(10, "pass", "TestWorks", 10)
	event(10, "run", "TestWaits", 0)
	event(20, "fail", "TestWaits", 10)
	fmt.Fprintln(&events, `{"Action":"output","Package":"example.com/a","Test":"TestLacks","Output":"    a_test.go:1: NOT RUN: there is no browser\n"}`)
	events.WriteString(`{"Time":"unfinished`)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "test-a.events.jsonl"), []byte(events.String()), 0o644))
	profile, err := read(folder)
	require.NoError(t, err)
	return profile
}

func TestAProfileShowsWhatWorksAndWhatWaits(t *testing.T) {
	var out strings.Builder
	require.NoError(t, recorded(t).print(&out, false))
	said := strings.Join(strings.Fields(out.String()), " ")
	require.Says(t, "the profile", said,
		"720.0 900.0 0.0 0 test-a", "20.0 8.0 12.0 2 example.com/a",
		"10.0 8.0 2.0 example.com/a TestWorks", "10.0 0.0 10.0 example.com/a TestWaits",
		"NOT RUN: example.com/a TestLacks: there is no browser", "total: 12m0s, processor time 16m0s, 2 clusters, 2 tests, 1 failed, test-b failed",
	)
}

func TestOnlyRowsOfMeasuredTargetsChange(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	before := "| target | what | time |\n|---|---|---|\n| `make test` | all | 1 s |\n| `make test-a` | one | 1 s |\n| `make test-all` | more | 3 h |\nmake test is text\n"
	require.NoError(t, os.WriteFile(page, []byte(before), 0o644))
	for _, step := range []struct{ only, old, now string }{{"", "1 s", "12 min"}, {"test-all", "3 h", "12 min"}} {
		require.NoError(t, recorded(t).refresh(page, step.only))
		after, err := os.ReadFile(page)
		require.NoError(t, err)
		before = strings.ReplaceAll(before, step.old, step.now)
		if string(after) != before {
			t.Errorf("after %q the page is\n%s\nwant\n%s", step.only, after, before)
		}
	}
}

func TestACommandIsMeasuredWithWhatItStarts(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, measure(folder, Usage{Name: "spins"}, []string{"sh", "-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'"}))
	profile, err := read(folder)
	require.NoError(t, err)
	if u := profile.Targets[0]; u.Name != "spins" || u.CPU <= 0 || u.Wall <= 0 {
		t.Errorf("it took %+v", u)
	}
	if err := measure(folder, Usage{Name: "fails"}, []string{"false"}); err == nil {
		t.Error("a command that fails is reported as a success")
	}
}

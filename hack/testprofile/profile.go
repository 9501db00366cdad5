package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// usagesFile has a Usage in each line, and eventsPattern matches the files with the events of go test.
	usagesFile    = "usages.jsonl"
	eventsPattern = "*.events.jsonl"
)

// Profile is what was measured. Tests that ran in parallel share their processor time.
type Profile struct {
	Targets, Packages, Tests []Usage
	// NotRun are the tests that were skipped because something is missing on this machine, and what.
	NotRun []string
}

// notRun is how a test that lacks something begins the reason why it is skipped.
const notRun = "NOT RUN: "

// event is an event of go test -json: see go doc test2json.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Output                string
	Elapsed               float64
}

func read(folder string) (*Profile, error) {
	var p Profile
	err := each(filepath.Join(folder, usagesFile), func(u Usage) {
		u.Name = short(u.Name)
		if u.Test {
			p.Packages = append(p.Packages, u)
		} else {
			p.Targets = append(p.Targets, u)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("no profile; run make test first: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, eventsPattern))
	if err != nil {
		return nil, err
	}
	started := map[string]time.Time{}
	for _, file := range files {
		err := each(file, func(e event) {
			pkg := short(e.Package)
			name := pkg + " " + e.Test
			switch {
			case e.Test == "":
			case e.Action == "run", e.Action == "cont":
				started[name] = e.Time
			case e.Action == "output":
				if _, why, is := strings.Cut(e.Output, notRun); is {
					p.NotRun = append(p.NotRun, name+": "+strings.TrimSpace(why))
				}
			case e.Action == "pass", e.Action == "fail":
				p.Tests = append(p.Tests, Usage{Name: name, Wall: e.Elapsed, CPU: p.cpu(pkg, started[name], e.Time), Failed: e.Action == "fail"})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// each reads the values in a file.
func each[T any](path string, use func(T)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		var value T
		switch err := lines.Decode(&value); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil // the last line is incomplete
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
		use(value)
	}
}

// short returns a name without the path of the module.
func short(name string) string { return strings.TrimPrefix(name, "kube-queue.dev/kube-queue/") }

// cpu returns the processor time of a package from one moment to another.
func (p *Profile) cpu(pkg string, from, to time.Time) float64 {
	for _, u := range p.Packages {
		if u.Name == pkg && !from.Before(u.From) {
			return u.at(to) - u.at(from)
		}
	}
	return 0
}

// at returns the processor time at a moment. It interpolates linearly between samples.
func (u Usage) at(t time.Time) float64 {
	next := slices.IndexFunc(u.Samples, func(s Sample) bool { return s.At.After(t) })
	if next < 1 {
		return u.CPU
	}
	a, b := u.Samples[next-1], u.Samples[next]
	return a.CPU + max(0, b.CPU-a.CPU)*t.Sub(a.At).Seconds()/b.At.Sub(a.At).Seconds()
}

// total returns the time from the first start to the last end, the processor time of all targets, which contain the
// packages, and the number of clusters. Without targets, as when go test runs alone, it uses the packages.
func (p *Profile) total() (wall, cpu time.Duration, clusters int) {
	var first, last time.Time
	for _, u := range slices.Concat(p.Targets, p.Packages) {
		if u.end().After(last) {
			last = u.end()
		}
		if first.IsZero() || u.From.Before(first) {
			first = u.From
		}
	}
	var ofTargets, ofPackages float64
	for _, u := range p.Targets {
		ofTargets += u.CPU
	}
	for _, u := range p.Packages {
		ofPackages += u.CPU
		clusters += u.Clusters
	}
	return last.Sub(first).Round(time.Second), seconds(max(ofTargets, ofPackages)).Round(time.Second), clusters
}

func (u Usage) end() time.Time { return u.From.Add(seconds(u.Wall)) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

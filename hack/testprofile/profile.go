package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// usagesFile has a Usage in each line, eventsPattern the events of go test.
	usagesFile    = "usages.jsonl"
	eventsPattern = "*.events.jsonl"
)

// Profile is what was measured.
type Profile struct {
	Usages []Usage
	Tests  []Test
}

// Test is what one test took. Tests that ran in parallel share their processor time.
type Test struct {
	Package, Name string
	From, To      time.Time
	// Wall and CPU are in seconds.
	Wall, CPU float64
	Failed    bool
}

// event is an event of go test -json: see go doc test2json.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Elapsed               float64
}

// read reads the profile in the folder.
func read(folder string) (*Profile, error) {
	var p Profile
	err := eachLine(filepath.Join(folder, usagesFile), func(line []byte) error {
		var u Usage
		err := json.Unmarshal(line, &u)
		p.Usages = append(p.Usages, u)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("no profile; run make test first: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, eventsPattern))
	if err != nil {
		return nil, err
	}
	started := map[[2]string]time.Time{}
	for _, file := range files {
		err := eachLine(file, func(line []byte) error {
			var e event
			if err := json.Unmarshal(line, &e); err != nil || e.Test == "" {
				return err
			}
			key := [2]string{e.Package, e.Test}
			switch e.Action {
			case "run", "cont":
				started[key] = e.Time
			case "pass", "fail":
				p.Tests = append(p.Tests, Test{Package: e.Package, Name: e.Test, From: started[key], To: e.Time,
					Wall: e.Elapsed, Failed: e.Action == "fail", CPU: p.cpu(e.Package, started[key], e.Time)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return &p, nil
}

func eachLine(path string, use func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // an incomplete line was not finished
		}
		if err != nil {
			return err
		}
		if err := use(line); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// cpu returns the processor time of a package from one moment to another.
func (p *Profile) cpu(pkg string, from, to time.Time) float64 {
	for _, u := range p.Usages {
		if u.Test && u.Name == pkg && !from.Before(u.From) {
			return u.at(to) - u.at(from)
		}
	}
	return 0
}

// at returns the processor time at a moment. Between two samples it is linear.
func (u Usage) at(t time.Time) float64 {
	points := slices.Concat([]Sample{{At: u.From}}, u.Samples, []Sample{{At: u.end(), CPU: u.CPU}})
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if t.After(b.At) || !b.At.After(a.At) {
			continue
		}
		return a.CPU + max(0, b.CPU-a.CPU)*t.Sub(a.At).Seconds()/b.At.Sub(a.At).Seconds()
	}
	return u.CPU
}

// idle returns the seconds in which a test or package only waited: it used no processor.
func idle(wall, cpu float64) float64 { return max(0, wall-cpu) }

// print prints the steps, and the slowest packages and tests; 0 prints all, with subtests.
func (p *Profile) print(w io.Writer, packages, tests int) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, wall, cpu float64, clusters string) {
		fmt.Fprintf(table, "%.1f\t%.1f\t%.1f\t%s\t  %s\n", wall, cpu, idle(wall, cpu), clusters, name)
	}
	title := func(name string) { fmt.Fprintf(table, "\t\t\t\t\nseconds\tprocessor\tidle\tclusters\t  %s\n", name) }
	slowest := func(test bool) []Usage {
		list := slices.DeleteFunc(slices.Clone(p.Usages), func(u Usage) bool { return u.Test != test })
		slices.SortFunc(list, func(a, b Usage) int { return cmp.Compare(b.Wall, a.Wall) })
		return list
	}
	title("targets")
	for _, u := range slowest(false) {
		line(u.Name, u.Wall, u.CPU, fmt.Sprint(u.Clusters))
	}
	title("the slowest packages")
	for _, u := range head(slowest(true), packages) {
		line(short(u.Name), u.Wall, u.CPU, fmt.Sprint(u.Clusters))
	}
	title("the slowest tests")
	list := slices.SortedFunc(slices.Values(p.Tests), func(a, b Test) int { return cmp.Compare(b.Wall, a.Wall) })
	if tests > 0 {
		list = slices.DeleteFunc(list, func(t Test) bool { return strings.Contains(t.Name, "/") })
	}
	for _, t := range head(list, tests) {
		line(short(t.Package)+" "+t.Name, t.Wall, t.CPU, "")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	failed, targets := 0, ""
	for _, t := range p.Tests {
		if t.Failed {
			failed++
		}
	}
	for _, u := range p.Usages {
		if u.Failed && !u.Test { // also if it fails before its first test
			targets += ", " + u.Name + " failed"
		}
	}
	wall, cpu, clusters := p.total()
	_, err := fmt.Fprintf(w, "\ntotal: %v, processor time %v, %d clusters, %d tests, %d failed%s\n", wall, cpu, clusters, len(p.Tests), failed, targets)
	return err
}

// total is from the first start to the last end, and the use of all targets, which contain the packages.
// Without targets, as when go test runs alone, it is the use of all packages.
func (p *Profile) total() (wall, cpu time.Duration, clusters int) {
	var first, last time.Time
	var ofTests, ofSteps float64
	for _, u := range p.Usages {
		if end := u.end(); end.After(last) {
			last = end
		}
		if first.IsZero() || u.From.Before(first) {
			first = u.From
		}
		if u.Test {
			ofTests += u.CPU
			clusters += u.Clusters
		} else {
			ofSteps += u.CPU
		}
	}
	return last.Sub(first).Round(time.Second), seconds(max(ofTests, ofSteps)).Round(time.Second), clusters
}

func (u Usage) end() time.Time { return u.From.Add(seconds(u.Wall)) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func head[T any](list []T, n int) []T {
	if n == 0 || n > len(list) {
		return list
	}
	return list[:n]
}

// short returns a name without the path of the module.
func short(name string) string { return strings.TrimPrefix(name, "kube-queue.dev/kube-queue/") }

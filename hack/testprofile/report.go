package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print prints the targets, and the slowest packages and tests, or all of them with the subtests.
func (p *Profile) print(w io.Writer, all bool) error {
	packages, tests, shown := 10, 20, p.Tests
	if all {
		packages, tests = len(p.Packages), len(p.Tests)
	} else {
		shown = slices.DeleteFunc(slices.Clone(p.Tests), func(u Usage) bool {
			_, test, _ := strings.Cut(u.Name, " ")
			return strings.Contains(test, "/")
		})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	clusters := func(u Usage) string { return fmt.Sprint(u.Clusters) }
	section(table, "targets", p.Targets, len(p.Targets), clusters)
	section(table, "the slowest packages", p.Packages, packages, clusters)
	section(table, "the slowest tests", shown, tests, func(Usage) string { return "" })
	if err := table.Flush(); err != nil {
		return err
	}
	failed, targets := 0, ""
	for _, u := range p.Tests {
		if u.Failed {
			failed++
		}
	}
	for _, u := range p.Targets {
		if u.Failed { // also if it fails before its first test
			targets += ", " + u.Name + " failed"
		}
	}
	wall, cpu, started := p.total()
	fmt.Fprintln(w)
	for _, test := range p.NotRun {
		fmt.Fprintln(w, notRun+test)
	}
	_, err := fmt.Fprintf(w, "total: %v, processor time %v, %d clusters, %d tests, %d failed%s\n", wall, cpu, started, len(p.Tests), failed, targets)
	return err
}

// section prints the slowest usages. A usage was idle while it used no processor.
func section(table io.Writer, title string, usages []Usage, most int, clusters func(Usage) string) {
	fmt.Fprintf(table, "\t\t\t\t\nseconds\tprocessor\tidle\tclusters\t  %s\n", title)
	slowest := slices.SortedFunc(slices.Values(usages), func(a, b Usage) int { return cmp.Compare(b.Wall, a.Wall) })
	for _, u := range slowest[:min(most, len(slowest))] {
		fmt.Fprintf(table, "%.1f\t%.1f\t%.1f\t%s\t  %s\n", u.Wall, u.CPU, max(0, u.Wall-u.CPU), clusters(u), u.Name)
	}
}

// row matches a row of the table of targets: the target, what it does, and how long it took.
var row = regexp.MustCompile("(?m)^(\\| `make ([a-z0-9-]+)` \\|.*\\|)[^|]*\\|$")

// refresh writes the measured times of targets into the rows of a Markdown table. It keeps rows of targets that were
// not measured. If only is not empty, it is the target that was run, and only its total is written.
func (p *Profile) refresh(path, only string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// Only make test and make test-all measure targets, and only the latter has test-versions.
	whole, walls := "test", map[string]time.Duration{}
	for _, u := range p.Targets {
		walls[u.Name] = seconds(u.Wall)
		if u.Name == "test-versions" {
			whole = "test-all"
		}
	}
	if len(walls) > 0 {
		walls[whole], _, _ = p.total()
	}
	if only != "" {
		walls = map[string]time.Duration{only: walls[whole]}
	}
	var written []string
	changed := row.ReplaceAllStringFunc(string(text), func(line string) string {
		parts := row.FindStringSubmatch(line)
		wall, measured := walls[parts[2]]
		if !measured {
			return line
		}
		written = append(written, parts[2])
		return parts[1] + " " + spoken(wall) + " |"
	})
	if len(written) == 0 {
		return fmt.Errorf("%s has no row of a measured target", path)
	}
	fmt.Printf("%s: the times of %s\n", path, strings.Join(written, ", "))
	return os.WriteFile(path, []byte(changed), 0o644)
}

// spoken formats a duration as "40 s" or "12 min".
func spoken(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Package report contains the results of a measurement: figures in sections, printed as a table
// or as JSON.
//
// Terms. A Figure is a number with its unit. A Bar is the value that a figure must reach; a
// figure without a bar is informational. Percentiles are exact: the nearest rank of all
// measured values.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"
)

// Report is the result of one command.
type Report struct {
	Date      time.Time  `json:"date"`
	GoVersion string     `json:"goVersion"`
	Cores     int        `json:"cores"`
	Version   string     `json:"kubeQueueVersion"`
	Command   string     `json:"command"`
	Scenario  string     `json:"scenario,omitempty"`
	Flags     []string   `json:"flags"`
	Sections  []*Section `json:"sections"`
}

// New returns an empty report of a command. version is the version of kube-queue, and flags are the
// flags of the command line.
func New(command, scenario, version string, flags []string) *Report {
	return &Report{
		Date: time.Now().UTC().Truncate(time.Second), GoVersion: runtime.Version(), Cores: runtime.NumCPU(),
		Version: version, Command: command, Scenario: scenario, Flags: append([]string{}, flags...),
	}
}

// Section is a part of a report.
type Section struct {
	Name    string    `json:"name"`
	Figures []*Figure `json:"figures"`
}

// Figure is a number with its unit, which is empty for a plain count.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	*Bar
	// Met is nil without a bar.
	Met *bool `json:"met,omitempty"`
}

// Bar is the value that a figure must reach.
type Bar struct {
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
}

// AtMost returns a bar with an upper limit.
func AtMost(value float64) *Bar { return &Bar{AtMost: &value} }

// AtLeast returns a bar with a lower limit.
func AtLeast(value float64) *Bar { return &Bar{AtLeast: &value} }

func (b *Bar) met(value float64) bool {
	return (b.AtMost == nil || value <= *b.AtMost) && (b.AtLeast == nil || value >= *b.AtLeast)
}

func (b *Bar) String() string {
	switch {
	case b.AtMost != nil:
		return "<= " + number(*b.AtMost)
	case b.AtLeast != nil:
		return ">= " + number(*b.AtLeast)
	}
	return ""
}

// Section adds a section.
func (r *Report) Section(name string) *Section {
	s := &Section{Name: name, Figures: []*Figure{}}
	r.Sections = append(r.Sections, s)
	return s
}

// Find returns a figure by its section and name; nil if it does not exist.
func (r *Report) Find(section, name string) *Figure {
	for _, s := range r.Sections {
		for _, f := range s.Figures {
			if s.Name == section && f.Name == name {
				return f
			}
		}
	}
	return nil
}

// Add adds a figure; bar may be nil.
func (s *Section) Add(name string, value float64, unit string, bar *Bar) {
	f := &Figure{Name: name, Value: value, Unit: unit}
	if bar != nil {
		met := bar.met(value)
		f.Bar, f.Met = bar, &met
	}
	s.Figures = append(s.Figures, f)
}

// Count adds a plain count.
func (s *Section) Count(name string, count int) { s.Add(name, float64(count), "", nil) }

// Missed returns the figures that do not reach their bars.
func (r *Report) Missed() []string {
	var missed []string
	for _, s := range r.Sections {
		for _, f := range s.Figures {
			if f.Met != nil && !*f.Met {
				missed = append(missed, fmt.Sprintf("%s, %s: %s %s, must be %v", s.Name, f.Name, number(f.Value), f.Unit, f.Bar))
			}
		}
	}
	return missed
}

// Print writes the table.
func (r *Report) Print(w io.Writer) error {
	title := r.Command
	if r.Scenario != "" {
		title += " " + r.Scenario
	}
	fmt.Fprintf(w, "%s: kube-queue %s, %d cores, %s, %s\n", title, r.Version, r.Cores, r.GoVersion, r.Date.Format(time.RFC3339))
	for _, s := range r.Sections {
		fmt.Fprintf(w, "\n%s\n", s.Name)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range s.Figures {
			bar, verdict := "", ""
			if f.Met != nil {
				bar, verdict = f.Bar.String(), "not met"
				if *f.Met {
					verdict = "met"
				}
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", f.Name, number(f.Value), f.Unit, bar, verdict)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes the JSON.
func (r *Report) WriteFile(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// number formats a value with its significant digits.
func number(value float64) string {
	switch size := math.Abs(value); {
	case value == math.Trunc(value) || size >= 1000:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 100:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size >= 1:
		return strconv.FormatFloat(value, 'f', 2, 64)
	default:
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
}

package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Report is the result of one command.
type Report struct {
	Date     time.Time  `json:"date"`
	Cores    int        `json:"cores"`
	Version  string     `json:"kubeQueueVersion"`
	Command  string     `json:"command"`
	Sections []*Section `json:"sections"`
}

// NewReport returns an empty report of a command.
func NewReport(command string) *Report {
	return &Report{Date: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Command: command}
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
	Bar
	// Met is nil without a bar.
	Met *bool `json:"met,omitempty"`
}

// Bar is the value that a figure must reach. The zero Bar is none.
type Bar struct {
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
}

func (b Bar) met(value float64) bool {
	return (b.AtMost == nil || value <= *b.AtMost) && (b.AtLeast == nil || value >= *b.AtLeast)
}

func (b Bar) text() string {
	if b.AtMost != nil {
		return "<= " + number(*b.AtMost)
	}
	return ">= " + number(*b.AtLeast)
}

// Section adds a section.
func (r *Report) Section(name string) *Section {
	s := &Section{Name: name}
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

// Add adds a figure with at most one bar.
func (s *Section) Add(name string, value float64, unit string, bar ...Bar) {
	f := &Figure{Name: name, Value: value, Unit: unit}
	if len(bar) > 0 && bar[0] != (Bar{}) {
		f.Bar, f.Met = bar[0], new(bar[0].met(value))
	}
	s.Figures = append(s.Figures, f)
}

// Count adds a plain count.
func (s *Section) Count(name string, count int) { s.Add(name, float64(count), "") }

// Print writes the table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: kube-queue %s, %d cores, %s\n", r.Command, r.Version, r.Cores, r.Date.Format(time.RFC3339))
	for _, s := range r.Sections {
		fmt.Fprintf(w, "\n%s\n", s.Name)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range s.Figures {
			bar, verdict := "", ""
			if f.Met != nil {
				bar, verdict = f.Bar.text(), "not met"
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
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// number formats a value with about three digits.
func number(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// Durations are measured times.
type Durations []time.Duration

// Percentile returns the smallest duration that at least a fraction p (0 to 1) of all do not exceed. It returns 0
// without durations.
func (d Durations) Percentile(p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(d))))
	return slices.Sorted(slices.Values(d))[max(rank, 1)-1]
}

// Spread adds the number of durations, percentiles and the maximum. The bars are for the p50 and the p99.
func (s *Section) Spread(d Durations, half, all Bar) {
	s.Count("measured", len(d))
	s.Add("p50", Milliseconds(d.Percentile(0.5)), "ms", half)
	s.Add("p90", Milliseconds(d.Percentile(0.9)), "ms")
	s.Add("p99", Milliseconds(d.Percentile(0.99)), "ms", all)
	s.Add("max", Milliseconds(d.Percentile(1)), "ms")
}

// Milliseconds returns a duration in milliseconds, with fractions.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// MiB returns bytes in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

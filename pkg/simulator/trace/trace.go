// Package trace reads traces of past jobs for the simulator.
//
// Terms. A trace is a list of jobs with submission time, run time, requests and tenant. A
// tenant becomes a namespace. A row is one job in the file. Rows that cannot be simulated
// are skipped and counted by cause. Rows that cannot be parsed are errors.
//
// Two formats are supported: CSV with a header, described in test/traces/README.md, and the
// Standard Workload Format of the Parallel Workloads Archive, version 2.2. Both may be
// compressed with gzip.
//
// Invariants. The order of rows does not matter: files with the same rows give the same
// trace. Jobs are sorted by submission. No input makes a reader panic. An error names file,
// line and column, and what is expected there.
package trace

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	CSV Format = "csv"
	SWF Format = "swf"
)

// FormatOf returns the format of a file by its name. The default is CSV.
func FormatOf(name string) Format {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	if filepath.Ext(name) == ".swf" {
		return SWF
	}
	return CSV
}

// Options are the options of the readers.
type Options struct {
	// Format is the format of the file; if empty, its name determines the format.
	Format Format
	// GPUResource is the resource that the column num_gpus of a CSV file counts.
	GPUResource string
	// Tenant is the field of a Standard Workload Format file that identifies tenants.
	Tenant Field
}

// Trace is the content of a file.
type Trace struct {
	// Jobs are sorted by submission; the first is submitted at 0.
	Jobs []simulator.Job
	// Start is the submission time of the first job; zero if the file has no dates.
	Start time.Time
	// Resources are the requested resources in the order of the file.
	Resources []string
	// Skipped are the skipped rows, sorted by cause.
	Skipped []Skipped
	// Renamed are the tenants whose names are not valid for a namespace, sorted by name.
	Renamed []Renamed
}

// Skipped describes rows that were skipped for one cause.
type Skipped struct {
	Cause string
	Count int
	// Line is the line of the first row.
	Line int
}

// Renamed describes a tenant that was renamed.
type Renamed struct {
	From, To string
}

// Error describes an error in a file and its position.
type Error struct {
	File string
	// Line counts from 1; 0 refers to the complete file.
	Line int
	// Column is the name of the column; empty refers to the complete line.
	Column string
	// Fault describes what is wrong and what to do.
	Fault string
}

// Error returns position and fault.
func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column != "" {
		text += ": column " + e.Column
	}
	return text + ": " + e.Fault
}

// Open reads a file.
func Open(name string, opts Options) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	defer f.Close()
	return Read(f, name, opts)
}

// Read reads a trace, compressed or not. Messages show its name, which also determines the format if that is not set.
func Read(from io.Reader, name string, opts Options) (*Trace, error) {
	r := bufio.NewReader(from)
	if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, &Error{File: name, Fault: fmt.Sprintf("cannot decompress the file: %v", err)}
		}
		r = bufio.NewReader(unzipped)
	}
	c := &collector{file: name, skipped: map[string]*Skipped{}}
	read := c.readCSV
	if cmp.Or(opts.Format, FormatOf(name)) == SWF {
		read = c.readSWF
	}
	if err := read(r, opts); err != nil {
		return nil, err
	}
	return c.trace()
}

// row is one job of the file.
type row struct {
	job simulator.Job
	// at is the submission time, since the epoch or since the start of the log.
	at     time.Duration
	tenant string
	// sizes are the unparsed requests, to order rows that are otherwise equal.
	sizes string
}

type collector struct {
	file    string
	rows    []row
	skipped map[string]*Skipped
	// dated reports whether submission times are dates.
	dated     bool
	resources []string
}

func (c *collector) fault(line int, column, format string, args ...any) error {
	return &Error{File: c.file, Line: line, Column: column, Fault: fmt.Sprintf(format, args...)}
}

func (c *collector) skip(line int, cause string) {
	s, known := c.skipped[cause]
	if !known {
		s = &Skipped{Cause: cause, Line: line}
		c.skipped[cause] = s
	}
	s.Count++
}

// trace sorts the rows, so that their order in the file does not matter, and names the jobs.
func (c *collector) trace() (*Trace, error) {
	t := &Trace{Resources: c.resources}
	for _, s := range c.skipped {
		t.Skipped = append(t.Skipped, *s)
	}
	slices.SortFunc(t.Skipped, func(a, b Skipped) int { return strings.Compare(a.Cause, b.Cause) })
	if len(c.rows) == 0 {
		fault := "the file contains no jobs"
		for _, s := range t.Skipped {
			fault += fmt.Sprintf("; %d skipped: %s (first at line %d)", s.Count, s.Cause, s.Line)
		}
		return nil, &Error{File: c.file, Fault: fault}
	}
	slices.SortFunc(c.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.tenant, b.tenant), strings.Compare(a.job.Name, b.job.Name),
			cmp.Compare(b.job.Priority, a.job.Priority), strings.Compare(a.sizes, b.sizes), cmp.Compare(a.job.Runs, b.job.Runs),
			cmp.Compare(a.job.Limit, b.job.Limit), cmp.Compare(a.job.Expected, b.job.Expected))
	})
	namespaces, renamed := namespaces(c.rows)
	t.Renamed = renamed
	first := c.rows[0].at
	if c.dated {
		t.Start = time.Unix(0, 0).UTC().Add(first)
	}
	names := namer{}
	for i, r := range c.rows {
		r.job.Submitted = r.at - first
		r.job.Namespace = namespaces[r.tenant]
		r.job.Name = names.name(r.job, i)
		t.Jobs = append(t.Jobs, r.job)
	}
	return t, nil
}

// namer gives each job a unique name in its namespace, because a name can occur several times in a trace if jobs were
// submitted again. It counts the jobs that have asked for each name.
type namer map[string]int

func (n namer) name(job simulator.Job, place int) string {
	if job.Name == "" {
		job.Name = fmt.Sprintf("job-%07d", place+1)
	}
	name := job.Name
	for n[job.Namespace+"/"+name] > 0 {
		n[job.Namespace+"/"+job.Name]++
		name = fmt.Sprintf("%s-%d", job.Name, n[job.Namespace+"/"+job.Name])
	}
	n[job.Namespace+"/"+name] = 1
	return name
}

// Package trace reads jobs that once ran somewhere, so that the simulator can play
// them again.
//
// Words. A trace is a list of jobs: when each was submitted, for how long it ran, how
// much of each resource it took and which tenant it belonged to. A tenant becomes a
// namespace. A row is one job as the file has it; one that cannot be played is skipped
// and counted with its cause, one that cannot be understood is an error.
//
// Two formats are read: CSV with a header, as README.md in test/traces describes it,
// and the Standard Workload Format of the Parallel Workloads Archive (fields and their
// meaning as defined there, version 2.2). Either may be compressed with gzip.
//
// Invariants. Rows may come in any order: files with the same rows give the same
// trace. Jobs are in the order of submission. No input makes a reader panic, and an
// error names file, line and column and says what is expected there.
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

// Format of a file.
type Format string

// The formats.
const (
	CSV Format = "csv"
	SWF Format = "swf"
)

// FormatOf reports the format by the name of a file. What is not known by its name is
// CSV.
func FormatOf(name string) Format {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	if filepath.Ext(name) == ".swf" {
		return SWF
	}
	return CSV
}

// Options of the readers.
type Options struct {
	// Format of the file; empty: by its name.
	Format Format
	// GPUResource is the resource that the column num_gpus of a CSV file counts.
	GPUResource string
	// Tenant is the field of a Standard Workload Format file that tells tenants
	// apart.
	Tenant Field
}

// Trace is what a file holds.
type Trace struct {
	// Jobs in the order of submission, the first at 0.
	Jobs []simulator.Job
	// Start is when the first was submitted. Zero where the file does not tell.
	Start time.Time
	// Resources that the jobs ask for, in the order of the file.
	Resources []string
	// Skipped rows by cause, in the order of causes.
	Skipped []Skipped
	// Renamed tenants, whose names no namespace can have, in the order of names.
	Renamed []Renamed
}

// Skipped reports rows that cannot be played.
type Skipped struct {
	Cause string
	Count int
	// Line of the first.
	Line int
}

// Renamed reports a tenant that goes by another name.
type Renamed struct {
	From, To string
}

// Error says what is wrong where.
type Error struct {
	File string
	// Line counts from 1; 0 when it is the whole file.
	Line int
	// Column by its name; empty when it is the whole line.
	Column string
	// Fault and what to do.
	Fault string
}

// Error is all of it in a sentence.
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

// Open reads a file; "-" is the standard input.
func Open(name string, opts Options) (*Trace, error) {
	if opts.Format == "" {
		opts.Format = FormatOf(name)
	}
	if name == "-" {
		return Read(os.Stdin, "standard input", opts)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	defer f.Close()
	return Read(f, name, opts)
}

// Read reads a file of that name, compressed or not.
func Read(from io.Reader, name string, opts Options) (*Trace, error) {
	r := bufio.NewReader(from)
	if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, &Error{File: name, Fault: fmt.Sprintf("it cannot be unpacked: %v", err)}
		}
		r = bufio.NewReader(unzipped)
	}
	c := &collector{file: name, skipped: map[string]*Skipped{}}
	var err error
	switch opts.Format {
	case SWF:
		err = c.readSWF(r, opts)
	default:
		err = c.readCSV(r, opts)
	}
	if err != nil {
		return nil, err
	}
	return c.trace()
}

// row is a job as it was read.
type row struct {
	job simulator.Job
	// at is when it was submitted, since the epoch or the start of the log.
	at     time.Duration
	tenant string
	// sizes as they are written, to order rows that are equal otherwise.
	sizes string
}

// collector makes a trace of rows.
type collector struct {
	file    string
	rows    []row
	skipped map[string]*Skipped
	// dated: at is since the epoch.
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

// trace orders the rows, so that nothing depends on their order in the file, and gives
// them names.
func (c *collector) trace() (*Trace, error) {
	t := &Trace{Resources: c.resources}
	for _, s := range c.skipped {
		t.Skipped = append(t.Skipped, *s)
	}
	slices.SortFunc(t.Skipped, func(a, b Skipped) int { return strings.Compare(a.Cause, b.Cause) })
	if len(c.rows) == 0 {
		fault := "there is no job in it"
		for _, s := range t.Skipped {
			fault += fmt.Sprintf("; %d skipped: %s, the first in line %d", s.Count, s.Cause, s.Line)
		}
		return nil, &Error{File: c.file, Fault: fault}
	}
	slices.SortFunc(c.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.tenant, b.tenant), strings.Compare(a.job.Name, b.job.Name),
			cmp.Compare(b.job.Priority, a.job.Priority), strings.Compare(a.sizes, b.sizes), cmp.Compare(a.job.Runs, b.job.Runs))
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

// namer gives each job a name of its own in its namespace: names may stand more than
// once in a trace, for jobs that were submitted again.
type namer map[string]bool

func (n namer) name(job simulator.Job, place int) string {
	if job.Name == "" {
		job.Name = fmt.Sprintf("job-%07d", place+1)
	}
	name := job.Name
	for i := 2; n[job.Namespace+"/"+name]; i++ {
		name = fmt.Sprintf("%s-%d", job.Name, i)
	}
	n[job.Namespace+"/"+name] = true
	return name
}

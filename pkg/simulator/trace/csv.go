package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Names of the columns in the header.
const (
	columnTimestamp = "timestamp"
	columnDuration  = "duration"
	columnGPUs      = "num_gpus"
	columnCluster   = "cluster"
	columnNamespace = "namespace"
	columnPriority  = "priority"
	columnName      = "name"
	columnLimit     = "limit"
	columnExpected  = "expected"
	// columnRequest is the prefix of columns with requests for a resource.
	columnRequest = "request:"
)

// maxSeconds is the longest valid time, a hundred years. Longer times are mistakes, for
// example a date in milliseconds.
const maxSeconds = 100 * 366 * 24 * 3600

// columns contains the index of each column in a row; -1 if the column does not exist.
type columns struct {
	timestamp, duration, tenant, priority, name, limit, expected int
	tenantColumn                                                 string
	sizes                                                        []size
	count                                                        int
}

// size is a column with the request of a job for a resource.
type size struct {
	at               int
	column, resource string
}

func (c *collector) readCSV(from *bufio.Reader, opts Options) error {
	// Some programs write a byte order mark first.
	if mark, _ := from.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = from.Discard(len(mark))
	}
	r := csv.NewReader(from)
	r.Comma = separator(from)
	// A leading tab is an empty field.
	r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = -1, r.Comma != '\t', true
	header, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		return c.fault(0, "", "the file is empty; expected a header, for example timestamp,duration,num_gpus,cluster")
	case err != nil:
		return c.broken(err)
	}
	at, err := c.header(slices.Clone(header), opts)
	if err != nil {
		return err
	}
	for {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.broken(err)
		case !slices.ContainsFunc(record, func(s string) bool { return strings.TrimSpace(s) != "" }):
			continue
		}
		line, _ := r.FieldPos(0)
		if err := c.record(record, line, at); err != nil {
			return err
		}
	}
}

// separator returns the separator of the file: a comma or, if the header has none, the semicolon or tab that
// spreadsheets write in some languages.
func separator(from *bufio.Reader) rune {
	start, _ := from.Peek(from.Size())
	header, _, _ := bytes.Cut(start, []byte("\n"))
	for _, other := range []rune{';', '\t'} {
		if !bytes.ContainsRune(header, ',') && bytes.ContainsRune(header, other) {
			return other
		}
	}
	return ','
}

// broken returns the error for a file that is not CSV or cannot be read.
func (c *collector) broken(err error) error {
	if parse, is := errors.AsType[*csv.ParseError](err); is {
		return c.fault(parse.Line, "", "invalid CSV: %v at character %d; quote fields that contain quotes or commas, and double the quotes in them", parse.Err, parse.Column)
	}
	return c.fault(0, "", "cannot read the file: %v", err)
}

func (c *collector) header(header []string, opts Options) (*columns, error) {
	places := map[string]int{}
	at := &columns{count: len(header)}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if lower := strings.ToLower(name); !strings.HasPrefix(lower, columnRequest) {
			name = lower
		} else {
			name = columnRequest + strings.TrimSpace(name[len(columnRequest):])
		}
		resourceName, isSize := strings.CutPrefix(name, columnRequest)
		if name == columnGPUs {
			resourceName, isSize = opts.GPUResource, true
		}
		if _, twice := places[name]; twice && (isSize || slices.Contains(knownColumns, name)) {
			return nil, c.fault(1, name, "duplicate column; remove one of the two")
		}
		places[name] = i
		if !isSize {
			continue
		}
		if resourceName == "" {
			return nil, c.fault(1, name, "the name of the resource is missing; write it as in request:cpu")
		}
		if slices.Contains(c.resources, resourceName) {
			return nil, c.fault(1, name, "two columns contain the resource %s; remove one of them", resourceName)
		}
		c.resources = append(c.resources, resourceName)
		at.sizes = append(at.sizes, size{at: i, column: name, resource: resourceName})
	}
	find := func(name string) int {
		if i, ok := places[name]; ok {
			return i
		}
		return -1
	}
	at.timestamp, at.duration, at.priority, at.name, at.limit, at.expected = find(columnTimestamp), find(columnDuration), find(columnPriority), find(columnName), find(columnLimit), find(columnExpected)
	at.tenant, at.tenantColumn = find(columnNamespace), columnNamespace
	if at.tenant < 0 {
		at.tenant, at.tenantColumn = find(columnCluster), columnCluster
	}
	missing := func(what string) error {
		return c.fault(1, "", "the header lacks a column %s; it has only %s", what, strings.Join(header, ", "))
	}
	switch {
	case at.timestamp < 0:
		return nil, missing(columnTimestamp)
	case at.duration < 0:
		return nil, missing(columnDuration)
	case at.tenant < 0:
		return nil, missing(columnNamespace + " or " + columnCluster)
	case len(at.sizes) == 0:
		return nil, missing(columnGPUs + " or a column such as request:cpu")
	}
	return at, nil
}

// knownColumns have a meaning; other columns are ignored.
var knownColumns = []string{columnTimestamp, columnDuration, columnCluster, columnNamespace, columnPriority, columnName, columnLimit, columnExpected}

func (c *collector) record(record []string, line int, at *columns) error {
	if len(record) != at.count {
		return c.fault(line, "", "the row has %d fields, but the header has %d; leave the fields of unknown values empty", len(record), at.count)
	}
	field := func(i int) string { return strings.TrimSpace(record[i]) }
	r := row{tenant: strings.Clone(field(at.tenant))}
	if r.tenant == "" {
		return c.fault(line, at.tenantColumn, "the field is empty; every job needs a tenant")
	}
	var dated bool
	var err error
	if r.at, dated, err = timestamp(field(at.timestamp)); err != nil {
		return c.fault(line, columnTimestamp, "%v", err)
	}
	if len(c.rows) > 0 && dated != c.dated {
		return c.fault(line, columnTimestamp, "the file mixes dates and seconds; use only one of the two")
	}
	c.dated = dated
	if r.job.Runs, err = seconds(field(at.duration)); err != nil {
		return c.fault(line, columnDuration, "%v", err)
	}
	if at.limit >= 0 && field(at.limit) != "" {
		limit, err := seconds(field(at.limit))
		if err != nil {
			return c.fault(line, columnLimit, "%v; leave the field empty for no limit", err)
		}
		r.job.Limit = limitOf(limit, r.job.Runs)
	}
	if at.expected >= 0 && field(at.expected) != "" {
		if r.job.Expected, err = seconds(field(at.expected)); err != nil {
			return c.fault(line, columnExpected, "%v; leave the field empty if it is unknown", err)
		}
	}
	if at.name >= 0 {
		r.job.Name = strings.Clone(field(at.name))
	}
	if at.priority >= 0 && field(at.priority) != "" {
		priority, err := strconv.ParseInt(field(at.priority), 10, 32)
		if err != nil {
			return c.fault(line, columnPriority, "%q is not an integer from -2147483648 to 2147483647; leave the field empty for 0", field(at.priority))
		}
		r.job.Priority = int32(priority)
	}
	for _, s := range at.sizes {
		text := field(s.at)
		r.sizes += text + ","
		if text == "" {
			continue
		}
		amount, err := amount(s.resource, text)
		if err != nil {
			return c.fault(line, s.column, "%v", err)
		}
		if r.job.Requests == nil {
			r.job.Requests = make(map[string]resource.Quantity, len(at.sizes))
		}
		r.job.Requests[s.resource] = amount
	}
	c.rows = append(c.rows, r)
	return nil
}

func amount(name, text string) (resource.Quantity, error) {
	q, err := resources.Parse(text)
	if err == nil {
		_, err = resources.RequestValue(name, q)
	}
	return q, err
}

// layouts are the supported layouts of a date. A date without a zone is read as UTC, because
// only differences matter.
var layouts = []string{"2006-01-02 15:04:05", time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00"}

// timestamp parses a date or a number of seconds; dated reports whether it is a date.
func timestamp(text string) (at time.Duration, dated bool, err error) {
	for _, layout := range layouts {
		if date, err := time.Parse(layout, text); err == nil {
			if date.Year() < 1970 || date.Year() > 2199 {
				return 0, true, fmt.Errorf("the year must be from 1970 to 2199, not %d", date.Year())
			}
			return date.Sub(time.Unix(0, 0)), true, nil
		}
	}
	if at, err = seconds(text); err != nil {
		return 0, false, fmt.Errorf("%q is neither a date, such as 2026-01-31T08:00:00Z or 2026-01-31 08:00:00, nor a number of seconds from 0 to %d", text, maxSeconds)
	}
	return at, false, nil
}

// seconds parses a number of seconds that can have a fraction.
func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, errors.New("the field is empty; expected a number of seconds, such as 90 or 90.5")
	case err != nil || !(n >= 0 && n <= maxSeconds):
		return 0, fmt.Errorf("%q is not a number of seconds from 0 to %d, such as 90 or 90.5", text, maxSeconds)
	}
	return toDuration(n), nil
}

// limitOf returns a limit that does not stop the job earlier than in the trace.
func limitOf(limit, runs time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return max(limit, runs+time.Second).Truncate(time.Second)
}

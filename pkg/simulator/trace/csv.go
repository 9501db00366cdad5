package trace

import (
	"bufio"
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

// Columns by the names in the header.
const (
	columnTimestamp = "timestamp"
	columnDuration  = "duration"
	columnGPUs      = "num_gpus"
	columnCluster   = "cluster"
	columnNamespace = "namespace"
	columnPriority  = "priority"
	columnName      = "name"
	// columnRequest is what the name of a column that reports a resource begins with.
	columnRequest = "request:"
)

// maxSeconds is the longest time that is read, a hundred years. What is above is a
// slip, or a date in thousandths of a second.
const maxSeconds = 100 * 366 * 24 * 3600

// columns says where in a row what stands; -1: nowhere.
type columns struct {
	timestamp, duration, tenant, priority, name int
	tenantColumn                                string
	sizes                                       []size
	count                                       int
}

// size is a column that reports how much of a resource a job takes.
type size struct {
	at               int
	column, resource string
}

func (c *collector) readCSV(from *bufio.Reader, opts Options) error {
	// Some programs write a mark of the encoding first.
	if mark, _ := from.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = from.Discard(len(mark))
	}
	r := csv.NewReader(from)
	r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = -1, true, true
	header, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		return c.fault(0, "", "it is empty; a header is expected, as timestamp,duration,num_gpus,cluster")
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

// broken reports what is no CSV, or cannot be read at all.
func (c *collector) broken(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return c.fault(parse.Line, "", "it is no CSV: %v at character %d; quote a field that holds quotes or commas, and double the quotes in it", parse.Err, parse.Column)
	}
	return c.fault(0, "", "it cannot be read: %v", err)
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
			return nil, c.fault(1, name, "it stands there twice; leave one out")
		}
		places[name] = i
		if !isSize {
			continue
		}
		if resourceName == "" {
			return nil, c.fault(1, name, "the resource is missing; write it as request:cpu")
		}
		if slices.Contains(c.resources, resourceName) {
			return nil, c.fault(1, name, "there are two columns of %s; leave one out", resourceName)
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
	at.timestamp, at.duration, at.priority, at.name = find(columnTimestamp), find(columnDuration), find(columnPriority), find(columnName)
	at.tenant, at.tenantColumn = find(columnNamespace), columnNamespace
	if at.tenant < 0 {
		at.tenant, at.tenantColumn = find(columnCluster), columnCluster
	}
	missing := func(what string) error {
		return c.fault(1, "", "the header has no column %s, only %s", what, strings.Join(header, ", "))
	}
	switch {
	case at.timestamp < 0:
		return nil, missing(columnTimestamp)
	case at.duration < 0:
		return nil, missing(columnDuration)
	case at.tenant < 0:
		return nil, missing(columnNamespace + " or " + columnCluster)
	case len(at.sizes) == 0:
		return nil, missing(columnGPUs + ", nor one as request:cpu")
	}
	return at, nil
}

// knownColumns have a meaning; any other is ignored.
var knownColumns = []string{columnTimestamp, columnDuration, columnCluster, columnNamespace, columnPriority, columnName}

func (c *collector) record(record []string, line int, at *columns) error {
	if len(record) != at.count {
		return c.fault(line, "", "%d fields, and the header has %d; write what is not known as an empty field", len(record), at.count)
	}
	field := func(i int) string { return strings.TrimSpace(record[i]) }
	r := row{tenant: strings.Clone(field(at.tenant))}
	if r.tenant == "" {
		return c.fault(line, at.tenantColumn, "it is empty; every job needs a tenant")
	}
	var dated bool
	var err error
	if r.at, dated, err = timestamp(field(at.timestamp)); err != nil {
		return c.fault(line, columnTimestamp, "%v", err)
	}
	if len(c.rows) > 0 && dated != c.dated {
		return c.fault(line, columnTimestamp, "dates and plain seconds in one file; write all as one of the two")
	}
	c.dated = dated
	if r.job.Runs, err = seconds(field(at.duration)); err != nil {
		return c.fault(line, columnDuration, "%v", err)
	}
	if at.name >= 0 {
		r.job.Name = strings.Clone(field(at.name))
	}
	if at.priority >= 0 && field(at.priority) != "" {
		priority, err := strconv.ParseInt(field(at.priority), 10, 32)
		if err != nil {
			return c.fault(line, columnPriority, "%q is no whole number from -2147483648 to 2147483647; leave it empty for 0", field(at.priority))
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

// layouts of a date. Without a zone it is taken as UTC: only differences count.
var layouts = []string{"2006-01-02 15:04:05", time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00"}

// timestamp reads a date or a number of seconds, and reports which of them it was.
func timestamp(text string) (at time.Duration, dated bool, err error) {
	for _, layout := range layouts {
		if date, err := time.Parse(layout, text); err == nil {
			if date.Year() < 1970 || date.Year() > 2199 {
				return 0, true, fmt.Errorf("the year %d is not one from 1970 to 2199", date.Year())
			}
			return date.Sub(time.Unix(0, 0)), true, nil
		}
	}
	if at, err = seconds(text); err != nil {
		return 0, false, fmt.Errorf("%q is neither a date, as 2026-01-31T08:00:00Z or 2026-01-31 08:00:00, nor seconds from 0 to %d", text, maxSeconds)
	}
	return at, false, nil
}

// seconds reads a number of seconds that may have a fraction.
func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, errors.New("it is empty; a number of seconds is expected, as 90 or 90.5")
	case err != nil || !(n >= 0 && n <= maxSeconds):
		return 0, fmt.Errorf("%q is no number of seconds from 0 to %d, as 90 or 90.5", text, maxSeconds)
	}
	// Microseconds are what units are ordered by.
	return time.Duration(n*1e6+0.5) * time.Microsecond, nil
}

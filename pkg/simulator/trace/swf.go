package trace

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Field is a field of the Standard Workload Format that identifies tenants.
type Field string

// The supported fields.
const (
	User      Field = "user"
	Group     Field = "group"
	Queue     Field = "queue"
	Partition Field = "partition"
)

// Fields lists all supported fields.
var Fields = []Field{User, Group, Queue, Partition}

// place returns the index of the field in a line, from 0.
func (f Field) place() int {
	switch f {
	case Group:
		return 12
	case Queue:
		return 14
	case Partition:
		return 15
	default:
		return 11
	}
}

// Indexes of fields in a line, from 0, and the number of fields.
const (
	swfSubmit    = 1
	swfRun       = 3
	swfAllocated = 4
	swfRequested = 7
	swfLimit     = 8
	swfStatus    = 10
	swfFields    = 18
)

// Values of the status field of lines that are skipped.
const (
	swfCanceled = 5
	// swfPart to swfLastPart mean a part of a job that was stopped and continued. Another line describes the complete
	// job.
	swfPart     = 2
	swfLastPart = 4
)

// cpu is the resource that processors count as.
const cpu = "cpu"

var swfNames = [swfFields]string{"1 (job number)", "2 (submit time)", "3 (wait time)", "4 (run time)", "5 (allocated processors)",
	"6 (average CPU time)", "7 (used memory)", "8 (requested processors)", "9 (requested time)", "10 (requested memory)", "11 (status)",
	"12 (user)", "13 (group)", "14 (executable)", "15 (queue)", "16 (partition)", "17 (preceding job)", "18 (think time)"}

const maxLine = 1 << 16

func (c *collector) readSWF(from *bufio.Reader, opts Options) error {
	c.resources = []string{cpu}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, ";") {
			continue
		}
		if err := c.swfLine(text, number, opts.Tenant); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return c.fault(number+1, "", "the line is longer than %d characters; a line of the Standard Workload Format has %d numbers", maxLine, swfFields)
	case err != nil && !errors.Is(err, io.EOF):
		return c.fault(number+1, "", "cannot read the file: %v", err)
	}
	return nil
}

func (c *collector) swfLine(text string, line int, tenant Field) error {
	fields := strings.Fields(text)
	if len(fields) != swfFields {
		return c.fault(line, "", "the line has %d fields, but a line of the Standard Workload Format has %d; if the file is CSV, set --trace-format=csv", len(fields), swfFields)
	}
	var numbers [swfFields]float64
	for _, i := range []int{swfSubmit, swfRun, swfAllocated, swfRequested, swfLimit, swfStatus, tenant.place()} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(n >= -1 && n <= maxSeconds) {
			return c.fault(line, swfNames[i], "%q is neither a number from 0 to %d nor -1 (unknown)", fields[i], maxSeconds)
		}
		numbers[i] = n
	}
	place := swfAllocated
	if numbers[place] <= 0 {
		place = swfRequested
	}
	processors := numbers[place]
	status := int(numbers[swfStatus])
	switch {
	case status >= swfPart && status <= swfLastPart:
		c.skip(line, "part of a job that another line reports completely")
	case status == swfCanceled && numbers[swfRun] <= 0:
		c.skip(line, "canceled before it ran")
	case numbers[swfRun] < 0:
		c.skip(line, "unknown run time")
	case processors <= 0:
		c.skip(line, "unknown number of processors")
	case numbers[swfSubmit] < 0:
		c.skip(line, "unknown submit time")
	default:
		if processors != float64(int64(processors)) {
			return c.fault(line, swfNames[place], "the number of processors must be an integer, not %v", processors)
		}
		c.rows = append(c.rows, row{at: toDuration(numbers[swfSubmit]), tenant: tenantOf(tenant, fields[tenant.place()]), sizes: strconv.FormatInt(int64(processors), 10),
			job: simulator.Job{Runs: toDuration(numbers[swfRun]), Limit: limitOf(toDuration(max(numbers[swfLimit], 0)), toDuration(numbers[swfRun])),
				Requests: map[string]resource.Quantity{cpu: *resource.NewQuantity(int64(processors), resource.DecimalSI)}}})
	}
	return nil
}

// toDuration rounds to microseconds, the precision by which units are ordered.
func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds*1e6+0.5) * time.Microsecond
}

// tenantOf returns the name of a tenant by its number; -1 is an unknown tenant.
func tenantOf(field Field, number string) string {
	if !slices.Contains(Fields, field) {
		field = User
	}
	if strings.HasPrefix(number, "-") {
		number = "unknown"
	}
	return string(field) + "-" + number
}

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

// Field of the Standard Workload Format by which tenants are distinguished.
type Field string

// The fields that may be used.
const (
	User      Field = "user"
	Group     Field = "group"
	Queue     Field = "queue"
	Partition Field = "partition"
)

// Fields lists them.
var Fields = []Field{User, Group, Queue, Partition}

// place in a line, from 0.
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

// Places in a line, from 0, and what it ought to have.
const (
	swfSubmit    = 1
	swfRun       = 3
	swfAllocated = 4
	swfRequested = 7
	swfStatus    = 10
	swfFields    = 18
)

// What the status field says of lines that are not played.
const (
	swfCanceled = 5
	// From swfPart to swfLastPart: one stretch of a job that was stopped and went on,
	// reported again in the line of the whole job.
	swfPart     = 2
	swfLastPart = 4
)

// cpu is what a processor counts as.
const cpu = "cpu"

var swfNames = [swfFields]string{"1 (job number)", "2 (submit time)", "3 (wait time)", "4 (run time)", "5 (allocated processors)",
	"6 (average CPU time)", "7 (used memory)", "8 (requested processors)", "9 (requested time)", "10 (requested memory)", "11 (status)",
	"12 (user)", "13 (group)", "14 (executable)", "15 (queue)", "16 (partition)", "17 (preceding job)", "18 (think time)"}

// maxLine bounds the length of a line.
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
		return c.fault(number+1, "", "the line has more than %d characters; a line of the Standard Workload Format has %d numbers", maxLine, swfFields)
	case err != nil && !errors.Is(err, io.EOF):
		return c.fault(number+1, "", "it cannot be read: %v", err)
	}
	return nil
}

func (c *collector) swfLine(text string, line int, tenant Field) error {
	fields := strings.Fields(text)
	if len(fields) != swfFields {
		return c.fault(line, "", "%d fields; a line of the Standard Workload Format has %d (is it CSV? then say so by --trace-format)", len(fields), swfFields)
	}
	var numbers [swfFields]float64
	for _, i := range []int{swfSubmit, swfRun, swfAllocated, swfRequested, swfStatus, tenant.place()} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(n >= -1 && n <= maxSeconds) {
			return c.fault(line, swfNames[i], "%q is no number from 0 to %d, nor -1 for what is not known", fields[i], maxSeconds)
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
		c.skip(line, "part of a job, reported again in the line of the whole job")
	case status == swfCanceled && numbers[swfRun] <= 0:
		c.skip(line, "canceled before it ran")
	case numbers[swfRun] < 0:
		c.skip(line, "its run time is not known")
	case processors <= 0:
		c.skip(line, "its number of processors is not known")
	case numbers[swfSubmit] < 0:
		c.skip(line, "its submit time is not known")
	default:
		if processors != float64(int64(processors)) {
			return c.fault(line, swfNames[place], "%v is no whole number of processors", processors)
		}
		c.rows = append(c.rows, row{at: toDuration(numbers[swfSubmit]), tenant: tenantOf(tenant, fields[tenant.place()]), sizes: strconv.FormatInt(int64(processors), 10),
			job: simulator.Job{Runs: toDuration(numbers[swfRun]),
				Requests: map[string]resource.Quantity{cpu: *resource.NewQuantity(int64(processors), resource.DecimalSI)}}})
	}
	return nil
}

func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds*1e6+0.5) * time.Microsecond
}

// tenantOf a number; -1 is whom the log does not know.
func tenantOf(field Field, number string) string {
	if !slices.Contains(Fields, field) {
		field = User
	}
	if strings.HasPrefix(number, "-") {
		number = "unknown"
	}
	return string(field) + "-" + number
}

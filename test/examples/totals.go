package examples

import (
	"bytes"
	"fmt"
)

// totals count the examples of a source, or of all.
type totals struct {
	// Each example is queued, notQueued or notCreated. unsized is a part of queued.
	queued, unsized, notQueued, notCreated int
}

func (r *Report) totals() totals {
	var sum totals
	for i := range r.Outcomes {
		switch o := &r.Outcomes[i]; {
		case o.Refused != "":
			sum.notCreated++
		case o.Invalid != "":
			sum.notQueued++
		default:
			sum.queued++
			if o.Warning != "" {
				sum.unsized++
			}
		}
	}
	return sum
}

func (t *totals) add(other totals) {
	t.queued += other.queued
	t.unsized += other.unsized
	t.notQueued += other.notQueued
	t.notCreated += other.notCreated
}

func (t *totals) all() int { return t.queued + t.notQueued + t.notCreated }

// writeTotals writes the sums of all reports.
func writeTotals(page *bytes.Buffer, reports []*Report) {
	var all totals
	for _, report := range reports {
		all.add(report.totals())
	}
	fmt.Fprintf(page, "Of %[2]d examples, %[1]d are queued, %[3]d of them with a warning that their size is not known.\n",
		all.queued, all.all(), all.unsized)
	page.WriteString("\n| operator | examples | queued | not queued | not created |\n|---|---|---|---|---|\n")
	for _, report := range reports {
		sum := report.totals()
		fmt.Fprintf(page, "| %s | %d | %d | %d | %d |\n", report.title(), sum.all(), sum.queued, sum.notQueued, sum.notCreated)
	}
	fmt.Fprintf(page, "| all | %d | %d | %d | %d |\n", all.all(), all.queued, all.notQueued, all.notCreated)
}

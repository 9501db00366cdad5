package audit

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable contains the writes of the two programs for each job.
type WriteTable struct{ Jobs []JobWrites }

// Writes counts the writes of the two programs.
func (l *Log) Writes() WriteTable {
	b := newBook()
	s := l.replay(settings{}, b.see)
	var t WriteTable
	for _, a := range b.order {
		if a.settle(s); a.Total()+a.Failed > 0 {
			t.Jobs = append(t.Jobs, a.JobWrites)
		}
	}
	return t
}

// Print prints the table: first per job, then per kind.
func (t WriteTable) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tNAMESPACE\tNAME\tJOB\tUNIT\tEVENTS\tTOTAL\tBUDGET\tREFUSED\tWAITED\tRAN\tNOTE")
	jobs, purposes := map[string]int{}, map[string]int{}
	for _, j := range t.Jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", j.Kind, j.Namespace, j.Name,
			j.OnJob, j.OnUnit, j.OnEvents, j.Total(), j.Budget, j.Failed,
			j.Waited.Round(time.Millisecond), j.Ran.Round(time.Millisecond), j.Unjudged)
		jobs[j.Kind]++
		for what, n := range j.By {
			purposes[j.Kind+"\t"+what] += n
		}
	}
	fmt.Fprintln(table, "\nKIND\tWRITE\tCOUNT\tPER JOB")
	for _, key := range slices.Sorted(maps.Keys(purposes)) {
		kind, what, _ := strings.Cut(key, "\t")
		fmt.Fprintf(table, "%s\t%s\t%d\t%.2f\n", kind, what, purposes[key], float64(purposes[key])/float64(jobs[kind]))
	}
	return table.Flush()
}

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"kube-queue.dev/kube-queue/pkg/simulator/search"
)

// printSearch writes the scores of a search as a table.
func printSearch(f *search.Found, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "JOBS\tRESERVE-AFTER\tMEAN-WAIT\tP90-WAIT\tLONGEST-WAIT\t")
	row := func(half string, s search.Score, note string) {
		after := s.ReserveAfter.String()
		if s.ReserveAfter == 0 {
			after = "never"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", half, after, s.Mean, s.P90, s.Max, note)
	}
	for _, s := range f.First {
		note := ""
		if s == f.Best {
			note = "best"
		}
		row("first half", s, note)
	}
	row("second half", f.Second, "")
	return w.Flush()
}

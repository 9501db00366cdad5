package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/search"
)

// tries returns what a search tries: each combination of the values of its flags; nil for no search.
func (o *options) tries() (all []search.Settings) {
	times, mins := o.search, o.searchMin
	switch {
	case len(times)+len(mins) == 0:
		return nil
	case len(times) == 0:
		times = []time.Duration{o.reserveAfter}
	case len(mins) == 0:
		mins = []int{100}
	}
	for _, after := range times {
		for _, percent := range mins {
			all = append(all, search.Settings{ReserveAfter: after, Min: percent})
		}
	}
	return all
}

// checkSearch checks the values to search among.
func (o *options) checkSearch() error {
	switch {
	case len(o.search)+len(o.searchMin) == 0:
		return nil
	case len(o.search) > 0 && slices.Min(o.search) < 0:
		return fmt.Errorf("--%s must not be negative", flagSearch)
	case len(o.searchMin) > 0 && (slices.Min(o.searchMin) < 0 || slices.Max(o.searchMin) > 100):
		return fmt.Errorf("--%s must be from 0 to 100", flagSearchMin)
	case len(o.search) > 0 && o.isSet(flagReserve):
		return fmt.Errorf("--%s and --%s are mutually exclusive", flagSearch, flagReserve)
	case len(o.replay) > 1 || o.plot != "" || o.output != outputTable:
		return errors.New("a search tries one policy and prints a table; set one --policy, and remove --plot and --output")
	}
	return nil
}

// printSearch writes the scores of a search as a table.
func printSearch(f *search.Found, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "JOBS\tRESERVE-AFTER\tMIN\tMEAN-WAIT\tP90-WAIT\tLONGEST-WAIT\t")
	row := func(half string, s search.Score, note string) {
		after := s.ReserveAfter.String()
		if s.ReserveAfter == 0 {
			after = "never"
		}
		fmt.Fprintf(w, "%s\t%s\t%d %%\t%s\t%s\t%s\t%s\n", half, after, s.Min, s.Mean, s.P90, s.Max, note)
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

package preemption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/preemption"
)

// Units run forever, and victims are queued again immediately. Evictions end no matter which unit is tried first, and
// each leads to a start.
func TestPropertyNobodyEvictsEachOtherForever(t *testing.T) {
	evictions := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHall(t, drawTree(t))
		var waiting []*preemption.Candidate
		for i := range rapid.IntRange(2, 14).Draw(t, "units") {
			c := h.runAnywhere(t, fmt.Sprintf("u%02d", i))
			h.stop(c)
			waiting = append(waiting, c)
		}
		var history []string
		most := 4 * len(waiting) * len(waiting)
		refused := map[*preemption.Candidate]bool{} // since the last start
		for evicted := 0; ; {
			asking := slices.DeleteFunc(slices.Clone(waiting), func(c *preemption.Candidate) bool { return refused[c] })
			if len(asking) == 0 {
				return
			}
			u := asking[0]
			if rapid.Bool().Draw(t, "another one") {
				u = rapid.SampledFrom(asking).Draw(t, "who asks")
			}
			if u.Group.Fits(u.Charge.Demand) != nil {
				victims := preemption.Choose(h.Tree, preemption.Claim{Group: u.Group, Demand: u.Charge.Demand, Reclaims: true,
					Preempts: func(c *preemption.Candidate) bool { return c.Priority < u.Priority }}, slices.Clone(h.running))
				if victims == nil {
					refused[u] = true
					continue
				}
				history = append(history, fmt.Sprintf("%s of %s evicts %v", u.Key, u.Group.Path(), keysOf(victims)))
				for _, v := range victims {
					h.stop(v.Candidate)
					waiting = append(waiting, v.Candidate)
				}
				if evicted += len(victims); evicted > most {
					var units []string
					for _, c := range slices.Concat(h.running, waiting) {
						units = append(units, fmt.Sprintf("%s in %s, priority %d: %v", c.Key, c.Group.Path(), c.Priority, c.Charge.Demand.Requests))
					}
					slices.Sort(units)
					t.Fatalf("%d evictions, and no end of them\n%s\n%+v\n%s", evicted, strings.Join(units, "\n"), h.Usage(), strings.Join(history[len(history)-12:], "\n"))
				}
				evictions += len(victims)
			}
			waiting = slices.DeleteFunc(waiting, func(c *preemption.Candidate) bool { return c == u })
			h.start(u)
			clear(refused)
		}
	})
	if evictions < 3 {
		t.Errorf("only %d evictions: the test proves little", evictions)
	}
}

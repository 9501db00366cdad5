package preemption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/preemption"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Units that want to run forever, victims that ask again at once: whoever asks first, there is an end of
// evictions. Each eviction leads to a start.
func TestPropertyNobodyEvictsEachOtherForever(t *testing.T) {
	evictions := 0
	rapid.Check(t, func(t *rapid.T) {
		h := &hall{names: resources.NewNames()}
		var err error
		if h.Tree, _, err = tree.New(h.names, drawTree(t), tree.Options{}); err != nil {
			t.Skip("an invalid tree")
		}
		var waiting []*preemption.Candidate
		for i := range rapid.IntRange(2, 14).Draw(t, "units") {
			h.runIn(rapid.SampledFrom(h.Groups()).Draw(t, "group"), drawRequests(t), int32(rapid.IntRange(0, 2).Draw(t, "priority")), fmt.Sprintf("u%02d", i))
			waiting = append(waiting, h.running[0])
			h.stop(h.running[0])
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

func (h *hall) stop(c *preemption.Candidate) {
	c.Group.Release(c.Charge)
	h.running = slices.DeleteFunc(h.running, func(other *preemption.Candidate) bool { return other == c })
}

func (h *hall) start(c *preemption.Candidate) {
	h.started++
	c.Started = h.started
	c.Group.Charge(c.Charge)
	h.running = append(h.running, c)
}

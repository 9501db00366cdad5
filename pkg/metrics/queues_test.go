package metrics

import (
	"maps"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// Whatever is recorded: only queues that were kept last, or recorded since, are shown.
func TestPropertyNothingIsShownOfQueuesThatAreNotKept(t *testing.T) {
	named := regexp.MustCompile(`queue="([^"]+)"`)
	rapid.Check(t, func(rt *rapid.T) {
		r := New(ControllerProgram, "")
		c := NewController(r)
		queue, kind := rapid.StringMatching(`[a-d]`), rapid.SampledFrom(append(kinds.All(), other))
		want := map[string]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"shown": func(rt *rapid.T) {
				name := queue.Draw(rt, "queue")
				c.Queue(Queue{Name: name, Pending: 1})
				want[name] = true
			},
			"dequeued": func(rt *rapid.T) {
				name := queue.Draw(rt, "queue")
				c.Dequeued(name, kind.Draw(rt, "kind"), rapid.Bool().Draw(rt, "first"), time.Second)
				want[name] = true
			},
			"kept": func(rt *rapid.T) {
				names := rapid.SliceOfDistinct(queue, rapid.ID[string]).Draw(rt, "queues")
				c.KeepQueues(names)
				kept := map[string]bool{}
				for _, name := range names {
					kept[name] = want[name]
				}
				maps.DeleteFunc(want, func(name string, _ bool) bool { return !kept[name] })
			},
			"": func(rt *rapid.T) {
				got := map[string]bool{}
				for _, line := range scrape(t, r) {
					if m := named.FindStringSubmatch(line); m != nil {
						got[m[1]] = true
					}
				}
				if !maps.Equal(got, want) {
					rt.Fatalf("it reports %v, want %v", got, want)
				}
			},
		})
	})
}

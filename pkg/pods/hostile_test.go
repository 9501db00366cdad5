package pods

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// The owner of pods may make them, and the objects between them and their job, name any owner, delete these objects,
// and declare other jobs. If each object was seen once as its operator created it, each pod still counts for some job.
// After a restart, this holds if the fence has kept the owners that the objects name.
func TestPropertyWhateverPodsAreMadeToNameTheyCountForAJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fenced := rapid.Bool().Draw(t, "fenced")
		between := map[string]string{"cluster": "job", "set": "job", "part": "set", "driver": "job"}
		names := maps.Clone(between) // what each object names now
		created := map[string]string{}
		seen := map[string]bool{}
		l := New()
		jobs := []string{"job", "other"}
		report := func(id string) {
			seen[id] = true
			if _, is := between[id]; is {
				l.Object(ns, id, names[id])
				return
			}
			l.Pod(Pod{Namespace: ns, UID: id, Owner: names[id], Requests: resources.Vector{{ID: 1, Value: 1}}})
		}
		start := func(order []string) {
			for _, id := range order {
				switch {
				case slices.Contains(jobs, id):
					l.Hold(Holder{ns, id})
				case id == "daemons":
					l.Exempt(ns, id, true)
				default:
					report(id)
				}
			}
		}
		start(append(jobs, "daemons"))
		known := func(id string) bool { // the objects between the pod and its job were seen
			for ; id != "job"; id = between[id] {
				if !seen[id] {
					return false
				}
			}
			return true
		}
		objects := rapid.SampledFrom(slices.Sorted(maps.Keys(between)))
		forged := rapid.SampledFrom([]string{"", "job", "other", "daemons", "nothing", "label", "cluster", "set", "part", "driver", "pod-a", "pod-b"})
		t.Repeat(map[string]func(*rapid.T){
			"a pod is created": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"pod-a", "pod-b", "pod-c", "pod-d"}).Draw(t, "pod")
				if _, is := created[id]; !is {
					created[id] = rapid.SampledFrom([]string{"job", "cluster", "part", "driver"}).Draw(t, "by")
					names[id] = created[id]
					report(id)
				}
			},
			"an object is seen": func(t *rapid.T) { report(objects.Draw(t, "object")) },
			"an owner is forged": func(t *rapid.T) {
				id := rapid.SampledFrom(append(slices.Sorted(maps.Keys(created)), slices.Sorted(maps.Keys(between))...)).Draw(t, "of")
				if fenced || !seen[id] {
					return
				}
				names[id] = forged.Draw(t, "owner")
				if rapid.Bool().Draw(t, "the watch reports it") {
					report(id)
				}
			},
			"an object is deleted": func(t *rapid.T) {
				id := objects.Draw(t, "object")
				if o := l.find(ns, id); !fenced && o != nil && o.owns && o.nearestHolder() != nil { // others are forgotten
					l.Gone(ns, id)
				}
			},
			"an object is queued itself": func(t *rapid.T) { l.Hold(Holder{ns, objects.Draw(t, "object")}) },
			"an object leaves the queue": func(t *rapid.T) {
				if h := (Holder{ns, objects.Draw(t, "object")}); l.Pods(h) == 0 { // otherwise it stays a holder
					l.Drop(h)
				}
			},
			"an object gets the label": func(t *rapid.T) { l.Label(ns, "label", objects.Draw(t, "object")) },
			"the label is lost":        func(*rapid.T) { l.Unlabel(ns, "label") },
			"kube-queue is started again": func(t *rapid.T) {
				if fenced {
					l = New()
					start(rapid.Permutation(slices.Concat(jobs, []string{"daemons"}, slices.Sorted(maps.Keys(between)), slices.Sorted(maps.Keys(created)))).Draw(t, "order"))
				}
			},
			"": func(t *rapid.T) {
				total := int64(0)
				for _, h := range append(slices.Sorted(maps.Keys(between)), jobs...) {
					total += l.of(h)
				}
				charged := int64(0)
				for id := range created {
					o := l.find(ns, id)
					if o.holder != nil && o.holder.holds {
						charged++
					} else if known(created[id]) {
						t.Fatalf("%s of %s counts for no job; it names %q", id, created[id], names[id])
					}
				}
				if total != charged {
					t.Fatalf("%d pods count, and %d are charged", charged, total)
				}
				if broken := l.Audit(); len(broken) > 0 {
					t.Fatal(broken)
				}
			},
		})
	})
}

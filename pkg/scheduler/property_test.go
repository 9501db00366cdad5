package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Random events in random order, with writes that land late, outcomes that
// arrive before or after the informer's news, restarts and changes of quota: at
// every instant used is the sum of what is charged (design rule 3), and with
// constant limits the API objects alone never exceed one. What must not run, or
// not for so long, is evicted, and nothing else is.
func TestPropertyChargedIsUsed(t *testing.T) {
	for _, policy := range []queue.Policy{queue.RoundRobin, queue.Priority, queue.Block} {
		t.Run(string(policy), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { randomLife(t, policy) })
		})
	}
}

func randomLife(t *rapid.T, policy queue.Policy) {
	changing := rapid.Bool().Draw(t, "quota changes")
	w := newWorld(t, scheduler.Options{Policy: policy}, drawTree(t))
	pick := func(label string) string {
		if len(w.units) == 0 {
			t.Skip("no unit")
		}
		return rapid.SampledFrom(slices.Sorted(maps.Keys(w.units))).Draw(t, label)
	}
	index := func(n int, label string) int {
		if n == 0 {
			t.Skip("nothing to " + label)
		}
		return rapid.IntRange(0, n-1).Draw(t, label)
	}
	actions := map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			key := fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b", "c", "nowhere"}).Draw(t, "namespace"), rapid.IntRange(0, 15).Draw(t, "name"))
			if w.units[key] == nil {
				limit := time.Duration(max(rapid.IntRange(-60, 120).Draw(t, "seconds it may run"), 0)) * time.Second
				w.submit(key, drawRequest(t), priority(int32(rapid.IntRange(0, 3).Draw(t, "priority"))), maxTime(limit))
			}
		},
		"change request": func(t *rapid.T) {
			d := w.demand(drawRequest(t))
			w.write(pick("unit"), func(u *scheduler.Unit) {
				// A charged unit may grow beyond a limit: only then is more used than allowed.
				if u.Phase == scheduler.Waiting {
					u.Demand = d
				}
			})
		},
		"change priority": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) { u.Priority = int32(rapid.IntRange(0, 3).Draw(t, "priority")) })
		},
		"hold or unhold": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Held == nil {
					u.Held = &quota.Refusal{Reason: scheduler.ReasonSuspendedByUser}
				} else {
					activate(u)
				}
			})
		},
		"activate or deactivate": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Inactive {
					activate(u)
				} else {
					deactivate(u)
				}
			})
		},
		"change time limit": func(t *rapid.T) {
			w.write(pick("unit"), maxTime(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds"))*time.Second))
		},
		"run": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase == scheduler.Dequeued {
					u.Phase = scheduler.Running
				}
			})
		},
		"end": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase != scheduler.Waiting {
					u.Phase = scheduler.Ended
				}
			})
		},
		"stop": func(t *rapid.T) {
			w.write(pick("unit"), stop)
		},
		"stop what is evicted": func(t *rapid.T) {
			for _, key := range slices.Sorted(maps.Keys(w.units)) {
				if w.units[key].Evicted {
					w.write(key, stop)
				}
			}
		},
		"delete":  func(t *rapid.T) { w.delete(pick("unit")) },
		"deliver": func(t *rapid.T) { w.deliver() },
		"think":   func(t *rapid.T) { w.think() },
		"land":    func(t *rapid.T) { w.land(index(len(w.sent), "write")) },
		"settle":  func(t *rapid.T) { w.settle() }, // lives get further than by single steps
		"tell":    func(t *rapid.T) { w.tell(index(len(w.outcomes), "outcome")) },
		"wait": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms")) * time.Millisecond)
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "dice") == 0 {
				// What is under way from the old process lands before or never: a
				// new one lists after it has the lease.
				w.sent = nil
				w.restart()
			}
		},
		"": func(t *rapid.T) { w.check() },
	}
	if changing {
		actions["change quota"] = func(t *rapid.T) {
			w.exact = false
			w.plant(drawTree(t))
		}
	}
	t.Repeat(actions)
	w.after(2 * time.Minute)
	expectRest(t, w, policy)
}

// expectRest proves that in a world at rest no unit waits that could run, that
// every waiting unit says why, and that what the core holds charged is what the
// API objects say.
func expectRest(t *rapid.T, w *world, policy queue.Policy) {
	fresh, _, err := tree.New(w.names, w.root, tree.Options{})
	if err != nil {
		t.Fatalf("the test's tree is invalid: %v", err)
	}
	for _, u := range w.units {
		if group, refusal := fresh.Place(u.Namespace, u.QuotaName); refusal == nil && u.Phase != scheduler.Waiting && u.Phase != scheduler.Ended {
			group.Charge(u.Demand)
		}
	}
	for i, usage := range fresh.Usage() {
		if got := w.tree.Usage()[i]; got.Jobs != usage.Jobs || !got.Used.Equal(usage.Used) {
			t.Fatalf("node %s: the core has %v used, the objects say %v", usage.Path, got, usage)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		if holds(u) && (u.Stopped || !u.Evicted && (u.Inactive || w.overran(u))) {
			t.Fatalf("unit %s holds quota and must not: %+v", key, u)
		}
		if u.Phase != scheduler.Waiting {
			continue
		}
		if u.Reason == "" {
			t.Fatalf("unit %s waits and does not say why", key)
		}
		group, refusal := fresh.Place(u.Namespace, u.QuotaName)
		if policy != queue.Block && u.Held == nil && refusal == nil && group.Fits(u.Demand) == nil {
			t.Fatalf("unit %s fits and waits", key)
		}
	}
}

func drawTree(t *rapid.T) tree.Node {
	limit := func(label string, most int) map[string]string {
		list := map[string]string{}
		for _, name := range []string{"cpu", "memory", quota.JobsResource} {
			if rapid.IntRange(0, 3).Draw(t, label+" names "+name) > 0 {
				list[name] = fmt.Sprint(rapid.IntRange(0, most).Draw(t, label+" max "+name))
			}
		}
		return list
	}
	inner := leaf("inner", limit("inner", 12))
	inner.Children = []tree.Node{leaf("a", limit("a", 10), "a"), leaf("b", limit("b", 10), "b")}
	root := leaf("root", limit("root", 16))
	root.Children = []tree.Node{inner, leaf("c", limit("c", 10), "c")}
	return root
}

func drawRequest(t *rapid.T) map[string]string {
	list := map[string]string{}
	for _, name := range []string{"cpu", "memory", "gpu"} {
		if rapid.Bool().Draw(t, "asks "+name) {
			list[name] = fmt.Sprint(rapid.IntRange(1, 6).Draw(t, name))
		}
	}
	return list
}

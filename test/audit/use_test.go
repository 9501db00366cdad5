package audit

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// beat is the time between two steps of these stories. Writes take only a small part of it.
const beat = 1000 * time.Second

func TestUse(t *testing.T) {
	for _, test := range []struct {
		name string
		act  func(*script)
		// use, reach and allowed in cores times beats, of the only key.
		use, reach, allowed int64
		beats               int64 // in which units waited
	}{
		{"nothing more would have fitted", func(s *script) {
			s.quota("q", fourCores)
			a, b := s.tfjob("a", 3).admit(), s.tfjob("b", 2)
			b.enqueue()
			s.wait(beat)
			a.end()
			b.admitted()
			s.wait(beat)
		}, 3, 3, 3, 1},
		{"what fitted was left waiting", func(s *script) {
			s.quota("q", fourCores)
			a, b := s.tfjob("a", 1).admit(), s.tfjob("b", 2)
			b.enqueue()
			s.wait(beat)
			b.admitted()
			a.end()
		}, 1, 3, 3, 1},
		{"the first in the queue is tried first, and the next if it does not fit", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(2, 0, 2) // no quota is left
			s.waitingWith(4, 9, 1) // never fits beside a
			s.waitingWith(3, 5, 3) // uses all
			s.wait(beat)
		}, 1, 4, 4, 1},
		{"among equals the earliest is first", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(1, 0, 9)
			s.waitingWith(3, 0, 8)
			s.wait(beat)
		}, 1, 4, 4, 1},
		{"pods of others are use", func(s *script) {
			s.quota("q", fourCores)
			s.stranger(2, "")
			s.tfjob("a", 1).admit()
			s.waitingWith(2, 0, 1)
			s.wait(beat)
		}, 3, 3, 3, 1},
		{"time in which nobody waits counts only between times in which one does", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(1, 0, 1)
			s.wait(beat)
			s.lastUnit().remove(admin)
			s.wait(beat)
			s.waitingWith(4, 0, 1)
			s.wait(beat)
			s.lastUnit().remove(admin)
			s.wait(beat)
		}, 3, 4, 4, 2},
		{"what can never fit does not wait", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(5, 9, 1)
			s.waitingWith(4, 0, 1)
			s.wait(beat)
			s.lastUnit().remove(admin)
			s.wait(beat)
		}, 1, 1, 1, 1},
		{"a unit in backoff waits when its time is over", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(4, 0, 1)
			p := s.waitingWith(2, 0, 1)
			p.patchStatus(controller, "status.phase", "Backoff", "status.requeueState", map[string]any{"requeueAt": s.now.Add(beat).Format(time.RFC3339)})
			s.wait(3 * beat)
		}, 3, 7, 7, 3},
		{"the status of the quota may be behind", func(s *script) {
			q := s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.decide(q, "requests.cpu", "3")
			s.waitingWith(2, 0, 1)
			s.wait(beat)
		}, 1, 3, 1, 1},
		{"what is promised to pods that are still to come is taken, too", func(s *script) {
			q := s.quota("q", fourCores)
			a := s.tfjob("a", 2)
			a.enqueue()
			a.dequeue()
			s.decide(q, "requests.cpu", "1")
			s.waitingWith(2, 0, 1)
			s.wait(beat)
		}, 2, 4, 2, 1},
		{"while a quota has no status nothing fits", func(s *script) {
			s.group = "default"
			s.undecided("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(2, 0, 1)
			s.wait(beat)
		}, 1, 1, 1, 1},
		{"a stopped queue lets nobody wait", func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(4, 0, 1)
			queued := s.waitingWith(2, 0, 1)
			queued.patchStatus(controller, "status.queue", "default")
			queue := s.create(controller, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: default, namespace: kube-queue}, spec: {}}`)
			s.wait(beat)
			queue.patch(admin, "spec.stop", "Hold")
			s.wait(beat)
		}, 2, 4, 4, 2},
		{"a limit that changes counts from then", func(s *script) {
			q := s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
			s.waitingWith(4, 0, 1)
			s.wait(beat)
			q.patch(admin, "spec.hard", map[string]any{"requests.cpu": "5"})
			s.decide(q)
			s.wait(beat)
		}, 2, 6, 6, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			test.act(s)
			s.create(admin, "/v1/configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: marker}}`)
			all, err := s.log().Use(Options{}, "default")
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 1 || len(all[0].Keys) != 1 {
				t.Fatalf("got %v", all)
			}
			k := all[0].Keys[0]
			for _, n := range []struct {
				what string
				got  *big.Int
				want int64
			}{{"used", k.Used, test.use}, {"reach", k.Reach, test.reach}, {"allowed", k.Allowed, test.allowed}} {
				if got := inBeats(n.got, 1000); got != n.want {
					t.Errorf("%s %d, want %d (%s)", n.what, got, n.want, n.got)
				}
			}
			if got := inBeats(big.NewInt(int64(all[0].Waited)), 1); got != test.beats {
				t.Errorf("units waited %d beats, want %d", got, test.beats)
			}
			if want := float64(test.use) / float64(test.reach); all[0].Ratio() < want-0.01 || all[0].Ratio() > want+0.01 {
				t.Errorf("ratio %f, want about %f", all[0].Ratio(), want)
			}
		})
	}
}

// inBeats rounds an integral to beats.
func inBeats(n *big.Int, unit int64) int64 {
	f, _ := new(big.Rat).SetFrac(n, big.NewInt(unit*int64(beat))).Float64()
	return int64(f + 0.5)
}

// admitted admits a queued job.
func (p *play) admitted() {
	p.dequeue()
	p.release()
	p.start()
	p.runs()
}

// waitingWith adds a waiting unit without a job, with a priority and an hour of arrival.
func (s *script) waitingWith(cpu, priority, hour int) *thing {
	return s.create(admin, units, fmt.Sprintf(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: own-%d},
  spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, priority: %d, submissionTime: "2026-03-01T%02d:00:00.000001Z", resource: {cpu: %d}}}`,
		s.names, priority, hour, cpu))
}

// lastUnit returns the unit without a job that was created last.
func (s *script) lastUnit() *thing {
	for i := len(s.entries) - 1; i >= 0; i-- {
		if obj, ok := s.entries[i]["responseObject"].(map[string]any); ok && obj["kind"] == "QueueUnit" && s.entries[i]["user"].(map[string]any)["username"] == admin {
			return &thing{s, units, obj}
		}
	}
	s.t.Fatal("there is no unit")
	return nil
}

func TestUseIsExact(t *testing.T) {
	s := newScript(t)
	s.quota("q", fourCores)
	a := s.tfjob("a", 1)
	a.enqueue()
	own := s.waitingWith(2, 0, 1)
	s.wait(beat)
	a.dequeue()
	s.wait(beat)
	own.remove(admin)
	all, err := s.log().Use(Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, span := all[0].Keys[0], all[0].To.Sub(all[0].From)
	if want := big.NewInt(1000 * int64(span)); k.Used.Cmp(want) != 0 {
		t.Errorf("used %s, want %s", k.Used, want)
	}
	if want := big.NewInt(3000 * int64(span)); k.Reach.Cmp(want) != 0 {
		t.Errorf("reach %s, want %s", k.Reach, want)
	}
	if all[0].Admissions != 1 || span < beat || !strings.Contains(all[0].String(), "q requests.cpu: 33.33%") {
		t.Errorf("got %s", all[0])
	}
}

func TestUseNeedsAdmissionsAndWaitingUnits(t *testing.T) {
	s := newScript(t)
	s.quota("q", fourCores)
	s.tfjob("a", 1).admit()
	s.wait(beat)
	if _, err := s.log().Use(Options{}, "default"); err == nil {
		t.Error("a use is reported although no unit waited")
	}
	s.waitingWith(4, 0, 1)
	s.wait(beat)
	s.create(admin, "/v1/configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: marker}}`)
	if _, err := s.log().Use(Options{}, "default"); err != nil {
		t.Error(err)
	}
	if _, err := s.log().Use(Options{}, "elsewhere"); err == nil {
		t.Error("the use of a namespace without anything is reported")
	}
}

func TestUseIgnoresPodsThatTheQuotaAlwaysRefuses(t *testing.T) {
	s := newScript(t)
	s.quota("q", fourCores)
	s.tfjob("a", 1).admit()
	p := s.tfjob("b", 1)
	p.enqueue()
	p.unit.patch(extensions, "spec.podSets", []any{map[string]any{"name": "worker", "count": 1.0, "unset": map[string]any{"requests.cpu": "main"}}})
	s.wait(beat)
	s.create(admin, "/v1/configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: marker}}`)
	all, err := s.log().Use(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) > 0 && all[0].Waited >= beat {
		t.Errorf("a unit whose pods are never taken waits: %s", all[0])
	}
}

package visibility

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

const (
	// horizon is how far Starts looks into the future.
	horizon = 30 * 24 * time.Hour
	// firstStarts is how many units of each queue take part. With many queues, it is lower, down to leastStarts, to keep
	// the total at about mostStarts.
	firstStarts, leastStarts, mostStarts = 100, 10, 20_000
)

// RunTimes predicts how much longer a unit of the queue runs after it has run for ran. It returns false if that is not
// known.
type RunTimes func(queue string, declared forecast.Declared, ran time.Duration) (left time.Duration, known bool)

// Starts returns when waiting units start, by UID. It leaves out units for which that is not known. The core decides
// in virtual time about the first units of each queue, and about more where further has a larger number. Units end as
// predicted, evicted units stop immediately, and no units are submitted. Starts does not wait for admission checks or
// for pods to be ready.
func (m *Model) Starts(left RunTimes, further map[string]int) map[string]time.Time {
	if m.view.Backend == nil {
		return nil
	}
	starts := map[string]time.Time{}
	for uid, start := range m.play(left, further, nil, nil) {
		starts[uid] = m.view.At.Add(start.After)
	}
	return starts
}

// play returns how long after the time of the view waiting units start, and an added unit that the model already has.
// If decided is not nil, play calls it with the core that has decided.
func (m *Model) play(left RunTimes, further map[string]int, added *scheduler.Unit, decided func(*scheduler.Scheduler)) map[string]simulator.Start {
	s := simulator.Situation{Decided: decided}
	var runs []time.Duration // of the units of the situation
	charged := map[int32]bool{}
	add := func(u *scheduler.UnitView, unit scheduler.Unit, ran time.Duration) {
		of := ""
		if u.Queue >= 0 {
			of = m.view.Queues[u.Queue].Name
		}
		predicted, known := left(of, u.Declared(), ran)
		if !known {
			predicted = 0
		}
		s.Units, runs = append(s.Units, unit), append(runs, predicted)
	}
	for i := range m.view.Units {
		u := &m.view.Units[i]
		if u.Charge == nil || u.Remains {
			continue
		}
		charged[int32(i)] = true
		if u.Phase != scheduler.Waiting && u.Phase != scheduler.Ended && !u.Evicted { // others are about to stop
			unit := holding(u)
			unit.Unstoppable = u.Unstoppable
			if u.Elastic != nil && unit.Demand.Requests.Equal(u.Demand.Requests) { // after an eviction, it can start with fewer pods
				unit.Demand, unit.Elastic = u.Elastic.Whole(u.Demand), u.Elastic
			}
			if unit.DequeuedAt.IsZero() { // its release is being written, or Starts skips its checks
				unit.DequeuedAt = m.view.At
			}
			add(u, unit, max(m.view.At.Sub(unit.DequeuedAt), 0))
		}
	}
	waiting := len(s.Units)
	var uids []string
	first := max(min(firstStarts, mostStarts/max(len(m.view.Queues), 1)), leastStarts)
	for q := range m.lines() {
		for _, i := range m.taking(q, max(first, further[m.view.Queues[q].Name])) {
			u := &m.view.Units[i]
			unit := unitOf(u)
			unit.RequeueAt = u.RequeueAt()
			add(u, unit, 0)
			uids = append(uids, u.UID)
		}
	}
	existing := len(uids)
	if added != nil {
		add(&m.view.Units[len(m.view.Units)-1], *added, 0)
		uids = append(uids, added.UID)
	}
	if len(uids) == 0 {
		return nil
	}
	if s.Backend = m.uncharged(charged); s.Backend == nil {
		return nil
	}
	s.Core = scheduler.Options{Policy: m.view.DefaultPolicy, Backoff: m.view.Backoff, MinRunTime: m.view.MinRunTime,
		FlushInterval: horizon}
	for q := range m.view.Queues {
		settings := m.view.Queues[q].Settings
		settings.Queue, settings.PodsReady = m.view.Queues[q].Name, scheduler.PodsReady{}
		settings.Skipped = settings.Checks != ""
		settings.Checks = scheduler.ChecksOf(m.missingChecks(int32(q)))
		s.Queues = append(s.Queues, settings)
	}
	found := simulator.Starts(s, m.view.At, horizon, func(i int) time.Duration { return runs[i] })[waiting:]
	// The core has just refused these units because of earlier reservations for others, which the situation does not
	// have. Try them again after others have had time to reserve.
	early := false
	for i, start := range found[:existing] {
		if start.After == 0 {
			s.Units[waiting+i].RequeueAt, early = m.view.At.Add(afterBackoff), true
		}
	}
	if early {
		if s.Backend = m.uncharged(charged); s.Backend == nil {
			return nil
		}
		found = simulator.Starts(s, m.view.At, horizon, func(i int) time.Duration { return runs[i] })[waiting:]
	}
	starts := map[string]simulator.Start{}
	for i, start := range found {
		if start.After != simulator.NotKnown {
			starts[uids[i]] = start
		}
	}
	return starts
}

// taking returns the first units of a line. If its queue reserves room for those that have waited longest, it adds some
// of them.
func (m *Model) taking(q, most int) []int32 {
	line := m.lines()[q]
	taking := slices.Clone(line[:min(len(line), most)])
	for _, i := range m.oldest()[q] {
		if int(m.places()[i]) > most {
			taking = append(taking, i)
		}
	}
	return taking
}

// StartEstimate converts the estimate for a unit that waits from the given time on.
func StartEstimate(e forecast.Estimate, from time.Time) *visibilityv1alpha1.StartEstimate {
	at := func(wait time.Duration) metav1.Time { return metav1.NewTime(from.Add(wait).Truncate(time.Second)) }
	return &visibilityv1alpha1.StartEstimate{Time: at(e.Wait), Earliest: at(e.Earliest), Latest: at(e.Latest)}
}

// uncharged returns the quota without the charges of the units; nil if that is not possible.
func (m *Model) uncharged(units map[int32]bool) quota.Backend {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	backend, err := m.backend(world{ended: units})
	if err != nil { // without a raise, the limits are valid
		return nil
	}
	return backend
}

// Waiter is a unit that waits only for quota.
type Waiter struct {
	UID, Queue string
	// Position is its position in the queue, from 1.
	Position int
	// Length is how long it may run, or is expected to run, if shorter jobs pass it; otherwise 0.
	Length time.Duration
}

// length returns how long a unit may run, or is expected to run, if shorter jobs pass it in its queue; otherwise 0.
func (m *Model) length(u *scheduler.UnitView) time.Duration {
	if u.Queue < 0 || !m.view.Queues[u.Queue].Policy.ByLimit {
		return 0
	}
	return cmp.Or(u.Declared().Limit, u.Declared().Expected)
}

// Waiting returns the named unit if it waits only for quota.
func (m *Model) Waiting(namespace, name string) (w Waiter, waits bool) {
	i, known := m.index()[namespace+"/"+name]
	if !known {
		return Waiter{}, false
	}
	u := &m.view.Units[i]
	if u.Phase != scheduler.Waiting || u.Refusal == nil || m.places()[i] == 0 || !u.Refusal.Reason.WaitsForQuota() {
		return Waiter{}, false
	}
	return Waiter{UID: u.UID, Queue: m.view.Queues[u.Queue].Name, Position: int(m.places()[i]), Length: m.length(u)}, true
}

package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

// catchUp is how long to wait for an informer. After that the expected object is assumed
// to be gone again, which no event may ever report.
const catchUp = 5 * time.Second

// memory is what a reconciler knows in addition to the objects. All of it may be lost: a
// restart costs an additional check, never a wrong step.
type memory struct {
	mu sync.Mutex
	// awaited, by the name of the job.
	awaited map[types.NamespacedName]awaited
	// began, by the job's UID: since when a fact has been observed.
	began map[types.UID][facts]time.Time
	// measured, by the job's UID: the versions of the objects of a released job that does not
	// request less than was admitted.
	measured map[types.UID]string
	// look, by the unit's UID: when to check a unit whose job is missing.
	look map[types.UID]time.Time
	// answers, by the job's UID: the writes that followed changes of the job by hand.
	answers map[types.UID]backoff.State
	// faults, by the job's UID: the last invalid change of a released job.
	faults map[types.UID]string
	// ignored, by the job's UID: what an event said of keys that have no effect.
	ignored map[types.UID]string
	// lost, by the job's UID: the UID of its controller, which does not exist.
	lost map[types.UID]types.UID
	// outages, by the job's UID: the last outage of the controller that the job was notified of.
	outages map[types.UID]noticeOf
}

// noticeOf is the outage of which a job was notified.
type noticeOf struct {
	job   types.NamespacedName
	since string
}

// answering is how long a job waits for the next write that answers changes by hand.
var answering = backoff.Policy{Free: 10, Initial: time.Second, Max: 2 * time.Minute, Quiet: 10 * time.Minute}

// awaited is what the informers must show before the next decision.
type awaited struct {
	// job and unit must have at least these versions.
	job, unit version
	// deleted is a unit that must no longer exist.
	deleted types.UID
	until   time.Time
}

// version is a resourceVersion to be reached or, after a conflict, to be passed.
type version struct {
	value string
	pass  bool
}

func (v version) reachedBy(have string) bool {
	if v.value == "" {
		return true
	}
	if have == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(have, v.value)
	return err != nil || order > 0 || order == 0 && !v.pass
}

func newMemory() *memory {
	return &memory{
		awaited:  map[types.NamespacedName]awaited{},
		began:    map[types.UID][facts]time.Time{},
		measured: map[types.UID]string{},
		look:     map[types.UID]time.Time{},
		answers:  map[types.UID]backoff.State{},
		faults:   map[types.UID]string{},
		ignored:  map[types.UID]string{},
		lost:     map[types.UID]types.UID{},
		outages:  map[types.UID]noticeOf{},
	}
}

// await changes what is awaited for a job.
func (m *memory) await(key types.NamespacedName, now time.Time, change func(*awaited)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.awaited[key]
	change(&a)
	a.until = now.Add(catchUp)
	m.awaited[key] = a
}

// behind returns how long to wait, at most, until the informers show the last writes; 0
// if they do. Versions are empty for objects that do not exist.
func (m *memory) behind(key types.NamespacedName, job, unit string, unitUID types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, waits := m.awaited[key]
	if !waits {
		return 0
	}
	seen := a.job.reachedBy(job) && a.unit.reachedBy(unit) && (a.deleted == "" || a.deleted != unitUID)
	if seen || !now.Before(a.until) {
		delete(m.awaited, key)
		return 0
	}
	return a.until.Sub(now)
}

// fact is an observation whose start time is remembered.
type fact int

const (
	// isRunning: the job runs.
	isRunning fact = iota
	// isReleased: the job of an admitted unit is released.
	isReleased
	// isRemaining: the job has ended, and something of it remains.
	isRemaining
	// isOverQuota: the unit of the job shows that it is over quota.
	isOverQuota
	// isNotQueued: the job ran already when it was first seen.
	isNotQueued
	// isMarkedLate: the job got its mark after its creation.
	isMarkedLate
	// isOrphan: the controller of the job does not exist.
	isOrphan
	// isSilent: the controller has written nothing to the unit of the job.
	isSilent
	// isRefused: the API server refuses the next change of the job.
	isRefused
	facts
)

// since returns since when a fact has been observed; the zero time if it is not true.
func (m *memory) since(job types.UID, what fact, is bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	began, known := m.began[job]
	switch {
	case is && began[what].IsZero():
		began[what] = now
		m.began[job] = began
	case !is && known:
		began[what] = time.Time{}
		if began == ([facts]time.Time{}) {
			delete(m.began, job)
		} else {
			m.began[job] = began
		}
	}
	return began[what]
}

// is reports whether a fact is being observed.
func (m *memory) is(job types.UID, what fact) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.began[job][what].IsZero()
}

// lookIn returns how long to wait before a unit whose job is missing is checked. The first
// call begins the wait.
func (m *memory) lookIn(unit types.UID, now time.Time, first time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.look[unit]
	if !known {
		at = now.Add(first)
		m.look[unit] = at
	}
	return at.Sub(now)
}

// lookAt sets when to check the unit again.
func (m *memory) lookAt(unit types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look[unit] = at
}

// forgetName, forgetUnit and forgetJob remove what is remembered about them.
func (m *memory) forgetName(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.awaited, key)
}

func (m *memory) forgetUnit(unit types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.look, unit)
}

func (m *memory) forgetJob(job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.began, job)
	delete(m.measured, job)
	delete(m.answers, job)
	delete(m.faults, job)
	delete(m.ignored, job)
	delete(m.outages, job)
	delete(m.lost, job)
}

// isLost reports whether the controller of the job was found not to exist.
func (m *memory) isLost(job, controller types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[job] == controller
}

// setLost remembers what isLost reports.
func (m *memory) setLost(job, controller types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[job] = controller
}

// notified returns the outage of the controller that a job was notified of; empty for none.
func (m *memory) notified(job types.UID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outages[job].since
}

// setNotified remembers what notified returns. An empty outage forgets it.
func (m *memory) setNotified(job types.UID, key types.NamespacedName, since string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since == "" {
		delete(m.outages, job)
	} else {
		m.outages[job] = noticeOf{key, since}
	}
}

// allNotified returns the jobs that were notified of an outage.
func (m *memory) allNotified() map[types.UID]types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[types.UID]types.NamespacedName, len(m.outages))
	for job, notified := range m.outages {
		all[job] = notified.job
	}
	return all
}

// answered counts a write that answers a change of the job by hand.
func (m *memory) answered(job types.UID, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[job] = answering.Step(m.answers[job], now)
}

// answerIn returns how long the next answer waits.
func (m *memory) answerIn(job types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, known := m.answers[job]
	if known && answering.Forgotten(state, now) {
		delete(m.answers, job)
	}
	return state.Until.Sub(now)
}

// isNewFault reports whether the invalid change is another one than before. An empty one means that there
// is none.
func (m *memory) isNewFault(job types.UID, fault string) bool { return m.isNew(m.faults, job, fault) }

// isNewIgnored reports whether what is said of the ignored keys of the job is new. An empty text means that there are
// none.
func (m *memory) isNewIgnored(job types.UID, text string) bool { return m.isNew(m.ignored, job, text) }

func (m *memory) isNew(known map[types.UID]string, job types.UID, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known[job] == text {
		return false
	}
	if text == "" {
		delete(known, job)
		return false
	}
	known[job] = text
	return true
}

// isMeasured reports whether a released job in these versions was found not to request less
// than was admitted.
func (m *memory) isMeasured(job types.UID, versions string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.measured[job] == versions
}

// setMeasured remembers what isMeasured reports. Empty versions forget it.
func (m *memory) setMeasured(job types.UID, versions string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if versions == "" {
		delete(m.measured, job)
	} else {
		m.measured[job] = versions
	}
}

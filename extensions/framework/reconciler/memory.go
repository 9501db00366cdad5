package reconciler

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

// catchUp is how long to wait for an informer. After that, the expected object is assumed to be gone: if it was
// deleted, no event may ever report it.
const catchUp = 5 * time.Second

// memory holds what a reconciler remembers beyond the objects. All of it can be lost: a restart costs an additional
// check, but never causes a wrong step.
type memory struct {
	// awaited, by the name of the job.
	awaited table[types.NamespacedName, awaited]
	// began, by the job's UID: since when a fact has been observed.
	began table[types.UID, [facts]time.Time]
	// measured, by the job's UID: the versions of the objects of a released job that requests no less than was
	// admitted.
	measured table[types.UID, string]
	// look, by the unit's UID: when to check a unit whose job is missing.
	look table[types.UID, time.Time]
	// grown, by the UID of a pod of a job that grows, or of a unit for growth: what was last written to it.
	grown table[types.UID, grownVersion]
	// answers, by the job's UID: the writes that followed users' changes of the job.
	answers table[types.UID, backoff.State]
	// faults, by the job's UID: the last invalid change of a released job.
	faults table[types.UID, string]
	// ignored, by the job's UID: the last event's text about keys that have no effect.
	ignored table[types.UID, string]
	// warned, by the job's UID: the last events' text about its requests.
	warned table[types.UID, string]
	// lost, by the job's UID: the UID of its controller, which does not exist.
	lost table[types.UID, types.UID]
	// outages, by the job's UID: the last outage of the controller that the job was notified of.
	outages table[types.UID, notified]
}

// table is a map that is safe for concurrent use. It keeps only values that are not zero.
type table[K, V comparable] struct {
	mu     sync.Mutex
	values map[K]V
}

func (t *table[K, V]) get(key K) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key]
}

// change replaces a value with the result of a function, and returns the result.
func (t *table[K, V]) change(key K, compute func(V) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	var zero V
	value := compute(t.values[key])
	switch {
	case value == zero:
		delete(t.values, key)
	case t.values == nil:
		t.values = map[K]V{key: value}
	default:
		t.values[key] = value
	}
	return value
}

// set sets a value, and reports whether it has changed.
func (t *table[K, V]) set(key K, value V) (changed bool) {
	t.change(key, func(before V) V { changed = before != value; return value })
	return changed
}

func (t *table[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.values, key)
}

func (t *table[K, V]) all() map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.values)
}

// notified is the outage that a job was notified of.
type notified struct {
	job   types.NamespacedName
	since string
}

// answering is how long a job waits for the next write that answers a user's changes.
var answering = backoff.Policy{Free: 10, Initial: time.Second, Max: 2 * time.Minute, Quiet: 10 * time.Minute}

// awaited is what the informers must show before the next decision.
type awaited struct {
	// job and unit must have at least these versions.
	job, unit version
	// deleted is a unit that must no longer exist.
	deleted types.UID
	until   time.Time
}

// version is a resourceVersion to reach or, after a conflict, to pass.
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

// grownVersion is the version that the cache must show before the next decision about growth.
type grownVersion struct {
	version
	until time.Time
}

// awaitGrown records a write, or the deletion, of a pod or unit. Without a version, it is not known what was written.
func (m *memory) awaitGrown(uid types.UID, written version, now time.Time) {
	m.grown.set(uid, grownVersion{written, now.Add(catchUp)})
}

// behindGrowth returns how long to wait, at most, until the cache shows the last write of the object; 0 if it does.
func (m *memory) behindGrowth(object metav1.Object, now time.Time) time.Duration {
	left := m.grown.change(object.GetUID(), func(w grownVersion) grownVersion {
		if w.reachedBy(object.GetResourceVersion()) || !now.Before(w.until) {
			return grownVersion{}
		}
		return w
	})
	if left == (grownVersion{}) {
		return 0
	}
	return left.until.Sub(now)
}

// forgetGrown forgets writes that were awaited for long enough: the object may have been deleted before its write was
// recorded.
func (m *memory) forgetGrown(now time.Time) {
	for uid, written := range m.grown.all() {
		if !now.Before(written.until) {
			m.grown.forget(uid)
		}
	}
}

// await changes what is awaited for a job.
func (m *memory) await(key types.NamespacedName, now time.Time, change func(*awaited)) {
	m.awaited.change(key, func(a awaited) awaited {
		change(&a)
		a.until = now.Add(catchUp)
		return a
	})
}

// behind returns how long to wait, at most, until the informers show the last writes; 0
// if they do. Versions are empty for objects that do not exist.
func (m *memory) behind(key types.NamespacedName, job, unit string, unitUID types.UID, now time.Time) time.Duration {
	left := m.awaited.change(key, func(a awaited) awaited {
		seen := a.job.reachedBy(job) && a.unit.reachedBy(unit) && (a.deleted == "" || a.deleted != unitUID)
		if seen || !now.Before(a.until) {
			return awaited{}
		}
		return a
	})
	if left == (awaited{}) {
		return 0
	}
	return left.until.Sub(now)
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
	// isNotQueued: the job was already running when it was first seen.
	isNotQueued
	// isMarkedLate: the job got its mark after its creation.
	isMarkedLate
	// isOrphan: the controller of the job does not exist.
	isOrphan
	// isSilent: the controller has written nothing to the unit of the job.
	isSilent
	// isRefused: the API server rejects the next change of the job.
	isRefused
	facts
)

// since returns when a fact was first observed; the zero time if it is not true.
func (m *memory) since(job types.UID, what fact, is bool, now time.Time) time.Time {
	began := m.began.change(job, func(began [facts]time.Time) [facts]time.Time {
		switch {
		case !is:
			began[what] = time.Time{}
		case began[what].IsZero():
			began[what] = now
		}
		return began
	})
	return began[what]
}

// is reports whether a fact is being observed.
func (m *memory) is(job types.UID, what fact) bool { return !m.began.get(job)[what].IsZero() }

// lookIn returns how long to wait before a unit whose job is missing is checked. The first
// call begins the wait.
func (m *memory) lookIn(unit types.UID, now time.Time, first time.Duration) time.Duration {
	at := m.look.change(unit, func(at time.Time) time.Time {
		if at.IsZero() {
			return now.Add(first)
		}
		return at
	})
	return at.Sub(now)
}

func (m *memory) forgetJob(job types.UID) {
	m.began.forget(job)
	m.measured.forget(job)
	m.answers.forget(job)
	m.faults.forget(job)
	m.ignored.forget(job)
	m.warned.forget(job)
	m.outages.forget(job)
	m.lost.forget(job)
}

// answered counts a write that answers a user's change of the job.
func (m *memory) answered(job types.UID, now time.Time) {
	m.answers.change(job, func(s backoff.State) backoff.State { return answering.Step(s, now) })
}

// answerIn returns how long the next answer waits.
func (m *memory) answerIn(job types.UID, now time.Time) time.Duration {
	state := m.answers.change(job, func(s backoff.State) backoff.State {
		if answering.Forgotten(s, now) {
			return backoff.State{}
		}
		return s
	})
	return state.Until.Sub(now)
}

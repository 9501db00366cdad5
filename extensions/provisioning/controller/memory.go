package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what the controller knows in addition to the objects. All of it may be lost: a restart
// costs an additional request, never a wrong step.
type memory struct {
	mu *sync.Mutex
	// units, by their UID.
	units map[types.UID]*known
}

// known is what is known about a unit.
type known struct {
	// passed is a resourceVersion that was patched, so the cache will show another one.
	passed string
	// wrote is when the unit was last patched.
	wrote time.Time
	// templates: there may be templates of the unit.
	templates bool
}

func newMemory() memory { return memory{mu: &sync.Mutex{}, units: map[types.UID]*known{}} }

// of returns what is known about a unit; the caller holds the lock.
func (m memory) of(unit types.UID) *known {
	if m.units[unit] == nil {
		m.units[unit] = &known{}
	}
	return m.units[unit]
}

// setTemplates notes that there may be templates of the unit, or that there are none.
func (m memory) setTemplates(unit types.UID, are bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(unit).templates = are
}

func (m memory) hasTemplates(unit types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.units[unit]
	return k != nil && k.templates
}

// patched notes that a version of a unit was patched.
func (m memory) patched(unit types.UID, version string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(unit)
	k.passed, k.wrote = version, now
}

// isPassed reports whether the version of a unit was patched.
func (m memory) isPassed(unit types.UID, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.units[unit]
	return k != nil && k.passed == version
}

// wrote returns when the unit was last patched; the zero time if it is not known.
func (m memory) wrote(unit types.UID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.units[unit]; k != nil {
		return k.wrote
	}
	return time.Time{}
}

// forget forgets a unit that is gone.
func (m memory) forget(unit types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, unit)
}

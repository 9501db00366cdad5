package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds what the controller remembers about units beyond the objects. All of it can be lost: a restart costs an
// additional request, never a wrong step.
type memory struct {
	mu sync.Mutex
	// units, by their UID.
	units map[types.UID]known
}

// known are the facts about one unit.
type known struct {
	// passed is a resourceVersion that is known to be outdated. The cache will show a newer one.
	passed string
	// wrote is when the unit was last patched.
	wrote time.Time
	// templates: there may be templates of the unit.
	templates bool
}

func (m *memory) of(unit types.UID) known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units[unit]
}

func (m *memory) change(unit types.UID, change func(*known)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.units == nil {
		m.units = map[types.UID]known{}
	}
	k := m.units[unit]
	change(&k)
	m.units[unit] = k
}

// setTemplates notes that there may be templates of the unit, or that there are none.
func (m *memory) setTemplates(unit types.UID, are bool) {
	m.change(unit, func(k *known) { k.templates = are })
}

func (m *memory) forget(unit types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, unit)
}

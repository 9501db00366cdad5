package scheduler

// members are the units of a queue. Those that hold quota come first.
type members struct {
	all     []*unit
	holding int
}

// holders are the units that hold quota, in no particular order.
func (m *members) holders() []*unit { return m.all[:m.holding] }

func (m *members) add(u *unit) {
	m.all = append(m.all, u)
	u.memberAt = int32(len(m.all))
}

func (m *members) remove(u *unit) {
	m.setHolds(u, false)
	last := len(m.all) - 1
	m.swap(int(u.memberAt)-1, last)
	m.all[last], u.memberAt = nil, 0
	m.all = m.all[:last]
}

// setHolds records whether a member holds quota. It reports whether the member newly holds quota.
func (m *members) setHolds(u *unit, holds bool) (began bool) {
	at := int(u.memberAt) - 1
	switch {
	case holds && at >= m.holding:
		m.swap(at, m.holding)
		m.holding++
		return true
	case !holds && at < m.holding:
		m.holding--
		m.swap(at, m.holding)
	}
	return false
}

func (m *members) swap(i, j int) {
	m.all[i], m.all[j] = m.all[j], m.all[i]
	m.all[i].memberAt, m.all[j].memberAt = int32(i)+1, int32(j)+1
}

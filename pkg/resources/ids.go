package resources

// IDs is a set of IDs. The nil IDs is empty.
type IDs []bool

// Add adds an ID to the set.
func (s *IDs) Add(id ID) {
	for int(id) >= len(*s) {
		*s = append(*s, false)
	}
	(*s)[id] = true
}

// AddVector adds the IDs of a vector to the set.
func (s *IDs) AddVector(v Vector) {
	for _, a := range v {
		s.Add(a.ID)
	}
}

// Has reports whether the ID is in the set.
func (s IDs) Has(id ID) bool { return id >= 0 && int(id) < len(s) && s[id] }

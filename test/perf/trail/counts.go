package trail

import (
	"cmp"
	"slices"
)

// Kind is a group of writes that are counted together.
type Kind struct {
	Agent, Group, Resource, Subresource, Verb string
}

// What returns the name of the kind without its agent, such as "patch jobs.batch/status".
func (k Kind) What() string {
	what := k.Verb + " " + k.Resource
	if k.Group != "" && k.Resource != "events" {
		what += "." + k.Group
	}
	if k.Subresource != "" {
		what += "/" + k.Subresource
	}
	return what
}

// Row is how many writes of a kind succeeded and were refused.
type Row struct {
	Kind
	Done, Refused int
}

// Counts counts writes.
type Counts struct{ rows map[Kind]*Row }

// NewCounts returns empty Counts.
func NewCounts() *Counts { return &Counts{rows: map[Kind]*Row{}} }

// Add counts a write.
func (c *Counts) Add(e *Entry) {
	kind := Kind{e.Agent, e.Group, e.Resource, e.Subresource, e.Verb}
	row := c.rows[kind]
	if row == nil {
		row = &Row{Kind: kind}
		c.rows[kind] = row
	}
	if e.OK() {
		row.Done++
	} else {
		row.Refused++
	}
}

// Rows returns the rows by agent, the most frequent kind first.
func (c *Counts) Rows() []Row {
	rows := make([]Row, 0, len(c.rows))
	for _, row := range c.rows {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(b.Done, a.Done), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.What(), b.What()))
	})
	return rows
}

// Sum returns the sum of the selected rows.
func (c *Counts) Sum(asked func(Kind) bool) (done, refused int) {
	for kind, row := range c.rows {
		if asked(kind) {
			done += row.Done
			refused += row.Refused
		}
	}
	return done, refused
}

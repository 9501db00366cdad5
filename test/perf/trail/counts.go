package trail

import (
	"cmp"
	"slices"
)

// Kind is what is counted together.
type Kind struct {
	Agent, Group, Resource, Subresource, Verb string
}

// What names the kind without its agent, as "patch jobs.batch/status".
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

// Row is how often writes of a kind were carried out, and refused.
type Row struct {
	Kind
	Done, Refused int
}

// Counts adds up writes.
type Counts struct{ rows map[Kind]*Row }

// NewCounts counts nothing yet.
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

// Rows are ordered by agent, then the most frequent first.
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

// Sum adds up the selected rows.
func (c *Counts) Sum(asked func(Kind) bool) (done, refused int) {
	for kind, row := range c.rows {
		if asked(kind) {
			done += row.Done
			refused += row.Refused
		}
	}
	return done, refused
}

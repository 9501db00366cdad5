package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Paper is the output for users: a trace, a tree, and a report per policy.
type Paper struct {
	Trace Trace `json:"trace"`
	Tree  Tree  `json:"tree"`
	// Preemption is nil if no job is evicted.
	Preemption *Preemption `json:"preemption,omitempty"`
	Reports    []*Report   `json:"policies"`
}

// Trace describes the trace.
type Trace struct {
	File    string `json:"file"`
	Jobs    int    `json:"jobs"`
	Tenants int    `json:"tenants"`
	// Start is the submission time of the first job, nil if the trace has no dates. Span is
	// the time to the last submission.
	Start     *time.Time `json:"start,omitempty"`
	Span      Seconds    `json:"spanSeconds"`
	Resources []string   `json:"resources"`
	// Skipped and Renamed describe skipped rows and renamed tenants.
	Skipped []string `json:"skipped"`
	Renamed []string `json:"renamed"`
}

// Tree describes the quota tree.
type Tree struct {
	Source string `json:"source"`
	// Proposed reports whether the tree was proposed from the trace.
	Proposed       bool     `json:"proposed"`
	Max            []string `json:"max"`
	PauseBorrowing bool     `json:"pauseBorrowing"`
	OversellRate   string   `json:"oversellRate"`
}

// JSON writes everything, including series and distributions. Times are in seconds.
func (p *Paper) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

// CSV writes one row per policy and group of jobs, with times in seconds. It has columns for
// evictions only if jobs are evicted.
func (p *Paper) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	header := []string{"policy", "by", "group", "jobs", "never_released", "wait_mean_s", "wait_p50_s", "wait_p90_s", "wait_p99_s", "wait_max_s",
		"bounded_slowdown_mean", "resource", "resource_hours"}
	if p.Preemption != nil {
		header = append(header, "evictions", "reclaimed", "preempted", "evicted_jobs", "lost_resource_hours", "wait_after_eviction_mean_s", "wait_total_mean_s")
	}
	if err := c.Write(header); err != nil {
		return err
	}
	for _, r := range p.Reports {
		for _, s := range r.sections() {
			for _, g := range s.groups {
				row := []string{r.Name, s.by, g.Name, strconv.Itoa(g.Jobs), strconv.Itoa(g.Never),
					g.Mean.decimal(), g.P50.decimal(), g.P90.decimal(), g.P99.decimal(), g.Max.decimal(),
					strconv.FormatFloat(g.Slowdown, 'f', 3, 64), r.Resource, strconv.FormatFloat(g.Hours, 'f', 3, 64)}
				if p.Preemption != nil {
					row = append(row, g.Evictions.cells()...)
				}
				if err := c.Write(row); err != nil {
					return err
				}
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (e *Evictions) cells() []string {
	return []string{strconv.Itoa(e.Count), strconv.Itoa(e.Reclaimed), strconv.Itoa(e.Preempted), strconv.Itoa(e.Jobs),
		strconv.FormatFloat(e.Lost, 'f', 3, 64), e.Later.decimal(), e.Total.decimal()}
}

// section is a part of a report: its groups by one criterion.
type section struct {
	by     string
	groups []Group
}

func (r *Report) sections() []section {
	return []section{{"all", []Group{r.All}}, {"tenant", r.Tenants}, {"size", r.Sizes}}
}

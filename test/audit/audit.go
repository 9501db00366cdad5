package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Options describe what the log does not contain.
type Options struct {
	// Oversell is the factor for limits, a decimal number. Empty means 1.
	Oversell string
	// Grace is how long a unit may hold quota after its job has ended. The default is 10 s.
	Grace *time.Duration
	// ResourceQuota: quota is given by ResourceQuotas instead of a tree.
	ResourceQuota bool
	// PodLag is how long after its creation a pod may be missing from the usage of a quota tree, or of a
	// ResourceQuota if it has no unit. The default is 2 s.
	PodLag *time.Duration
	// StatusInterval is the shortest time between two writes of the status of a Queue or of the tree. The default
	// is 5 s.
	StatusInterval *time.Duration
}

// settings are options with defaults.
type settings struct {
	oversell                      *big.Rat
	grace, podLag, statusInterval time.Duration
	resourceQuota                 bool
}

func (o Options) complete() (settings, error) {
	text := cmp.Or(o.Oversell, "1")
	rate, ok := new(big.Rat), false
	if !strings.ContainsAny(text, "/eE") {
		rate, ok = rate.SetString(text)
	}
	if !ok || rate.Sign() < 0 {
		return settings{}, fmt.Errorf("oversell rate %q is not a decimal number", text)
	}
	return settings{
		rate, ptr.Deref(o.Grace, 10*time.Second), ptr.Deref(o.PodLag, 2*time.Second), ptr.Deref(o.StatusInterval, 5*time.Second), o.ResourceQuota,
	}, nil
}

// Log has the writes of an audit log in order.
type Log struct {
	// Lines and Entries are the numbers of lines and of writes.
	Lines, Entries int
	// From and To are the times of the first and the last entry.
	From, To time.Time
	// Unfinished reports that the last line is incomplete, as in a log that is still being written.
	Unfinished bool
	// Bare counts writes without objects because the level of the audit policy is too low. Cut
	// counts writes whose objects were omitted because of their size.
	Bare, Cut int
	// Unanswered counts writes of jobs and units without a response. The log does not show whether they
	// were stored.
	Unanswered int

	writes []*write
}

// ErrNoObjects is returned for a log without objects.
var ErrNoObjects = errors.New("the log contains no objects: set the level of the audit policy to RequestResponse")

// ReadFile reads a log from a file. The file may be compressed with gzip and may still be
// growing.
func ReadFile(path string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// batchLines is how many lines are decoded at the same time.
const batchLines = 1 << 12

// Read reads a log. It ignores an incomplete last line.
func Read(r io.Reader) (*Log, error) {
	l := &Log{}
	var batch [][]byte
	take := func() error {
		for _, d := range decodeAll(l.Lines+1, batch) {
			if err := l.take(d); err != nil {
				return log.NoEntry(l.Lines, err)
			}
		}
		batch = batch[:0]
		return nil
	}
	unfinished, err := log.Lines(r, func(_ int, line []byte) error {
		if batch = append(batch, line); len(batch) < batchLines {
			return nil
		}
		return take()
	})
	if err = cmp.Or(err, take()); err != nil {
		return nil, err
	}
	if l.Bare > 0 && !slices.ContainsFunc(l.writes, func(w *write) bool { return w.body != nil }) {
		return nil, ErrNoObjects
	}
	l.Unfinished = unfinished
	order(l.writes)
	return l, nil
}

// decodeAll decodes consecutive lines.
func decodeAll(first int, lines [][]byte) []decoded {
	results := make([]decoded, len(lines))
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(lines); i += workers {
				if len(lines[i]) > 0 {
					results[i] = decodeLine(first+i, lines[i])
				}
			}
		})
	}
	group.Wait()
	return results
}

// take adds the result of the next line.
func (l *Log) take(d decoded) error {
	l.Lines++
	if d.err != nil {
		return d.err
	}
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&l.Entries, d.write)
	count(&l.Bare, d.bare)
	count(&l.Cut, d.cut)
	if !d.at.IsZero() {
		if l.From.IsZero() || d.at.Before(l.From) {
			l.From = d.at
		}
		if d.at.After(l.To) {
			l.To = d.at
		}
	}
	l.writes = append(l.writes, d.writes...)
	for _, w := range d.writes {
		count(&l.Unanswered, w.lost() && (w.resource == "queueunits" || kindOf(w.group, w.version, w.resource) != nil))
	}
	return nil
}

// Moment is a position in the log.
type Moment struct {
	Time     time.Time
	Revision int64
	Line     int
}

// IsZero reports whether the moment did not occur.
func (m Moment) IsZero() bool { return m.Line == 0 }

// Before reports whether m occurred before the other moment. A moment that did not occur is after
// all others.
func (m Moment) Before(other Moment) bool {
	if m.IsZero() || other.IsZero() {
		return !m.IsZero()
	}
	return cmp.Or(cmp.Compare(m.Revision, other.Revision), m.Time.Compare(other.Time)) < 0
}

// or returns the other moment if m did not occur.
func (m Moment) or(other Moment) Moment {
	if m.IsZero() {
		return other
	}
	return m
}

package facts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Log has the writes of an audit log in order.
type Log struct {
	// Lines and Entries are the numbers of lines and of writes.
	Lines, Entries int
	// From and To are the times of the first and the last entry.
	From, To time.Time
	// Unfinished reports that the last line is incomplete, as in a log that is still written.
	Unfinished bool
	// Bare counts writes without objects because the level of the audit policy is too low. Cut
	// counts writes whose objects were omitted because of their size.
	Bare, Cut int
	// Unanswered counts writes without a response of which the log does not show whether they were
	// stored; see followUp.
	Unanswered int

	Writes   []*Write
	followUp *followUp
}

// ErrNoObjects is returned for a log without objects.
var ErrNoObjects = errors.New("the log contains no objects: set the level of the audit policy to RequestResponse")

// ReadFile reads a log from a file. The file can be compressed by gzip, and can still be written.
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

// Read reads a log. An incomplete last line is ignored.
func Read(r io.Reader) (*Log, error) {
	l := &Log{followUp: newFollowUp()}
	if err := l.read(r); err != nil {
		return nil, err
	}
	if l.Bare > 0 && !slices.ContainsFunc(l.Writes, func(w *Write) bool { return w.Body != nil }) {
		return nil, ErrNoObjects
	}
	l.Unanswered, l.followUp = l.followUp.unknown(), nil
	l.order()
	return l, nil
}

// batchLines is how many lines are decoded at the same time.
const batchLines = 1 << 12

func (l *Log) read(r io.Reader) error {
	var batch [][]byte
	take := func() error {
		first := l.Lines + 1
		for i, d := range decodeAll(first, batch) {
			if err := l.take(d); err != nil {
				return log.NoEntry(first+i, err)
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
	if l.Unfinished = unfinished; err != nil {
		return err
	}
	return take()
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
	if d.write {
		l.Entries++
	}
	if d.bare {
		l.Bare++
	}
	if d.cut {
		l.Cut++
	}
	if !d.at.IsZero() {
		if l.From.IsZero() || d.at.Before(l.From) {
			l.From = d.at
		}
		if d.at.After(l.To) {
			l.To = d.at
		}
	}
	l.Writes = append(l.Writes, d.writes...)
	for _, w := range d.writes {
		if err := l.followUp.see(w, d.bodies); err != nil {
			return err
		}
	}
	return nil
}

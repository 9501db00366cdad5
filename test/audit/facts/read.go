package facts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
	if l.Bare > 0 && l.bodies() == 0 {
		return nil, ErrNoObjects
	}
	l.Unanswered, l.followUp = l.followUp.unknown(), nil
	l.order()
	return l, nil
}

const batchLines = 256

// read decodes batches of lines concurrently, and processes them in order.
func (l *Log) read(r io.Reader) error {
	type batch struct {
		first int // number of the first line
		done  chan []decoded
	}
	inOrder := make(chan batch, 2*runtime.GOMAXPROCS(0)) // bounds how many are decoded at once
	var readErr error
	go func() {
		defer close(inOrder)
		first, lines := 1, [][]byte(nil)
		emit := func(next int) {
			b := batch{first, make(chan []decoded, 1)}
			inOrder <- b
			go func(lines [][]byte) { b.done <- decodeAll(b.first, lines) }(lines)
			first, lines = next, nil
		}
		l.Unfinished, readErr = log.Lines(r, func(number int, line []byte) error {
			if lines = append(lines, bytes.Clone(line)); len(lines) == batchLines {
				emit(number + 1)
			}
			return nil
		})
		emit(0)
	}()
	var err error
	for b := range inOrder {
		if results := <-b.done; err == nil {
			err = l.take(b.first, results)
		}
	}
	return cmp.Or(err, readErr)
}

// decodeAll decodes consecutive lines.
func decodeAll(first int, lines [][]byte) []decoded {
	d := newDecoder()
	results := make([]decoded, len(lines))
	for i, line := range lines {
		if len(line) > 0 {
			results[i] = d.line(first+i, line)
		}
	}
	return results
}

func (l *Log) take(first int, results []decoded) error {
	for i, d := range results {
		l.Lines++
		if d.err != nil {
			return log.NoEntry(first+i, d.err)
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
				return fmt.Errorf("line %d: %w", first+i, err)
			}
		}
	}
	return nil
}

func (l *Log) bodies() int {
	n := 0
	for _, w := range l.Writes {
		if w.Body != nil {
			n++
		}
	}
	return n
}

// End returns the time up to which the log is complete.
func (l *Log) End(o *Options) time.Time {
	if o.Until.After(l.To) {
		return o.Until
	}
	return l.To
}

package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
	if l.Bare > 0 && l.bodies() == 0 {
		return nil, ErrNoObjects
	}
	l.Unanswered, l.followUp = l.followUp.unknown(), nil
	l.order()
	return l, nil
}

// batch is a group of consecutive lines that one goroutine decodes.
type batch struct {
	first int // number of the first line
	lines [][]byte
	done  chan []decoded
}

const batchLines = 256

func newBatch(first int) *batch { return &batch{first: first, done: make(chan []decoded, 1)} }

// read splits the log into batches, decodes them concurrently and processes them in order.
func (l *Log) read(r io.Reader) error {
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *batch, workers)
	inOrder := make(chan *batch, 4*workers)
	stop := make(chan struct{})
	defer close(stop)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			d := newDecoder()
			for b := range work {
				results := make([]decoded, len(b.lines))
				for i, line := range b.lines {
					if len(line) > 0 {
						results[i] = d.line(b.first+i, line)
					}
				}
				b.lines = nil
				b.done <- results
			}
		})
	}
	var readErr error
	go func() {
		defer close(inOrder)
		defer close(work)
		l.Unfinished, readErr = split(r, func(b *batch) bool {
			select {
			case inOrder <- b:
			case <-stop:
				return false
			}
			work <- b
			return true
		})
	}()
	for b := range inOrder {
		if err := l.take(b.first, <-b.done); err != nil {
			return err
		}
	}
	group.Wait()
	return readErr
}

// errStopped ends the reading after the consumer has stopped.
var errStopped = errors.New("stopped")

// split passes complete lines on in batches.
func split(r io.Reader, emit func(*batch) bool) (unfinished bool, err error) {
	b := newBatch(1)
	unfinished, err = log.Lines(r, func(number int, line []byte) error {
		b.lines = append(b.lines, bytes.Clone(line))
		if len(b.lines) < batchLines {
			return nil
		}
		full := b
		b = newBatch(number + 1)
		if !emit(full) {
			return errStopped
		}
		return nil
	})
	if errors.Is(err, errStopped) || len(b.lines) > 0 && !emit(b) {
		return false, nil
	}
	return unfinished, err
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

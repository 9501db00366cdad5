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

// Log is what was read: the writes in their order.
type Log struct {
	// Lines that were read, and how many of them were writes.
	Lines, Entries int
	// From and To are the times of the first and the last entry.
	From, To time.Time
	// Unfinished reports that the last line was cut off, as in a log that is still
	// being written.
	Unfinished bool
	// Bare counts writes whose objects are missing, since the log's level is too
	// low; Cut those whose objects were left out for their size.
	Bare, Cut int
	// Unanswered counts writes that got no answer and of which the log does not
	// show whether they were carried out; see followUp.
	Unanswered int

	Writes   []*Write
	followUp *followUp
}

// ErrNoObjects is returned for a log that holds no objects.
var ErrNoObjects = errors.New("the log holds no objects: its policy must say level RequestResponse")

// ReadFile reads a log from a file, which may be compressed by gzip and may
// still be growing.
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

// Read reads a log. A last line without an end is left out.
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

// batch is a run of lines that is decoded at once.
type batch struct {
	first int // number of the first line
	lines [][]byte
	done  chan []decoded
}

const batchLines = 256

func newBatch(first int) *batch { return &batch{first: first, done: make(chan []decoded, 1)} }

// read splits the log into batches, which are decoded side by side and taken
// in order.
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

// errStopped ends the reading of lines that nobody takes any more.
var errStopped = errors.New("stopped")

// split reads whole lines and hands them on in batches.
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

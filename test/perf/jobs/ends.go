package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/perf/wire"
)

// ends counts the jobs that have completed, each once.
//
// It watches jobs with a succeeded pod. For jobs of one pod the condition Complete is set at the
// same time. It requests table rows with name and status instead of objects, which are ten times as
// large.
type ends struct {
	client *wire.Client

	mu     sync.Mutex
	wanted map[string]bool
	left   int
	last   time.Time
	done   chan struct{}
}

func newEnds(client *wire.Client, names []string) *ends {
	e := &ends{client: client, wanted: make(map[string]bool, len(names)), left: len(names), done: make(chan struct{})}
	for _, name := range names {
		e.wanted[name] = true
	}
	return e
}

// tableRows requests table rows without objects.
const tableRows = "application/json;as=Table;g=meta.k8s.io;v=v1"

// watch counts until all jobs have completed. Each request starts with the jobs that are complete
// at that time, so an interrupted watch loses nothing.
func (e *ends) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := e.follow(ctx)
		select {
		case <-e.done:
			return nil
		default:
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
			return fmt.Errorf("watching jobs of namespace %s: %w", Namespace, err)
		}
	}
	return context.Cause(ctx)
}

// event is an event of a watch with tables.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Message           string `json:"message"`
		ColumnDefinitions []struct {
			Name string `json:"name"`
		} `json:"columnDefinitions"`
		Rows []struct {
			Cells []any `json:"cells"`
		} `json:"rows"`
	} `json:"object"`
}

func (e *ends) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.client.Open(ctx, wire.Request{Method: http.MethodGet, Path: jobsPath, Header: e.client.Header(tableRows, ""),
		Query: "watch=true&includeObject=None&timeoutSeconds=3600&fieldSelector=status.successful%3D1"})
	if err != nil {
		return err
	}
	defer stream.Close()
	decoder := json.NewDecoder(stream)
	name, status := -1, -1
	for {
		var seen event
		if err := decoder.Decode(&seen); err != nil {
			return err
		}
		if seen.Type == "ERROR" {
			return errors.New(seen.Object.Message)
		}
		// Only the first event of a stream contains the columns.
		for i, column := range seen.Object.ColumnDefinitions {
			switch column.Name {
			case "Name":
				name = i
			case "Status":
				status = i
			}
		}
		if name < 0 || status < 0 {
			return errors.New("the table of jobs has no columns Name and Status")
		}
		for _, row := range seen.Object.Rows {
			if seen.Type != "DELETED" && max(name, status) < len(row.Cells) && row.Cells[status] == "Complete" {
				if e.complete(row.Cells[name]) {
					return nil
				}
			}
		}
	}
}

// complete counts a job, and reports whether it was the last one.
func (e *ends) complete(name any) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	job, _ := name.(string)
	if !e.wanted[job] {
		return false
	}
	delete(e.wanted, job)
	e.left--
	e.last = time.Now()
	if e.left == 0 {
		close(e.done)
	}
	return e.left == 0
}

// state returns the number of incomplete jobs, the time of the last completion, and the name of an
// incomplete job.
func (e *ends) state() (left int, last time.Time, example string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.wanted {
		if example == "" || name < example {
			example = name
		}
	}
	return e.left, e.last, example
}

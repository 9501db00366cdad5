package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Marker is a ConfigMap that a test wrote as its last deed.
type Marker struct{ Namespace, Name string }

// WaitFor waits until the log at path holds the marker: an entry is written when
// its request is done, so all that was done before the marker is then in the log.
func WaitFor(ctx context.Context, path string, marker Marker) error {
	t := &tail{path: path}
	defer t.close()
	for {
		found, err := t.holds(marker)
		if found || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: ConfigMap %s/%s is not in the log: %w", path, marker.Namespace, marker.Name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tail reads a file that grows.
type tail struct {
	path string
	file *os.File
	rest []byte // of a line that is not finished
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// holds reads what is new and tells whether the marker is among it.
func (t *tail) holds(marker Marker) (bool, error) {
	if t.file == nil {
		file, err := os.Open(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		t.file = file
	}
	buffer := make([]byte, 1<<20)
	for {
		n, err := t.file.Read(buffer)
		t.rest = append(t.rest, buffer[:n]...)
		for {
			line, rest, ok := bytes.Cut(t.rest, []byte{'\n'})
			if !ok {
				break
			}
			t.rest = rest
			if marker.in(line) {
				return true, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.path, err)
		}
	}
}

func (m Marker) in(line []byte) bool {
	if !bytes.Contains(line, []byte(`"configmaps"`)) || !bytes.Contains(line, []byte(m.Name)) {
		return false
	}
	var e entry
	if json.Unmarshal(line, &e) != nil || e.ObjectRef == nil || e.Stage != "ResponseComplete" || !writeVerbs[e.Verb] {
		return false
	}
	// A name that the server made up stands only in the answer.
	var answer struct{ Metadata meta }
	_ = json.Unmarshal(e.ResponseObject, &answer)
	return e.ObjectRef.Resource == "configmaps" && e.ObjectRef.Namespace == m.Namespace &&
		(e.ObjectRef.Name == m.Name || answer.Metadata.Name == m.Name) &&
		e.ResponseStatus != nil && e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

package log

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Marker is a ConfigMap that a test wrote as its last deed.
type Marker struct{ Namespace, Name string }

// WaitFor waits until the log at path holds the marker: an entry is written when
// its request is done, so all that was done before the marker is then in the log.
func WaitFor(ctx context.Context, path string, marker Marker) error {
	file := Open(path)
	for {
		found, err := file.holds(marker)
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

// errFound ends the reading where the marker stands.
var errFound = errors.New("the marker is there")

// holds reads what is new and reports whether the marker is among it.
func (f *File) holds(marker Marker) (bool, error) {
	err := f.Read(func(_ int, line []byte) error {
		if marker.in(line) {
			return errFound
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}

func (m Marker) in(line []byte) bool {
	if !bytes.Contains(line, []byte(`"configmaps"`)) || !bytes.Contains(line, []byte(m.Name)) {
		return false
	}
	e, err := Parse(line)
	if err != nil || !e.Write() {
		return false
	}
	// A name that the server made up stands only in the answer.
	var answer struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.ResponseObject, &answer)
	return e.ObjectRef.Resource == "configmaps" && e.ObjectRef.Namespace == m.Namespace &&
		(e.ObjectRef.Name == m.Name || answer.Metadata.Name == m.Name) && Success(e.Code())
}

package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Marker is a ConfigMap that a test creates as its last write.
type Marker struct{ Namespace, Name string }

// WaitFor waits until the log at path contains the marker. Entries are written when their
// requests are complete, so the log then contains all earlier writes.
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

// errFound stops the reading at the marker.
var errFound = errors.New("the marker was found")

// holds reads new lines and reports whether they contain the marker.
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
	return err == nil && e.Write() && e.ObjectRef.Resource == "configmaps" && e.ObjectRef.Namespace == m.Namespace &&
		e.ObjectRef.Name == m.Name && Success(e.Code())
}

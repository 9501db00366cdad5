package lenient

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

// events decodes the events of a watch.
type events struct {
	kind   Kind
	body   io.Closer
	stream *stream
}

func newEvents(kind Kind, body io.ReadCloser) *events {
	return &events{kind: kind, body: body, stream: newStream(body)}
}

// Decode waits for the next event.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	var what watch.EventType
	var text []byte
	err := e.stream.members(func(name string) (err error) {
		switch name {
		case "type":
			return e.stream.Decode(&what)
		case "object":
			text, err = e.stream.object()
			return err
		}
		return e.stream.skip()
	})
	switch {
	case utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		return "", nil, err // the watcher compares it
	case err != nil:
		return "", nil, fmt.Errorf("reading a watch event of %s: %w", e.kind.Resource, err)
	}
	if what == watch.Error {
		status := &metav1.Status{}
		return what, status, unmarshal(text, status)
	}
	object, err := e.kind.Decode(text)
	if err != nil {
		return "", nil, fmt.Errorf("in a watch event of type %s: %w", what, err)
	}
	return what, object, nil
}

// Close ends the watch.
func (e *events) Close() { _ = e.body.Close() }

package lenient

import (
	"encoding/json"
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
	// raw has the text of the last object.
	raw json.RawMessage
}

func newEvents(kind Kind, body io.ReadCloser) *events {
	return &events{kind: kind, body: body, stream: newStream(body)}
}

// Decode waits for the next event.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	event.Object = e.raw[:0]
	err := e.stream.next(&event)
	e.raw = event.Object
	switch {
	case utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		return "", nil, err // the watcher compares it
	case err != nil:
		return "", nil, fmt.Errorf("reading a watch event of %s: %w", e.kind.Resource, err)
	}
	if event.Type == watch.Error {
		status := &metav1.Status{}
		return event.Type, status, unmarshal(event.Object, status)
	}
	object, err := e.kind.Decode(event.Object)
	if err != nil {
		return "", nil, fmt.Errorf("in a watch event of type %s: %w", event.Type, err)
	}
	return event.Type, object, nil
}

// Close ends the watch.
func (e *events) Close() { _ = e.body.Close() }

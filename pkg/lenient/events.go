package lenient

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// events decodes the events of a watch.
type events struct {
	kind  Kind
	body  io.Closer
	texts *texts
}

func newEvents(kind Kind, body io.ReadCloser) *events {
	return &events{kind: kind, body: body, texts: newTexts(body)}
}

// Decode waits for the next event.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	text, err := e.texts.next()
	if err != nil {
		return "", nil, err
	}
	// Most events are decoded in one pass. Splitting the text first would need two more passes.
	if !suspicious(text) {
		event := struct {
			Type   watch.EventType `json:"type"`
			Object any             `json:"object"`
		}{Object: e.kind.New()}
		if err := unmarshal(text, &event); err == nil && event.Type != watch.Error {
			if object, is := event.Object.(Object); is {
				return event.Type, object, nil
			}
		}
	}
	return e.decodeParts(text)
}

// decodeParts decodes an event whose object is an error or cannot be decoded into its type.
func (e *events) decodeParts(text []byte) (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := unmarshal(text, &event); err != nil {
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

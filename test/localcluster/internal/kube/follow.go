package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// retryPause is the delay before a follower lists again.
const retryPause = time.Second

// Change is the current state of an object, or the last state of a deleted object.
type Change[T any] struct {
	UID     string
	Deleted bool
	// Object is nil if the deletion was not seen.
	Object *T
}

// Follower passes the objects of one kind and their changes to a handler, one after another. It can
// pass an object several times and omit intermediate states, so a handler must only use the current
// state. The deletion of an object is never omitted.
type Follower[T any] struct {
	Client *Client
	// Path is the API path of the list. Selector is a label selector.
	Path, Selector string
	// Handle processes a change. If it fails, all objects are passed again.
	Handle func(context.Context, Change[T]) error
	// Say receives errors that are retried.
	Say func(error)

	// shown has the UIDs of objects whose deletion is not handled yet.
	shown map[string]bool
}

// Run follows objects until the context ends.
func (f *Follower[T]) Run(ctx context.Context) {
	f.shown = map[string]bool{}
	for ctx.Err() == nil {
		if err := f.round(ctx); err != nil && ctx.Err() == nil {
			f.Say(err)
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// round lists, and then watches until the watch ends or a change must be handled again.
func (f *Follower[T]) round(outer context.Context) error {
	var list struct {
		Metadata metadata
		Items    []json.RawMessage
	}
	query := url.Values{"labelSelector": {f.Selector}}
	if err := f.Client.Get(outer, f.Path+"?"+query.Encode(), &list); err != nil {
		return err
	}
	failed := false
	there := map[string]bool{}
	for _, item := range list.Items {
		uid, handled, err := f.handleObject(outer, item, false)
		if err != nil {
			return err
		}
		there[uid] = true
		failed = failed || !handled
	}
	for uid := range f.shown {
		if !there[uid] {
			failed = !f.handle(outer, Change[T]{UID: uid, Deleted: true}) || failed
		}
	}
	if failed {
		return nil
	}

	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	query.Set("watch", "true")
	query.Set("resourceVersion", list.Metadata.ResourceVersion)
	answer, err := f.Client.send(ctx, http.MethodGet, f.Path+"?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	for events := json.NewDecoder(answer); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		// The server ends each watch at some time.
		if events.Decode(&event) != nil || event.Type == "ERROR" {
			return nil
		}
		_, handled, err := f.handleObject(outer, event.Object, event.Type == "DELETED")
		if err != nil {
			return err
		}
		if !handled && !failed {
			failed = true
			// Continue with other objects until the retry.
			defer time.AfterFunc(retryPause, cancel).Stop()
		}
	}
}

func (f *Follower[T]) handleObject(ctx context.Context, raw json.RawMessage, deleted bool) (uid string, handled bool, err error) {
	var m struct{ Metadata metadata }
	object := new(T)
	for _, into := range []any{&m, object} {
		if err := json.Unmarshal(raw, into); err != nil {
			return "", false, fmt.Errorf("follow %s: %w", f.Path, err)
		}
	}
	return m.Metadata.UID, f.handle(ctx, Change[T]{m.Metadata.UID, deleted, object}), nil
}

func (f *Follower[T]) handle(ctx context.Context, change Change[T]) bool {
	f.shown[change.UID] = true
	err := f.Handle(ctx, change)
	if err == nil && change.Deleted {
		delete(f.shown, change.UID)
	}
	if err != nil && ctx.Err() == nil {
		f.Say(err)
	}
	return err == nil
}

// metadata has the fields of lists and objects that a follower needs.
type metadata struct{ UID, ResourceVersion string }

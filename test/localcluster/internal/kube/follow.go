package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// retryPause is the delay before a follower lists again.
const retryPause = time.Second

// Change is the current state of an object, or the last state of a deleted object.
type Change struct {
	UID     string
	Deleted bool
	// Object is nil if the deletion was not seen.
	Object json.RawMessage
}

// Follower passes the objects of one kind and their changes to a handler, one after another. It can
// pass an object several times and omit intermediate states, so a handler must only use the current
// state. The deletion of an object is never omitted.
type Follower struct {
	Client *Client
	// Path is the API path of the list. Selector is a label selector.
	Path, Selector string
	// Handle processes a change. If it fails, all objects are passed again.
	Handle func(context.Context, Change) error
	// Say receives errors that are retried.
	Say func(error)

	// shown has the UIDs of objects whose deletion is not handled yet.
	shown map[string]bool
}

// Run follows objects until the context ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
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

// errBeginAgain ends a round so that a new list follows: the version has expired, or a change must
// be handled again.
var errBeginAgain = errors.New("begin again")

// round lists and then watches until an error occurs.
func (f *Follower) round(ctx context.Context) error {
	var list struct {
		Metadata metadata
		Items    []json.RawMessage
	}
	if err := f.Client.Get(ctx, f.Path+"?"+f.query(nil), &list); err != nil {
		return err
	}
	failed := false
	there := map[string]bool{}
	for _, item := range list.Items {
		m, err := metadataOf(item)
		if err != nil {
			return fmt.Errorf("list %s: %w", f.Path, err)
		}
		there[m.UID] = true
		failed = !f.handle(ctx, Change{UID: m.UID, Object: item}) || failed
	}
	for uid := range f.shown {
		if !there[uid] {
			failed = !f.handle(ctx, Change{UID: uid, Deleted: true}) || failed
		}
	}
	if failed {
		return nil
	}
	version := list.Metadata.ResourceVersion
	for {
		var err error
		version, err = f.watch(ctx, version)
		switch {
		case errors.Is(err, errBeginAgain):
			return nil
		case err != nil:
			return err
		}
	}
}

func (f *Follower) query(more url.Values) string {
	query := url.Values{"labelSelector": {f.Selector}}
	for key, values := range more {
		query[key] = values
	}
	return query.Encode()
}

func (f *Follower) handle(ctx context.Context, change Change) bool {
	if f.shown == nil {
		f.shown = map[string]bool{}
	}
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

// watch passes the changes after a version. It returns the last version when the server ends the
// watch.
func (f *Follower) watch(outer context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	path := f.Path + "?" + f.query(url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}})
	answer, err := f.Client.send(ctx, http.MethodGet, path, "", nil)
	if HasCode(err, http.StatusGone) {
		return version, errBeginAgain
	}
	if err != nil {
		return version, err
	}
	defer answer.Close()

	failed := false
	events := json.NewDecoder(answer)
	for {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		err := events.Decode(&event)
		switch {
		case err != nil && failed, err == nil && event.Type == "ERROR":
			return version, errBeginAgain
		case errors.Is(err, io.EOF):
			return version, nil
		case err != nil:
			return version, fmt.Errorf("watch %s: %w", f.Path, err)
		}
		m, err := metadataOf(event.Object)
		if err != nil {
			return version, fmt.Errorf("watch %s: %w", f.Path, err)
		}
		version = m.ResourceVersion
		if event.Type == "BOOKMARK" || f.handle(outer, Change{m.UID, event.Type == "DELETED", event.Object}) || failed {
			continue
		}
		failed = true
		// Continue with other objects until the retry.
		defer time.AfterFunc(retryPause, cancel).Stop()
	}
}

// metadata has the fields of lists and objects that a follower needs.
type metadata struct{ UID, ResourceVersion string }

func metadataOf(object json.RawMessage) (metadata, error) {
	var o struct{ Metadata metadata }
	err := json.Unmarshal(object, &o)
	return o.Metadata, err
}

package facts

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// A program that is killed during a write receives no response. The API server aborts the write and
// logs status 504, even if the store has completed it. The next write of the same object by any
// user shows whether the write was stored: the returned object contains the fields of the write, or
// it does not.
//
// Only creates and merge patches of jobs and units are followed up. The two programs use no other
// writes.

// bodies are the request object and response object of a log entry.
type bodies struct{ asked, answered json.RawMessage }

// unanswered is a write whose outcome is unknown.
type unanswered struct {
	write *Write
	asked json.RawMessage
	// before is the object before the write.
	before version
}

// version is an object as last returned by the API server.
type version struct {
	raw      json.RawMessage
	uid      string
	revision int64
}

type objectKey struct{ group, version, resource, namespace, name string }

// followUp determines the outcome of writes without a response.
type followUp struct {
	latest map[objectKey]version
	open   map[objectKey][]unanswered
	// landed are the creates that were stored, as far as the log shows, by UID.
	landed map[string][]*Write
	// undecided counts writes whose outcome the next write does not show.
	undecided int
}

func newFollowUp() *followUp {
	return &followUp{latest: map[objectKey]version{}, open: map[objectKey][]unanswered{}, landed: map[string][]*Write{}}
}

// followed reports whether the outcome of a write is followed up if there is no response.
func (w *Write) followed() bool {
	return w.Group == queueGroup && w.Resource == "queueunits" || RowOf(w.Group, w.Version, w.Resource) != nil
}

// lost reports whether the write may have been stored although the response was an error.
func (w *Write) lost() bool {
	return w.Code >= 500 && w.followed() && (w.Verb == "patch" || w.Verb == "create" && w.Subresource == "")
}

// see applies one write in the order of the log's lines.
func (f *followUp) see(w *Write, b bodies) error {
	key := objectKey{w.Group, w.Version, w.Resource, w.Namespace, w.Name}
	switch {
	case w.lost() && b.asked != nil:
		f.open[key] = append(f.open[key], unanswered{w, b.asked, f.latest[key]})
	case w.OK() && w.Body != nil:
		if w.Creates() {
			// Others wrote the object before the API server logged its create.
			for _, other := range f.landed[w.UID] {
				other.Body, other.UID, other.Landed = nil, "", false
			}
			delete(f.landed, w.UID)
		}
		if err := f.settle(key, w, b); err != nil {
			return err
		}
		if w.Gone {
			delete(f.latest, key)
		} else if known := f.latest[key]; w.UID != known.uid || w.Revision > known.revision {
			f.latest[key] = version{b.answered, w.UID, w.Revision}
		}
	case w.Gone:
		delete(f.latest, key)
	}
	return nil
}

// settle uses a later write to decide whether writes without a response succeeded.
func (f *followUp) settle(key objectKey, next *Write, b bodies) error {
	var left []unanswered
	alone := len(f.open[key]) == 1
	for _, u := range f.open[key] {
		// A concurrent write may return the object as it was before.
		if !next.Received.After(u.write.Time) {
			if u.expects() == next.Revision {
				u.before = version{b.answered, next.UID, next.Revision}
			}
			left = append(left, u)
			continue
		}
		after, known := u.outcome(next, b, alone)
		if !known {
			f.undecided++
		}
		if after == nil {
			continue
		}
		var head struct {
			Kind     string `json:"kind"`
			Metadata meta   `json:"metadata"`
		}
		if err := json.Unmarshal(after, &head); err != nil {
			return err
		}
		facts, err := parserOf(key.group, key.version, key.resource)(head.Kind, &head.Metadata, after)
		if err != nil {
			return err
		}
		w := u.write
		w.Body, w.UID, w.Landed = facts, next.UID, true
		if w.Verb == "create" {
			f.landed[w.UID] = append(f.landed[w.UID], w)
		}
	}
	if len(left) == 0 {
		delete(f.open, key)
	} else {
		f.open[key] = left
	}
	return nil
}

// unknown returns the number of writes whose outcome no later write shows.
func (f *followUp) unknown() int {
	n := f.undecided
	for _, open := range f.open {
		n += len(open)
	}
	return n
}

// expects returns the resourceVersion that the write requires, or 0.
func (u unanswered) expects() int64 { return expects(u.asked) }

// expects returns the resourceVersion that a patch requires, or 0.
func expects(patch json.RawMessage) int64 {
	var asked struct{ Metadata meta }
	if json.Unmarshal(patch, &asked) != nil {
		return 0
	}
	revision, _ := strconv.ParseInt(asked.Metadata.ResourceVersion, 10, 64)
	return revision
}

// outcome returns the object after the write, or nil if the write was not stored. known reports
// whether the next write shows the outcome. alone is whether no other write of the object lacks a response.
func (u unanswered) outcome(next *Write, b bodies, alone bool) (after json.RawMessage, known bool) {
	if u.write.Verb == "create" {
		return u.created(next, b)
	}
	asked, before := fieldsOf(u.asked), fieldsOf(u.before.raw)
	if asked == nil || u.before.uid != next.UID {
		return nil, false // a JSON Patch, whose outcome is not followed, or another object
	}
	if from := expects(b.asked); alone && from != 0 && u.expects() == u.before.revision {
		// The next write requires either the version before this one or a version that only this one can have made.
		if from == u.before.revision {
			return nil, true
		}
		return merge(u.before.raw, asked)
	}
	var own map[string]any
	if next.Verb == "patch" {
		own = fieldsOf(b.asked)
	}
	confirmed, denied := compare(asked, before, own, fieldsOf(b.answered))
	if confirmed == 0 || denied {
		return nil, denied
	}
	return merge(u.before.raw, asked)
}

// created returns the object of a create, if it exists, is not older than the request, and was
// created by no other request.
func (u unanswered) created(next *Write, b bodies) (after json.RawMessage, known bool) {
	var now struct {
		Metadata struct {
			UID               string    `json:"uid"`
			CreationTimestamp time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	if next.Creates() {
		return nil, true
	}
	if json.Unmarshal(b.answered, &now) != nil {
		return nil, false
	}
	made := now.Metadata.CreationTimestamp // has a resolution of one second
	if made.Before(u.write.Received.Truncate(time.Second)) {
		return nil, true
	}
	return merge(u.asked, map[string]any{"metadata": now.Metadata})
}

func merge(object json.RawMessage, fields map[string]any) (json.RawMessage, bool) {
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, false
	}
	after, err := jsonpatch.MergePatch(object, patch)
	return after, err == nil
}

// compare compares a patch with the current object. It counts the fields that confirm or deny the
// patch. It ignores fields that had the value before, and fields set by the write that returned the
// object.
func compare(asked, before, own, now map[string]any) (confirmed int, denied bool) {
	for key, want := range asked {
		mine, set := own[key]
		if deeper := inner(want); deeper != nil && (!set || inner(mine) != nil) {
			n, no := compare(deeper, inner(before[key]), inner(mine), inner(now[key]))
			confirmed, denied = confirmed+n, denied || no
			continue
		}
		// A null removes the field, and a missing field reads as null. The resourceVersion in a
		// write must be that of the previous version.
		if set || reflect.DeepEqual(want, before[key]) {
			continue
		}
		confirmed++
		denied = denied || !reflect.DeepEqual(want, now[key])
	}
	return confirmed, denied
}

// fieldsOf decodes an object. Any other value has no fields.
func fieldsOf(raw json.RawMessage) map[string]any {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func inner(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

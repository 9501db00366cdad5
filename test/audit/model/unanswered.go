package model

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// A program that is killed while a write of its is under way gets no answer.
// The API server gives such a write up and says 504, also where the store has
// carried it out all the same. Whether it has shows in the next write of the
// same object, whoever made it: what that one returned holds the fields that
// the write set, or it does not.
//
// Only creates, and patches by object, of jobs and of units are followed up: by
// these the two programs do all that they do.

// bodies are a request and its answer, as the log shows them.
type bodies struct{ asked, answered json.RawMessage }

// unanswered is a write whose outcome is not known yet.
type unanswered struct {
	write *Write
	asked json.RawMessage
	// before is the object as it was when the write came.
	before version
}

// version is an object as it was last returned.
type version struct {
	raw      json.RawMessage
	uid      string
	revision int64
}

type objectKey struct{ group, version, resource, namespace, name string }

// followUp finds out what became of writes that got no answer.
type followUp struct {
	latest map[objectKey]version
	open   map[objectKey][]unanswered
	words  *decoder
	// undecided counts writes of which the next one shows nothing.
	undecided int
}

func newFollowUp() *followUp {
	return &followUp{latest: map[objectKey]version{}, open: map[objectKey][]unanswered{}, words: newDecoder()}
}

// followed reports whether a write is one whose outcome matters without an answer.
func (w *Write) followed() bool {
	return w.Group == queueGroup && w.Resource == "queueunits" || rowOf(w.Group, w.Version, w.Resource) != nil
}

// lost reports whether the write may have been carried out though it was answered
// with an error.
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
		if err := f.settle(key, w, b); err != nil {
			return err
		}
		if w.gone {
			delete(f.latest, key)
		} else if known := f.latest[key]; w.UID != known.uid || w.Revision > known.revision {
			f.latest[key] = version{b.answered, w.UID, w.Revision}
		}
	case w.gone:
		delete(f.latest, key)
	}
	return nil
}

// settle uses a later write to decide whether writes without a response succeeded.
func (f *followUp) settle(key objectKey, next *Write, b bodies) error {
	var left []unanswered
	for _, u := range f.open[key] {
		// What was under way at the same time may show the object as it was before.
		if !next.Received.After(u.write.Time) {
			if u.expects() == next.Revision {
				u.before = version{b.answered, next.UID, next.Revision}
			}
			left = append(left, u)
			continue
		}
		after, known := u.outcome(next, b)
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
		facts, err := parserOf(key.group, key.version, key.resource)(f.words, head.Kind, &head.Metadata, after)
		if err != nil {
			return err
		}
		w := u.write
		w.Body, w.UID, w.landed = facts, next.UID, true
	}
	if len(left) == 0 {
		delete(f.open, key)
	} else {
		f.open[key] = left
	}
	return nil
}

// unknown is the number of writes that no later write settles.
func (f *followUp) unknown() int {
	n := f.undecided
	for _, open := range f.open {
		n += len(open)
	}
	return n
}

// expects is the version that the write depends on, or 0.
func (u unanswered) expects() int64 {
	var asked struct{ Metadata meta }
	if json.Unmarshal(u.asked, &asked) != nil {
		return 0
	}
	revision, _ := strconv.ParseInt(asked.Metadata.ResourceVersion, 10, 64)
	return revision
}

// outcome is the object as the write left it, nil if it was not carried out; known
// reports whether the next write shows that.
func (u unanswered) outcome(next *Write, b bodies) (after json.RawMessage, known bool) {
	if u.write.Verb == "create" {
		return u.created(next, b)
	}
	asked, before := fieldsOf(u.asked), fieldsOf(u.before.raw)
	if asked == nil || u.before.uid != next.UID {
		return nil, false // a list of steps, which the programs do not send, or of another object
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

// created is the object that a create left: it is there, is no older, and no
// other create made it.
func (u unanswered) created(next *Write, b bodies) (after json.RawMessage, known bool) {
	var now struct {
		Metadata struct {
			UID               string    `json:"uid"`
			CreationTimestamp time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	if next.creates() {
		return nil, true
	}
	if json.Unmarshal(b.answered, &now) != nil {
		return nil, false
	}
	made := now.Metadata.CreationTimestamp // in whole seconds
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

// compare compares what a patch requested with the current state. It counts the fields that
// confirm or deny the patch: not those that had the value before, and not those that the
// write which returned the object set itself.
func compare(asked, before, own, now map[string]any) (confirmed int, denied bool) {
	for key, want := range asked {
		mine, set := own[key]
		if deeper := inner(want); deeper != nil && (!set || inner(mine) != nil) {
			n, no := compare(deeper, inner(before[key]), inner(mine), inner(now[key]))
			confirmed, denied = confirmed+n, denied || no
			continue
		}
		// A null takes the field away, and a missing one reads as null. The version
		// that a write depends on must be the one before it.
		if set || reflect.DeepEqual(want, before[key]) {
			continue
		}
		confirmed++
		denied = denied || !reflect.DeepEqual(want, now[key])
	}
	return confirmed, denied
}

// fieldsOf reads an object; what is none has no fields.
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

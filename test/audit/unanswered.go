package audit

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	write *write
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

// followUp determines the outcome of writes without a response.
type followUp struct {
	latest map[objectName]version
	open   map[objectName][]unanswered
	// landed are the creates that were stored, as far as the log shows, by UID.
	landed map[string][]*write
	// undecided counts writes whose outcome the next write does not show.
	undecided int
}

func newFollowUp() *followUp {
	return &followUp{latest: map[objectName]version{}, open: map[objectName][]unanswered{}, landed: map[string][]*write{}}
}

// followed reports whether the outcome of a write is followed up if there is no response.
func (w *write) followed() bool {
	return w.resource == "queueunits" || kindOf(w.group, w.version, w.resource) != nil
}

// lost reports whether the write may have been stored although the response was an error.
func (w *write) lost() bool {
	return w.code >= 500 && w.followed() && (w.verb == "patch" || w.verb == "create" && w.subresource == "")
}

// see applies one write in the order of the log's lines.
func (f *followUp) see(w *write, b bodies) error {
	name := w.object()
	switch {
	case w.lost() && b.asked != nil:
		f.open[name] = append(f.open[name], unanswered{w, b.asked, f.latest[name]})
	case w.gone && w.body == nil:
		delete(f.latest, name)
	case w.ok() && w.body != nil:
		if w.creates() {
			// Others wrote the object before the API server logged its create.
			for _, other := range f.landed[w.uid] {
				other.body, other.uid, other.landed = nil, "", false
			}
			delete(f.landed, w.uid)
		}
		if err := f.settle(w, b); err != nil {
			return err
		}
		if known := f.latest[name]; w.gone {
			delete(f.latest, name)
		} else if w.uid != known.uid || w.Revision > known.revision {
			f.latest[name] = version{b.answered, w.uid, w.Revision}
		}
	}
	return nil
}

// settle uses a later write to decide whether writes without a response succeeded.
func (f *followUp) settle(next *write, b bodies) error {
	name := next.object()
	var left []unanswered
	alone := len(f.open[name]) == 1
	for _, u := range f.open[name] {
		// A concurrent write may return the object as it was before.
		if !next.received.After(u.write.Time) {
			if expects(u.asked) == next.Revision {
				u.before = version{b.answered, next.uid, next.Revision}
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
		if err := u.land(next, after); err != nil {
			return err
		}
		if u.write.verb == "create" {
			f.landed[next.uid] = append(f.landed[next.uid], u.write)
		}
	}
	f.open[name] = left
	return nil
}

// land makes the write one that was stored, with this object.
func (u unanswered) land(next *write, object json.RawMessage) error {
	var head struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(object, &head); err != nil {
		return err
	}
	d, _ := next.decoder()
	body, err := d.read(&head.Metadata, object)
	u.write.body, u.write.uid, u.write.landed = body, next.uid, true
	return err
}

// unknown returns the number of writes whose outcome no later write shows.
func (f *followUp) unknown() int {
	n := f.undecided
	for _, open := range f.open {
		n += len(open)
	}
	return n
}

// expects returns the resourceVersion that a patch requires, or 0.
func expects(patch json.RawMessage) int64 {
	var asked struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(patch, &asked) != nil {
		return 0
	}
	revision, _ := strconv.ParseInt(asked.Metadata.ResourceVersion, 10, 64)
	return revision
}

// outcome returns the object after the write, or nil if the write was not stored. known reports
// whether the next write shows the outcome. alone is whether no other write of the object lacks a response.
func (u unanswered) outcome(next *write, b bodies, alone bool) (after json.RawMessage, known bool) {
	if u.write.verb == "create" {
		return u.created(next, b)
	}
	asked := fieldsOf(u.asked)
	if asked == nil || u.before.uid != next.uid {
		return nil, false // a JSON Patch, whose outcome is not followed, or another object
	}
	if from := expects(b.asked); alone && from != 0 && expects(u.asked) == u.before.revision {
		// The next write requires either the version before this one or a version that only this one can have made.
		if from == u.before.revision {
			return nil, true
		}
		return merge(u.before.raw, asked)
	}
	var own fields
	if next.verb == "patch" {
		own = fieldsOf(b.asked)
	}
	confirmed, denied := compare(asked, fieldsOf(u.before.raw), own, fieldsOf(b.answered))
	if confirmed == 0 || denied {
		return nil, denied
	}
	return merge(u.before.raw, asked)
}

// created returns the object of a create, if it exists, is not older than the request, and was
// created by no other request.
func (u unanswered) created(next *write, b bodies) (after json.RawMessage, known bool) {
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
	made := now.Metadata.CreationTimestamp // has a resolution of one second
	if made.Before(u.write.received.Truncate(time.Second)) {
		return nil, true
	}
	return merge(u.asked, fields{"metadata": now.Metadata})
}

func merge(object json.RawMessage, into fields) (json.RawMessage, bool) {
	patch, err := json.Marshal(into)
	if err != nil {
		return nil, false
	}
	after, err := jsonpatch.MergePatch(object, patch)
	return after, err == nil
}

// compare compares a patch with the current object. It counts the fields that confirm or deny the
// patch. It ignores fields that had the value before, and fields set by the write that returned the
// object.
func compare(asked, before, own, now fields) (confirmed int, denied bool) {
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
func fieldsOf(raw json.RawMessage) (object fields) {
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

func inner(value any) fields {
	object, _ := value.(fields)
	return object
}

package facts

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unique"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Write is a log entry of a request to change an object, successful or not.
type Write struct {
	// Line is the line number in the log, from 1.
	Line int
	// Revision orders the writes.
	Revision int64
	// Received is the time of the request, Time that of the response.
	Received, Time time.Time

	User, Verb                            string
	Group, Version, Resource, Subresource string
	Namespace, Name, UID                  string
	// Code is the HTTP status of the response.
	Code int

	// Instance distinguishes processes with the same user by their credentials. It is empty if the
	// log does not contain them.
	Instance string
	// Own reports that the write itself returned Revision.
	Own bool
	// Landed reports that the write was stored although the response was an error.
	Landed bool
	// Gone reports that the object does not exist after the write.
	Gone bool
	// Body is a *Job, *Unit, *Pod, *TreeObject, *Quota, *Event, *Lease or *Namespace; nil for other
	// kinds, or if the response contains no object.
	Body any
	// Refusal is set if a ResourceQuota refused a pod.
	Refusal *Refusal
	// Twice is the pod of a create request whose name already existed. Every quota counts such a
	// pod before the API server detects the conflict.
	Twice *Pod
}

// OK reports whether the write was stored.
func (w *Write) OK() bool { return w.Landed || log.Success(w.Code) }

// Creates reports whether the write created its object.
func (w *Write) Creates() bool {
	return w.OK() && w.Subresource == "" && (w.Verb == "create" || w.Verb == "patch" && w.Code == 201 || w.Verb == "update" && w.Code == 201)
}

// credentialKey is the key under which the API server logs the ID of a request's token.
const credentialKey = "authentication.kubernetes.io/credential-id"

// decoded is the result of one line.
type decoded struct {
	writes []*Write
	at     time.Time
	write  bool   // the line is a write, kept or not
	bare   bool   // the object is missing because the level is too low
	cut    bool   // the objects were omitted because of their size
	bodies bodies // set if the write may be followed up
	err    error
}

// word returns a shared copy of a frequent string.
func word(s string) string { return unique.Make(s).Value() }

// noise has groups whose objects are not stored, such as reviews.
var noise = map[string]bool{"authentication.k8s.io": true, "authorization.k8s.io": true}

func decodeLine(number int, line []byte) decoded {
	e, err := log.Parse(line)
	if err != nil {
		return decoded{err: err}
	}
	out := decoded{at: e.StageTimestamp}
	if !e.Write() || noise[e.ObjectRef.APIGroup] || e.DryRun() {
		return out
	}
	out.write = true
	out.cut = e.Truncated()
	w := writeOf(number, e)
	parse := parserOf(w.Group, w.Version, w.Resource)
	if parse == nil && !strings.HasPrefix(w.User, "system:serviceaccount:") {
		return out
	}
	out.writes = []*Write{w}
	if w.followed() && w.Verb != "deletecollection" {
		out.bodies = bodies{e.RequestObject, e.ResponseObject}
	}
	switch {
	case w.Resource != "pods":
	case w.Code == 403:
		w.Refusal = refusal(w, e)
	case w.Code == 409 && w.Verb == "create" && w.Subresource == "":
		w.Twice, _ = sent(e)
	}
	if parse == nil || !w.OK() {
		return out
	}
	if len(e.ResponseObject) == 0 {
		out.bare = !out.cut
		return out
	}
	if e.Verb == "deletecollection" {
		out.writes, out.err = collection(w, parse, e.ResponseObject)
		return out
	}
	out.err = w.answer(parse, e.ResponseObject)
	return out
}

func writeOf(number int, e *log.Entry) *Write {
	ref := e.ObjectRef
	w := &Write{
		Line: number, Received: e.RequestReceivedTimestamp, Time: e.StageTimestamp,
		User: word(e.By()), Verb: word(e.Verb),
		Group: word(ref.APIGroup), Version: word(ref.APIVersion), Resource: word(ref.Resource),
		Subresource: word(ref.Subresource), Namespace: word(ref.Namespace), Name: ref.Name, UID: ref.UID,
		Code: e.Code(),
	}
	if id := e.User.Extra[credentialKey]; len(id) > 0 && e.ImpersonatedUser == nil {
		w.Instance = word(id[0])
	}
	return w
}

// answer decodes the object that a write returned.
func (w *Write) answer(parse parser, raw json.RawMessage) error {
	var head struct {
		Kind     string `json:"kind"`
		Metadata meta   `json:"metadata"`
		Details  struct {
			UID string `json:"uid"`
		} `json:"details"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	if head.Kind == "Status" {
		w.Gone = w.Verb == "delete" && w.Subresource == ""
		if head.Details.UID != "" {
			w.UID = head.Details.UID
		}
		return nil
	}
	if head.Kind == "PartialObjectMetadata" {
		// The garbage collector requests only metadata. They show whether it removed the
		// finalizers.
		w.identify(&head.Metadata)
		w.Gone = head.Metadata.gone()
		return nil
	}
	body, err := parse(head.Kind, &head.Metadata, raw)
	if err != nil || body == nil {
		return err
	}
	w.Body = body
	w.identify(&head.Metadata)
	// For some kinds, such as ResourceQuota, an immediate delete returns the object without a
	// deletion timestamp.
	w.Gone = head.Metadata.gone() || w.Verb == "delete" && head.Metadata.DeletionTimestamp == ""
	// An update that removes the last finalizer returns the previous version.
	w.Own = w.Revision > 0 && (!w.Gone || w.Verb == "delete")
	return nil
}

func (w *Write) identify(m *meta) {
	w.Name, w.UID = m.Name, m.UID
	if m.Namespace != "" {
		w.Namespace = word(m.Namespace)
	}
	w.Revision, _ = strconv.ParseInt(m.ResourceVersion, 10, 64)
}

// collection splits the delete of a collection into one delete for each object. The response
// contains the objects as they were before.
func collection(w *Write, parse parser, raw json.RawMessage) ([]*Write, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return []*Write{w}, err
	}
	if len(list.Items) == 0 {
		return []*Write{w}, nil
	}
	writes := make([]*Write, 0, len(list.Items))
	for _, item := range list.Items {
		var head struct {
			Metadata meta `json:"metadata"`
			Spec     struct {
				NodeName string `json:"nodeName"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(item, &head); err != nil {
			return writes, err
		}
		one := *w
		one.identify(&head.Metadata)
		one.Revision = 0
		// A pod on a node still has to terminate, and an object with finalizers waits for them.
		one.Gone = len(head.Metadata.Finalizers) == 0 && !(one.Resource == "pods" && head.Spec.NodeName != "")
		writes = append(writes, &one)
	}
	return writes, nil
}

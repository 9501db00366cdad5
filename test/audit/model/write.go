package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Write is one entry of the log that changed an object, or was refused.
type Write struct {
	// Line of the log, from 1.
	Line int
	// Revision is the write's place in the order of all writes.
	Revision int64
	// Received is when the request came in, Time when it was answered.
	Received, Time time.Time

	User, Verb                            string
	Group, Version, Resource, Subresource string
	Namespace, Name, UID                  string
	// Code is the HTTP status of the answer.
	Code int

	// Instance distinguishes processes of a user by their credentials; empty if those
	// are not reported.
	Instance string
	// own reports that Revision is the write's own.
	own bool
	// landed reports that the write was carried out though its answer says otherwise.
	landed bool
	// gone reports that the object is no more after the write.
	gone bool
	// Body is a *jobFacts, *UnitFacts, *podFacts, *treeFacts, *QuotaFacts,
	// *queueFacts, *eventFacts, *LeaseFacts or *namespaceFacts; nil where the answer held none.
	Body any
	// Refusal is set where a ResourceQuota refused a pod.
	Refusal *refusal
	// Twice is a pod that was sent though one of its name was there: every quota has
	// counted it before that was found.
	Twice *podFacts
}

// OK reports whether the write was carried out.
func (w *Write) OK() bool { return w.landed || log.Success(w.Code) }

// creates reports whether the write made its object.
func (w *Write) creates() bool {
	return w.OK() && w.Subresource == "" && (w.Verb == "create" || w.Verb == "patch" && w.Code == 201 || w.Verb == "update" && w.Code == 201)
}

// credentialKey is where the API server reports which token a request came with.
const credentialKey = "authentication.kubernetes.io/credential-id"

// decoded is what one line came to.
type decoded struct {
	writes []*Write
	at     time.Time
	write  bool   // it was a write, kept or not
	bare   bool   // it should hold an object and does not: the level is too low
	cut    bool   // its objects were left out for their size
	bodies bodies // of one whose object is followed up
	err    error
}

// decoder turns lines into writes. It is not safe for concurrent use.
type decoder struct{ words log.Words }

func newDecoder() *decoder { return &decoder{words: log.Words{}} }

// word keeps one copy of a string that comes often.
func (d *decoder) word(s string) string { return d.words.Word(s) }

// noise are groups in which nothing is written that lasts: reviews.
var noise = map[string]bool{"authentication.k8s.io": true, "authorization.k8s.io": true}

func (d *decoder) line(number int, line []byte) decoded {
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
	w := d.write(number, e)
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
		w.Refusal = d.refusal(w, e)
	case w.Code == 409 && w.Verb == "create" && w.Subresource == "":
		w.Twice, _ = d.sent(e)
	}
	if parse == nil || !w.OK() {
		return out
	}
	if len(e.ResponseObject) == 0 {
		out.bare = !out.cut
		return out
	}
	if e.Verb == "deletecollection" {
		out.writes, out.err = d.collection(w, parse, e.ResponseObject)
		return out
	}
	out.err = d.answer(w, parse, e.ResponseObject)
	return out
}

func (d *decoder) write(number int, e *log.Entry) *Write {
	ref := e.ObjectRef
	w := &Write{
		Line: number, Received: e.RequestReceivedTimestamp, Time: e.StageTimestamp,
		User: d.word(e.By()), Verb: d.word(e.Verb),
		Group: d.word(ref.APIGroup), Version: d.word(ref.APIVersion), Resource: d.word(ref.Resource),
		Subresource: d.word(ref.Subresource), Namespace: d.word(ref.Namespace), Name: ref.Name, UID: ref.UID,
		Code: e.Code(),
	}
	if id := e.User.Extra[credentialKey]; len(id) > 0 && e.ImpersonatedUser == nil {
		w.Instance = d.word(id[0])
	}
	return w
}

// answer reads the object that a write returned.
func (d *decoder) answer(w *Write, parse parser, raw json.RawMessage) error {
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
		w.gone = w.Verb == "delete" && w.Subresource == ""
		if head.Details.UID != "" {
			w.UID = head.Details.UID
		}
		return nil
	}
	if head.Kind == "PartialObjectMetadata" {
		// The garbage collector works on metadata alone: of interest is only
		// whether it released the object.
		d.identify(w, &head.Metadata)
		w.gone = head.Metadata.gone()
		return nil
	}
	body, err := parse(d, head.Kind, &head.Metadata, raw)
	if err != nil || body == nil {
		return err
	}
	w.Body = body
	d.identify(w, &head.Metadata)
	// What is deleted at once comes back as it was, for some kinds, as a ResourceQuota.
	w.gone = head.Metadata.gone() || w.Verb == "delete" && head.Metadata.DeletionTimestamp == ""
	// What ends by losing its last finalizer returns the version it had before.
	w.own = w.Revision > 0 && (!w.gone || w.Verb == "delete")
	return nil
}

func (d *decoder) identify(w *Write, m *meta) {
	w.Name, w.UID = m.Name, m.UID
	if m.Namespace != "" {
		w.Namespace = d.word(m.Namespace)
	}
	w.Revision, _ = strconv.ParseInt(m.ResourceVersion, 10, 64)
}

// collection splits the delete of a collection into one delete for each object.
// The answer shows them as they were before.
func (d *decoder) collection(w *Write, parse parser, raw json.RawMessage) ([]*Write, error) {
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
		d.identify(&one, &head.Metadata)
		one.Revision = 0
		// A pod on a node is only asked to end, an object with finalizers waits for them.
		one.gone = len(head.Metadata.Finalizers) == 0 && !(one.Resource == "pods" && head.Spec.NodeName != "")
		writes = append(writes, &one)
	}
	return writes, nil
}

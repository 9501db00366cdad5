package trail

import (
	"cmp"
	"encoding/json"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// object has the needed fields of a job or pod in a response. The response of a refused write is a
// Status.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string `json:"name"`
		OwnerReferences []struct {
			Name       string `json:"name"`
			Controller bool   `json:"controller"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
}

// decoder converts lines to entries. It keeps one copy of each frequent string.
type decoder struct{ words log.Words }

func newDecoder() decoder { return decoder{words: log.Words{}} }

// entry parses a line. It returns nil for anything but an answered write.
func (d decoder) entry(line []byte) (*Entry, error) {
	e, err := log.Parse(line)
	if err != nil || !e.Write() {
		return nil, err
	}
	ref, word := e.ObjectRef, d.words.Word
	entry := &Entry{
		Agent: word(cmp.Or(e.Agent(), "unknown")), User: word(e.By()),
		Verb: word(e.Verb), Group: word(ref.APIGroup), Resource: word(ref.Resource), Subresource: word(ref.Subresource),
		Namespace: word(ref.Namespace), Name: ref.Name,
		Code: e.Code(), Received: e.RequestReceivedTimestamp, Answered: e.StageTimestamp,
	}
	if len(e.ResponseObject) > 0 && entry.OK() {
		err = entry.take(e.ResponseObject)
	}
	return entry, err
}

// take reads the object in the response.
func (e *Entry) take(raw json.RawMessage) error {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o.Kind == "Status" {
		return err
	}
	e.Whole, e.Name, e.Suspended = true, o.Metadata.Name, o.Spec.Suspend
	for _, owner := range o.Metadata.OwnerReferences {
		if owner.Controller {
			e.Owner = owner.Name
		}
	}
	return nil
}

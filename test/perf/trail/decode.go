package trail

import (
	"encoding/json"
	"strings"
	"time"
)

// event is the part of an audit.k8s.io/v1 Event that is read.
type event struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ResponseObject           *object   `json:"responseObject"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// object is what is read of a job or pod as it was answered. A refusal comes as a
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

var writeVerbs = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// decoder turns lines into entries. It keeps one copy of each word that comes often.
type decoder struct{ words map[string]string }

func newDecoder() decoder { return decoder{words: map[string]string{}} }

func (d decoder) word(s string) string {
	if known, ok := d.words[s]; ok {
		return known
	}
	s = strings.Clone(s)
	d.words[s] = s
	return s
}

// entry is nil for what is no write that was answered.
func (d decoder) entry(line []byte) (*Entry, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	if e.Stage != "ResponseComplete" || e.ObjectRef == nil || !writeVerbs[e.Verb] {
		return nil, nil
	}
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}
	ref := e.ObjectRef
	entry := &Entry{
		Agent: d.word(agent(e.UserAgent)), User: d.word(user),
		Verb: d.word(e.Verb), Group: d.word(ref.APIGroup), Resource: d.word(ref.Resource), Subresource: d.word(ref.Subresource),
		Namespace: d.word(ref.Namespace), Name: ref.Name,
		Received: e.RequestReceivedTimestamp, Answered: e.StageTimestamp,
	}
	if e.ResponseStatus != nil {
		entry.Code = e.ResponseStatus.Code
	}
	if o := e.ResponseObject; o != nil && entry.OK() && o.Kind != "Status" {
		entry.Whole, entry.Name, entry.Suspended = true, o.Metadata.Name, o.Spec.Suspend
		for _, owner := range o.Metadata.OwnerReferences {
			if owner.Controller {
				entry.Owner = owner.Name
			}
		}
	}
	return entry, nil
}

// agent is the program alone, of "program/v1.2.3 (linux/amd64) more".
func agent(userAgent string) string {
	program, _, _ := strings.Cut(userAgent, " ")
	program, _, _ = strings.Cut(program, "/")
	if program == "" {
		return "unknown"
	}
	return program
}

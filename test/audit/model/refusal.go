package model

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// refusal is what the API server said when it refused a pod for a ResourceQuota.
type refusal struct {
	Message string
	Pod     *podFacts // as it was sent; nil where the log holds none
	Name    string
}

// refusal reads a create that was answered 403; nil where no quota is the reason.
func (d *decoder) refusal(w *Write, e *log.Entry) *refusal {
	message := e.ResponseStatus.Message
	if message == "" {
		var answer struct{ Message string }
		if json.Unmarshal(e.ResponseObject, &answer) == nil {
			message = answer.Message
		}
	}
	if w.Verb != "create" || w.Subresource != "" || !slices.ContainsFunc(quotaPhrases, func(p string) bool { return strings.Contains(message, p) }) {
		return nil
	}
	pod, sent := d.sent(e)
	return &refusal{Message: message, Pod: pod, Name: cmp.Or(w.Name, sent.Name, sent.GenerateName)}
}

// sent is the pod that was sent to be created; nil where the log holds none.
func (d *decoder) sent(e *log.Entry) (*podFacts, meta) {
	var sent struct{ Metadata meta }
	if json.Unmarshal(e.RequestObject, &sent) != nil {
		return nil, sent.Metadata
	}
	body, err := parsePod(d, "Pod", &sent.Metadata, e.RequestObject)
	if err != nil {
		return nil, sent.Metadata
	}
	pod, _ := body.(*podFacts)
	return pod, sent.Metadata
}

// quotaPhrases are what a refusal for quota says, each before the quota's name.
var quotaPhrases = []string{"exceeded quota: ", "failed quota: ", "status unknown for quota: "}

// Quota is the name of the one that refused.
func (r *refusal) Quota() string {
	for _, phrase := range quotaPhrases {
		if _, rest, ok := strings.Cut(r.Message, phrase); ok {
			return rest[:max(0, strings.IndexAny(rest+",", ",:"))]
		}
	}
	return ""
}

// Lists are the amounts in a refusal: requested, used before, and allowed.
func (r *refusal) Lists() (requested, used, limited Amounts, ok bool) {
	_, rest, _ := strings.Cut(r.Message, "requested: ")
	asked, rest, _ := strings.Cut(rest, ", used: ")
	before, hard, ok := strings.Cut(rest, ", limited: ")
	requested, used, limited = listed(asked), listed(before), listed(hard)
	return requested, used, limited, ok && requested != nil && used != nil && limited != nil
}

func listed(text string) Amounts {
	raw := Quantities{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		raw[name] = json.RawMessage(value)
	}
	list, err := raw.Ceil()
	if err != nil {
		return nil
	}
	return list
}

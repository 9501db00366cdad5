package facts

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Refusal is the API server's refusal of a pod because of a ResourceQuota.
type Refusal struct {
	Message string
	Pod     *Pod // from the request; nil if the log does not contain it
	Name    string
}

// refusal reads a create with response 403. It returns nil if no quota is the reason.
func refusal(w *Write, e *log.Entry) *Refusal {
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
	pod, about := sent(e)
	return &Refusal{Message: message, Pod: pod, Name: cmp.Or(w.Name, about.Name, about.GenerateName)}
}

// sent returns the pod of a create request, or nil if the log does not contain it.
func sent(e *log.Entry) (*Pod, meta) {
	var request struct{ Metadata meta }
	if json.Unmarshal(e.RequestObject, &request) != nil {
		return nil, request.Metadata
	}
	body, err := parsePod("Pod", &request.Metadata, e.RequestObject)
	if err != nil {
		return nil, request.Metadata
	}
	return body.(*Pod), request.Metadata
}

// quotaPhrases are the phrases in refusals that precede the name of the quota.
var quotaPhrases = []string{"exceeded quota: ", "failed quota: ", "status unknown for quota: "}

// Quota returns the name of the quota that refused.
func (r *Refusal) Quota() string {
	for _, phrase := range quotaPhrases {
		if _, rest, ok := strings.Cut(r.Message, phrase); ok {
			return rest[:max(0, strings.IndexAny(rest+",", ",:"))]
		}
	}
	return ""
}

// Lists returns the amounts in the message: requested, used before, and limited.
func (r *Refusal) Lists() (requested, used, limited Amounts, ok bool) {
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
		raw[corev1.ResourceName(name)] = json.RawMessage(value)
	}
	list, err := raw.Ceil()
	if err != nil {
		return nil
	}
	return list
}

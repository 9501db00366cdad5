package log

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Entry contains the used fields of an audit.k8s.io/v1 Event.
type Entry struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		UID         string `json:"uid"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	RequestObject            json.RawMessage   `json:"requestObject"`
	ResponseObject           json.RawMessage   `json:"responseObject"`
	RequestReceivedTimestamp time.Time         `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time         `json:"stageTimestamp"`
	Annotations              map[string]string `json:"annotations"`
}

// Parse parses the entry of a line.
func Parse(line []byte) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// NoEntry returns the error for a line that is not an audit entry.
func NoEntry(number int, err error) error {
	return fmt.Errorf("line %d is not an audit entry: %w", number, err)
}

var writeVerbs = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// Complete reports whether the request of the entry was answered.
func (e *Entry) Complete() bool { return e.Stage == "ResponseComplete" }

// Write reports whether the entry is an answered write of an object.
func (e *Entry) Write() bool { return e.Complete() && e.ObjectRef != nil && writeVerbs[e.Verb] }

// By returns the user of the request, taking impersonation into account.
func (e *Entry) By() string {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// Agent returns only the program of a user agent "program/v1.2.3 (linux/amd64) more".
func (e *Entry) Agent() string {
	program, _, _ := strings.Cut(e.UserAgent, " ")
	program, _, _ = strings.Cut(program, "/")
	return program
}

// Code returns the HTTP status of the response; 0 if the log contains none.
func (e *Entry) Code() int {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

// Success reports whether an HTTP status means success.
func Success(code int) bool { return code >= 200 && code < 300 }

// Truncated reports whether the objects of the entry were omitted because of their size.
func (e *Entry) Truncated() bool { return e.Annotations["audit.k8s.io/truncated"] == "true" }

// DryRun reports whether the request was a dry run. The body of a delete request can request
// one too.
func (e *Entry) DryRun() bool {
	if _, query, ok := strings.Cut(e.RequestURI, "?"); ok && strings.Contains(query, "dryRun=") {
		if values, err := url.ParseQuery(query); err == nil && values.Get("dryRun") != "" {
			return true
		}
	}
	if !strings.HasPrefix(e.Verb, "delete") || !bytes.Contains(e.RequestObject, []byte(`"dryRun"`)) {
		return false
	}
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	return json.Unmarshal(e.RequestObject, &options) == nil && len(options.DryRun) > 0
}

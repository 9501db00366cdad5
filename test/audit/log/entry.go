package log

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Entry is the part of an audit.k8s.io/v1 Event that is read.
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

// Parse reads the entry of a line.
func Parse(line []byte) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// NoEntry reports the line that could not be read as an entry.
func NoEntry(number int, err error) error {
	return fmt.Errorf("line %d is no audit entry: %w", number, err)
}

var writeVerbs = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// Complete reports whether the request of the entry was answered.
func (e *Entry) Complete() bool { return e.Stage == "ResponseComplete" }

// Write reports whether the entry is of a write on an object that was answered.
func (e *Entry) Write() bool { return e.Complete() && e.ObjectRef != nil && writeVerbs[e.Verb] }

// By is the user as whom the request was carried out.
func (e *Entry) By() string {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// Agent is the program alone, of a user agent "program/v1.2.3 (linux/amd64) more".
func (e *Entry) Agent() string {
	program, _, _ := strings.Cut(e.UserAgent, " ")
	program, _, _ = strings.Cut(program, "/")
	return program
}

// Code is the HTTP status of the answer; 0 where the log holds none.
func (e *Entry) Code() int {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

// Success reports whether an HTTP status is one of a request that was carried out.
func Success(code int) bool { return code >= 200 && code < 300 }

// Truncated reports whether the objects of the entry were left out for their size.
func (e *Entry) Truncated() bool { return e.Annotations["audit.k8s.io/truncated"] == "true" }

// DryRun reports whether the request was not meant to be carried out. A delete
// may say so in its body.
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

// Words keep one copy of each string that comes often. They are not safe for
// concurrent use.
type Words map[string]string

// Word is the copy that is kept.
func (w Words) Word(s string) string {
	if known, ok := w[s]; ok {
		return known
	}
	s = strings.Clone(s)
	w[s] = s
	return s
}

package facts

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// meta is the part of an object's metadata that is read.
type meta struct {
	Name                       string            `json:"name"`
	GenerateName               string            `json:"generateName"`
	Namespace                  string            `json:"namespace"`
	UID                        string            `json:"uid"`
	ResourceVersion            string            `json:"resourceVersion"`
	Generation                 int64             `json:"generation"`
	CreationTimestamp          string            `json:"creationTimestamp"`
	DeletionTimestamp          string            `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds"`
	Labels                     map[string]string `json:"labels"`
	Annotations                map[string]string `json:"annotations"`
	OwnerReferences            []Owner           `json:"ownerReferences"`
	Finalizers                 []string          `json:"finalizers"`
}

// Owner is an owner reference.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// gone reports whether an object that a write returned no longer exists: it was being deleted and
// has no finalizer.
func (m *meta) gone() bool {
	return m.DeletionTimestamp != "" && len(m.Finalizers) == 0 &&
		(m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds == 0)
}

// until returns the end of the grace period of an object that is being deleted, or zero. The
// deletion timestamp already includes the grace period.
func (m *meta) until() time.Time {
	at, err := time.Parse(time.RFC3339, m.DeletionTimestamp)
	if err != nil || m.DeletionGracePeriodSeconds == nil {
		return time.Time{}
	}
	return at.Add(time.Duration(*m.DeletionGracePeriodSeconds) * time.Second)
}

func (m *meta) controller() Owner {
	for _, o := range m.OwnerReferences {
		if o.Controller {
			return o
		}
	}
	return Owner{}
}

// object decodes the values at paths on demand, because most of an object is not read.
type object struct {
	fields map[string]json.RawMessage
	opened map[string]map[string]json.RawMessage // by path
}

func newObject(raw json.RawMessage) (*object, error) {
	o := &object{opened: map[string]map[string]json.RawMessage{}}
	return o, json.Unmarshal(raw, &o.fields)
}

// get returns the value at a path whose parts are joined by dots, or nil.
func (o *object) get(path string) json.RawMessage {
	parent, key := "", path
	fields := o.fields
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, key = path[:i], path[i+1:]
		fields = o.open(parent)
	}
	value := fields[key]
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	return value
}

func (o *object) open(path string) map[string]json.RawMessage {
	if fields, ok := o.opened[path]; ok {
		return fields
	}
	var fields map[string]json.RawMessage
	if raw := o.get(path); len(raw) > 0 && raw[0] == '{' {
		_ = json.Unmarshal(raw, &fields) // a value that is not an object has no fields
	}
	o.opened[path] = fields
	return fields
}

// into decodes the value at a path into out. It leaves out unchanged if there is no value of its
// type.
func (o *object) into(path string, out any) bool {
	raw := o.get(path)
	return raw != nil && json.Unmarshal(raw, out) == nil
}

func (o *object) text(path string) string {
	var s string
	o.into(path, &s)
	return s
}

func (o *object) truth(path string) bool {
	var b bool
	o.into(path, &b)
	return b
}

func (o *object) has(path string) bool { return o.get(path) != nil }

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (o *object) conditions() []condition {
	var list []condition
	o.into("status.conditions", &list)
	return list
}

// condition reports whether the condition of this type is true.
func (o *object) condition(name string) bool {
	return isTrue(o.conditions(), name)
}

func isTrue(list []condition, name string) bool {
	return slices.ContainsFunc(list, func(c condition) bool { return c.Type == name && c.Status == "True" })
}

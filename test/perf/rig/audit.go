package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Kind is a group of writes that are counted together. The agent is the program that sent them.
type Kind struct{ Agent, Group, Resource, Subresource, Verb string }

// What returns the name of the kind without its agent, such as "patch jobs.batch/status".
func (k Kind) What() string {
	what := k.Verb + " " + k.Resource
	if k.Group != "" && k.Resource != "events" {
		what += "." + k.Group
	}
	if k.Subresource != "" {
		what += "/" + k.Subresource
	}
	return what
}

// ByKubeQueue reports whether the writes are those of kube-queue on jobs, units and events.
func (k Kind) ByKubeQueue() bool { return k.byProgram() && !k.ofStatus() }

// Shared reports whether the writes are those of kube-queue on Queues and the tree. Their number
// does not grow with the number of jobs.
func (k Kind) Shared() bool { return k.byProgram() && k.ofStatus() }

func (k Kind) byProgram() bool { return k.Agent == Controller || k.Agent == Extensions }
func (k Kind) ofStatus() bool  { return k.Resource == "queues" || k.Resource == "elasticquotatrees" }

// Entry is an answered write in the audit log.
type Entry struct {
	Kind
	// Name is empty for a generated name if the object is not logged.
	Namespace, Name string
	// OK reports whether the write succeeded.
	OK       bool
	Answered time.Time
	// Whole reports that the object is in the log, which are those of Options.AuditObjects. Only then,
	// Owner is the controller of a pod, and Suspended tells whether a job is suspended by the write.
	Whole     bool
	Owner     string
	Suspended bool
}

// Log is an audit log that is read in parts, as a stream, because it has hundreds of megabytes.
// Unlike test/audit, it checks nothing.
type Log struct{ file *log.File }

// Log returns the log of the cluster, from its beginning.
func (r *Rig) Log() *Log { return &Log{log.Open(r.Cluster.AuditLog)} }

// Skip skips the current contents of the log.
func (l *Log) Skip() error { return l.file.Read(func(int, []byte) error { return nil }) }

// marker is the prefix of the names of ConfigMaps that mark the end of a part.
const marker = "perf-marker-"

// Read visits the writes since the previous part, except those of markers.
func (l *Log) Read(visit func(*Entry)) error {
	return l.file.Read(func(number int, line []byte) error {
		if len(line) == 0 {
			return nil
		}
		entry, err := readEntry(line)
		if err != nil {
			return log.NoEntry(number, err)
		}
		if entry != nil && !strings.HasPrefix(entry.Name, marker) {
			visit(entry)
		}
		return nil
	})
}

// readEntry returns nil for anything but an answered write.
func readEntry(line []byte) (*Entry, error) {
	e, err := log.Parse(line)
	if err != nil || !e.Write() {
		return nil, err
	}
	ref := e.ObjectRef
	entry := &Entry{
		Kind:      Kind{cmp.Or(e.Agent(), "unknown"), ref.APIGroup, ref.Resource, ref.Subresource, e.Verb},
		Namespace: ref.Namespace, Name: ref.Name, OK: log.Success(e.Code()), Answered: e.StageTimestamp,
	}
	var object struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Spec     struct{ Suspend bool }
	}
	if len(e.ResponseObject) == 0 || !entry.OK {
		return entry, nil
	}
	if err := json.Unmarshal(e.ResponseObject, &object); err != nil || object.Kind == "Status" {
		return entry, err
	}
	entry.Whole, entry.Name, entry.Suspended = true, object.Metadata.Name, object.Spec.Suspend
	if owner := metav1.GetControllerOf(&object.Metadata); owner != nil {
		entry.Owner = owner.Name
	}
	return entry, nil
}

// ReadAll visits the writes up to now.
func (r *Rig) ReadAll(ctx context.Context, l *Log, visit func(*Entry)) error {
	client, err := kubernetes.NewForConfig(r.Cluster.Config())
	if err != nil {
		return err
	}
	end := log.Marker{Namespace: "default", Name: fmt.Sprint(marker, time.Now().UnixNano())}
	if _, err := client.CoreV1().ConfigMaps(end.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: end.Name}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("marking the end in the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := log.WaitFor(ctx, r.Cluster.AuditLog, end); err != nil {
		return err
	}
	return l.Read(visit)
}

// Row is how many writes of a kind succeeded and were refused.
type Row struct {
	Kind
	Done, Refused int
}

// Counts counts writes by kind.
type Counts map[Kind]Row

// Add counts a write.
func (c Counts) Add(e *Entry) {
	row := c[e.Kind]
	row.Kind = e.Kind
	if e.OK {
		row.Done++
	} else {
		row.Refused++
	}
	c[e.Kind] = row
}

// Rows returns the rows by agent, the most frequent kind first.
func (c Counts) Rows() []Row {
	rows := make([]Row, 0, len(c))
	for _, row := range c {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(b.Done, a.Done), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.What(), b.What()))
	})
	return rows
}

// Sum returns the sum of the selected rows.
func (c Counts) Sum(asked func(Kind) bool) (done, refused int) {
	for kind, row := range c {
		if asked(kind) {
			done, refused = done+row.Done, refused+row.Refused
		}
	}
	return done, refused
}

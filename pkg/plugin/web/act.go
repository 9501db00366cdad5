package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
)

// Action is a change that a page offers. It does what a command of the plugin does.
type Action struct {
	// Do is one of the constants below.
	Do string
	// Namespace and Unit name the unit of a job. For a queue, Queue is its name, and Namespace is the namespace of the
	// page unless it is the default.
	Namespace, Unit, Queue string
	// Priority is the new priority, as the user wrote it.
	Priority string
}

// Values of Action.Do.
const (
	Pause    = "pause"
	Unpause  = "unpause"
	Priority = "priority"
	Stop     = "stop"
	Drain    = "drain"
	Resume   = "resume"
)

// about says what each action does.
var about = map[string]struct {
	Label, Effect string
	// OfQueue is true if the action is for a queue, not for a job.
	OfQueue bool
}{
	Pause:    {"Pause", "The job does not start until you unpause it, and keeps its place in the queue. If it holds quota, it is stopped and its pods are deleted.", false},
	Unpause:  {"Unpause", "The job is queued again in its place, and starts when its quota has room.", false},
	Priority: {"Change the priority", "The job with the highest priority goes first in its queue.", false},
	Stop:     {"Stop", "No more jobs in the queue start. Running jobs continue.", true},
	Drain:    {"Drain", "No more jobs in the queue start. Jobs that hold quota are stopped, and wait again.", true},
	Resume:   {"Resume", "Jobs in the queue start again.", true},
}

// Label returns the text of the link to the action.
func (a Action) Label() string { return about[a.Do].Label }

// Effect describes what the action does.
func (a Action) Effect() string { return about[a.Do].Effect }

// Path returns the address of the page that asks for confirmation.
func (a Action) Path() string {
	query := url.Values{"do": {a.Do}}
	for name, value := range map[string]string{"namespace": a.Namespace, "unit": a.Unit, "queue": a.Queue} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/act?" + query.Encode()
}

// Subject returns the address of the page about the job or queue that the action changes.
func (a Action) Subject() string {
	path := &url.URL{Path: "/"}
	if a.Queue != "" {
		return path.JoinPath("queues", a.Queue).String()
	}
	return path.JoinPath("jobs", a.Namespace, a.Unit).String()
}

func offeredFor(unit *v1alpha1.QueueUnit) (all []Action) {
	phase := unit.Status.Phase
	add := func(do string) { all = append(all, Action{Do: do, Namespace: unit.Namespace, Unit: unit.Name}) }
	ref := unit.Spec.ConsumerRef
	switch {
	case phase.Ended(), ref.Kind == "PodGroup", unit.Spec.Growth: // there is no such object, or only the whole job can be changed
	case !ptr.Deref(unit.Spec.Active, true):
		add(Unpause)
	default:
		add(Pause)
		if _, known := jobs.KindOf(ref.APIVersion, ref.Kind); known && !phase.HoldsQuota() {
			add(Priority)
		}
	}
	return all
}

func offeredForQueue(v *view, q *visibility.QueueSummary) (all []Action) {
	in := ""
	if v.Namespace != v.own {
		in = v.Namespace
	}
	can := []string{Stop, Drain}
	switch v1alpha1.QueueStop(q.Stop) {
	case v1alpha1.StopHold:
		can = []string{Resume, Drain}
	case v1alpha1.StopDrain:
		can = []string{Resume}
	}
	for _, do := range can {
		all = append(all, Action{Do: do, Namespace: in, Queue: q.Name})
	}
	return all
}

// refusedError is an error that the user can correct.
type refusedError struct{ error }

// refused marks an error as one that the user can correct, unless it comes from the API server.
func refused(err error) error {
	if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	return refusedError{err}
}

// acting is an action that the user is asked to confirm, or has confirmed.
type acting struct {
	Action
	// Said is what was done; empty until the user confirms. Failed is why it was not done.
	Said, Failed string
}

// readAction asks the user to confirm an action or, once confirmed, carries it out.
func readAction(v *view, r *http.Request, reader Reader) error {
	given := r.URL.Query()
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			return fmt.Errorf("reading the form: %w", err)
		}
		given = r.PostForm
	}
	a := Action{Do: given.Get("do"), Namespace: given.Get("namespace"), Unit: given.Get("unit"), Queue: given.Get("queue"), Priority: given.Get("priority")}
	if a.Label() == "" || (a.Queue != "") != about[a.Do].OfQueue || (a.Unit != "") == about[a.Do].OfQueue || a.Unit != "" && a.Namespace == "" {
		return errNoPage
	}
	d := &acting{Action: a}
	v.Namespace = cmp.Or(a.Namespace, v.Namespace)
	v.Template, v.Title, v.Data = "act", a.Label()+": "+a.Queue+a.Unit, d
	if r.Method != http.MethodPost {
		return nil
	}
	var err error
	d.Said, err = reader.Act(r.Context(), a)
	return refused(err)
}

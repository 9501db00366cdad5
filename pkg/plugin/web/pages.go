package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

//go:embed pages
var files embed.FS

// templates are the pages by file name. Each page defines its live content and what is above it.
var templates = func() map[string]*template.Template {
	layout := template.Must(template.New("layout").Funcs(template.FuncMap{
		"amounts": func(list corev1.ResourceList) string { return cmp.Or(render.Amounts(list), "–") },
		"count":   func(n int32, noun string) string { return text.Count(int(n), noun) },
		"clean":   text.Clean,
		"instant": func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"job":     func(u visibility.UnitSummary) string { return text.Clean(units.JobOf(u.Kind, u.Name)) },
		"lower":   strings.ToLower,
	}).ParseFS(files, "pages/layout.html", "pages/units.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"jobs", "job", "quotas", "queues", "queue", "whatif", "act", "error"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "pages/"+name+".html"))
	}
	return all
}()

// view is what a page shows.
type view struct {
	Template, Title string
	// Cluster and Namespace are the caller's. Observed is the time of the state that the page shows.
	Cluster, Namespace string
	Observed           time.Time
	// Rest is how many milliseconds the browser waits until it follows the page.
	Rest     int64
	Warnings []string
	// Path is the address of the page.
	Path *url.URL
	// Filters are the filters of the list of jobs, also if it cannot be shown; nil on other pages.
	Filters *jobsData
	// Data is the data of this page.
	Data any
	now  time.Time
	// own is the default namespace of links.
	own string
	// offered are the actions of the page, and may reports whether the caller may do them.
	offered []Action
	may     func(Action) bool
}

// Live reports whether the page follows the cluster. Forms and their results do not.
func (v *view) Live() bool { return v.Path.Path != "/act" && v.Path.Path != "/what-if" }

// In returns the query that keeps a link in the namespace.
func (v *view) In() string {
	if v.Namespace == v.own {
		return ""
	}
	return "?" + url.Values{"namespace": {v.Namespace}}.Encode()
}

// Namespaced reports whether the page depends on the namespace.
func (v *view) Namespaced() bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(v.Path.Path, "/"), "/")
	return first == "" || first == "quotas" || first == "queues"
}

// Actions returns the actions that the page offers; none if the caller may not do them.
func (v *view) Actions() []Action {
	if len(v.offered) == 0 || !v.may(v.offered[0]) { // all of them change the same object
		return nil
	}
	return v.offered
}

// tab is a link to a page.
type tab struct {
	Path, Title string
	Current     bool
}

// holding are the phases of jobs that hold quota.
var holding = []string{string(v1alpha1.PhaseReserved), string(v1alpha1.PhaseDequeued), string(v1alpha1.PhaseRunning)}

// Tabs returns the links to all pages.
func (v *view) Tabs() []tab {
	tabs := []tab{{Path: "/", Title: "Jobs"}, {Path: "/?" + url.Values{"phase": holding}.Encode(), Title: "Jobs that hold quota"},
		{Path: "/quotas", Title: "Quotas"}, {Path: "/queues", Title: "Queues"}, {Path: "/what-if", Title: "What if"}}
	shown := v.Path.Path
	if shown == "/" && slices.Equal(v.Path.Query()["phase"], holding) {
		shown = tabs[1].Path
	}
	for i := range tabs {
		tabs[i].Current = shown == tabs[i].Path
		if strings.Contains(tabs[i].Path, "?") {
			tabs[i].Path += strings.Replace(v.In(), "?", "&", 1)
		} else {
			tabs[i].Path += v.In()
		}
	}
	return tabs
}

// Command returns the command that opens the same page for a user with another default namespace. It is escaped for
// shells.
func (v *view) Command() string {
	command := "kubectl kube-queue web '" + strings.ReplaceAll(v.Path.RequestURI(), "'", "%27") + "'"
	if query := v.Path.Query(); query.Get("all")+query.Get("namespace") == "" && !strings.HasPrefix(v.Path.Path, "/jobs/") {
		command += " -n " + url.QueryEscape(v.Namespace)
	}
	return command
}

// Starts returns when a unit is expected to start, with a range.
func (v *view) Starts(start *visibility.StartEstimate) string { return render.StartText(start, v.now) }

// StartsIn returns how much longer a unit is expected to wait.
func (v *view) StartsIn(start *visibility.StartEstimate) string {
	return text.Rough(start.Time.Sub(v.now))
}

// Age returns how long ago something was.
func (v *view) Age(at *metav1.Time) string {
	if at == nil {
		return "–"
	}
	return text.Age(at.Time, v.now) + " ago"
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(answerTime)) // ReadTimeout would end slow requests
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	began := time.Now()
	v, code := s.view(r.WithContext(ctx))
	v.Rest = s.rest(began).Milliseconds()
	var out bytes.Buffer
	if err := templates[v.Template].ExecuteTemplate(&out, "layout", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = out.WriteTo(w)
}

var (
	errNoPage    = errors.New("there is no such page")
	errManyReads = errors.New("too many pages are being read: try again in a moment")
)

// view reads a page. If it cannot be read, the view shows why.
func (s *Server) view(r *http.Request) (v *view, code int) {
	v = &view{Cluster: s.Cluster, Namespace: cmp.Or(r.URL.Query().Get("namespace"), s.Namespace), Path: r.URL, own: s.Namespace, now: s.Now(), Observed: s.Now()}
	var reader Reader
	var err error
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
		reader, err = s.Open(callerOf(r.Context()))
	case <-r.Context().Done():
		err = errManyReads
	}
	if err == nil {
		v.may = func(a Action) bool { return reader.May(r.Context(), a) }
		err = s.read(v, r, reader)
		v.Warnings = reader.Warnings()
	}
	if err == nil {
		return v, http.StatusOK
	}
	if d, is := v.Data.(*acting); is { // the form is still needed
		d.Failed = err.Error()
	} else if !errors.Is(err, errBusy) { // the form says so
		v.Template, v.Title, v.Data = "error", "This page cannot be shown", err.Error()
	}
	return v, codeOf(err)
}

func codeOf(err error) int {
	var tooLarge *http.MaxBytesError
	var wrong refusedError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &wrong):
		return http.StatusBadRequest
	case errors.Is(err, errBusy), errors.Is(err, errManyReads):
		return http.StatusTooManyRequests
	case errors.Is(err, errNoPage), apierrors.IsNotFound(err):
		return http.StatusNotFound
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

func (s *Server) read(v *view, r *http.Request, reader Reader) error {
	switch path := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.URL.Path == "/":
		return readJobs(v, r, reader)
	case path[0] == "jobs" && len(path) == 3:
		return readJob(v, r, reader, path[1], path[2])
	case path[0] == "quotas" && len(path) == 1:
		return readQuotas(v, r, reader)
	case path[0] == "queues" && len(path) == 1:
		return readQueues(v, r, reader)
	case path[0] == "queues" && len(path) == 2:
		return readQueue(v, r, reader, path[1])
	case path[0] == "what-if" && len(path) == 1:
		return s.readWhatIf(v, r, reader)
	case path[0] == "act" && len(path) == 1:
		return readAction(v, r, reader)
	}
	return errNoPage
}

// pageSize is the number of rows on a page.
const pageSize = 100

// jobsData are units of one or all namespaces.
type jobsData struct {
	*visibility.QueueReviewStatus
	// All is true if units of all namespaces are shown.
	All bool
	// Phases, Reasons, Kinds and Queue are the filters of the review.
	Phases, Reasons, Kinds []string
	Queue                  string
	// Job, if set, is a part of the names of the jobs.
	Job string
	// Owed is what is owed in and beside the quota of the queue, if jobs wait there.
	Owed []owed
	// HiddenQuotas is how many quotas, which may have borrowed it as well, the caller cannot view.
	HiddenQuotas int32
	rows
}

// PhaseNames are the phases to select from.
func (*jobsData) PhaseNames() []string { return units.Phases() }

// search keeps the units whose name, or whose job's name, contains the text.
func (d *jobsData) search() {
	name := strings.ToLower(d.Job)
	d.Units = slices.DeleteFunc(d.Units, func(u visibility.UnitSummary) bool {
		return !strings.Contains(units.JobOf(u.Kind, u.Name), name) && !strings.Contains(u.Name, name)
	})
}

// Helps returns what would help, in general, for the reasons of the jobs.
func (d *jobsData) Helps() map[wellknown.Reason]string {
	helps := map[wellknown.Reason]string{}
	for i := range d.Units {
		if advice := objects.Helps(d.Units[i].Reason); advice != "" {
			helps[d.Units[i].Reason] = advice
		}
	}
	return helps
}

// Has reports whether a phase is selected.
func (d *jobsData) Has(phase string) bool { return slices.Contains(d.Phases, phase) }

// rows are the rows of one page, of up to size rows.
type rows struct {
	path                *url.URL
	offset, total, size int32
}

func rowsOf(r *http.Request) rows {
	offset, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 32)
	if err != nil || offset < 0 {
		offset = 0
	}
	return rows{path: r.URL, offset: int32(offset), size: pageSize}
}

// Range returns which rows are shown.
func (p rows) Range() string {
	if p.total == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d of %d", p.offset+1, min(p.offset+p.size, p.total), p.total)
}

// Before returns the address of the previous page; empty if there is none.
func (p rows) Before() string {
	if p.offset == 0 {
		return ""
	}
	return p.from(max(0, p.offset-p.size))
}

// After returns the address of the next page; empty if there is none.
func (p rows) After() string {
	if p.total-p.offset <= p.size {
		return ""
	}
	return p.from(p.offset + p.size)
}

// Beyond reports whether the list no longer has as many rows as are before this page.
func (p rows) Beyond() bool { return p.total > 0 && p.offset >= p.total }

// First returns the address of the first page.
func (p rows) First() string { return p.from(0) }

func (p rows) from(offset int32) string {
	query := p.path.Query()
	query.Set("from", strconv.Itoa(int(offset)))
	return (&url.URL{Path: p.path.Path, RawQuery: query.Encode()}).RequestURI()
}

func readJobs(v *view, r *http.Request, reader Reader) error {
	query := r.URL.Query()
	notEmpty := func(name string) []string {
		return slices.DeleteFunc(query[name], func(value string) bool { return value == "" })
	}
	d := &jobsData{All: query.Get("all") != "", Phases: notEmpty("phase"), Reasons: notEmpty("reason"), Kinds: notEmpty("kind"), Queue: query.Get("queue"),
		Job: strings.TrimSpace(query.Get("job")), rows: rowsOf(r)}
	if d.Job != "" { // reviews do not select by name
		d.size = visibility.MaxLimit
	}
	v.Template, v.Title, v.Data, v.Filters = "jobs", "Jobs", d, d
	if slices.Equal(d.Phases, holding) {
		v.Title = "Jobs that hold quota"
	}
	if d.All {
		v.Title += " in all namespaces"
	} else {
		v.Title += " in namespace " + v.Namespace
	}
	status, err := reader.Units(r.Context(), v.Namespace, visibility.QueueReviewSpec{AllNamespaces: d.All, Queue: d.Queue, Phases: d.Phases, Reasons: d.Reasons, Kinds: d.Kinds,
		Show: visibility.ShowUnits, Limit: d.size, Offset: d.offset})
	if err != nil {
		return err
	}
	d.QueueReviewStatus, d.total, v.Observed = status, status.Total, status.ObservedTime.Time
	if d.Job != "" {
		d.search()
	}
	return nil
}

// step is a step in the life of a job.
type step struct {
	At   time.Time
	What string
}

// jobData is a job and why it waits.
type jobData struct {
	*Job
	Steps []step
}

func readJob(v *view, r *http.Request, reader Reader, namespace, unit string) error {
	v.Namespace = namespace
	job, err := reader.Job(r.Context(), namespace, unit)
	if err != nil {
		return err
	}
	ref := job.Unit.Spec.ConsumerRef
	if job.Unit.Spec.Growth {
		ref.Name += decision.GrowthSuffix
	}
	v.Template, v.Title, v.Data = "job", ref.Kind+" "+ref.Name, &jobData{Job: job, Steps: stepsOf(job.Unit)}
	v.Observed, v.offered = job.Status.ObservedTime.Time, offeredFor(job.Unit)
	return nil
}

// stepsOf returns the history of a unit, oldest first.
func stepsOf(unit *v1alpha1.QueueUnit) []step {
	var steps []step
	add := func(at time.Time, what string) {
		if !at.IsZero() {
			steps = append(steps, step{at.Truncate(time.Second), what})
		}
	}
	if at := unit.Spec.SubmissionTime; at != nil {
		add(at.Time, "submitted")
	}
	add(unit.CreationTimestamp.Time, "queued")
	if at := unit.Status.DequeueTime; at != nil {
		add(at.Time, "admitted")
	}
	for _, check := range unit.Status.AdmissionChecks {
		add(check.LastTransitionTime.Time, strings.TrimSpace(fmt.Sprintf("admission check %s: %s %s", check.Name, check.State, check.Message)))
	}
	for _, c := range unit.Status.Conditions {
		add(c.LastTransitionTime.Time, strings.TrimSpace(fmt.Sprintf("condition %s became %s: %s %s", c.Type, c.Status, c.Reason, c.Message)))
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.At.Compare(b.At) })
	return steps
}

func readQueues(v *view, r *http.Request, reader Reader) error {
	d := &jobsData{rows: rowsOf(r)}
	v.Template, v.Title, v.Data = "queues", "Queues", d
	status, err := reader.Units(r.Context(), v.Namespace, visibility.QueueReviewSpec{AllNamespaces: true, Limit: pageSize, Offset: d.offset})
	if err != nil {
		return err
	}
	d.QueueReviewStatus, d.total, v.Observed = status, status.Total, status.ObservedTime.Time
	return nil
}

func readQueue(v *view, r *http.Request, reader Reader, queue string) error {
	d := &jobsData{Queue: queue, rows: rowsOf(r)}
	v.Template, v.Title, v.Data = "queue", "Queue "+queue, d
	show := visibility.ShowGroups
	if r.URL.Query().Get("show") == "units" {
		show = visibility.ShowUnits
	}
	status, err := reader.Units(r.Context(), v.Namespace, visibility.QueueReviewSpec{AllNamespaces: true, Queue: queue, Show: show, Limit: pageSize, Offset: d.offset})
	if err != nil {
		return err
	}
	d.QueueReviewStatus, d.total, v.Observed = status, status.Total, status.ObservedTime.Time
	if len(status.Queues) != 1 {
		return nil
	}
	q := &status.Queues[0]
	v.offered = offeredForQueue(v, q)
	if len(q.Requested) == 0 { // no job waits, or nobody answers reviews
		return nil
	}
	if tree, err := reader.Quotas(r.Context(), v.Namespace); err == nil { // the rest of the page does not need it
		d.Owed, d.HiddenQuotas = owedAround(q.Quota, tree.Quotas), tree.Hidden
	}
	return nil
}

// whatIf is the quota tree that a user tries, and what would happen.
type whatIf struct {
	Manifests string
	Result    *objects.Simulation
}

var errBusy = errors.New("another simulation is running: try again in a moment")

// readWhatIf shows the tree in use or, after the user has submitted another one, what would happen with that.
func (s *Server) readWhatIf(v *view, r *http.Request, reader Reader) (err error) {
	d := &whatIf{}
	v.Template, v.Title, v.Data = "whatif", "What if the quota tree were different?", d
	if r.Method != http.MethodPost {
		d.Manifests, err = reader.Tree(r.Context())
		return err
	}
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("reading the form: %w", err)
	}
	d.Manifests = r.PostForm.Get("manifests")
	caller := callerOf(r.Context())
	if !s.simulations.begin(caller, ownSimulations, allSimulations) {
		d.Result = &objects.Simulation{Faults: []string{errBusy.Error()}}
		return errBusy
	}
	defer s.simulations.end(caller)
	d.Result, err = reader.Simulate(r.Context(), v.Namespace, d.Manifests)
	if err != nil { // the user can correct the tree in the form
		d.Result, err = &objects.Simulation{Faults: []string{err.Error()}}, nil
	}
	return err
}

package web

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/test/require"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cluster is a cluster in which every text is the name.
type cluster struct {
	name string
	// changes is how many units run.
	changes atomic.Int32
	// slow, if set, receives a value when a simulation begins, and another to end it.
	slow chan struct{}
	// asked is the last question about units.
	asked atomic.Pointer[visibility.QueueReviewSpec]
	// mayNot takes all rights from the caller. acted is the last action.
	mayNot bool
	acted  atomic.Pointer[Action]
	// only, if set, is the only namespace that the caller may read.
	only string
	// proxy, if set, is in front of the pages. refresh, if set, is how often open pages are read.
	proxy   *proxy
	refresh time.Duration
}

// proxy accepts connections. While it is down, it answers with HTTP errors.
type proxy struct {
	net.Listener
	mutex sync.Mutex
	down  bool
	open  []net.Conn
}

func (p *proxy) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p.mutex.Lock()
		p.open = append(p.open, conn)
		down := p.down
		p.mutex.Unlock()
		if !down {
			return conn, nil
		}
		fmt.Fprint(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	}
}

// set takes the proxy down or up. It cuts open connections.
func (p *proxy) set(down bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.down = down
	for _, conn := range p.open {
		conn.Close()
	}
	p.open = nil
}

func (c *cluster) check(namespace string) error {
	if c.only != "" && namespace != c.only {
		return apierrors.NewForbidden(schema.GroupResource{}, c.name, errors.New("no"))
	}
	return nil
}

func (c *cluster) unit(position int32) visibility.UnitSummary {
	return visibility.UnitSummary{Namespace: c.name, Name: c.name, Kind: c.name, Queue: c.name, Phase: "Enqueued", Reason: "QuotaExceeded", Position: position,
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m")}, SubmissionTime: ptr.To(metav1.NewTime(now.Add(-time.Minute))), DequeueTime: ptr.To(metav1.NewTime(now.Add(-30 * time.Second))),
		Start: starts(), EndsBefore: ptr.To(metav1.NewTime(now.Add(time.Hour)))}
}

// starts is an estimate.
func starts() *visibility.StartEstimate {
	in := func(hours time.Duration) metav1.Time { return metav1.NewTime(now.Add(hours * time.Hour)) }
	return &visibility.StartEstimate{Time: in(2), Earliest: in(1), Latest: in(4)}
}

func (c *cluster) Units(_ context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReviewStatus, error) {
	c.asked.Store(&spec)
	if err := c.check(namespace); err != nil {
		return nil, err
	}
	if spec.Queue == "nope" {
		return nil, reviews.Missing("nope", `queue "nope" does not exist`)
	}
	status := &visibility.QueueReviewStatus{ObservedTime: metav1.NewMicroTime(now), Total: 250, Hidden: 3}
	if spec.Offset >= status.Total {
		return status, nil
	}
	switch spec.Show {
	case visibility.ShowUnits:
		status.Units = []visibility.UnitSummary{c.unit(1), c.unit(c.changes.Load() + 2)}
	case visibility.ShowGroups:
		status.Groups = []visibility.UnitGroup{{Units: 7, First: c.unit(1)}}
	}
	if spec.Queue != "" || spec.Show == "" {
		status.Queues = []visibility.QueueSummary{{Name: c.name, Quota: c.name + "/lender", Policy: c.name, Stop: "Hold", Pending: 7, Requested: c.unit(1).Requests}}
	}
	return status, nil
}

func (c *cluster) Job(_ context.Context, namespace, unit string) (*Job, error) {
	if unit == "nobody" && c.changes.Load() == 0 {
		return nil, errors.New(c.name)
	}
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: unit, CreationTimestamp: metav1.NewTime(now)}}
	u.Spec.ConsumerRef.Kind, u.Spec.ConsumerRef.Name, u.Spec.Growth = c.name, c.name, unit == "grows"
	u.Spec.PodSets = []v1alpha1.PodSet{{Name: c.name, Count: 1}, {Name: c.name, Count: 41}}
	u.Status.AdmissionChecks = []v1alpha1.AdmissionCheckState{{Name: c.name, State: v1alpha1.CheckState(c.name), Message: c.name, LastTransitionTime: metav1.NewTime(now)}}
	u.Status.Conditions = []metav1.Condition{{Type: c.name, Status: "False", Reason: c.name, Message: c.name, LastTransitionTime: metav1.NewTime(now)}}
	status := &visibility.QueueUnitReviewStatus{ObservedTime: metav1.NewMicroTime(now), Phase: "Enqueued", Reason: "QuotaExceeded", Message: c.name, Queue: c.name, Quota: c.name, Policy: c.name,
		Position: 5, Waiting: 7, Start: starts(), Until: ptr.To(metav1.NewTime(now.Add(time.Hour))), Ahead: []visibility.UnitSummary{c.unit(1)}, AheadHidden: 1, HoldingUnits: []visibility.UnitSummary{c.unit(0)},
		Lacks:      []visibility.Lack{{Quota: c.name, Bound: "Max", Resource: c.name, Requested: "2", Used: "3", Limit: "4", Missing: "1"}},
		Holders:    []visibility.Holder{{Quota: c.name, Units: 3}},
		WouldAdmit: []visibility.Remedy{{Message: c.name, Command: c.name, Units: []visibility.UnitSummary{c.unit(0)}, HiddenUnits: 2}}}
	switch unit {
	case "held":
		status.Reason, status.Start = "Inactive", nil
	case "nobody":
		status.Ahead[0].Phase = "Failed"
	case "runs":
		u.Status.Phase, u.Status.AdmittedPodSets = v1alpha1.PhaseRunning, []v1alpha1.AdmittedPodSet{{Name: "worker", Count: 6}}
		fallthrough
	case "fewer":
		u.Spec.PodSets = []v1alpha1.PodSet{{Name: "worker", Count: 10, MinCount: ptr.To[int32](4)}}
	}
	return &Job{u, status}, nil
}

func (c *cluster) Quotas(_ context.Context, namespace string) (*visibility.QuotaReviewStatus, error) {
	if err := c.check(namespace); err != nil {
		return nil, err
	}
	if namespace == "nowhere" {
		return &visibility.QuotaReviewStatus{ObservedTime: metav1.NewMicroTime(now)}, nil
	}
	amount := func(text string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(text)} }
	return &visibility.QuotaReviewStatus{ObservedTime: metav1.NewMicroTime(now), Hidden: 2, Quotas: []visibility.QuotaSummary{
		{Path: c.name, Queue: c.name, Max: amount("8"), Used: amount("6")},
		{Path: c.name + "/child", Min: amount("2"), Max: amount("8"), Used: amount("6"), Borrowed: amount("4"), Unqueued: amount("1"), Lent: amount("0")},
		{Path: c.name + "/lender", Min: amount("4"), Max: amount("8"), Used: amount("1"), Lent: amount("3"), Requested: amount("1500m"), Waiting: 7}}}, nil
}

func (c *cluster) Tree(context.Context) (string, error) { return c.name, nil }

func (c *cluster) Simulate(_ context.Context, namespace, manifests string) (*objects.Simulation, error) {
	if c.slow != nil {
		<-c.slow
		<-c.slow
	}
	if !strings.Contains(manifests, "root") {
		return nil, errors.New("there is no root")
	}
	return &objects.Simulation{Warnings: []string{"in namespace " + namespace}, Started: []visibility.UnitGroup{{Units: 4, First: c.unit(0)}}, OverLimits: []string{c.name},
		Jobs: []objects.SimulatedJob{{Namespace: c.name, Name: c.name, Text: c.name}, {Name: c.name, Starts: true, Checks: []string{c.name, c.name}}}}, nil
}

func (c *cluster) May(context.Context, Action) bool { return !c.mayNot }

func (c *cluster) Act(_ context.Context, a Action) (string, error) {
	c.acted.Store(&a)
	if c.mayNot {
		return "", apierrors.NewForbidden(schema.GroupResource{}, c.name, errors.New("no"))
	}
	return c.name + " done", nil
}

func (c *cluster) Warnings() []string { return []string{c.name} }

// browser is a browser of the user.
type browser struct {
	*http.Client
	t      *testing.T
	server *Server
	url    string
}

// open serves the pages and opens the link.
func open(t *testing.T, c *cluster) *browser {
	t.Helper()
	b := serve(t, c)
	if code, page := b.get(b.server.Link("/quotas")[len(b.url):]); code != http.StatusOK || !strings.Contains(page, "<h1><bdi>Quotas</bdi></h1>") {
		t.Fatalf("status %d: %s", code, page)
	}
	return b
}

func serve(t *testing.T, c *cluster) *browser {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if c.proxy != nil {
		c.proxy.Listener, listener = listener, c.proxy
	}
	s := New(Options{Open: func(string) (Reader, error) { return c, nil }, Namespace: "research", Cluster: c.name, Hosts: []string{listener.Addr().String()}, Refresh: cmp.Or(c.refresh, time.Millisecond), Now: func() time.Time { return now }})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	jar, _ := cookiejar.New(nil)
	return &browser{Client: &http.Client{Jar: jar}, t: t, server: s, url: "http://" + s.Hosts[0]}
}

func (b *browser) get(page string) (code int, body string) {
	b.t.Helper()
	response, err := b.Get(b.url + page)
	require.NoError(b.t, err)
	defer response.Body.Close()
	var text strings.Builder
	if _, err := bufio.NewReader(response.Body).WriteTo(&text); err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, text.String()
}

// pages are all pages.
var pages = []string{"/", "/?all=1&phase=Running&from=100", "/jobs/research/train", "/quotas", "/queues", "/queues/q", "/queues/q?show=units", "/what-if", "/act?do=priority&namespace=research&unit=train", "/act?do=drain&queue=q"}

// markup returns what a browser would run or reorder: scripts, event handlers, images, links that are scripts, and
// characters that change the direction of text.
func markup(t *testing.T, body string) (found []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "textarea" && strings.ContainsAny(n.Data, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") || n.Data == "img" || n.Data == "iframe" {
			found = append(found, n.Data)
		}
		for _, a := range n.Attr {
			if n.Data == "script" || strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.TrimSpace(a.Val), "javascript:") && (a.Key == "href" || a.Key == "action") {
				if a.Key != "defer" {
					found = append(found, a.Val)
				}
			}
		}
	}
	return found
}

// hostile are names that a page must show as text.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, "a\u202eb\u2066c", strings.Repeat("n", 253), "🚀{{.}}", "a\nb\r\nevent: x", `' onclick='x`}

func TestHostileTextIsOnlyText(t *testing.T) {
	for _, name := range hostile {
		b := open(t, &cluster{name: name})
		for _, page := range append(pages, "/jobs/research/nobody", "/"+url.PathEscape(name), "/?"+url.Values{"namespace": {name}, "queue": {name}, "reason": {name}, "job": {name}}.Encode()) {
			_, body := b.get(page)
			if found := markup(t, body); len(found) != 1 || found[0] != "/assets/live.js" {
				t.Errorf("name %q, page %s: %q\n%s", name, page, found, body)
			}
		}
	}
}

func TestEachPageShowsWhatItIsFor(t *testing.T) {
	c := &cluster{name: "train-a"}
	b := open(t, c)
	for page, wants := range map[string][]string{
		"/?phase=Reserved&phase=Dequeued&phase=Running": {"<h1><bdi>Jobs that hold quota in namespace research</bdi></h1>", `aria-current="page">Jobs that hold quota<`},
		"/": {"Jobs in namespace research", `href="/jobs/train-a/train-a"`, "1500m cpu", "1 to 100 of 250", `href="/?from=100"`, "3 jobs in namespaces that you cannot view", ">60s ago<", ">Admitted<", ">30s ago<", "<td>2 h</td><td>2026-01-01T13:00:00Z</td>",
			"What would help", "<dt>QuotaExceeded</dt><dd>the job starts when enough of the jobs that hold the quota have ended</dd>"},
		"/?from=100&all=1":     {"Jobs in all namespaces", "101 to 200 of 250", `href="/?all=1&amp;from=0"`, `href="/?all=1&amp;from=200"`, "web &#39;/?from=100&amp;all=1&#39;<"},
		"/?job=%20Train":       {`<label>Job <input name="job" value="Train"`, `href="/jobs/train-a/train-a"`, "Searched: 1 to 250 of 250"},
		"/?job=other&from=200": {"No jobs found.", "Searched: 201 to 250 of 250", `href="/?from=0&amp;job=other"`},
		"/jobs/research/train": {"<strong>It waits: QuotaExceeded</strong>: train-a", "5 of 7", "<p>And 2 more.</p>", "What would admit it", "2 jobs in namespaces that you cannot view", "web &#39;/jobs/research/train&#39;<", "condition train-a became False: train-a train-a",
			"in about 2 h (1 h to 4 h)", "2026-01-01T13:00:00Z at the latest", `train-a</a></th><td>train-a</td><td class="number">2</td>`, `<td class="number">41</td>`, "admission check train-a: train-a train-a"},
		"/jobs/research/fewer":      {`worker</th><td class="number">4-10</td>`},
		"/jobs/research/runs":       {`worker</th><td class="number">6 of 10 admitted</td>`},
		"/jobs/research/held":       {"<dt>Starts</dt><dd>not known: it waits for something other than quota</dd>"},
		"/quotas":                   {`aria-label="cpu: 6 used, guaranteed 2, at most 8, borrowed 4, lent 0"`, `<rect class="own" width="25"`, `<rect class="borrowed" x="25" width="50"`, "2 quotas of others", "<br>7 jobs waiting</th>", `<td class="number">3</td><td class="number">1500m</td><td class="number"></td><td class="number">1500m</td>`},
		"/quotas?namespace=nowhere": {"No quota lists namespace <bdi>nowhere</bdi>; ask an administrator", `<input name="namespace" value="nowhere"`},
		"/queues":                   {`href="/queues/train-a"`, `class="action">Hold<`},
		"/queues/train-a": {`<td class="number">7</td>`, "First starts in about</th>", ">2 h</td>", `href="?show=units"`, "Who is owed", `train-a/lender</a></th><td>cpu</td><td class="number">1500m</td>`,
			`<a href="/quotas#train-a%2fchild">train-a/child</a> (4), and perhaps quotas that you cannot view</td>`},
		"/what-if": {"train-a</textarea>"},
		"/act?do=pause&namespace=research&unit=train": {"Pause: train", "its pods are deleted", `href="/jobs/research/train"`},
		"/queues/train-a?from=":                       {"kubectl kube-queue web &#39;/queues/train-a?from=&#39; -n research<"},
		"/?namespace=a&phase=Running":                 {"web &#39;/?namespace=a&amp;phase=Running&#39;<"},
	} {
		code, body := b.get(page)
		if code != http.StatusOK {
			t.Errorf("%s: status %d", page, code)
		}
		require.Says(t, page, body, wants...)
	}
	_, body := b.get("/?phase=Running&phase=&kind=Job&reason=MaxJobs&queue=q&from=200")
	require.Says(t, "the form", body, `<label>Queue <input name="queue" value="q"`, `<label>Reason <input name="reason" value="MaxJobs"`, `<label>Kind <input name="kind" value="Job"`)
	asked := c.asked.Load()
	if got := fmt.Sprint(asked.Phases, asked.Kinds, asked.Reasons, asked.Queue, asked.Limit, asked.Offset); got != "[Running] [Job] [MaxJobs]q100 200" {
		t.Errorf("it asked for %s", got)
	}
	b.get("/?job=train")
	if asked := c.asked.Load(); asked.Limit != visibility.MaxLimit {
		t.Errorf("it searched %d jobs", asked.Limit)
	}
}

// A tenant with one namespace finds it without another page.
func TestAJobWithoutAQueueHasNoLinkToOne(t *testing.T) {
	b := open(t, &cluster{})
	for _, page := range []string{"/", "/jobs/research/train"} {
		if _, body := b.get(page); strings.Contains(body, `href="/queues/"`) {
			t.Errorf("%s has an empty link:\n%s", page, body)
		}
	}
}

func TestAPageBeyondTheEndLeadsToTheFirst(t *testing.T) {
	b := open(t, &cluster{name: "train-a"})
	for _, page := range []string{"/?from=900&phase=Running", "/queues?from=900", "/queues/q?from=900&show=units", "/queues/q?from=900"} {
		code, body := b.get(page)
		first := strings.Replace(strings.Replace(page, "from=900", "from=0", 1), "&", "&amp;", 1)
		if code != http.StatusOK || !strings.Contains(body, `The list has only 250 rows now. <a href="`+first+`">`) || strings.Contains(body, "found") || strings.Contains(body, "No jobs") {
			t.Errorf("%s: status %d:\n%s", page, code, body)
		}
	}
}

func TestAJobSaysWhyItHasNoEstimate(t *testing.T) {
	waits := func(reason wellknown.Reason, position int32) *visibility.QueueUnitReviewStatus {
		return &visibility.QueueUnitReviewStatus{Phase: "Enqueued", Reason: reason, Position: position}
	}
	estimated := waits("MaxJobs", 1)
	estimated.Start = starts()
	for _, c := range []struct {
		status   *visibility.QueueUnitReviewStatus
		warnings []string
		want     string
	}{
		{&visibility.QueueUnitReviewStatus{Phase: "Running"}, nil, ""},
		{estimated, nil, ""},
		{waits("", 1), nil, ""},
		{waits("QueueStopped", 1), nil, "other than quota"},
		{waits("NotAtFront", 1001), nil, "behind position 1000"},
		{waits("NotAtFront", 1000), nil, "has not estimated it yet, or the job must wait for one whose run time is not known"},
		{waits("NotAtFront", 1000), []string{"nobody answers"}, ""},
	} {
		if got := (&jobData{Job: &Job{Status: c.status}}).NoStart(&view{Warnings: c.warnings}); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v says %q, want %q", c.status, got, c.want)
		}
	}
}

func TestAQueueThatDoesNotExistIsNotFound(t *testing.T) {
	b := open(t, &cluster{name: "train-a"})
	if code, body := b.get("/queues/nope"); code != http.StatusNotFound || !strings.Contains(body, "does not exist") || strings.Contains(body, "on another computer") {
		t.Errorf("status %d:\n%s", code, body)
	}
}

func TestFiltersThatFailCanBeCorrected(t *testing.T) {
	b := open(t, &cluster{name: "train-a"})
	code, body := b.get("/?queue=nope&phase=Running&kind=Job&namespace=other&job=train")
	if code != http.StatusNotFound {
		t.Errorf("status %d", code)
	}
	require.Says(t, "the form", body, "does not exist", `name="namespace" value="other"`, `name="queue" value="nope"`, `name="kind" value="Job"`, `name="job" value="train"`, `value="Running" checked`)
}

func TestATenantChoosesANamespaceAndKeepsIt(t *testing.T) {
	b := serve(t, &cluster{name: "train-a", only: "other"})
	b.get(b.server.Link("/")[len(b.url):])
	for _, page := range []string{"/", "/quotas", "/queues", "/queues/q"} {
		if code, body := b.get(page); code != http.StatusForbidden || !strings.Contains(body, `<input name="namespace" value="research"`) {
			t.Errorf("%s: status %d, or no form to choose a namespace:\n%s", page, code, body)
		}
		code, body := b.get(page + "?namespace=other")
		for _, want := range []string{`"/?namespace=other"`, `phase=Running&amp;namespace=other"`, `"/quotas?namespace=other`, `"/queues?namespace=other"`, `"/queues/train-a?namespace=other"`} {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s of another namespace: status %d, does not show %s:\n%s", page, code, want, body)
			}
		}
	}
	if _, body := b.get("/queues/q?namespace=other"); !strings.Contains(body, `href="?show=units&amp;namespace=other"`) {
		t.Errorf("the other view of the queue is of another namespace:\n%s", body)
	}
	if _, body := b.get("/jobs/other/train"); !strings.Contains(body, `"/quotas?namespace=other#train-a"`) {
		t.Errorf("the page of a job leads to another namespace:\n%s", body)
	}
	for page, want := range map[string]string{
		"/queues/q?namespace=other":                `"/act?do=drain&amp;namespace=other&amp;queue=train-a"`,
		"/act?do=drain&namespace=other&queue=q":    `"/queues/q?namespace=other"`,
		"/act?do=pause&namespace=other&unit=train": `"/queues?namespace=other"`,
		"/what-if?namespace=other":                 `action="/what-if?namespace=other"`,
	} {
		if _, body := b.get(page); !strings.Contains(body, want) {
			t.Errorf("%s does not show %s:\n%s", page, want, body)
		}
	}
	if _, body := b.postTo("/what-if?namespace=other", url.Values{"manifests": {"root"}}); !strings.Contains(body, "in namespace other<") {
		t.Errorf("a tree is tried in another namespace:\n%s", body)
	}
}

func TestWhatCannotBeShownIsSaid(t *testing.T) {
	b := open(t, &cluster{name: "no such unit"})
	for page, want := range map[string]int{"/nothing": 404, "/jobs/a": 404, "/jobs/a/b/c": 404, "/jobs/research/nobody": 502, "/assets/../web.go": 404, "/assets/none": 404} {
		code, body := b.get(page)
		if code != want {
			t.Errorf("%s: status %d, want %d", page, code, want)
		}
		if !strings.Contains(page, "assets") && (!strings.Contains(body, " data-failed>") || !strings.Contains(body, `class="warning failed"`)) {
			t.Errorf("%s does not know that it has failed:\n%s", page, body)
		}
	}
}

func (b *browser) post(form url.Values) (code int, body string) { return b.postTo("/what-if", form) }

func (b *browser) postTo(page string, form url.Values) (code int, body string) {
	b.t.Helper()
	response, err := b.PostForm(b.url+page, form)
	require.NoError(b.t, err)
	defer response.Body.Close()
	var text strings.Builder
	_, _ = bufio.NewReader(response.Body).WriteTo(&text)
	return response.StatusCode, text.String()
}

func TestATreeIsTriedWithoutApplyingIt(t *testing.T) {
	c := &cluster{name: "train-a"}
	b := open(t, c)
	if code, body := b.post(url.Values{"manifests": {"root: {}"}}); code != http.StatusOK || !strings.Contains(body, "root: {}</textarea>") || !strings.Contains(body, "Over the limit: train-a") ||
		!strings.Contains(body, `<td class="number">4</td>`) || !strings.Contains(body, "would wait") || !strings.Contains(body, "would start when its admission checks are ready: train-a, train-a<") {
		t.Errorf("status %d:\n%s", code, body)
	}
	if _, body := b.post(url.Values{"manifests": {"x"}}); !strings.Contains(body, "there is no root") || !strings.Contains(body, "x</textarea>") {
		t.Errorf("the user cannot correct the tree:\n%s", body)
	}
	if code, _ := b.post(url.Values{"manifests": {strings.Repeat("x", MostForm)}}); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too large: status %d", code)
	}
	c.slow = make(chan struct{})
	first := make(chan int)
	go func() {
		code, _ := b.post(url.Values{"manifests": {"root"}})
		first <- code
	}()
	c.slow <- struct{}{}
	if code, body := b.post(url.Values{"manifests": {"root"}}); code != http.StatusTooManyRequests || !strings.Contains(body, "another simulation is running") || !strings.Contains(body, "root</textarea>") {
		t.Errorf("a second one beside it: status %d\n%s", code, body)
	}
	c.slow <- struct{}{}
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first one: status %d", code)
	}
}

func TestActionsAreOfferedToWhoMayAndConfirmed(t *testing.T) {
	c := &cluster{name: "train-a"}
	b := open(t, c)
	for page, wants := range map[string][]string{
		"/jobs/research/train": {`<a href="/act?do=pause&amp;namespace=research&amp;unit=train">Pause</a>`},
		"/queues/train-a":      {`<a href="/act?do=resume&amp;queue=train-a">Resume</a>`, `<a href="/act?do=drain&amp;queue=train-a">Drain</a>`},
	} {
		c.mayNot = false
		_, body := b.get(page)
		c.mayNot = true
		_, without := b.get(page)
		c.mayNot = false
		content, _ := b.server.content(httptest.NewRequest(http.MethodGet, page, nil)) // of an open page
		for _, want := range wants {
			if !strings.Contains(body, want) || strings.Contains(without, want) || !strings.Contains(content, want) {
				t.Errorf("%s does not show %q, or shows it to everybody, or only when it is opened:\n%s", page, want, body)
			}
		}
	}
	if _, body := b.get("/jobs/research/grows"); !strings.Contains(body, "<bdi>train-a train-a-growth</bdi>") || strings.Contains(body, "do=pause") {
		t.Errorf("a part of a job is offered to be paused, or named like the job:\n%s", body)
	}
	c.mayNot = false
	b.get("/act?do=pause&namespace=research&unit=train")
	if c.acted.Load() != nil {
		t.Error("a link acts without confirmation")
	}
	for _, a := range []Action{{Do: Pause, Namespace: "research", Unit: "train"}, {Do: Priority, Namespace: "research", Unit: "train", Priority: "-7"}, {Do: Drain, Queue: "q"}} {
		form := url.Values{"do": {a.Do}, "namespace": {a.Namespace}, "unit": {a.Unit}, "queue": {a.Queue}, "priority": {a.Priority}}
		code, body := b.postTo("/act", form)
		if acted := c.acted.Load(); code != http.StatusOK || acted == nil || *acted != a || !strings.Contains(body, `<p role="status">train-a done</p>`) || !strings.Contains(body, `href="`+a.Subject()+`"`) {
			t.Errorf("%+v: status %d, acted %+v:\n%s", a, code, acted, body)
		}
	}
	for _, form := range []url.Values{{}, {"do": {Pause}, "unit": {"u"}}, {"do": {"delete"}, "unit": {"u"}, "namespace": {"n"}}, {"do": {Stop}, "unit": {"u"}}, {"do": {Pause}, "queue": {"q"}}, {"do": {Pause}, "queue": {"q"}, "unit": {"u"}}, {"do": {Drain}}} {
		c.acted.Store(nil)
		if code, _ := b.postTo("/act", form); code != http.StatusNotFound || c.acted.Load() != nil {
			t.Errorf("%v: status %d", form, code)
		}
	}
	c.mayNot = true
	if code, body := b.postTo("/act", url.Values{"do": {Drain}, "queue": {"q"}}); code != http.StatusForbidden || !strings.Contains(body, "forbidden") || !strings.Contains(body, `<form method="post" action="/act">`) || !strings.Contains(body, `href="/queues/q"`) {
		t.Errorf("an action that fails cannot be corrected or left: status %d:\n%s", code, body)
	}
}

func TestOnlyActionsThatFitAreOffered(t *testing.T) {
	offers := func(phase v1alpha1.QueueUnitPhase, active bool) (all []string) {
		u := &v1alpha1.QueueUnit{}
		u.Spec.Active, u.Status.Phase, u.Spec.ConsumerRef.APIVersion, u.Spec.ConsumerRef.Kind = &active, phase, "batch/v1", "Job"
		for _, a := range offeredFor(u) {
			all = append(all, a.Do)
		}
		return all
	}
	stopped := func(stop string) (all []string) {
		for _, a := range offeredForQueue(&view{}, &visibility.QueueSummary{Name: "q", Stop: stop}) {
			all = append(all, a.Do)
		}
		return all
	}
	got := fmt.Sprint(offers(v1alpha1.PhaseEnqueued, true), offers(v1alpha1.PhaseEnqueued, false), offers(v1alpha1.PhaseRunning, true), offers(v1alpha1.PhaseSucceeded, true),
		stopped(""), stopped("None"), stopped("Hold"), stopped("Drain"))
	if want := "[pause priority] [unpause] [pause] [] [stop drain] [stop drain] [resume drain] [resume]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNobodyElseReadsThePages(t *testing.T) {
	b := open(t, &cluster{name: "train-a"})
	link := b.server.Link("/")
	request := func(method, target, host string, headers map[string]string) int {
		r := httptest.NewRequest(method, target, strings.NewReader("manifests=root"))
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, r)
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s %s: policy %q", method, target, csp)
		}
		if strings.Contains(w.Body.String(), b.server.session) {
			t.Errorf("%s %s shows the secret", method, target)
		}
		return w.Code
	}
	b.server.Hosts = append(b.server.Hosts, "Pages.example")
	host, own := b.server.Hosts[0], b.server.cookie()+"="+b.server.session
	for _, c := range []struct {
		name, method, target, host string
		headers                    map[string]string
		want                       int
	}{
		{"without the cookie", "GET", "/", host, nil, 403},
		{"a cookie of another server", "GET", "/", host, map[string]string{"Cookie": b.server.cookie() + "=x"}, 403},
		{"an empty cookie", "GET", "/", host, map[string]string{"Cookie": b.server.cookie() + "="}, 403},
		{"the style without the cookie", "GET", "/assets/style.css", host, nil, 403},
		{"the stream without the cookie", "GET", "/live?page=/", host, nil, 403},
		{"the used link", "GET", link[len(b.url):], host, nil, 403},
		{"an empty ticket", "GET", "/open?ticket=", host, nil, 403},
		{"no ticket", "GET", "/open", host, nil, 403},
		{"another host", "GET", "/", "evil.example:80", map[string]string{"Cookie": own}, 421},
		{"a host in other letters", "GET", "/", "pages.EXAMPLE", map[string]string{"Cookie": own}, 200},
		{"a name of this host", "GET", "/", "localhost" + host[strings.Index(host, ":"):], map[string]string{"Cookie": own}, 421},
		{"a form of another site", "POST", "/what-if", host, map[string]string{"Cookie": own, "Sec-Fetch-Site": "cross-site"}, 403},
		{"a form with another origin", "POST", "/what-if", host, map[string]string{"Cookie": own, "Origin": "http://evil.example"}, 403},
		{"a form of another port", "POST", "/what-if", host, map[string]string{"Cookie": own, "Origin": "http://127.0.0.1:1"}, 403},
		{"an action of another site", "POST", "/act", host, map[string]string{"Cookie": own, "Sec-Fetch-Site": "cross-site"}, 403},
		{"an action without the cookie", "POST", "/act", host, nil, 403},
		{"an own form", "POST", "/what-if", host, map[string]string{"Cookie": own, "Sec-Fetch-Site": "same-origin"}, 200},
		{"another method", "DELETE", "/", host, map[string]string{"Cookie": own}, 405},
		{"a form to another page", "POST", "/quotas", host, map[string]string{"Cookie": own}, 405},
	} {
		if code := request(c.method, c.target, c.host, c.headers); code != c.want {
			t.Errorf("%s: status %d, want %d", c.name, code, c.want)
		}
	}
}

func TestALinkLeadsToThisServerOnly(t *testing.T) {
	for page, want := range map[string]string{"/quotas": "/quotas", "": "/", "https://evil.example/x": "/x", "//evil.example": "/", `/\evil.example`: "/%5Cevil.example", "/../../x": "/x", "/jobs/a/b?from=1": "/jobs/a/b?from=1", "%zz": "/"} {
		if got := local(page); got != want {
			t.Errorf("%q leads to %q, want %q", page, got, want)
		}
	}
}

func TestAnOpenPageFollowsTheCluster(t *testing.T) {
	c := &cluster{name: "train-a"}
	b := open(t, c)
	response, err := b.Get(b.url + "/live?page=" + url.QueryEscape("/?all=1"))
	require.NoError(t, err)
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("type %q", kind)
	}
	lines := bufio.NewScanner(response.Body)
	event := func() string {
		var all []string
		for lines.Scan() && lines.Text() != "" {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				t.Fatalf("line %q", lines.Text())
			}
			all = append(all, data)
		}
		return strings.Join(all, "\n")
	}
	if first := event(); !strings.Contains(first, `<td class="number">2</td>`) || strings.Contains(first, "<html") {
		t.Fatalf("the first event is %s", first)
	}
	c.changes.Add(5)
	require.Says(t, "the second event", event(), `<td class="number">7</td>`)
}

package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/pkg/plugin/web"
	"kube-queue.dev/kube-queue/test/require"
)

// pages are the pages that the command serves.
type pages struct {
	*http.Client
	t *testing.T
	// at is the address, and first the page that the browser opened.
	at, first string
}

// openWeb starts the command and opens its link. The command is interrupted at the end of the test.
func (a *api) openWeb(args ...string) *pages {
	a.t.Helper()
	ctx, interrupt := context.WithCancel(a.t.Context())
	out, written := io.Pipe()
	opened, status := make(chan string, 1), make(chan int, 1)
	env := Environment{Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: written, ErrOut: written},
		Browse: func(link string) error { opened <- link; return nil }, Now: func() time.Time { return now }}
	go func() {
		status <- Run(ctx, env, append([]string{"--kubeconfig", a.kubeconfig(), "web"}, args...))
		written.Close()
	}()
	lines := make(chan string, 10)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	var link string
	for link == "" {
		line, more := <-lines
		if !more {
			a.t.Fatalf("%v ended without a link, status %d", args, <-status)
		}
		if strings.HasPrefix(line, "  http://127.0.0.1:") {
			link = strings.TrimSpace(line)
		}
	}
	if got := <-opened; got != link {
		a.t.Errorf("the browser opens %s, not %s", got, link)
	}
	a.t.Cleanup(func() {
		interrupt()
		if code := <-status; code != exitInterrupted {
			a.t.Errorf("exit status %d after Ctrl-C", code)
		}
	})
	jar, _ := cookiejar.New(nil)
	p := &pages{Client: &http.Client{Jar: jar}, t: a.t}
	response, err := p.Get(link)
	require.NoError(a.t, err)
	response.Body.Close()
	p.at, p.first = "http://"+response.Request.URL.Host, response.Request.URL.Path
	return p
}

func (p *pages) shows(page string, wants ...string) string {
	p.t.Helper()
	response, err := p.Get(p.at + page)
	require.NoError(p.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	require.Says(p.t, page, string(body), wants...)
	return string(body)
}

func TestThePagesShowWhatTheCommandsShow(t *testing.T) {
	a := newAPI(t, four)
	p := a.openWeb("job/train-c")
	if p.first != "/jobs/research/train-c-job-2e7d2c03a9" {
		t.Errorf("the first page is %s", p.first)
	}
	if first := a.openWeb("/queues/company-research", "-n", "research").first; first != "/queues/company-research" {
		t.Errorf("the first page is %s", first)
	}
	fallback := "reviews are off in this cluster; this is what the objects show."
	p.shows(p.first, fallback, "waits: MaxJobs", "job limit reached in quota company/research", "2 of 2", "the job starts when one of the jobs", "tfjob/first</bdi>")
	if body := p.shows("/", fallback, "train-c", "train-a", "Running"); strings.Contains(body, "first") || strings.Contains(body, "old</bdi>") {
		t.Errorf("it shows jobs of other namespaces, or that have ended:\n%s", body)
	}
	p.shows("/?all=1&phase=Enqueued", "first", "train-c", "1 to 2 of 2")
	p.shows("/?phase=Succeeded", "old</bdi>")
	p.shows("/?namespace=reserch", "reserch&#34; does not exist; did you mean &#34;research&#34;?", `name="namespace" value="reserch"`)
	p.shows("/queues", "company-research", "RoundRobin")
	p.shows("/queues/company-research", "train-c", `<td class="number">1</td>`)
	p.shows("/queues/company-reserch", "company-reserch&#34; does not exist in namespace kube-queue; did you mean &#34;company-research&#34;?")
	p.shows("/jobs/research/gone", "gone&#34; does not exist in namespace research: units are deleted with their jobs")
	p.shows("/quotas", `id="company/research"`, "cpu: 5 used, guaranteed 4, at most 12, borrowed 1")
	p.shows("/what-if", "kind: ElasticQuotaTree", "kube-queue/max-jobs: 2")
	response, err := p.PostForm(p.at+"/what-if", url.Values{"manifests": {strings.ReplaceAll(tree(4), "max-jobs: 2", "max-jobs: 9")}})
	require.NoError(t, err)
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if _, after, _ := strings.Cut(string(body), "Would start now"); response.StatusCode != http.StatusOK || !strings.Contains(strings.Split(after, "Would be evicted")[0], "train-c") {
		t.Errorf("status %d:\n%s", response.StatusCode, body)
	}
	if len(a.requests) > 0 && strings.Contains(strings.Join(a.requests, "\n"), "PATCH") {
		t.Errorf("the pages have changed something: %v", a.requests)
	}
}

// tree is a tree in which research has a max of 12 cpu.
func tree(cpu int) string {
	return fmt.Sprintf(`{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: tree, namespace: kube-system},
		spec: {root: {name: company, max: {cpu: 12}, children: [{name: research, namespaces: [research, other], min: {cpu: %d}, max: {cpu: 12, kube-queue/max-jobs: 2}}]}}}`, cpu)
}

func TestThePagesPreferTheAnswersOfWhoDecides(t *testing.T) {
	a := newAPI(t, four)
	a.answer["queuereviews"] = func(spec map[string]any) (any, *metav1.Status) {
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "total": 100000, "hidden": 7,
			"units": []any{map[string]any{"namespace": "research", "name": "train-z", "phase": "Enqueued", "position": 99}}}, nil
	}
	p := a.openWeb()
	p.shows("/?from=200&phase=Enqueued", "train-z", ">99<", "201 to 300 of 100000", "7 jobs in namespaces that you cannot view")
	if got, want := a.requests[len(a.requests)-1], `"limit":100,"offset":200`; !strings.Contains(got, want) || a.lists > 0 {
		t.Errorf("it asked %s and listed objects %d times", got, a.lists)
	}
	p.shows("/?phase=Enqueued&phase=succeeded", "old</bdi>", "train-c", "1 to 2 of 2") // a review has no units that have ended
	p.shows("/?all=1&queue=company-research&phase=Succeeded", "old</bdi>")
	a.answer["quotareviews"] = func(map[string]any) (any, *metav1.Status) {
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "quotas": []any{map[string]any{"path": "company/other"}}}, nil
	}
	p.shows("/quotas?namespace=other", `id="company/other"`)
	if got, want := a.requests[len(a.requests)-1], "ASK quotareviews other "; !strings.HasPrefix(got, want) {
		t.Errorf("it asked %s, not %s", got, want)
	}
}

func TestAPageAboutWhatDoesNotExistIsNotFound(t *testing.T) {
	a := newAPI(t, "")
	p := a.openWeb()
	asked := func(says *metav1.Status) {
		for _, page := range []string{"/?namespace=reserch", "/queues/nope", "/jobs/research/gone", "/quotas", "/what-if"} {
			response, err := p.Get(p.at + page)
			require.NoError(t, err)
			response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("%s: status %d, if the answer is %v", page, response.StatusCode, says)
			}
		}
	}
	asked(nil)
	refused := refusal("it does not exist")
	refused.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueNotFound}}}
	for _, kind := range []string{"queuereviews", "quotareviews"} {
		a.answer[kind] = func(map[string]any) (any, *metav1.Status) { return nil, refused }
	}
	asked(refused)
	refused.Details = nil
	if response, err := p.Get(p.at + "/queues/nope"); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("%v, %v, if the question is refused", response, err)
	}
}

func TestThePagesOfATenantShowWhatTheTenantMayRead(t *testing.T) {
	a := newAPI(t, four)
	for _, forbidden := range []string{"list " + unitsOf, "get " + queuesOf + " kube-queue", "list " + queuesOf + " kube-queue", "list " + treesOf + " kube-system", "get " + unitsOf + " other"} {
		a.forbidden[forbidden] = true
	}
	p := a.openWeb()
	for page, want := range map[string]string{"/": "train-c", "/?all=1": "only those of namespace research are shown", "/jobs/research/train-c-job-2e7d2c03a9": "waits: MaxJobs",
		"/jobs/other/first": "forbidden", "/queues": "you may not list Queues", "/queues/company-research": "train-c", "/quotas": "you may not list ElasticQuotaTrees", "/what-if": "forbidden"} {
		body := p.shows(page, want)
		for _, secret := range []string{"big", "tfjob/first<", "company<"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows %q:\n%s", page, secret, body)
			}
		}
	}
}

func TestAPageThatDoesNotExistIsNotOpened(t *testing.T) {
	a := newAPI(t, four)
	says(t, a, 1, []string{`no job or unit "job/train-x"`, `did you mean "train-c"`}, "web", "job/train-x")
	if code, _, errs := a.run("web", "--port", "70000"); code != exitError || !strings.Contains(errs, "--port must be from 0 to 65535") {
		t.Errorf("status %d, %s", code, errs)
	}
}

func (p *pages) act(a web.Action) (code int, body string) {
	p.t.Helper()
	response, err := p.PostForm(p.at+"/act", url.Values{"do": {a.Do}, "namespace": {a.Namespace}, "unit": {a.Unit}, "queue": {a.Queue}, "priority": {a.Priority}})
	require.NoError(p.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.StatusCode, string(text)
}

// Actions on pages make the same writes as the commands.
func TestThePagesChangeWhatTheCommandsChange(t *testing.T) {
	a := newAPI(t, four)
	p := a.openWeb("job/train-c")
	p.shows(p.first, ">Pause</a>", ">Change the priority</a>")
	p.shows("/queues/company-research", ">Drain</a>")
	a.forbidden["patch batch/jobs research"], a.forbidden["patch scheduling.x-k8s.io/queues kube-queue"] = true, true
	if body := p.shows(p.first); strings.Contains(body, "/act?") {
		t.Error("a caller who may not pause the job is offered it")
	}
	if body := p.shows("/queues/company-research"); strings.Contains(body, "/act?") {
		t.Error("a caller who may not stop the queue is offered it")
	}
	clear(a.forbidden)
	p.shows("/queues/company-research", ">Drain</a>")
	const unit = "train-c-job-2e7d2c03a9"
	a.writes()
	for _, c := range []struct {
		web.Action
		says, writes string
	}{
		{web.Action{Do: web.Pause, Namespace: "research", Unit: unit}, "job.batch/train-c paused", strings.Replace(pausePatch, `"resourceVersion":"1",`, "", 1)}, // and evicted
		{web.Action{Do: web.Unpause, Namespace: "research", Unit: unit}, "job.batch/train-c unpaused: it is queued again", unpausePatch},
		{web.Action{Do: web.Priority, Namespace: "research", Unit: unit, Priority: "-3"}, "job.batch/train-c has priority -3", `PATCH batch/jobs/research/train-c {"metadata":{"annotations":{"scheduling.x-k8s.io/priority":"-3"},"uid":"c"}}`},
		{web.Action{Do: web.Priority, Namespace: "research", Unit: unit, Priority: "high"}, "must be an integer", ""},
		{web.Action{Do: web.Pause, Namespace: "research", Unit: "nobody"}, "does not exist", ""},
		{web.Action{Do: web.Drain, Queue: "company-research"}, "jobs that hold quota are being stopped", `PATCH scheduling.x-k8s.io/queues/kube-queue/company-research {"spec":{"stop":"Drain"}}`},
		{web.Action{Do: web.Resume, Queue: "company-research"}, "queue company-research resumed", `PATCH scheduling.x-k8s.io/queues/kube-queue/company-research {"spec":{"stop":"None"}}`},
	} {
		code, body := p.act(c.Action)
		if wrote := strings.Join(a.writes(), "\n"); !strings.Contains(body, c.says) || wrote != c.writes || (code == http.StatusOK) != (c.writes != "") {
			t.Errorf("%+v: status %d, writes %q:\n%s", c.Action, code, wrote, body)
		}
	}
}

package reconciler

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/test/require"
)

// mostBytes is how many bytes of memory an unmarked job may use if only the annotation marks its kind.
const mostBytes = 700

// crowd is an API server with many unmarked jobs of one kind.
type crowd struct {
	resource, kind, apiVersion, spec string
	n                                int
}

var (
	manyJobs = crowd{resource: "jobs", kind: "Job", apiVersion: "batch/v1",
		spec: `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"registry.example.com/team/train:v1","command":["python","train.py"],"resources":{"requests":{"cpu":"4","memory":"16Gi"}}}]}}}`}
	manyWorkflows = crowd{resource: "workflows", kind: "Workflow", apiVersion: "argoproj.io/v1alpha1",
		spec: `{"entrypoint":"main","templates":[{"name":"main","container":{"image":"registry.example.com/team/step:v1","command":["run"]}}]}`}
)

func (c crowd) object(i int) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"nightly-report-%06d","namespace":"team-%d","uid":"5f0c8f0e-6c1b-4f6e-9a53-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-02T12:00:00Z",`+
		`"labels":{"app":"report","run":"%d"},"annotations":{"example.com/owner":"somebody-with-a-long-name","kubectl.kubernetes.io/last-applied-configuration":"{}"},`+
		`"managedFields":[{"manager":"kubectl","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},"spec":%s,"status":{"succeeded":1}}`,
		c.apiVersion, c.kind, i, i%50, i, i+1, i, c.spec)
}

// serve answers a list, and a watch that begins with all objects.
func (c crowd) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case !strings.HasSuffix(r.URL.Path, "/"+c.resource):
		http.NotFound(w, r)
	case query.Get("watch") == "":
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[`, c.apiVersion, c.kind, c.n+1)
		for i := range c.n {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = io.WriteString(w, c.object(i))
		}
		_, _ = io.WriteString(w, "]}")
	default:
		if query.Get("sendInitialEvents") == "true" {
			for i := range c.n {
				fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", c.object(i))
			}
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", c.apiVersion, c.kind, c.n+1)
		}
		if http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	}
}

// fill fills the cache of a kind that only the annotation marks, and returns how much memory it uses.
func (c crowd) fill(t testing.TB, adapter framework.Adapter) (bytes int64, r *reconciler) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	r = onlyAnnotated(t, &rest.Config{Host: server.URL}, adapter)
	before := heap()
	listed(t, r.cached)
	if got := len(r.cached.GetStore().ListKeys()); got != c.n {
		t.Fatalf("%d jobs are cached, not %d", got, c.n)
	}
	return heap() - before, r
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestAnUnmarkedJobCostsLittleMemoryAndNoStep(t *testing.T) {
	for name, c := range map[string]struct {
		crowd
		adapter framework.Adapter
	}{"Jobs": {manyJobs, job.New()}, "Workflows": {manyWorkflows, workflow.New()}} {
		t.Run(name, func(t *testing.T) {
			c.n = 20_000
			bytes, r := c.fill(t, c.adapter)
			if each := bytes / int64(c.n); each > mostBytes {
				t.Errorf("it costs %d bytes", each)
			}
			if queued := r.queue.Len(); queued > 0 {
				t.Errorf("%d of them are looked at", queued)
			}
			runtime.KeepAlive(r)
		})
	}
}

// The figures are in docs/development/performance.md.
func BenchmarkUnmarked(b *testing.B) {
	for range b.N {
		total := int64(0)
		for _, c := range []struct {
			crowd
			adapter framework.Adapter
			n       int
		}{{manyJobs, job.New(), 100_000}, {manyWorkflows, workflow.New(), 20_000}} {
			c.crowd.n = c.n
			bytes, r := c.fill(b, c.adapter)
			b.ReportMetric(float64(bytes)/float64(c.n), "bytes/"+c.kind)
			total += bytes
			runtime.KeepAlive(r)
		}
		b.ReportMetric(float64(total)/(1<<20), "MiB")
	}
}

// onlyAnnotated returns a reconciler of jobs that only the annotation marks.
func onlyAnnotated(t testing.TB, config *rest.Config, adapter framework.Adapter) *reconciler {
	t.Helper()
	f := frameworkOf(t, Options{Config: config, Annotated: []framework.Adapter{adapter}})
	f.kueue.asked.Store(1) // Kueue is installed, as far as is known
	return f.reconcilers[0]
}

func jobWith(annotations map[string]string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: queuedKey.Namespace, Name: queuedKey.Name, UID: "j", ResourceVersion: "3", Annotations: annotations},
		Spec: batchv1.JobSpec{Suspend: new(true), Parallelism: new(int32(1))}}
}

func TestAJobIsCachedWholeIfItIsMarkedWasReleasedOrHasAUnit(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		labels      map[string]string
		unit, whole bool
	}{
		{name: "an unmarked job", whole: false},
		{name: "one that opts out", annotations: map[string]string{wellknown.SuspendAnnotation: "false"}, whole: false},
		{name: "one whose mark is misspelled", annotations: map[string]string{wellknown.SuspendAnnotation: "True"}, whole: true},
		{name: "one whose mark is a label", labels: map[string]string{wellknown.SuspendAnnotation: "true"}, whole: true},
		{name: "one whose mark has another key", annotations: map[string]string{wellknown.SuspendAnnotation + "ed": "true"}, whole: true},
		{name: "one with a misspelled key that is no mark", annotations: map[string]string{"kube-queue/priorty": "1"}, whole: false},
		{name: "a marked job", annotations: map[string]string{wellknown.SuspendAnnotation: "true"}, whole: true},
		{name: "a released job", annotations: map[string]string{wellknown.SuspendAnnotation: "false", wellknown.ReleasedAnnotation: "1"}, whole: true},
		{name: "one that has lost its mark and has a unit", unit: true, whole: true},
		{name: "one of Kueue, which is installed", labels: map[string]string{wellknown.KueueLabel: "q"}, whole: false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := onlyAnnotated(t, nil, job.New())
			if test.unit {
				unit := (&changingJob{}).unit()
				cached(t, r.units, unit)
			}
			object := jobWith(test.annotations)
			object.Labels = test.labels
			for range 2 { // a list is transformed twice
				kept, err := r.jobs.(*jobClient).transform(object)
				require.NoError(t, err)
				if got := !isUnmarked(kept.(framework.Object)); got != test.whole {
					t.Fatalf("it is cached whole: %v", got)
				}
			}
		})
	}
}

func TestAJobThatIsOnlySuspendedIsNotQueuedByTheAnnotationAlone(t *testing.T) {
	r := onlyAnnotated(t, nil, job.New())
	for annotation, want := range map[string]decision.Action{"": decision.Nothing, "true": decision.CreateUnit} {
		object := jobWith(nil)
		if annotation != "" {
			object.Annotations = map[string]string{wellknown.SuspendAnnotation: annotation}
		}
		if _, decided, err := r.decide(queuedKey, object, nil, noon); err != nil || decided.Action != want {
			t.Errorf("annotation %q: %+v %v", annotation, decided, err)
		}
	}
	// It gets its annotation back when it is suspended, because nothing else marks it.
	data, err := suspendPatch(r.adapter, r.described, jobWith(nil), nil)
	if err != nil || !strings.Contains(string(data), `"scheduling.x-k8s.io/suspend":"true"`) {
		t.Errorf("the patch is %s, %v", data, err)
	}
}

// The unit of a job that lost its mark may be cached after the job. No other turn waits while the job is read.
func TestAJobWithoutAMarkThatHasAUnitLeavesTheQueue(t *testing.T) {
	var deleted []string
	var r *reconciler
	config := jsonServer(t, func(req *http.Request) any {
		if req.Method == http.MethodDelete {
			deleted = append(deleted, req.URL.Path)
			return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
		}
		r.arrivals.Enter().End()
		live := jobWith(nil)
		live.APIVersion, live.Kind = "batch/v1", "Job"
		return live
	})
	r = onlyAnnotated(t, config, job.New())
	kept, err := r.jobs.(*jobClient).transform(jobWith(nil))
	require.NoError(t, err)
	cached(t, r.cached, kept)
	unit := (&changingJob{}).unit()
	unit.Status.Phase = v1alpha1.PhaseEnqueued
	cached(t, r.units, unit)
	r.unitChanged(unit)
	r.next(t.Context())
	if len(deleted) != 1 || !strings.HasSuffix(deleted[0], unit.Name) {
		t.Errorf("deleted are %v", deleted)
	}
}

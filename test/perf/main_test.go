package main

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/require"
)

func TestErrorsOfTheCommandLineSayWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"frobnicate":                      `unknown command "frobnicate"`,
		"units --bogus":                   "unknown flag: --bogus",
		"units extra":                     `unknown command "extra"`,
		"units --scenario=none":           `unknown scenario "none"; known scenarios: baseline,`,
		"units --policy=Random":           "known policies: RoundRobin, Block, Priority",
		"units --scenario=./no-such.yaml": "no-such.yaml",
		"units --stretch=0":               "--stretch: must be between 0.01 and 100, not 0",
		"jobs --jobs=0":                   "--jobs and --run-time must be positive",
		"jobs --queue=kueue":              `unknown queue "kueue"; known queues: none, kube-queue and label:KEY=VALUE`,
		"jobs --scenario=everything":      "known scenarios: ample, burst, steady, waiting",
		"jobs --queue=label:a=b":          "needs a program that releases its jobs",
		"jobs --queue=none --apply=f":     "--with and --apply need a queue of label:KEY=VALUE",
		"pods --pods=150":                 "--pods 150: must be a multiple of 100",
	} {
		root := command() // starts no cluster
		root.SetArgs(strings.Fields(args))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestFlagsOverrideTheScenario(t *testing.T) {
	for _, test := range []struct {
		args             string
		jobs, room, rate int
		parts            int
	}{
		{"", 1500, 0, 0, 1},
		{"--scenario=waiting --compare", 1500, 200, 0, 2},
		{"--scenario=waiting --jobs=7 --room=0 --queue=none --compare", 7, 0, 0, 1},
		{"--scenario=steady", 1200, 0, 20, 1},
		{"--scenario=steady --rate=3 --queue=none --queue=kube-queue --queue=none", 1200, 0, 3, 2},
	} {
		j := newJobs(t, strings.Fields(test.args)...)
		parts, err := j.parts()
		if err != nil || len(parts) != test.parts || j.jobs != test.jobs || j.rate != float64(test.rate) || j.room != test.room {
			t.Errorf("%s: got %+v, %d parts, %v", test.args, j, len(parts), err)
		}
	}
}

func newJobs(t *testing.T, args ...string) *jobsRun {
	t.Helper()
	j, flags := &jobsRun{}, pflag.NewFlagSet("jobs", pflag.ContinueOnError)
	j.addFlags(flags)
	require.NoError(t, flags.Parse(args))
	return j
}

func TestJobsDifferOnlyInTheMarkOfTheirQueue(t *testing.T) {
	suspended := map[string]string{"scheduling.x-k8s.io/suspend": "true"}
	plain := (&jobsRun{queue: noQueue}).job("one")
	for queue, want := range map[string]struct {
		suspend             bool
		annotations, labels map[string]string
	}{"none": {}, "kube-queue": {true, suspended, nil}, "label:q=fast": {true, nil, map[string]string{"q": "fast"}}} {
		mark, err := markOf(queue)
		require.NoError(t, err)
		job := (&jobsRun{queue: queue, mark: mark}).job("one")
		if *job.Spec.Suspend != want.suspend || !maps.Equal(job.Annotations, want.annotations) || !maps.Equal(job.Labels, want.labels) {
			t.Errorf("a job of %s: %+v", queue, job)
		}
		job.Annotations, job.Labels, job.Spec.Suspend = nil, nil, plain.Spec.Suspend
		if !reflect.DeepEqual(job, plain) {
			t.Errorf("a job of %s is %+v, that of none %+v", queue, job, plain)
		}
	}
}

// Each job completes when it is created, and then changes again.
func TestEachJobIsCreatedAndCountedOnce(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "jobs", func(action kubetesting.Action) (bool, runtime.Object, error) {
		job := action.(kubetesting.CreateAction).GetObject().(*batchv1.Job)
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		return false, nil, nil
	})
	j := &jobsRun{queue: noQueue, session: &session{progress: io.Discard, Rig: &rig.Rig{Kube: client}}}
	ends, err := j.watch(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Tracker().Add(j.job("running")))
	for prefix, count := range map[string]int{"warm-": 3, "job-": 100} {
		_, err := j.send(t.Context(), ends, prefix, count, 10_000)
		require.NoError(t, err)
		_, err = client.BatchV1().Jobs(jobsNamespace).Patch(t.Context(), prefix+"000001", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	all, err := client.BatchV1().Jobs(jobsNamespace).List(t.Context(), metav1.ListOptions{})
	if done, last := ends.state(); err != nil || len(all.Items) != 104 || done != 103 || last.IsZero() {
		t.Errorf("%d of %d are counted, the last at %v: %v", done, len(all.Items), last, err)
	}
}

func TestDelaysStartAtTheResponseToTheCreate(t *testing.T) {
	o := &outcome{counts: rig.Counts{}, created: map[string]time.Time{}, released: map[string]time.Time{}}
	see := func(verb, job string, suspended bool, ms int64, code int) {
		namespace, name, _ := strings.Cut(job, "/")
		name, subresource, _ := strings.Cut(name, "/")
		e, err := log.Parse(fmt.Appendf(nil, `{"verb":%q,"objectRef":{"resource":"jobs","namespace":%q,"name":%q,"subresource":%q},
			"responseStatus":{"code":%d},"responseObject":{"kind":"Job","spec":{"suspend":%t}}}`, verb, namespace, name, subresource, code, suspended))
		require.NoError(t, err)
		e.StageTimestamp = time.UnixMilli(ms)
		o.see(e)
	}
	see("patch", "perf-jobs/job-a", false, 300, 200) // another change, later
	see("create", "perf-jobs/job-a", true, 0, 201)
	see("update", "perf-jobs/job-a/status", false, 5, 200)
	see("patch", "perf-jobs/job-a", false, 10, 409)  // refused
	see("patch", "perf-jobs/job-a", true, 15, 200)   // still held
	see("patch", "perf-jobs/job-a", false, 20, 200)  // released
	see("delete", "perf-jobs/job-a", false, 17, 200) // deleted
	see("create", "perf-jobs/job-b", false, 0, 201)  // never held
	see("patch", "perf-jobs/job-b", false, 1, 200)
	see("create", "perf-jobs/job-c", true, 0, 201) // never released
	see("create", "perf-jobs/warm-a", true, 0, 201)
	see("patch", "perf-jobs/warm-a", false, 1, 200)
	see("create", "default/job-x", true, 1, 201)
	see("patch", "default/job-x", false, 2, 200)
	if got := o.releases(); !slices.Equal(got, rig.Durations{20 * time.Millisecond}) {
		t.Errorf("the delays are %v", got)
	}
	if all := o.counts["all"]; all != 13 {
		t.Errorf("counted %d", all)
	}
}

func TestAQueueIsComparedWithNone(t *testing.T) {
	r := rig.NewReport("jobs")
	j := &jobsRun{queue: noQueue, jobs: 120, rate: 20, session: &session{figures: r}}
	plain := &outcome{wall: 2 * time.Second}
	j.report(plain)
	j.queue, j.plain = kubeQueue, plain
	j.report(&outcome{wall: 4 * time.Second, created: map[string]time.Time{"a": time.UnixMilli(0)}, released: map[string]time.Time{"a": time.UnixMilli(3)},
		counts: rig.Counts{"all": 360},
		use:    rig.Use{"etcd": {CPU: 240 * time.Millisecond, Resident: 3 << 20}}})
	for key, want := range map[[2]string]float64{
		{"none", "completions"}:                                 60,
		{"kube-queue", "completions"}:                           30,
		{"kube-queue", "completions, of those without a queue"}: 0.5,
		{"kube-queue: API writes a job", "all"}:                 3,
		{"kube-queue: processor time", "etcd"}:                  2,
		{"kube-queue: memory", "etcd"}:                          3,
		{"kube-queue: create to release", "p99"}:                3,
	} {
		if f := r.Find(key[0], key[1]); f == nil || f.Value != want {
			t.Errorf("%v: got %+v, want %v", key, f, want)
		}
	}
}

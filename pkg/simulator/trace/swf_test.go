package trace_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
	"kube-queue.dev/kube-queue/test/require"
)

const log = `; Version: 2.2
; Computer: a machine
;   1     2    3    4    5   6   7   8    9  10 11 12 13 14 15 16 17 18
    1     0   10  100    4  -1  -1   8  200  -1  1  7  3 -1  2  1 -1 -1

    2    60   -1   50   -1  -1  -1   2   -1  -1  0  8  3 -1  2  1 -1 -1
    3    61   -1   -1    4  -1  -1   4   -1  -1  1  7  3 -1  2  1 -1 -1
    4    62   -1    9   -1  -1  -1  -1   -1  -1  1  7  3 -1  2  1 -1 -1
    5    63    5    0    0  -1  -1   4   -1  -1  5  7  3 -1  2  1 -1 -1
    6    64    5   30    4  -1  -1   4   -1  -1  5 -1 -1 -1 -1 -1 -1 -1
    1     0   10   40    4  -1  -1   8  200  -1  2  7  3 -1  2  1 -1 -1
    1    40   10   60    4  -1  -1   8  200  -1  3  7  3 -1  2  1 -1 -1
    7    -1   10   60    4  -1  -1   8  200  -1  1  7  3 -1  2  1 -1 -1
    8  65.5   10  1.5    1  -1  -1   8  200  -1  1  7  3 -1  2  1 -1 -1
`

func TestTheStandardWorkloadFormatIsRead(t *testing.T) {
	got := read(t, trace.SWF, log)
	want := "user-7/job-0000001 at 0s for 1m40s cpu=4\nuser-8/job-0000002 at 1m0s for 50s cpu=2\n" +
		"user-unknown/job-0000003 at 1m4s for 30s cpu=4\nuser-7/job-0000004 at 1m5.5s for 1.5s cpu=1\n"
	if describe(got) != want {
		t.Errorf("read\n%swant\n%s", describe(got), want)
	}
	skipped := []trace.Skipped{
		{Cause: "canceled before it ran", Count: 1, Line: 9},
		{Cause: "part of a job that another line reports completely", Count: 2, Line: 11},
		{Cause: "unknown number of processors", Count: 1, Line: 8},
		{Cause: "unknown run time", Count: 1, Line: 7},
		{Cause: "unknown submit time", Count: 1, Line: 13},
	}
	if !slices.Equal(got.Skipped, skipped) {
		t.Errorf("skipped %+v", got.Skipped)
	}
	if len(got.Renamed) != 0 || !got.Start.IsZero() {
		t.Errorf("renamed %v, start %v", got.Renamed, got.Start)
	}
}

func TestTenantsAreDistinguishedByTheFieldChosen(t *testing.T) {
	for field, want := range map[trace.Field]string{trace.User: "user-7", trace.Group: "group-3", trace.Queue: "queue-2", trace.Partition: "partition-1"} {
		got, err := trace.Read(strings.NewReader(log), "log.swf", trace.Options{Format: trace.SWF, Tenant: field})
		require.NoError(t, err)
		if got.Jobs[0].Namespace != want {
			t.Errorf("by %s: %s, want %s", field, got.Jobs[0].Namespace, want)
		}
	}
}

func TestAFaultOfALogSaysWhereItIsAndWhatToDo(t *testing.T) {
	line := "1 0 10 100 4 -1 -1 8 200 -1 1 7 3 -1 2 1 -1 -1"
	with := func(place int, value string) string {
		fields := strings.Fields(line)
		fields[place-1] = value
		return "; a log\n" + line + "\n" + strings.Join(fields, " ") + "\n"
	}
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"an empty file", "", []string{"jobs: the file contains no jobs"}},
		{"nothing that can be played", strings.Replace(line, " 100 ", " -1 ", 1), []string{"no job", "1 skipped", "run time", "line 1"}},
		{"too few fields", "1 2 3\n", []string{"jobs:1:", "3 fields", "18"}},
		{"CSV", "timestamp,duration,num_gpus,cluster\n", []string{"jobs:1:", "--trace-format"}},
		{"a submit time that is no number", with(2, "x"), []string{"jobs:3: column 2 (submit time)", `"x"`}},
		{"a run time that is not finite", with(4, "inf"), []string{"jobs:3: column 4 (run time)"}},
		{"a negative run time", with(4, "-2"), []string{"jobs:3: column 4 (run time)", "nor -1 (unknown)"}},
		{"half a processor", with(5, "1.5"), []string{"jobs:3: column 5 (allocated processors)", "1.5"}},
		{"too many processors", with(5, "1e18"), []string{"jobs:3: column 5"}},
		{"a user by name", with(12, "joe"), []string{"jobs:3: column 12 (user)", `"joe"`}},
		{"an endless line", strings.Repeat("1 ", 100_000), []string{"jobs:1:", "longer than"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.Read(strings.NewReader(c.text), "jobs", trace.Options{Format: trace.SWF, Tenant: trace.User})
			require.ErrorSays(t, err, c.words...)
		})
	}
}

func TestTheFormatIsKnownByTheName(t *testing.T) {
	for name, want := range map[string]trace.Format{"a.csv": trace.CSV, "a.csv.gz": trace.CSV, "b.swf": trace.SWF, "dir.swf/B.SWF.GZ": trace.SWF, "dir.swf/a": trace.CSV, "-": trace.CSV} {
		if got := trace.FormatOf(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	_, err := trace.Open("no/such/file.csv", trace.Options{})
	require.ErrorSays(t, err, "no/such/file.csv")
}

func TestTheTracesOfTheRepositoryAreRead(t *testing.T) {
	for _, c := range []struct {
		name          string
		jobs, tenants int
	}{{"philly.csv.gz", 82247, 15}, {"sample.csv", 474, 5}} {
		got, err := trace.Open("../../../test/traces/"+c.name, trace.Options{GPUResource: gpu})
		require.NoError(t, err)
		tenants := map[string]bool{}
		for _, j := range got.Jobs {
			tenants[j.Namespace] = true
		}
		if len(got.Jobs) != c.jobs || len(tenants) != c.tenants || len(got.Renamed)+len(got.Skipped) != 0 {
			t.Errorf("%s: %d jobs of %d tenants, renamed %v, skipped %v", c.name, len(got.Jobs), len(tenants), got.Renamed, got.Skipped)
		}
		checkPlayable(t, got)
	}
}

func FuzzSWF(f *testing.F) {
	f.Add([]byte(log))
	f.Add([]byte("1 0 10 1e9 4 -1 -1 8 200 -1 1 7 -1 -1 2 1 -1 -1"))
	f.Add([]byte("1 0 10 .5 -1 -1 -1 8 200 -1 5 7 0x1p3 -1 2 1 -1 -1\n;"))
	f.Fuzz(func(t *testing.T, data []byte) { checkRead(t, trace.SWF, data) })
}

// checkPlayable checks that jobs are ordered, begin at 0, and have unique names, valid namespaces and valid requests.
func checkPlayable(t *testing.T, got *trace.Trace) {
	t.Helper()
	if len(got.Jobs) == 0 || got.Jobs[0].Submitted != 0 {
		t.Fatal("there is no job at 0")
	}
	names, last := map[string]bool{}, time.Duration(0)
	for _, j := range got.Jobs {
		key := j.Namespace + "/" + j.Name
		if names[key] || j.Name == "" {
			t.Fatalf("the name %q occurs twice, or is none", key)
		}
		names[key] = true
		if j.Submitted < last || j.Runs < 0 {
			t.Fatalf("job %s comes at %v, after one at %v, and runs %v", key, j.Submitted, last, j.Runs)
		}
		last = j.Submitted
		if faults := content.IsDNS1123Label(j.Namespace); len(faults) > 0 {
			t.Fatalf("namespace %q: %v", j.Namespace, faults)
		}
		if _, err := resources.Request(resources.NewNames(), j.Requests); err != nil {
			t.Fatalf("job %s: %v", key, err)
		}
	}
}

package trace_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/trace"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = "nvidia.com/gpu"

func read(t *testing.T, format trace.Format, text string) *trace.Trace {
	t.Helper()
	got, err := trace.Read(strings.NewReader(text), "jobs", trace.Options{Format: format, GPUResource: gpu, Tenant: trace.User})
	require.NoError(t, err)
	return got
}

// reported is a trace in a few words, a line for each job.
func describe(got *trace.Trace) string {
	var b strings.Builder
	for _, j := range got.Jobs {
		fmt.Fprintf(&b, "%s/%s at %v for %v", j.Namespace, j.Name, j.Submitted, j.Runs)
		for _, r := range got.Resources {
			if q, asked := j.Requests[r]; asked {
				fmt.Fprintf(&b, " %s=%s", r, q.String())
			}
		}
		if j.Priority != 0 {
			fmt.Fprintf(&b, " priority %d", j.Priority)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCSVIsRead(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"rows are ordered by time and counted from the first",
			"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:00:00,2951.5,8,0,6214e9\n",
			"6214e9/job-0000001 at 0s for 49m11.5s nvidia.com/gpu=8\n11cb48/job-0000002 at 1m55s for 1m6s nvidia.com/gpu=1\n"},
		{"columns come in any order and any case, and unknown ones are ignored",
			"Cluster, note ,DURATION,num_gpus,timestamp,note\na,x,5,2,10,y\n",
			"a/job-0000001 at 0s for 5s nvidia.com/gpu=2\n"},
		{"other resources, priority and name",
			"namespace,name,timestamp,duration,priority,request:cpu,request:memory\na,train,0,1,-5,500m,4Gi\na,eval,1,1,,2,\n",
			"a/train at 0s for 1s cpu=500m memory=4Gi priority -5\na/eval at 1s for 1s cpu=2\n"},
		{"namespace goes before cluster", "cluster,namespace,timestamp,duration,num_gpus\nx,a,0,1,1\n", "a/job-0000001 at 0s for 1s nvidia.com/gpu=1\n"},
		{"dates with a zone", "timestamp,duration,num_gpus,cluster\n2026-01-31T09:00:00+01:00,1,1,a\n2026-01-31T08:00:00.25Z,1,1,b\n",
			"a/job-0000001 at 0s for 1s nvidia.com/gpu=1\nb/job-0000002 at 250ms for 1s nvidia.com/gpu=1\n"},
		{"blank lines, a mark of the encoding, line ends of Windows and quotes",
			"\xef\xbb\xbftimestamp,duration,num_gpus,cluster\r\n\r\n0,1,\"1\",a\r\n  \r\n,,,\r\n5,1,1.0,a\r\n\r\n",
			"a/job-0000001 at 0s for 1s nvidia.com/gpu=1\na/job-0000002 at 5s for 1s nvidia.com/gpu=1\n"},
		{"semicolons, with commas in the fields", "timestamp;duration;num_gpus;cluster;note\n0;1;1;a;x,y\n", "a/job-0000001 at 0s for 1s nvidia.com/gpu=1\n"},
		{"tabs, with an empty field", "cluster\tpriority\ttimestamp\tduration\tnum_gpus\na\t\t0\t1\t1\n", "a/job-0000001 at 0s for 1s nvidia.com/gpu=1\n"},
		{"a name that occurs twice gets a number",
			"namespace,name,timestamp,duration,num_gpus\na,train,0,1,1\na,train,9,1,1\nb,train,9,1,1\na,train-2,10,1,1\n",
			"a/train at 0s for 1s nvidia.com/gpu=1\na/train-2 at 9s for 1s nvidia.com/gpu=1\nb/train at 9s for 1s nvidia.com/gpu=1\na/train-2-2 at 10s for 1s nvidia.com/gpu=1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(read(t, trace.CSV, c.text)); got != c.want {
				t.Errorf("read\n%swant\n%s", got, c.want)
			}
		})
	}
}

// Otherwise, the time would be quadratic in the number of jobs.
func TestManyJobsOfOneNameAreReadQuickly(t *testing.T) {
	const jobs = 100_000
	got := read(t, trace.CSV, "timestamp,duration,num_gpus,cluster,name\n"+strings.Repeat("0,1,1,a,nightly\n", jobs))
	if last := got.Jobs[jobs-1].Name; last != "nightly-100000" {
		t.Errorf("the last one is %s", last)
	}
}

func TestTheStartOfATraceIsKnownWhereItHasDates(t *testing.T) {
	dated := read(t, trace.CSV, "timestamp,duration,num_gpus,cluster\n2026-01-31 08:00:05,1,1,a\n2026-01-31 08:00:00,1,1,a\n")
	if want := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC); !dated.Start.Equal(want) {
		t.Errorf("start %v, want %v", dated.Start, want)
	}
	if plain := read(t, trace.CSV, "timestamp,duration,num_gpus,cluster\n100,1,1,a\n"); !plain.Start.IsZero() || plain.Jobs[0].Submitted != 0 {
		t.Errorf("start %v, first job at %v", plain.Start, plain.Jobs[0].Submitted)
	}
}

func TestAFaultOfACSVFileSaysWhereItIsAndWhatToDo(t *testing.T) {
	const header = "timestamp,duration,num_gpus,cluster\n"
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"an empty file", "", []string{"jobs: the file is empty", "timestamp,duration"}},
		{"only a header", header, []string{"jobs: the file contains no jobs"}},
		{"no time", "duration,num_gpus,cluster\n", []string{"jobs:1:", "lacks a column timestamp", "only duration, num_gpus, cluster"}},
		{"no duration", "timestamp,num_gpus,cluster\n", []string{"lacks a column duration"}},
		{"no tenant", "timestamp,duration,num_gpus\n", []string{"lacks a column namespace or cluster"}},
		{"no size", "timestamp,duration,cluster\n", []string{"lacks a column num_gpus", "request:cpu"}},
		{"spaces", "timestamp duration num_gpus cluster\n", []string{"lacks a column timestamp"}},
		{"a column twice", "timestamp,duration,duration,num_gpus,cluster\n", []string{"jobs:1: column duration", "duplicate column"}},
		{"a resource twice", "timestamp,duration,num_gpus,request:nvidia.com/gpu,cluster\n", []string{"two columns contain the resource nvidia.com/gpu"}},
		{"a resource without a name", "timestamp,duration,request:,cluster\n", []string{"column request:", "request:cpu"}},
		{"too few fields", header + "0,1,1,a\n0,1,1\n", []string{"jobs:3:", "3 fields", "has 4"}},
		{"a date that is none", header + "yesterday,1,1,a\n", []string{"jobs:2: column timestamp", `"yesterday"`, "2026-01-31"}},
		{"a date of long ago", header + "0001-01-01 00:00:00,1,1,a\n", []string{"jobs:2: column timestamp", "the year must be from 1970 to 2199, not 1"}},
		{"milliseconds", header + "1769846400000,1,1,a\n", []string{"jobs:2: column timestamp", "seconds"}},
		{"dates and seconds", header + "0,1,1,a\n\n2026-01-31 08:00:00,1,1,a\n", []string{"jobs:4: column timestamp", "mixes dates and seconds"}},
		{"no duration in a row", header + "0,,1,a\n", []string{"jobs:2: column duration", "empty"}},
		{"a duration that is no number", header + "0,1h,1,a\n", []string{"jobs:2: column duration", `"1h"`, "90.5"}},
		{"a negative duration", header + "0,-1,1,a\n", []string{"jobs:2: column duration", `"-1"`}},
		{"a duration that is not finite", header + "0,NaN,1,a\n", []string{"jobs:2: column duration", "NaN"}},
		{"an endless duration", header + "0,+Inf,1,a\n", []string{"jobs:2: column duration", "+Inf"}},
		{"a size that is no number", header + "0,1,many,a\n", []string{"jobs:2: column num_gpus", `"many"`}},
		{"a negative size", header + "0,1,-1,a\n", []string{"jobs:2: column num_gpus", "negative"}},
		{"a size beyond measure", header + "0,1,1e30,a\n", []string{"jobs:2: column num_gpus", "exceeds the largest possible request"}},
		{"a tenant without a name", header + "0,1,1,\n", []string{"jobs:2: column cluster", "tenant"}},
		{"a priority that is no number", "timestamp,duration,num_gpus,cluster,priority\n0,1,1,a,high\n", []string{"jobs:2: column priority", `"high"`}},
		{"a priority beyond measure", "timestamp,duration,num_gpus,cluster,priority\n0,1,1,a,2147483648\n", []string{"column priority", "2147483647"}},
		{"an open quote", header + "0,1,1,\"a\n", []string{"jobs:", "invalid CSV", "quote"}},
		{"a broken archive", "\x1f\x8bnonsense", []string{"jobs: cannot decompress the file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.Read(strings.NewReader(c.text), "jobs", trace.Options{Format: trace.CSV, GPUResource: gpu})
			require.ErrorSays(t, err, c.words...)
		})
	}
}

func TestAnArchiveThatIsCutShortIsAFault(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "timestamp,duration,num_gpus,cluster\n")
	for i := range 1000 {
		fmt.Fprintf(z, "%d,%d,1,a\n", i, i*i%977)
	}
	require.NoError(t, z.Close())
	whole, err := trace.Read(bytes.NewReader(b.Bytes()), "jobs.csv.gz", trace.Options{GPUResource: gpu})
	if err != nil || len(whole.Jobs) != 1000 {
		t.Fatalf("error %v", err)
	}
	_, err = trace.Read(bytes.NewReader(b.Bytes()[:b.Len()/2]), "jobs.csv.gz", trace.Options{GPUResource: gpu})
	require.ErrorSays(t, err, "jobs.csv.gz")
}

func TestTenantsThatCannotBeNamespacesGetNamesThatCan(t *testing.T) {
	long := strings.Repeat("x", 80)
	got := read(t, trace.CSV, "timestamp,duration,num_gpus,cluster\n0,1,1,Team A\n1,1,1,team-a\n2,1,1,team_a\n3,1,1,__\n4,1,1,"+long+"\n5,1,1,"+long+"y\n6,1,1,ok\n7,1,1,Team A\n")
	want := []trace.Renamed{{From: "Team A", To: "team-a-2"}, {From: "__", To: "tenant"}, {From: "team_a", To: "team-a-3"},
		{From: long, To: long[:63]}, {From: long + "y", To: long[:61] + "-2"}}
	if !slices.Equal(got.Renamed, want) {
		t.Errorf("renamed %v, want %v", got.Renamed, want)
	}
	if got.Jobs[0].Namespace != "team-a-2" || got.Jobs[1].Namespace != "team-a" || got.Jobs[7].Namespace != "team-a-2" {
		t.Errorf("jobs are\n%s", describe(got))
	}
}

func TestTheOrderOfRowsReportsNothing(t *testing.T) {
	var rows []string
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rows = append(rows, fmt.Sprintf("%d,%d,%d,Team %c,%d,%d,%d", r.IntN(20), r.IntN(5), r.IntN(3), 'A'+rune(r.IntN(3)), r.IntN(2), 5+r.IntN(2), 1+r.IntN(2)))
	}
	text := func() string {
		return "timestamp,duration,num_gpus,cluster,priority,limit,expected\n" + strings.Join(rows, "\n")
	}
	first := read(t, trace.CSV, text())
	for range 20 {
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := read(t, trace.CSV, text()); !reflect.DeepEqual(got, first) {
			t.Fatal("another order of rows gives another trace")
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,66.0,1,11cb48\n",
		"timestamp,duration,request:memory,request:cpu,namespace,priority,name\n0.5,1e3,4Gi,500m,Team A,-3,x\n\n1,2,,,b,,\n",
		"timestamp,duration,num_gpus,cluster\n1,NaN,1e-30,\"a\"\"b\"\n", "\xef\xbb\xbf,\n", "\x1f\x8b\x08",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRead(t, trace.CSV, data) })
}

// checkRead reads arbitrary input. The result is a trace that can be simulated, or an error with the name of the file.
func checkRead(t *testing.T, format trace.Format, data []byte) {
	t.Helper()
	got, err := trace.Read(bytes.NewReader(data), "jobs", trace.Options{Format: format, GPUResource: gpu, Tenant: trace.Group})
	if err != nil {
		if !strings.HasPrefix(err.Error(), "jobs") {
			t.Errorf("%q does not name the file", err)
		}
		return
	}
	checkPlayable(t, got)
}

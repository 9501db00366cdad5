package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/pkg/plugin/convert"
	"kube-queue.dev/kube-queue/test/require"
)

const (
	queue  = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: {namespaceSelector: {}}}\n"
	weight = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: b}, spec: {fairSharing: {weight: 2}}}\n"
	tree   = "{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: t, namespace: kube-system}, spec: {root: {name: r}}}\n"
	job    = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {scheduling.x-k8s.io/suspend: \"true\"}}}\n"
	modes  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-queue-controller}, spec: {template: {spec: {containers: [{env: [{name: StrictPriority, value: \"true\"}]}]}}}}\n"
)

// run runs the command in a folder with these files.
func run(t *testing.T, files map[string]string, input string, args ...string) (status int, out, report string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	t.Chdir(folder)
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	cmd := convert.NewCommand(streams)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		var ended *convert.StatusError
		if !errors.As(err, &ended) {
			t.Fatalf("the error %v has no exit status", err)
		}
		status = ended.ExitStatus()
		stderr.WriteString(ended.Error())
	}
	return status, stdout.String(), stderr.String()
}

func TestTheExitStatusSaysWhatWasConverted(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		input       string
		args        []string
		status      int
		out, report string
	}{
		"everything":                     {files: map[string]string{"a.yaml": tree}, args: []string{"-f", "a.yaml"}, out: "kind: ElasticQuotaTree"},
		"something has no equivalent":    {files: map[string]string{"a.yaml": weight}, args: []string{"-f", "a.yaml"}, status: 1, out: "name: b", report: "Without an equivalent (1):\n- Cohort b: spec.fairSharing.weight\n  why: branches share"},
		"something is to be done":        {files: map[string]string{"a.yaml": queue}, args: []string{"-f", "a.yaml"}, out: "kind: Queue", report: "By hand (2):\n- No namespace can use ClusterQueue a"},
		"the standard input":             {input: queue, args: []string{"-f", "-"}, out: "kind: Queue", report: "By hand"},
		"a folder":                       {files: map[string]string{"x/a.yaml": queue, "x/y/b.yml": weight, "x/c.txt": "none"}, args: []string{"-f", "x"}, status: 1, out: "name: b", report: "Cohort b"},
		"several files":                  {files: map[string]string{"a.yaml": queue, "b.json": `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Cohort","metadata":{"name":"b"}}`}, args: []string{"-f", "a.yaml,b.json"}, out: "name: b", report: "By hand"},
		"JSON":                           {input: tree, args: []string{"-f", "-", "-o", "json"}, out: "\"kind\": \"List\""},
		"the modes of ack":               {input: tree + "---\n" + modes, args: []string{"-f", "-", "--from", "ack"}, out: "kind: ElasticQuotaTree", report: "Values of the chart:\ncontroller:\n  strictPriority: true"},
		"no file":                        {status: 2, report: "no file is given"},
		"a file that does not exist":     {args: []string{"-f", "gone.yaml"}, status: 2, report: "gone.yaml"},
		"broken YAML":                    {input: "a: [", args: []string{"-f", "-"}, status: 2, report: "standard input: document 1: invalid YAML"},
		"an empty input":                 {args: []string{"-f", "-"}, status: 2, report: "the input has no objects"},
		"objects of nobody":              {input: "{apiVersion: v1, kind: Pod, metadata: {name: a}}", args: []string{"-f", "-"}, status: 2, report: "the input has no object of a queue that is known"},
		"objects of both":                {input: tree + "---\n" + queue, args: []string{"-f", "-"}, status: 2, report: "convert them one after the other, with --from"},
		"objects of both, one by one":    {input: tree + "---\n" + queue, args: []string{"-f", "-", "--from", "kueue"}, out: "name: root-a", report: "By hand"},
		"a version that is unknown":      {input: strings.Replace(queue, "v1beta2", "v1alpha1", 1), args: []string{"-f", "-"}, status: 2, report: "is not supported"},
		"a queue that is unknown":        {input: queue, args: []string{"-f", "-", "--from", "volcano"}, status: 2, report: `--from "volcano" is unknown`},
		"an output that is unknown":      {input: queue, args: []string{"-f", "-", "-o", "table"}, status: 2, report: `the output "table" is unknown`},
		"a flag that is unknown":         {args: []string{"--files"}, status: 2, report: "unknown flag: --files"},
		"values that cannot be written":  {input: tree + "---\n" + modes, args: []string{"-f", "-", "--values", "gone/values.yaml"}, status: 2, report: "writing the values of the chart"},
		"all faults of all files":        {files: map[string]string{"a.yaml": "a: [", "b.yaml": "b"}, args: []string{"-f", "."}, status: 2, report: "b.yaml: document 1: the document is not an object"},
		"an argument without a flag":     {args: []string{"a.yaml"}, status: 2, report: "a.yaml"},
		"koord by its own name":          {input: tree, args: []string{"-f", "-", "--from", "koord"}, out: "kind: ElasticQuotaTree"},
		"a job of ack, which is not one": {input: job, args: []string{"-f", "-"}, out: "kind: Job"},
		"a tree that replaces another":   {input: queue, args: []string{"-f", "-"}, out: "kind: Queue", report: "- ElasticQuotaTree kube-system/elasticquotatree is complete: kubectl apply replaces all of an earlier tree"},
		"a job that apply refuses":       {input: strings.Replace(job, "name: a", "generateName: a-", 1), args: []string{"-f", "-"}, out: "generateName: a-", report: "create them with kubectl create: Job a-."},
		"only jobs":                      {input: job, args: []string{"-f", "-", "--only", "jobs"}, out: "kind: Job"},
		"only jobs, without any":         {input: tree, args: []string{"-f", "-", "--only", "jobs"}},
		"only settings, without any":     {input: job, args: []string{"-f", "-", "--only", "settings"}},
		"only what is unknown":           {input: job, args: []string{"-f", "-", "--only", "trees"}, status: 2, report: `--only "trees" is unknown`},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, report := run(t, test.files, test.input, test.args...)
			if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(report, test.report) || (out == "") != (test.out == "") || (report == "") != (test.report == "") {
				t.Errorf("the status is %d, want %d; the output\n%s\nwant %q; the report\n%s\nwant %q", status, test.status, out, test.out, report, test.report)
			}
		})
	}
}

func TestValuesOfTheChartAreWrittenIntoAFile(t *testing.T) {
	status, _, report := run(t, nil, tree+"---\n"+modes, "-f", "-", "--values", "values.yaml")
	values, err := os.ReadFile("values.yaml")
	if err != nil || status != 0 || report != "" || string(values) != "controller:\n  strictPriority: true\n" {
		t.Errorf("status %d, report %q, values %q, error %v", status, report, values, err)
	}
	if status, _, _ := run(t, nil, tree, "-f", "-", "--values", "values.yaml"); status != 0 {
		t.Errorf("status %d", status)
	}
	if values, err := os.ReadFile("values.yaml"); err != nil || string(values) != "{}\n" {
		t.Errorf("values %q, error %v", values, err)
	}
}

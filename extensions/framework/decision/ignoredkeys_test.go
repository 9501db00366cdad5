package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/require"
)

func TestAKeyThatHasNoEffectIsReportedWithTheOneThatWasMeant(t *testing.T) {
	for _, test := range []struct {
		at         place
		key, want  string
		almostMark bool
	}{
		{annotation, "scheduling.x-k8s.io/suspended", "annotation scheduling.x-k8s.io/suspended has no effect; did you mean annotation scheduling.x-k8s.io/suspend?", true},
		{annotation, "scheduling.x-k8s.io/Suspend", "annotation scheduling.x-k8s.io/Suspend has no effect; did you mean annotation scheduling.x-k8s.io/suspend?", true},
		{annotation, "kube-queue/suspend", "annotation kube-queue/suspend has no effect; did you mean annotation scheduling.x-k8s.io/suspend?", true},
		{annotation, "scheduling.k8s.io/suspend", "annotation scheduling.k8s.io/suspend has no effect; did you mean annotation scheduling.x-k8s.io/suspend?", true},
		{label, "scheduling.x-k8s.io/suspend", "label scheduling.x-k8s.io/suspend has no effect; set it as an annotation instead", true},
		{label, "scheduling.x-k8s.io/suspended", "label scheduling.x-k8s.io/suspended has no effect; did you mean annotation scheduling.x-k8s.io/suspend?", true},
		{annotation, "kube-queue/priorty", "annotation kube-queue/priorty has no effect; did you mean annotation scheduling.x-k8s.io/priority?", false},
		{annotation, "scheduling.x-k8s.io/priorty", "annotation scheduling.x-k8s.io/priorty has no effect; did you mean annotation scheduling.x-k8s.io/priority?", false},
		{annotation, "scheduling.x-k8s.io/priority-clas", "annotation scheduling.x-k8s.io/priority-clas has no effect; did you mean label or annotation scheduling.x-k8s.io/priority-class?", false},
		{annotation, "scheduling.x-k8s.io/prio", "annotation scheduling.x-k8s.io/prio has no effect; did you mean annotation scheduling.x-k8s.io/priority?", false},
		{annotation, "scheduling.x-k8s.io/max-exec-time", "annotation scheduling.x-k8s.io/max-exec-time has no effect; did you mean annotation scheduling.x-k8s.io/max-exec-time-seconds?", false},
		{label, "scheduling.x-k8s.io/priority", "label scheduling.x-k8s.io/priority has no effect; set it as an annotation instead", false},
		{annotation, "kube-queue/quota-name", "annotation kube-queue/quota-name has no effect; set it as a label instead", false},
		{annotation, "kube-queue/preemtible", "annotation kube-queue/preemtible has no effect; did you mean label kube-queue/preemptible?", false},
		{label, "kubequeue/quota-name", "label kubequeue/quota-name has no effect; did you mean label kube-queue/quota-name?", false},
		{annotation, "kube-queue/mincount", "annotation kube-queue/mincount has no effect; did you mean annotation kube-queue/min-count?", false},
		{annotation, "kube-queue/pod-group-size", "annotation kube-queue/pod-group-size has no effect without label kube-queue/pod-group", false},
		{label, "quota.scheduling.alibabacloud.com/name", "label quota.scheduling.alibabacloud.com/name has no effect on kube-queue; set label kube-queue/quota-name instead", false},
		{annotation, "koord-queue/min-resources", "annotation koord-queue/min-resources has no effect on kube-queue; set annotation kube-queue/min-resources instead", false},

		{annotation, "scheduling.x-k8s.io/suspend", "", false},
		{label, "scheduling.x-k8s.io/priority-class", "", false},
		{annotation, "scheduling.x-k8s.io/priority-class", "", false},
		{label, "kube-queue/quota-name", "", false},
		{label, "kube-queue/managed", "", false},
		{annotation, "kube-queue/released", "", false},
		{label, "scheduling.x-k8s.io/pod-group", "", false},
		{annotation, "scheduling.k8s.io/group-name", "", false},
		{annotation, "example.com/suspend", "", false},
		{annotation, "suspend", "", false},
		{annotation, "provreq.kube-queue/maxRunDurationSeconds", "", false},
		{label, "kueue.x-k8s.io/queue-name", "", false},
		{annotation, "kube-queue/", "", false},
		{annotation, "kube-queue/exp", "", false},
		{annotation, "example.com/prio", "", false},
		{label, "scheduling.x-k8s.io/pod", "", false},
	} {
		job := &batchv1.Job{}
		if test.at == label {
			job.Labels = map[string]string{test.key: "true"}
		} else {
			job.Annotations = map[string]string{test.key: "true"}
		}
		if got := IgnoredKeys(job); got != test.want {
			t.Errorf("%s %s: it says %q, want %q", test.at, test.key, got, test.want)
		}
		want := ""
		if test.almostMark {
			want = test.want
		}
		if got := AlmostMarked(job); got != want {
			t.Errorf("%s %s: of the mark it says %q, want %q", test.at, test.key, got, want)
		}
	}
}

func TestVeryManyKeysAreNotCompared(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kube-queue/suspend": "true"}}}
	for i := range mostCompared - 1 {
		job.Annotations["a"+strconv.Itoa(i)] = ""
	}
	if got := AlmostMarked(job); got == "" {
		t.Error("a job with as many annotations as are compared is not almost marked")
	}
	job.Annotations["b"] = ""
	if got := AlmostMarked(job); got != "" {
		t.Errorf("of a job with more it says %q", got)
	}
}

func TestAFormerKeyBesideTheNewOneIsNotReported(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"quota.scheduling.koordinator.sh/name": "a", "kube-queue/quota-name": "a"}}}
	if got := IgnoredKeys(job); got != "" {
		t.Errorf("it says %q", got)
	}
}

func TestAtMostThreeIgnoredKeysAreNamedInOrder(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{"scheduling.x-k8s.io/active": "false", "kube-queue/min-count": "1", "scheduling.x-k8s.io/suspend": "true"},
		Annotations: map[string]string{"kube-queue/quota-name": "a"}}}
	const want = "annotation kube-queue/quota-name has no effect; set it as a label instead; " +
		"label kube-queue/min-count has no effect; set it as an annotation instead; " +
		"label scheduling.x-k8s.io/active has no effect; set it as an annotation instead"
	if got := IgnoredKeys(job); got != want {
		t.Errorf("it says %q", got)
	}
}

func TestAJobWithTheAnnotationIsNotAlmostMarked(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{"scheduling.x-k8s.io/suspend": "true"},
		Annotations: map[string]string{"scheduling.x-k8s.io/suspend": "false"}}}
	if got := AlmostMarked(job); got != "" {
		t.Errorf("it says %q", got)
	}
}

// A key that is not listed would be reported as misspelled if it resembled another.
func TestEachKeyOfAJobIsKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../apis/scheduling/v1alpha1/wellknown/keys.go", nil, parser.ParseComments)
	require.NoError(t, err)
	seen := 0
	for _, d := range file.Decls {
		block, is := d.(*ast.GenDecl)
		if !is || !strings.HasPrefix(block.Doc.Text(), "Keys on a job") {
			continue
		}
		for _, spec := range block.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				key, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				require.NoError(t, err)
				seen++
				if _, known := keys[key]; !known && !strings.HasPrefix(key, "kueue.x-k8s.io/") {
					t.Errorf("key %s is not known", key)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d keys were found", seen)
	}
}

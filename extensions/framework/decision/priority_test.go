package decision

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// onlyDefault is a cluster with only the default class, if it has a name.
type onlyDefault string

func (onlyDefault) Value(string) (int32, bool) { return 0, false }

func (d onlyDefault) Default() (string, int32, bool) { return string(d), 5, d != "" }

// naming is the template of pods that name a class.
func naming(class string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: class}}
}

func TestPodsHaveTheClassThatTheAPIServerGivesThem(t *testing.T) {
	tests := []struct {
		name     string
		template *corev1.PodTemplateSpec
		classes  onlyDefault
		want     string
	}{
		{"the one that they name", naming("high"), "usual", "high"},
		{"or else the default", naming(""), "usual", "usual"},
		{"or none where there is no default", naming(""), "", ""},
		{"and of pods that nobody knows it is not known", nil, "usual", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := podClass(test.template, test.classes); got != test.want {
				t.Errorf("it is %q, not %q", got, test.want)
			}
		})
	}
}

func TestAMissingPriorityClassIsReportedWithWhereItIsNamed(t *testing.T) {
	const key = "scheduling.x-k8s.io/priority-class"
	sets := []framework.PodSet{{Name: "unknown"}, {Name: "ps", Template: naming("")}, {Name: "worker", Template: naming("hihg")}}
	for _, test := range []struct {
		name string
		meta metav1.ObjectMeta
		pods framework.Pods
		want string
	}{
		{"a label", metav1.ObjectMeta{Labels: map[string]string{key: "hihg"}, Annotations: map[string]string{key: "other"}}, framework.Pods{}, "label " + key},
		{"an annotation", metav1.ObjectMeta{Annotations: map[string]string{key: "hihg"}}, framework.Pods{PriorityClassName: "other"}, "annotation " + key},
		{"a field of the job", metav1.ObjectMeta{}, framework.Pods{PriorityClassName: "hihg", PriorityClassField: "spec.podPriorityClassName", Sets: sets}, "spec.podPriorityClassName"},
		{"a pod template", metav1.ObjectMeta{}, framework.Pods{PriorityClassField: "spec.podPriorityClassName", Sets: sets}, `the pod template of pod set "worker"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := priorityOf(&batchv1.Job{ObjectMeta: test.meta}, test.pods, onlyDefault("usual"))
			if err == nil || !strings.HasPrefix(err.Error(), `PriorityClass "hihg", which is named by `+test.want+", does not exist; ") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

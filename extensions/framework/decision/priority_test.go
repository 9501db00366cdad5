package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// onlyDefault is a cluster with only the default class, if it has a name.
type onlyDefault string

func (onlyDefault) Value(string) (int32, bool) { return 0, false }

func (d onlyDefault) Default() (string, int32, bool) { return string(d), 5, d != "" }

func TestPodsHaveTheClassThatTheAPIServerGivesThem(t *testing.T) {
	naming := func(class string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: class}}
	}
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

package codec_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

func TestWhatAUnitTakesByItsSpec(t *testing.T) {
	list := func(name corev1.ResourceName, amount string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(amount), "cpu": resource.MustParse("1500m")}
	}
	for _, c := range []struct {
		name  string
		spec  v1alpha1.QueueUnitSpec
		want  string
		fault string
	}{
		{"one that requests nothing is a job", v1alpha1.QueueUnitSpec{}, "preemptible true jobs 1", ""},
		{"one that must not be stopped", v1alpha1.QueueUnitSpec{Preemptible: ptr.To(false)}, "preemptible false jobs 1", ""},
		{"what it requests", v1alpha1.QueueUnitSpec{Resource: list("memory", "2Ki")}, "preemptible true jobs 1 cpu 1500 memory 2048", ""},
		{"one that requests jobs", v1alpha1.QueueUnitSpec{Resource: list(quota.JobsResource, "1")}, "preemptible true jobs 1", "counted automatically"},
		{"one that requests too much", v1alpha1.QueueUnitSpec{Resource: list("memory", "1e30")}, "preemptible true jobs 1", "memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := resources.NewNames()
			demand, err := codec.Requests(names, &v1alpha1.QueueUnit{Spec: c.spec})
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v, want one that says %q", err, c.fault)
			}
			got := fmt.Sprint("preemptible ", demand.Preemptible)
			for _, name := range []string{quota.JobsResource, "cpu", "memory"} {
				if amount, asks := demand.Requests.Get(names.ID(name)); asks {
					got += fmt.Sprint(" ", strings.TrimPrefix(name, "kube-queue/max-"), " ", amount)
				}
			}
			if got != c.want {
				t.Errorf("it takes %s, want %s", got, c.want)
			}
		})
	}
}

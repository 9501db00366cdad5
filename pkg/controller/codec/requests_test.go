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
		{"growth is no job, and its pods wait at the gate", v1alpha1.QueueUnitSpec{Growth: true, ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job"}},
			"preemptible true pods exist", ""},
		{"a plain pod", v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "v1", Kind: "Pod"}}, "preemptible true pods exist jobs 1", ""},
		{"one that requests too much", v1alpha1.QueueUnitSpec{Resource: list("memory", "1e30")}, "preemptible true jobs 1", "memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := resources.NewNames()
			demand, err := codec.Requests(names, &v1alpha1.QueueUnit{Spec: c.spec})
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v, want one that says %q", err, c.fault)
			}
			got := fmt.Sprint("preemptible ", demand.Preemptible)
			if demand.PodsExist {
				got += " pods exist"
			}
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

func TestARequestThatCanNeverFitIsExplainedByItsPodSets(t *testing.T) {
	set := func(name string, count int32, cpu, memory string) v1alpha1.PodSet {
		list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
		return v1alpha1.PodSet{Name: name, Count: count, Requests: list, Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}
	}
	ray := []v1alpha1.PodSet{set("head", 1, "2", "8G"), set("workers", 2, "1", "0"), set("idle", 0, "9", "9Gi"), set("submitter", 1, "0.5", "200Mi")}
	elastic := []v1alpha1.PodSet{set("worker", 8, "1", "1Gi")}
	elastic[0].MinCount = ptr.To[int32](3)
	for _, c := range []struct {
		name, resource string
		sets           []v1alpha1.PodSet
		amount         int64
		want           string
	}{
		{"what the operator adds", "cpu", ray, 4500, "; cpu by pod set: head 1 pod with 2, workers 2 pods with 1 each, submitter 1 pod with 500m"},
		{"the parts of a sum as they were written", "memory", ray, 8209715200, "; memory by pod set: head 1 pod with 8G, submitter 1 pod with 200Mi"},
		{"the least that the job can start with", "cpu", elastic, 3000, "; cpu by pod set: worker 3 pods with 1 each"},
		{"the key of a ResourceQuota", "requests.cpu", ray, 4500, "; requests.cpu by pod set: head 1 pod with 2, workers 2 pods with 1 each, submitter 1 pod with 500m"},
		{"a limit", "limits.cpu", ray, 12000, "; limits.cpu by pod set: head 1 pod with 3, workers 2 pods with 3 each, submitter 1 pod with 3"},
		{"one pod, which the message names already", "cpu", ray[:1], 2000, ""},
		{"a quota that counts only some of the pods", "cpu", ray, 500, ""},
		{"nothing that pods request", "kube-queue/max-jobs", ray, 1, ""},
	} {
		if got := codec.Parts(&v1alpha1.QueueUnitSpec{PodSets: c.sets}, c.resource, c.amount); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

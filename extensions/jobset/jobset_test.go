package jobset

import (
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestAGroupHasAllPodsOfItsJobs(t *testing.T) {
	const most = math.MaxInt32
	for _, test := range []struct {
		name                     string
		replicas                 int32
		parallelism, completions *int32
		want                     int32
		wrong                    string
	}{
		{"one pod for each Job unless configured otherwise", 3, nil, nil, 3, ""},
		{"as many as run at once", 2, ptr.To[int32](4), nil, 8, ""},
		{"no more than have to complete", 2, ptr.To[int32](4), ptr.To[int32](3), 6, ""},
		{"one at once of many to complete", 2, nil, ptr.To[int32](9), 2, ""},
		{"none without replicas", 0, ptr.To[int32](4), nil, 0, ""},
		{"none of a Job that pauses itself", 4, ptr.To[int32](0), nil, 0, ""},
		{"as many as can be counted", most, nil, nil, most, ""},
		{"more than can be counted", 65536, ptr.To[int32](32768), nil, 0, "exceed the maximum of 2147483647 pods"},
		{"far more than can be counted", most, ptr.To[int32](most), nil, 0, "2147483647 replicas of 2147483647 pods"},
		{"replicas below zero", -1, ptr.To[int32](1), nil, 0, "replicas must be 0 or more, not -1"},
		{"parallelism below zero", 1, ptr.To[int32](-2), ptr.To[int32](1), 0, "parallelism must be 0 or more, not -2"},
		{"two wrongs are not right", -1, ptr.To[int32](-1), nil, 0, "replicas must be 0 or more"},
		{"the least there is", math.MinInt32, ptr.To[int32](math.MinInt32), nil, 0, "replicas must be 0 or more"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := count(&jobset.ReplicatedJob{
				Replicas: test.replicas,
				Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: test.parallelism, Completions: test.completions}},
			})
			switch {
			case (err == nil) != (test.wrong == ""):
				t.Errorf("the error is %v, not %q", err, test.wrong)
			case err != nil && !strings.Contains(err.Error(), test.wrong):
				t.Errorf("it says %q, not %q", err, test.wrong)
			case got != test.want:
				t.Errorf("%d pods, not %d", got, test.want)
			}
		})
	}
}

package main

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// The figures in the texts are those of the manifests: each job fits, waits or never fits as the
// chapter says.
func TestTheManifestsOfTheTeamsAreWhatTheChaptersShow(t *testing.T) {
	limits := map[string]team{}
	for _, child := range parsed[quotav1beta1.ElasticQuotaTree](t, teamFolder+"quota.yaml")[0].Spec.Root.Children {
		limits[child.Name] = teamOf(child)
	}
	want := map[string]team{"vision": {"vision", 8, 12, 0}, "language": {"language", 6, 12, 0}, "interns": {"interns", 2, 4, 0}}
	for name, quota := range want {
		if limits[name] != quota {
			t.Errorf("team %s has %+v, want %+v", name, limits[name], quota)
		}
	}
	requests := map[jobName]int64{}
	for _, c := range chapters() {
		for _, args := range c.kubectl {
			if args[0] != "apply" || strings.HasSuffix(args[2], "quota.yaml") {
				continue
			}
			for _, job := range parsed[batchv1.Job](t, args[2]) {
				gpus := job.Spec.Template.Spec.Containers[0].Resources.Requests[gpu]
				requests[jobName{job.Namespace, job.Name}] = int64(*job.Spec.Parallelism) * gpus.Value()
			}
		}
		for _, s := range c.states {
			if _, applied := requests[s.job]; !applied {
				t.Errorf("chapter %q waits for %s, which no chapter has applied", c.title, s.job)
			}
		}
	}
	for job, gpus := range map[jobName]int64{
		{"vision", "train-1"}: 4, {"vision", "train-2"}: 4, {"vision", "train-3"}: 4, {"vision", "train-4"}: 4,
		{"interns", "huge"}: 8, {"language", "bert-1"}: 4, {"language", "bert-2"}: 2,
	} {
		if requests[job] != gpus {
			t.Errorf("job %s requests %d GPUs, want %d", job, requests[job], gpus)
		}
	}
}

func TestAStateIsReachedOnlyWithItsReason(t *testing.T) {
	job := jobName{"vision", "train-4"}
	waits := unit{job: job, phase: v1alpha1.PhaseEnqueued, reason: "QuotaExceeded", message: "no room"}
	silent := waits
	silent.message = ""
	for _, c := range []struct {
		name string
		rows []unit
		want state
		gone bool
	}{
		{"as expected", []unit{waits}, state{job, v1alpha1.PhaseEnqueued, "QuotaExceeded"}, false},
		{"with any reason", []unit{waits}, state{job, v1alpha1.PhaseEnqueued, ""}, false},
		{"with another reason", []unit{waits}, state{job, v1alpha1.PhaseEnqueued, "ExceedsMaxQuota"}, true},
		{"in another phase", []unit{waits}, state{job, v1alpha1.PhaseRunning, ""}, true},
		{"without a message yet", []unit{silent}, state{job, v1alpha1.PhaseEnqueued, ""}, true},
		{"without a unit", nil, state{job, v1alpha1.PhaseRunning, ""}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if missing := missingStates(c.rows, []state{c.want}); (len(missing) > 0) != c.gone {
				t.Errorf("missing are %q", missing)
			}
		})
	}
}

package audit

import (
	"testing"
	"time"
)

func TestEarlyPod(t *testing.T) {
	runStories(t, []story{
		{name: "a job that is held, released and ends breaks nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().end()
		}},
		{name: "a pod before the release is early", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.start()
		}, breaks: []string{"early-pod"}},
		{name: "a pod of a held job without a unit is early", act: func(s *script) {
			s.tfjob("a", 3).start()
		}, breaks: []string{"early-pod"}},
		{name: "a pod that is early by revision is so whatever the order of the lines", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.start()
			p.release()
			n := len(s.entries)
			s.entries[n-1], s.entries[n-2] = s.entries[n-2], s.entries[n-1]
		}, breaks: []string{"early-pod"}},
		{name: "lines out of order alone are nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.release()
			p.start()
			n := len(s.entries)
			s.entries[n-1], s.entries[n-2] = s.entries[n-2], s.entries[n-1]
		}},
		{name: "a job that opted in but is not suspended was not held", act: func(s *script) {
			s.create(admin, tfjobs, `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {}}`)
		}, breaks: []string{"hold-missed"}},
		{name: "a JobSet with groups that opted in but is not suspended was not held", act: func(s *script) {
			s.create(admin, "jobset.x-k8s.io/v1alpha2/jobsets", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {replicatedJobs: [{name: w}]}}`)
		}, breaks: []string{"hold-missed"}},
		{name: "an annotation that stays while the suspend field goes was not held", act: func(s *script) {
			s.tfjob("a", 1).job.patch(admin, "spec.runPolicy.suspend", false)
		}, breaks: []string{"hold-missed"}},
		{name: "nobody holds what another queue has, what a job controls and what cannot be held", act: func(s *script) {
			s.create(admin, tfjobs, `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {}}`)
			s.create(admin, tfjobs, `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: b, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}}`)
			s.create(admin, batchJobs, `{apiVersion: batch/v1, kind: Job, metadata: {name: c, ownerReferences: [{kind: JobSet, name: j, uid: u, controller: true}], annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {suspend: false}}`)
			s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: d, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {clusterSelector: {a: b}}}`)
			s.create(admin, "jobset.x-k8s.io/v1alpha2/jobsets", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: e, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {network: {}}}`)
		}},
		{name: "a Job of a CronJob is held as any other", act: func(s *script) {
			s.create("system:kube-controller-manager", batchJobs, `{apiVersion: batch/v1, kind: Job, metadata: {name: c, ownerReferences: [{kind: CronJob, name: j, uid: u, controller: true}], annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {suspend: false}}`)
		}, breaks: []string{"hold-missed"}},
		{name: "a job that nobody queues may do as it likes", act: func(s *script) {
			job := s.create(admin, tfjobs, `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {}}`)
			(&play{s: s, job: job, cpu: 100}).start()
		}},
		{name: "a dry run and a refused write are nothing", act: func(s *script) {
			p := s.tfjob("a", 1)
			pod := p.start()
			dry := s.entries[len(s.entries)-1]
			dry["requestURI"] = "/api/v1/namespaces/default/pods?dryRun=All"
			pod.write(operator, "create", "", 409)
		}},
		{name: "after an eviction pods are early again, when the operator has had its time", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.evict()
			p.start().removePod(operator)
			s.wait(3 * time.Second)
			p.start()
		}, breaks: []string{"early-pod"}},
		{name: "a pod of a job is found through its owners", act: func(s *script) {
			job := s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {suspend: true, shutdownAfterJobFinishes: true}}`)
			submitter := s.create("kuberay", batchJobs, `{apiVersion: batch/v1, kind: Job, metadata: {name: r-submit, ownerReferences: [{kind: RayJob, name: r, uid: `+job.text("metadata.uid")+`, controller: true}]}, spec: {}}`)
			(&play{s: s, job: submitter, cpu: 1}).start()
		}, breaks: []string{"early-pod"}},
		{name: "a RayCluster of a held RayJob is early, and so is its pod", act: func(s *script) {
			job := s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {suspend: true, shutdownAfterJobFinishes: true}}`)
			cluster := s.create("kuberay", "ray.io/v1/rayclusters", `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r-x, ownerReferences: [{kind: RayJob, name: r, uid: `+job.text("metadata.uid")+`, controller: true}]}, spec: {}}`)
			(&play{s: s, job: cluster, cpu: 1}).start()
		}, breaks: []string{"early-cluster", "early-pod"}},
		{name: "a Spark driver is found by its label, an executor by its driver", act: func(s *script) {
			s.create(admin, "sparkoperator.k8s.io/v1beta2/sparkapplications", `{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: pi, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {suspend: true}}`)
			driver := s.create("spark", pods, `{apiVersion: v1, kind: Pod, metadata: {name: pi-driver, labels: {sparkoperator.k8s.io/app-name: pi}}, spec: {containers: []}, status: {phase: Pending}}`)
			(&play{s: s, job: driver, cpu: 1}).start()
		}, breaks: []string{"early-pod"}},
		{name: "a Workflow opts in by its template, and not by suspend alone", act: func(s *script) {
			s.create(admin, "argoproj.io/v1alpha1/workflows", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w}, spec: {suspend: true, templates: [{name: main}]}}`)
			held := s.create(admin, "argoproj.io/v1alpha1/workflows", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: v}, spec: {suspend: true, templates: [{name: kube-queue-suspend, suspend: {}}]}}`)
			(&play{s: s, job: held, cpu: 1}).start()
		}, breaks: []string{"early-pod"}},
	})
}

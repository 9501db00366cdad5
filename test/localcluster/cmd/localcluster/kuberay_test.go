package main

import (
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// rayYAML returns a Ray object whose cluster has a head, a worker, and a worker group with two
// hosts per worker. The lines of spec come first.
func rayYAML(kind, name, annotations string, spec ...string) string {
	indent, clusterSpec := "  ", ""
	if kind == "RayJob" {
		indent, clusterSpec = "    ", "  rayClusterSpec:\n"
		spec = append(spec, "entrypoint: python x.py")
	}
	yaml := fmt.Sprintf("---\napiVersion: ray.io/v1\nkind: %s\nmetadata: {name: %s, annotations: {%s}}\nspec:\n", kind, name, annotations)
	for _, line := range spec {
		yaml += "  " + line + "\n"
	}
	yaml += clusterSpec
	for line := range strings.Lines(`headGroupSpec:
  rayStartParams: {}
  template: {spec: {containers: [{name: ray-head, image: none, resources: {requests: {cpu: 100m}}}]}}
workerGroupSpecs:
- groupName: small
  replicas: 1
  rayStartParams: {}
  template: {spec: {containers: [{name: ray-worker, image: none, resources: {requests: {cpu: 100m}}}]}}
- groupName: wide
  replicas: 1
  numOfHosts: 2
  rayStartParams: {}
  template: {spec: {containers: [{name: ray-worker, image: none}]}}
`) {
		yaml += indent + line
	}
	return yaml
}

const (
	runTime  = "localcluster.kube-queue.dev/run-time: "
	exitCode = "localcluster.kube-queue.dev/exit-code: "

	raySuspend, rayShutdown = "suspend: true", "shutdownAfterJobFinishes: true"
)

// TestRayJobsAndRayClustersRun runs its parts in parallel, because they mostly wait.
func TestRayJobsAndRayClustersRun(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs RayJobs and RayClusters from submission to end")
	data := t.TempDir()
	running := startRun(t, command("run", "--data", data, "--nodes=2", "--node-cpu=32", "--pod-run-time=2s", "--operators=kuberay"))
	ready := running.ready(t)
	parts := status(t, data).Parts
	t.Run("kuberay", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"a job waits, runs and succeeds":             rayJobWaits,
			"a cluster outlives a job that wants it":     rayJobKeepsCluster,
			"a job ends as it is reported in every mode": rayJobModes,
			"a job that runs can be deleted":             rayJobDeleted,
			"a submitter stays with a long job":          raySubmitterStays,
			"a cluster comes, is suspended, and comes":   rayClusters,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
}

// rayState waits until the fields of a status, joined by slashes, have these values.
func rayState(t *testing.T, ready *cluster.Ready, resource, want string) {
	t.Helper()
	fields := "{.status.state}"
	if strings.HasPrefix(resource, "rayjob/") {
		fields = "{.status.jobDeploymentStatus}/{.status.jobStatus}"
	}
	eventually(t, resource, func() error {
		got, err := tryKubectl(ready, "", "get", resource, "-o", "jsonpath="+fields)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %q", got, want)
		}
		return err
	})
}

// rayClusterOf returns the name of a job's RayCluster with the number of its pods, or "".
func rayClusterOf(t *testing.T, ready *cluster.Ready, job string) (name string, pods int) {
	t.Helper()
	name = kubectl(t, ready, "", "get", "raycluster", "-l", "ray.io/originated-from-cr-name="+job, "-o", "jsonpath={.items[*].metadata.name}")
	if name != "" {
		pods = strings.Count(kubectl(t, ready, "", "get", "pods", "-l", "ray.io/cluster="+name, "-o", "name"), "\n")
	}
	return name, pods
}

// endRayJob ends a job that does not end otherwise.
func endRayJob(t *testing.T, ready *cluster.Ready, name string) {
	t.Helper()
	kubectl(t, ready, "", "annotate", "--overwrite", "rayjob", name, "localcluster.kube-queue.dev/run-time=1ms")
}

func rayJobWaits(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayYAML("RayJob", "waits", runTime+"never", raySuspend, rayShutdown), "create", "-f", "-")
	rayState(t, ready, "rayjob/waits", "Suspended/")
	if name, _ := rayClusterOf(t, ready, "waits"); name != "" {
		t.Errorf("a suspended job has RayCluster %s", name)
	}
	kubectl(t, ready, "", "patch", "rayjob", "waits", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	rayState(t, ready, "rayjob/waits", "Running/RUNNING")
	name, pods := rayClusterOf(t, ready, "waits")
	if pods != 4 {
		t.Errorf("RayCluster %s has %d pods, want 4", name, pods)
	}
	endRayJob(t, ready, "waits")
	rayState(t, ready, "rayjob/waits", "Complete/SUCCEEDED")
	waitGone(t, ready, "raycluster", name)
}

func rayJobKeepsCluster(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayYAML("RayJob", "keeps", "", raySuspend, rayShutdown), "create", "-f", "-")
	rayState(t, ready, "rayjob/keeps", "Suspended/")
	kubectl(t, ready, "", "patch", "rayjob", "keeps", "--type=merge", "-p", `{"spec":{"suspend":false,"shutdownAfterJobFinishes":false}}`)
	rayState(t, ready, "rayjob/keeps", "Complete/SUCCEEDED")
	name, pods := rayClusterOf(t, ready, "keeps")
	if pods != 4 {
		t.Errorf("RayCluster %s has %d pods, want 4", name, pods)
	}
}

func rayJobModes(t *testing.T, ready *cluster.Ready) {
	jobs := []struct{ name, annotations, mode, end, submitter string }{
		{"fails", exitCode + `"1"`, "K8sJobMode", "Failed/FAILED", "Succeeded"},
		{"http", "", "HTTPMode", "Complete/SUCCEEDED", ""},
		{"http-fails", exitCode + `"1"`, "HTTPMode", "Failed/FAILED", ""},
		{"side", "", "SidecarMode", "Complete/SUCCEEDED", ""},
		{"side-fails", exitCode + `"1"`, "SidecarMode", "Failed/FAILED", ""},
	}
	var all strings.Builder
	for _, job := range jobs {
		all.WriteString(rayYAML("RayJob", job.name, job.annotations, "submissionMode: "+job.mode))
	}
	kubectl(t, ready, all.String(), "create", "-f", "-")
	for _, job := range jobs {
		rayState(t, ready, "rayjob/"+job.name, job.end)
		if got := kubectl(t, ready, "", "get", "pods", "-l", "job-name="+job.name, "-o", "jsonpath={.items[*].status.phase}"); got != job.submitter {
			t.Errorf("the submitter of %s is %q, want %q", job.name, got, job.submitter)
		}
	}
	for name, want := range map[string]string{"side": "0", "side-fails": "1"} {
		cluster, _ := rayClusterOf(t, ready, name)
		got := kubectl(t, ready, "", "get", "pods", "-l", "ray.io/node-type=head,ray.io/cluster="+cluster, "-o",
			`jsonpath={.items[*].status.phase} {.items[*].status.containerStatuses[?(@.name=="ray-job-submitter")].state.terminated.exitCode}`)
		if got != "Running "+want {
			t.Errorf("the head of %s is %q, want its submitter to have ended with %s", name, got, want)
		}
	}
}

func rayJobDeleted(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayYAML("RayJob", "deleted", runTime+"never"), "create", "-f", "-")
	rayState(t, ready, "rayjob/deleted", "Running/RUNNING")
	// The operator's finalizer delays the deletion. The garbage collector deletes the dependents
	// after it has discovered these kinds, about 30 s after the start.
	kubectl(t, ready, "", "delete", "rayjob", "deleted", "--timeout=20s")
	if log := succeed(t, "logs", "--data", ready.Data, "ray-dashboard").out; !strings.Contains(log, `/stop: {"stopped":true}`) {
		t.Errorf("its job was not stopped: %s", log)
	}
}

func raySubmitterStays(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayYAML("RayJob", "long", runTime+"never"), "create", "-f", "-")
	rayState(t, ready, "rayjob/long", "Running/RUNNING")
	// When another job has ended, the submitter would have ended too.
	kubectl(t, ready, rayYAML("RayJob", "usual", ""), "create", "-f", "-")
	rayState(t, ready, "rayjob/usual", "Complete/SUCCEEDED")
	if got := kubectl(t, ready, "", "get", "pods", "-l", "job-name=long", "-o", "jsonpath={.items[*].status.phase}"); got != "Running" {
		t.Errorf("the submitter of a job that runs is %q", got)
	}
	endRayJob(t, ready, "long")
	rayState(t, ready, "rayjob/long", "Complete/SUCCEEDED")
}

// rayClusters also checks what the operator adds to pods, because a queue has to charge it.
func rayClusters(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayYAML("RayCluster", "cluster", "", raySuspend, "enableInTreeAutoscaling: true"), "create", "-f", "-")
	suspend := func(value string) {
		t.Helper()
		kubectl(t, ready, "", "patch", "raycluster", "cluster", "--type=merge", "-p", `{"spec":{"suspend":`+value+`}}`)
	}
	pods := func(selector, columns string) string {
		t.Helper()
		return kubectl(t, ready, "", "get", "pods", "-l", "ray.io/cluster=cluster"+selector, "-o", "jsonpath={range .items[*]}"+columns+"{end}")
	}
	rayState(t, ready, "raycluster/cluster", "suspended")
	if got := pods("", "{.metadata.name}"); got != "" {
		t.Errorf("a suspended cluster has pods: %s", got)
	}
	suspend("false")
	rayState(t, ready, "raycluster/cluster", "ready")
	const requests = "{.name}={.resources.requests.cpu}/{.resources.requests.memory} "
	if got := pods(",ray.io/node-type=head", "{range .spec.containers[*]}"+requests+"{end}"); got != "ray-head=100m/ autoscaler=500m/512Mi " {
		t.Errorf("the head's containers are %q", got)
	}
	if got := pods(",ray.io/group=small", "{range .spec.initContainers[*]}"+requests+"{end}"); got != "wait-gcs-ready=200m/256Mi " {
		t.Errorf("a worker's init containers are %q", got)
	}
	if got := pods(",ray.io/group=wide", "{.status.phase} "); got != "Running Running " {
		t.Errorf("one worker on two hosts has pods %q", got)
	}
	suspend("true")
	rayState(t, ready, "raycluster/cluster", "suspended")
	eventually(t, "pods of a suspended cluster", func() error {
		if got := pods("", "{.metadata.name} "); got != "" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
	suspend("false")
	rayState(t, ready, "raycluster/cluster", "ready")
}

// Package provisioning tests the admission checks by ProvisioningRequests with the ServiceAccount of
// job-extensions, against a real API server and its garbage collector. The tests write like
// kube-queue-controller and an autoscaler.
package provisioning

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/extensions/provisioning/controller"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/test/clustertest"
)

const team = "team"

// objects are what an administrator and a user create.
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: sandbox
overhead: {podFixed: {cpu: 250m}}
scheduling: {nodeSelector: {sandboxed: "true"}, tolerations: [{key: sandboxed, operator: Exists}]}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ProvisioningRequestConfig
metadata: {name: gpus}
spec:
  provisioningClassName: class.example.com
  managedResources: [cpu]
  parameters: {ValidUntilSeconds: "60"}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: AdmissionCheck
metadata: {name: nodes}
spec:
  controllerName: kube-queue.dev/provisioning-request
  parameters: {apiGroup: scheduling.x-k8s.io, kind: ProvisioningRequestConfig, name: gpus}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: team
  annotations:
    scheduling.x-k8s.io/suspend: "true"
    provreq.kueue.x-k8s.io/maxRunDurationSeconds: "600"
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {labels: {app: train}}
    spec:
      restartPolicy: Never
      runtimeClassName: sandbox
      nodeSelector: {gpu: h100}
      tolerations: [{key: gpu, operator: Exists}]
      containers: [{name: main, image: train, env: [{name: TOKEN, value: secret}], resources: {requests: {cpu: "1"}}}]
`

// scene is a cluster with job-extensions.
type scene struct {
	*testing.T
	cluster *clustertest.Cluster
	ctx     context.Context
	admin   kubernetes.Interface
	dynamic dynamic.Interface
	// queue writes like kube-queue-controller.
	queue versioned.Interface
}

func TestAJobWaitsForItsNodesAndGivesThemBack(t *testing.T) {
	s := begin(t)
	s.apply(objects)
	s.extensions()
	s.unit("exists", func(*v1alpha1.QueueUnit) bool { return true })
	s.reserve()
	s.entry(v1alpha1.CheckPending, "no ProvisioningRequest API")
	s.autoscaler()
	s.entry(v1alpha1.CheckPending, "waits for an autoscaler")
	s.requested(1)
	s.report("Failed", "NoStock")
	s.entry(v1alpha1.CheckRetry, "NoStock")

	s.write(`{"phase": "Backoff", "admissionChecks": null}`)
	s.reserve()
	s.entry(v1alpha1.CheckPending, "waits for an autoscaler")
	s.requested(2)
	s.report("Provisioned", "Provisioned")
	s.entry(v1alpha1.CheckReady, "is provisioned")
	s.write(`{"phase": "Dequeued", "attempts": 1}`)
	s.until("the job is released", func() (bool, error) {
		job, err := s.admin.BatchV1().Jobs(team).Get(s.ctx, "train", metav1.GetOptions{})
		return err == nil && job.Spec.Suspend != nil && !*job.Spec.Suspend, err
	})
	s.report("CapacityRevoked", "Preempted")
	s.entry(v1alpha1.CheckRetry, "taken away")
	background := metav1.DeletePropagationBackground
	if err := s.admin.BatchV1().Jobs(team).Delete(s.ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	s.until("the garbage collector deletes everything", func() (bool, error) {
		templates, err := s.admin.CoreV1().PodTemplates(team).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return len(templates.Items)+len(s.requests()) == 0, nil
	})
}

func begin(t *testing.T) *scene {
	cluster := clustertest.ForTest(t, clustertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	s := &scene{T: t, cluster: cluster, ctx: ctx}
	var err error
	if s.admin, err = kubernetes.NewForConfig(cluster.Config()); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(cluster.Config()); err != nil {
		t.Fatal(err)
	}
	if s.queue, err = versioned.NewForConfig(s.account("kube-queue-controller")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"admissionchecks", "provisioningrequestconfigs"} {
		s.install(filepath.Join(cluster.Repository, "charts/kube-queue/files/crds/scheduling.x-k8s.io_"+kind+".yaml"), kind+".scheduling.x-k8s.io")
	}
	return s
}

func (s *scene) account(name string) *rest.Config {
	config, _, err := s.cluster.ServiceAccountConfig(s.ctx, name)
	if err != nil {
		s.Fatal(err)
	}
	config.QPS = -1
	return config
}

// install installs a CRD.
func (s *scene) install(file, name string) {
	s.Helper()
	for _, args := range [][]string{{"apply", "--server-side", "--force-conflicts", "-f", file}, {"wait", "--for=condition=Established", "--timeout=60s", "crd/" + name}} {
		if out, err := s.cluster.Kubectl(s.ctx, args...); err != nil {
			s.Fatalf("%v: %s", err, out)
		}
	}
}

func (s *scene) apply(text string) {
	s.Helper()
	if out, err := s.cluster.KubectlWith(s.ctx, text, "apply", "-f", "-"); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

// autoscaler installs the API of requests, as an autoscaler does.
func (s *scene) autoscaler() {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/autoscaler/cluster-autoscaler/apis").Output()
	if err != nil {
		s.Fatal(err)
	}
	s.install(filepath.Join(strings.TrimSpace(string(folder)), "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"), "provisioningrequests.autoscaling.x-k8s.io")
}

// extensions runs job-extensions in this process.
func (s *scene) extensions() {
	config := s.account("job-extensions")
	adapters, err := registry.Parse("job")
	if err != nil {
		s.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: "job-extensions", Instance: "test"}, clock.RealClock{}, nil)
	jobs, err := reconciler.New(reconciler.Options{Config: config, Adapters: adapters, Workers: 4, Events: writer, Clock: clock.RealClock{}})
	if err != nil {
		s.Fatal(err)
	}
	checks, err := controller.New(controller.Options{Client: objects, Units: jobs.Units(), Jobs: jobs, Cluster: jobs.Cluster(), Reporter: jobs.Reporter,
		Serves: jobs.Serves, Events: writer, Clock: clock.RealClock{}})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	checks.Start(ctx)
	if err := jobs.Start(ctx); err != nil {
		s.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		_ = writer.While(ctx, func(ctx context.Context) error { return program.Together(ctx, jobs.Work, checks.Work) })
	})
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// until waits until a condition is true.
func (s *scene) until(what string, is func() (bool, error)) {
	s.Helper()
	var last error
	err := wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(context.Context) (done bool, err error) {
		done, last = is()
		return done, nil
	})
	if err != nil {
		s.Fatalf("not true: %s (%v): %v", what, last, err)
	}
}

// unit waits for the unit of the job.
func (s *scene) unit(what string, is func(*v1alpha1.QueueUnit) bool) (found *v1alpha1.QueueUnit) {
	s.Helper()
	var shown []byte
	defer func() {
		if s.Failed() {
			s.Logf("the unit is %s", shown)
		}
	}()
	s.until("the unit "+what, func() (bool, error) {
		list, err := s.queue.SchedulingV1alpha1().QueueUnits(team).List(s.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		found = &list.Items[0]
		shown, _ = json.Marshal(found.Status)
		return is(found), nil
	})
	return found
}

// write patches the status of the unit like kube-queue-controller.
func (s *scene) write(status string) {
	s.Helper()
	unit := s.unit("exists", func(*v1alpha1.QueueUnit) bool { return true })
	_, err := s.queue.SchedulingV1alpha1().QueueUnits(team).Patch(s.ctx, unit.Name, types.MergePatchType,
		[]byte(`{"status": `+status+`}`), metav1.PatchOptions{}, "status")
	if err != nil {
		s.Fatal(err)
	}
}

// reserve reserves quota for the unit.
func (s *scene) reserve() {
	s.Helper()
	attempt := s.unit("exists", func(*v1alpha1.QueueUnit) bool { return true }).Status.Reservations + 1
	s.write(fmt.Sprintf(`{"phase": "Reserved", "reservations": %d, "admissionChecks": [{"name": "nodes", "state": "Pending"}]}`, attempt))
}

// entry waits for the entry of the check.
func (s *scene) entry(state v1alpha1.CheckState, message string) {
	s.Helper()
	s.unit(fmt.Sprintf("has a check that is %s: %s", state, message), func(unit *v1alpha1.QueueUnit) bool {
		entries := unit.Status.AdmissionChecks
		return len(entries) == 1 && entries[0].State == state && strings.Contains(entries[0].Message, message)
	})
}

func (s *scene) requests() []*provisioning.Request {
	s.Helper()
	list, err := s.dynamic.Resource(provisioning.RequestResource).Namespace(team).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var all []*provisioning.Request
	for _, item := range list.Items {
		data, err := json.Marshal(item.Object)
		if err != nil {
			s.Fatal(err)
		}
		request := &provisioning.Request{}
		if err := json.Unmarshal(data, request); err != nil {
			s.Fatal(err)
		}
		all = append(all, request)
	}
	return all
}

// requested waits for the only request of an attempt, and compares it and its template with the job.
func (s *scene) requested(attempt int) {
	s.Helper()
	var request *provisioning.Request
	s.until("there is one request of the attempt", func() (bool, error) {
		all := s.requests()
		if len(all) == 1 {
			request = all[0]
		}
		return request != nil && len(all) == 1 && strings.HasSuffix(request.Name, fmt.Sprintf("-nodes-%d", attempt)), nil
	})
	if got := request.Spec.Parameters; request.Spec.ProvisioningClassName != "class.example.com" || got["maxRunDurationSeconds"] != "600" || got["ValidUntilSeconds"] != "60" {
		s.Errorf("the request is %+v", request.Spec)
	}
	if sets := request.Spec.PodSets; len(sets) != 1 || sets[0].Count != 2 {
		s.Fatalf("the pod sets are %+v", sets)
	}
	var template *corev1.PodTemplate
	s.until("there is one template", func() (bool, error) {
		list, err := s.admin.CoreV1().PodTemplates(team).List(s.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		template = &list.Items[0]
		return template.Name == request.Spec.PodSets[0].PodTemplateRef.Name, nil
	})
	pod := template.Template
	if pod.Labels["app"] != "train" || pod.Spec.NodeSelector["gpu"] != "h100" || pod.Spec.NodeSelector["sandboxed"] != "true" || len(pod.Spec.Tolerations) != 2 || pod.Spec.Overhead.Cpu().MilliValue() != 250 || pod.Spec.Containers[0].Env != nil ||
		pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 {
		s.Errorf("the template is %+v", pod)
	}
}

// report sets a condition of the only request like an autoscaler.
func (s *scene) report(condition, reason string) {
	s.Helper()
	all := s.requests()
	if len(all) != 1 {
		s.Fatalf("there are %d requests", len(all))
	}
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": "True", "reason": %q, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, condition, reason)
	_, err := s.dynamic.Resource(provisioning.RequestResource).Namespace(team).Patch(s.ctx, all[0].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
}

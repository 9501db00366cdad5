// Package rig runs the environment of a measurement: a local control plane with kube-queue
// installed, and the programs of kube-queue, built and started as in production.
//
// Terms. A Program is a program of kube-queue, which can be stopped, killed and restarted. Use is the processor time
// and the memory of each process: the programs, the parts of the cluster, and the tool itself, which shares the
// machine. The audit log shows which program wrote what, and when. A Report has the results of a measurement: figures
// in sections, printed as a table or as JSON. A Figure is a number with its unit. A Bar is the value that a figure
// must reach; a figure without a bar is informational. Percentiles are exact: the nearest rank of all measured
// values.
//
// Invariants: the programs run without the race detector, with their ServiceAccounts and with
// leader election. No program outlives the rig, and the rig stops with its cluster.
package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// The programs.
const (
	Controller = "kube-queue-controller"
	Extensions = "job-extensions"
	// Plugin is the kubectl plugin.
	Plugin = "kubectl-kube_queue"
	// Tool is the name under which Use reports this process.
	Tool = "perf"
)

// Options are the options of a rig and of its cluster.
type Options struct {
	clustertest.Options
	// WithoutPolicies omits kube-queue's admission policies.
	WithoutPolicies bool
	// Profiles is a folder for profiles of the programs and the API server. Profiling takes time.
	Profiles string
}

// Rig is a running cluster with kube-queue installed.
type Rig struct {
	Cluster *clustertest.Cluster
	// Kube and Queue are clients of the administrator.
	Kube  kubernetes.Interface
	Queue *clientset.Clientset
	// Exited is called if a program exits by itself, because figures are only valid for a running
	// program. Set it before programs start.
	Exited func(error)

	// programs and profiles are folders.
	programs, profiles string
	log                *log.File
	// closed ends when the rig is closed.
	closed chan struct{}

	mu      sync.Mutex
	running map[string]*Program
}

// Start builds the programs and starts a cluster. ctx limits only the start.
func Start(ctx context.Context, options Options) (r *Rig, err error) {
	r = &Rig{Exited: func(error) {}, running: map[string]*Program{}, profiles: options.Profiles, closed: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(false))
		}
	}()
	const cmd = "kube-queue.dev/kube-queue/cmd/"
	if r.programs, err = built.Programs(ctx, ".", cmd+Controller, cmd+Extensions, cmd+Plugin); err != nil {
		return r, err
	}
	options.AuditLevel = "Metadata"
	if r.Cluster, err = clustertest.Start(ctx, options.Options); err != nil {
		return r, err
	}
	r.log = log.Open(r.Cluster.AuditLog)
	config := r.Cluster.Config()
	config.QPS, config.UserAgent, config.DisableCompression = -1, Tool, true
	if r.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return r, err
	}
	if r.Queue, err = clientset.NewForConfig(config); err != nil {
		return r, err
	}
	if r.profiles != "" {
		client, err := rest.HTTPClientFor(config)
		if err := errors.Join(err, os.MkdirAll(r.profiles, 0o755)); err != nil {
			return r, err
		}
		go r.profile("kube-apiserver", client, r.Cluster.Server, r.closed)
	}
	install := r.Cluster.Install
	if options.WithoutPolicies {
		install = r.Cluster.InstallWithoutPolicies
	}
	return r, install(ctx)
}

// Close stops all programs and the cluster. The logs in Cluster.Data can be kept.
func (r *Rig) Close(keep bool) error {
	close(r.closed)
	var errs []error
	for _, p := range r.programsNow() {
		errs = append(errs, p.Stop())
	}
	if r.Cluster != nil {
		stop := r.Cluster.Stop
		if keep {
			stop = r.Cluster.StopAndKeep
		}
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// programsNow returns the running programs.
func (r *Rig) programsNow() []*Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.running))
}

// InFlight is the number of concurrent requests that saturate the API server.
const InFlight = 32

// MakeNamespaces creates the namespaces that do not exist.
func (r *Rig) MakeNamespaces(ctx context.Context, names ...string) error {
	return Each(ctx, InFlight, len(names), func(ctx context.Context, i int) error {
		_, err := r.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// treeName is the name of the only quota tree.
const treeName = "perf"

// ApplyTree applies the quota tree with this root.
func (r *Rig) ApplyTree(ctx context.Context, root quotav1beta1.ElasticQuotaNode) error {
	tree := &quotav1beta1.ElasticQuotaTree{
		TypeMeta:   metav1.TypeMeta{APIVersion: quotav1beta1.SchemeGroupVersion.String(), Kind: "ElasticQuotaTree"},
		ObjectMeta: metav1.ObjectMeta{Name: treeName, Namespace: quotav1beta1.TreeNamespace},
		Spec:       quotav1beta1.ElasticQuotaTreeSpec{Root: root},
	}
	manifest, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	_, err = r.Queue.QuotaV1beta1().ElasticQuotaTrees(tree.Namespace).Patch(ctx, tree.Name, types.ApplyPatchType, manifest,
		metav1.PatchOptions{FieldManager: Tool, Force: new(true)})
	return err
}

// WaitForNode waits until the status of the quota tree shows the node at the path in the wanted state.
func (r *Rig) WaitForNode(ctx context.Context, timeout time.Duration, path string, so func(quotav1beta1.ElasticQuotaNodeStatus) bool) error {
	late := fmt.Errorf("the status of the quota tree does not show %s as it should be after %v", path, timeout)
	return Until(ctx, time.Second, timeout, late, func(ctx context.Context) (bool, error) {
		tree, err := r.Queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(ctx, treeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(tree.Status.Nodes, func(node quotav1beta1.ElasticQuotaNodeStatus) bool { return node.Path == path && so(node) }), nil
	})
}

// AnswersReviews installs the policies that reviews need, and returns the arguments that make kube-queue-controller
// answer reviews at the address.
func (r *Rig) AnswersReviews(ctx context.Context) (address string, args []string, err error) {
	if _, err := r.Cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts",
		"-f", filepath.Join(r.Cluster.Repository, "deploy", "policies", "reviews.yaml")); err != nil {
		return "", nil, err
	}
	return r.Cluster.RouteReviews(ctx)
}

// LaunchPlugin starts the kubectl plugin as the administrator, as a program with this name.
func (r *Rig) LaunchPlugin(name string, args ...string) (*Program, error) {
	p := &Program{Name: name}
	return p, r.begin(p, exec.Command(filepath.Join(r.programs, Plugin), args...), "KUBECONFIG="+r.Cluster.Kubeconfig)
}

// RunPlugin runs the kubectl plugin as the administrator.
func (r *Rig) RunPlugin(ctx context.Context, args ...string) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(r.programs, Plugin), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Cluster.Kubeconfig)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// Each does a task for each index with a number of workers. The first error ends it.
func Each(ctx context.Context, workers, count int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, count, func(index int) {
		if err := do(ctx, index); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// InTime is like Each, but begins each task at its time after the start. A late task begins immediately, and delays
// no other as long as a worker is free (an open loop).
func InTime(ctx context.Context, start time.Time, workers, count int, at func(int) time.Duration, do func(context.Context, int) error) error {
	return Each(ctx, workers, count, func(ctx context.Context, index int) error {
		if err := Pass(ctx, at(index)-time.Since(start)); err != nil {
			return err
		}
		return do(ctx, index)
	})
}

// Beside runs tasks beside a main one. The end of the main task cancels their context. The first error of a task
// cancels the main one and is returned, because it is more useful than the resulting error of the main one.
func Beside(ctx context.Context, main func(context.Context) error, tasks ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	for _, do := range tasks {
		group.Go(func() {
			if err := do(ctx); err != nil {
				cancel(err)
			}
		})
	}
	err := main(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	group.Wait()
	return err
}

// Rate returns the times of tasks that begin at this rate per second, or all at once if it is 0.
func Rate(rate float64) func(index int) time.Duration {
	return func(index int) time.Duration {
		if rate == 0 {
			return 0
		}
		return time.Duration(float64(index) / rate * float64(time.Second))
	}
}

// Until repeats a check until it holds or fails. After the timeout it returns late.
func Until(ctx context.Context, period, timeout time.Duration, late error, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, period, true, holds)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Pass waits for a time.
func Pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Package jobextensions tests job-extensions with its ServiceAccount against a real API server with the real
// operators. The tests act as kube-queue-controller, with its ServiceAccount.
package jobextensions

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// cluster is shared by most tests. They count writes and seconds, so they run one after another.
var cluster *clustertest.Cluster

// second is a cluster for tests that start and stop job-extensions themselves, one after another.
var second struct {
	sync.Mutex
	*clustertest.Cluster
}

// inTurn returns the second cluster once no other test uses it, and deletes what other tests left there. Only
// training-operator runs: tests write the status of jobs of other operators.
func inTurn(t *testing.T) *clustertest.Cluster {
	t.Helper()
	second.Lock()
	t.Cleanup(second.Unlock)
	if second.Cluster == nil {
		var err error
		second.Cluster, err = clustertest.StartInstalled(clustertest.Options{Nodes: 1, Operators: []string{"training-operator"}, CRDs: []string{"kuberay", "jobset"}})
		harness.Must(t, err)
	}
	t.Cleanup(func() {
		if out, err := second.Kubectl(context.Background(), "delete", "namespaces", "--selector=story", "--wait=false"); err != nil {
			t.Error(out, err)
		}
	})
	return second.Cluster
}

func TestMain(m *testing.M) {
	var stop func()
	code := clustertest.Run(m, clustertest.Options{
		Nodes:      2,
		NodeCPU:    "100", // stories run in parallel, and none waits for a node
		Operators:  []string{"training-operator"},
		PodRunTime: 4 * time.Second,
	}, func(c *clustertest.Cluster) {
		cluster = c
		var err error
		if stop, err = startExtensions(c, "tfjob,pytorchjob,job"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	if stop != nil {
		stop()
	}
	if second.Cluster != nil {
		if err := second.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// startExtensions runs job-extensions in this process. The returned function stops it and waits
// until all writes are complete. The options change how it reaches the API server.
func startExtensions(c *clustertest.Cluster, enabled string, options ...func(*rest.Config)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	config, err := account(c, "job-extensions")
	if err != nil {
		return nil, err
	}
	for _, option := range options {
		option(config)
	}
	adapters, err := registry.Parse(enabled)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: "job-extensions", Instance: "test"}, clock.RealClock{}, nil)
	jobs, err := reconciler.New(reconciler.Options{Config: config, Adapters: adapters, Workers: 4, Rules: rules(), Events: writer, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	if err := jobs.Start(ctx); err != nil {
		return nil, err
	}
	var working sync.WaitGroup
	working.Go(func() { _ = writer.While(ctx, jobs.Work) })
	return func() {
		cancel()
		working.Wait()
	}, nil
}

// startFor calls startExtensions for a test.
func startFor(t *testing.T, c *clustertest.Cluster, enabled string, options ...func(*rest.Config)) (stop func()) {
	t.Helper()
	stop, err := startExtensions(c, enabled, options...)
	harness.Must(t, err)
	return stop
}

// account returns a client with the ServiceAccount of a program.
func account(c *clustertest.Cluster, name string) (*rest.Config, error) {
	config, _, err := c.ServiceAccountConfig(context.Background(), name)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = name
	return config, nil
}

// Package jobextensions tests job-extensions against a real API server, with the
// real operators and as its own ServiceAccount. The tests themselves write what
// kube-queue-controller would, as its ServiceAccount.
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
	"kube-queue.dev/kube-queue/extensions/framework/requests"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// cluster is that of the tests without one of their own, which count writes and
// seconds, so they run one after another. Tests with one mostly wait for it, and
// run side by side after those.
var cluster *clustertest.Cluster

func TestMain(m *testing.M) {
	var stop func()
	code := clustertest.Run(m, clustertest.Options{
		Nodes:      2,
		Operators:  []string{"training-operator"},
		PodRunTime: 4 * time.Second,
	}, func(c *clustertest.Cluster) {
		cluster = c
		var err error
		if stop, err = startExtensions(c, "tfjob,pytorchjob,job", deviceRules()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	if stop != nil {
		stop()
	}
	os.Exit(code)
}

// startExtensions runs what job-extensions runs; the function that it returns
// stops it and waits until all is written.
func startExtensions(c *clustertest.Cluster, enabled string, rules requests.Rules) (stop func(), err error) {
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
	adapters, err := registry.Parse(enabled)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: "job-extensions", Instance: "test"}, clock.RealClock{})
	jobs, err := reconciler.New(reconciler.Options{Config: config, Adapters: adapters, Workers: 4, Rules: rules, Events: writer, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	if err := jobs.Start(ctx); err != nil {
		return nil, err
	}
	writing, endWriting := context.WithCancel(context.Background())
	var working, written sync.WaitGroup
	working.Go(func() { _ = jobs.Work(ctx) })
	written.Go(func() { writer.Run(writing) })
	return func() {
		cancel()
		working.Wait()
		endWriting()
		written.Wait()
	}, nil
}

// account acts as one of the two programs.
func account(c *clustertest.Cluster, name string) (*rest.Config, error) {
	config, _, err := c.ServiceAccountConfig(context.Background(), name)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = name
	return config, nil
}

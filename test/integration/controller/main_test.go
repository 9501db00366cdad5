// Package controller tests kube-queue-controller against a real API server, with its
// ServiceAccount. The units are created by hand.
package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/backend/elasticquota"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var cluster *clustertest.Cluster

func TestMain(m *testing.M) {
	clustertest.Main(m, clustertest.Options{Nodes: 1, TypeCheck: true}, func(c *clustertest.Cluster) { cluster = c })
}

// startController runs the controller in this process, and returns when it makes decisions. The
// returned function stops it.
func startController(t *testing.T, settings ...func(*controller.Config)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	config, _, err := cluster.ServiceAccountConfig(ctx, "kube-queue-controller")
	must(t, err)
	config.QPS = -1
	cfg, writer := configure(t, config)
	synced := make(chan struct{})
	for _, set := range settings {
		set(&cfg)
	}
	cfg.Synced = func() { close(synced) }
	var running sync.WaitGroup
	ended := make(chan error, 1)
	running.Go(func() {
		ended <- writer.While(ctx, func(ctx context.Context) error { return controller.Run(ctx, cfg) })
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	harness.Eventually(t, patience, "it begins to decide", func() (bool, string) {
		select {
		case <-synced:
			return true, ""
		default:
			return false, "it has not"
		}
	})
	return stop
}

func configure(t *testing.T, config *rest.Config) (controller.Config, *events.Writer) {
	t.Helper()
	client, err := clientset.NewForConfig(config)
	must(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)
	writer := events.NewWriter(kube.CoreV1(), events.Source{Component: "kube-queue-controller", Instance: "test"}, clock.RealClock{}, nil)
	return controller.Config{
		Client: client, Source: elasticquota.New(tree.Options{}, elasticquota.PodOptions{}), Rest: config, Clock: clock.RealClock{}, Namespace: clustertest.Namespace,
		Policy: queue.RoundRobin, Workers: 4, PublishInterval: 200 * time.Millisecond, CheckInvariants: true,
		Emit: func(n backend.Notice) {
			writer.Write(events.Event{Type: n.Type, Reason: n.Reason, Message: n.Message, Key: n.EventKey(),
				Object: corev1.ObjectReference{APIVersion: n.About.GetAPIVersion(), Kind: n.About.GetKind(),
					Namespace: n.About.GetNamespace(), Name: n.About.GetName(), UID: n.About.GetUID()}})
		},
	}, writer
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withoutUnitPolicy removes the policy that refuses most unreadable units.
func withoutUnitPolicy(t *testing.T) {
	t.Helper()
	_, err := cluster.Kubectl(t.Context(), "delete", "validatingadmissionpolicybinding", "kube-queue-units")
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Install(context.Background())) })
}

package services

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/testmode"
)

func TestServicesLeadToProgramsBeforeAndAfterAnUpgrade(t *testing.T) {
	testmode.OnlyInTestAll(t, "it needs another version of Kubernetes; the tests of webhooks reach programs through Services in make test")
	cluster = clustertest.ForTest(t, clustertest.Options{Kubernetes: before, Bare: true, Nodes: 1})
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+clustertest.Namespace+"}\n")
	routed := newRouted(t)
	aggregated := newAggregated(t)
	pods := newPods(t)
	version := func(t *testing.T, want string) {
		found, err := client(t).Discovery().ServerVersion()
		must(t, err)
		if got := found.Major + "." + found.Minor; got != want || cluster.Kubernetes != want {
			t.Errorf("the cluster has version %s, and says %s; want %s", got, cluster.Kubernetes, want)
		}
	}
	checks := func(t *testing.T, want string) {
		version(t, want)
		t.Run("a route leads to its addresses that accept connections", routed.check)
		t.Run("an aggregated API server gets the user", aggregated.check)
		t.Run("pods get connections while they are ready", pods.check)
	}
	t.Run("before", func(t *testing.T) { checks(t, before) })
	t.Run("a second API server reaches them too", func(t *testing.T) {
		kubeconfig, err := cluster.StartSecondAPIServer(t.Context(), after)
		must(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		must(t, err)
		second, err := kubernetes.NewForConfig(config)
		must(t, err)
		found, err := second.Discovery().ServerVersion()
		must(t, err)
		if found.Minor != strings.TrimPrefix(after, "1.") {
			t.Errorf("it has version %s, want %s", found, after)
		}
		pods.expectCalled(t, second)
		must(t, cluster.StopSecondAPIServer(t.Context()))
		version(t, before)
	})
	must(t, cluster.Upgrade(t.Context(), after))
	t.Run("after", func(t *testing.T) { checks(t, after) })
	if err := cluster.Upgrade(t.Context(), before); err == nil || !strings.Contains(err.Error(), "is not newer") {
		t.Errorf("an upgrade to an older version: %v", err)
	}
}

package services

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/testmode"
)

func TestServicesLeadToPrograms(t *testing.T) {
	testmode.OnlyInTestAll(t, "the tests of webhooks reach the programs through Services in make test")
	cluster = clustertest.ForTest(t, clustertest.Options{Bare: true, Nodes: 1})
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+clustertest.Namespace+"}\n")
	t.Run("an aggregated API server gets the user", func(t *testing.T) {
		startAggregated(t)
		expectUser(t)
	})
	t.Run("pods get connections while they are ready", func(t *testing.T) { newPods(t).check(t) })
}

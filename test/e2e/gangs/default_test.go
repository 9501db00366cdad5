//go:build !native

package gangs

import "kube-queue.dev/kube-queue/test/clustertest"

// native: the default version of Kubernetes has no gangs of its own that are on.
const native = false

func chooseKubernetes(*clustertest.Options) {}

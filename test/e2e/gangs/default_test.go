//go:build !native

package gangs

import "kube-queue.dev/kube-queue/test/clustertest"

// native: in the default version of Kubernetes, gangs are off.
const native = false

func chooseKubernetes(*clustertest.Options) {}

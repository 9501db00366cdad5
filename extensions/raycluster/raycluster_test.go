package raycluster

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestClusters(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedClusters(t *testing.T) { adaptertest.Fuzz(t, New()) }

package sparkapplication

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestSparkApplications(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedSparkApplications(t *testing.T) { adaptertest.Fuzz(t, New()) }

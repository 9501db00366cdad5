package xgboostjob

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

package mpijob

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestV1Jobs(t *testing.T) { adaptertest.Run(t, V1()) }

func TestDamagedV1Jobs(t *testing.T) { adaptertest.Fuzz(t, V1()) }

func TestV2beta1Jobs(t *testing.T) { adaptertest.Run(t, V2beta1()) }

func TestDamagedV2beta1Jobs(t *testing.T) { adaptertest.Fuzz(t, V2beta1()) }

func TestAnUnsetNumberOfWorkersIsNoneForTheFence(t *testing.T) {
	for _, adapter := range []framework.Adapter{V1(), V2beta1()} {
		if size := adapter.Kind().Fence.Groups[0].Size; size != "group.?replicas.orValue(0)" {
			t.Errorf("%s: the size is %s", adapter.Kind().Name, size)
		}
	}
}

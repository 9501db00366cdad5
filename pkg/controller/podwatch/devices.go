package podwatch

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// byDevices is the index of pods that may have devices. All are under anyDevice, and each is under its claims.
const (
	byDevices = "devices"
	anyDevice = "*"
)

func devicesOf(object any) ([]string, error) {
	p, is := object.(*pod)
	if !is {
		return nil, nil
	}
	claiming, is := p.use.(interface{ ClaimKeys() []string })
	if !is {
		return nil, nil
	}
	return append(claiming.ClaimKeys(), anyDevice), nil
}

// watchDevices recounts pods whose devices have changed.
func (w *Watch) watchDevices(ctx context.Context) ([]cache.InformerSynced, error) {
	if w.rules.Devices == nil {
		return nil, nil
	}
	w.rules.Devices.Renamed(func() { w.countAgain(anyDevice) })
	return w.rules.Devices.Start(ctx, w.config, func(namespace, name string) { w.countAgain(namespace + "/" + name) })
}

// countAgain recounts the pods with these devices, once for all changes seen so far: users can change a claim often,
// and many pods can name it.
func (w *Watch) countAgain(devices string) {
	keys, _ := w.pods.GetIndexer().IndexKeys(byDevices, devices)
	for _, key := range keys {
		if _, due := w.again.LoadOrStore(key, nil); due {
			continue
		}
		w.put(func() scheduler.Event {
			w.again.Delete(key)
			object, _, _ := w.pods.GetStore().GetByKey(key) // it may have changed
			seen, is := object.(*pod)
			if !is {
				return nil
			}
			return w.take(seen)
		})
	}
}

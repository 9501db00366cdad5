package standin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// retryPause is the delay before a retry.
const retryPause = time.Second

// followPods passes pods and their changes to handle, one after another, until the context ends. It can pass a pod
// several times and omit intermediate states, so handle must only use the current state. The deletion of a
// pod is never omitted; its state is then the last known one. A pod for which handle fails is passed again.
func followPods(ctx context.Context, client dynamic.Interface, selector string, handle func(ctx context.Context, pod *pod, deleted bool) error) error {
	type state struct {
		pod     *pod
		deleted bool
	}
	var mu sync.Mutex
	states := map[string]state{} // by UID
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryPause, retryPause))
	note := func(object *unstructured.Unstructured, deleted bool) {
		now := &pod{}
		data, err := json.Marshal(object.Object)
		if err == nil {
			err = json.Unmarshal(data, now)
		}
		if err != nil {
			report(err)
			return
		}
		mu.Lock()
		states[now.Metadata.UID] = state{now, deleted}
		mu.Unlock()
		queue.Add(now.Metadata.UID)
	}
	pods := dynamicinformer.NewFilteredDynamicInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceAll, 0,
		cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = selector }).Informer()
	_, err := pods.AddEventHandler(follow.Changes(func(_, _ *unstructured.Unstructured) bool { return false },
		func(now *unstructured.Unstructured) { note(now, false) }, func(last *unstructured.Unstructured) { note(last, true) }))
	if err != nil {
		return err
	}
	go pods.RunWithContext(ctx)
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		uid, end := queue.Get()
		if end {
			return nil
		}
		mu.Lock()
		now, known := states[uid]
		mu.Unlock()
		if !known { // the deletion was handled
			queue.Done(uid)
			continue
		}
		if err := handle(ctx, now.pod, now.deleted); err != nil {
			if ctx.Err() == nil {
				report(err)
			}
			queue.AddRateLimited(uid)
		} else {
			queue.Forget(uid)
			if now.deleted {
				mu.Lock()
				delete(states, uid)
				mu.Unlock()
			}
		}
		queue.Done(uid)
	}
}

package standin

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// retryPause is the delay before a follower lists again.
const retryPause = time.Second

// podFollower passes pods and their changes to a handler, one after another. It can pass a pod several
// times and omit intermediate states, so the handler must only use the current state. The deletion of a
// pod is never omitted.
type podFollower struct {
	client   *kube.Client
	selector string
	// handle processes the state of a pod, which is the last known one if the pod is deleted. If it fails,
	// all pods are passed again.
	handle func(ctx context.Context, pod *pod, deleted bool) error
	// say receives errors that are retried.
	say func(error)

	// shown has the last states of pods whose deletion is not handled yet, by UID.
	shown map[string]*pod
}

// run follows pods until the context ends.
func (f *podFollower) run(ctx context.Context) {
	f.shown = map[string]*pod{}
	for ctx.Err() == nil {
		if err := f.round(ctx); err != nil && ctx.Err() == nil {
			f.say(err)
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// round lists, and then watches until the watch ends or a pod must be handled again.
func (f *podFollower) round(outer context.Context) error {
	var list struct {
		Metadata metadata
		Items    []*pod
	}
	path := "/api/v1/pods?" + url.Values{"labelSelector": {f.selector}}.Encode()
	if err := f.client.Get(outer, path, &list); err != nil {
		return err
	}
	failed := false
	there := map[string]bool{}
	for _, pod := range list.Items {
		there[pod.Metadata.UID] = true
		failed = !f.pass(outer, pod, false) || failed
	}
	for uid, pod := range f.shown {
		if !there[uid] {
			failed = !f.pass(outer, pod, true) || failed
		}
	}
	if failed {
		return nil
	}

	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	events, err := f.client.Watch(ctx, path+"&resourceVersion="+list.Metadata.ResourceVersion)
	if err != nil {
		return err
	}
	defer events.Close()
	for decoder := json.NewDecoder(events); ; {
		var event struct {
			Type   string
			Object *pod
		}
		// The server ends each watch at some time.
		if decoder.Decode(&event) != nil || event.Type == "ERROR" {
			return nil
		}
		if !f.pass(outer, event.Object, event.Type == "DELETED") && !failed {
			failed = true
			// Continue with other pods until the retry.
			defer time.AfterFunc(retryPause, cancel).Stop()
		}
	}
}

// pass reports whether the handler succeeded.
func (f *podFollower) pass(ctx context.Context, pod *pod, deleted bool) bool {
	f.shown[pod.Metadata.UID] = pod
	err := f.handle(ctx, pod, deleted)
	if err == nil && deleted {
		delete(f.shown, pod.Metadata.UID)
	}
	if err != nil && ctx.Err() == nil {
		f.say(err)
	}
	return err == nil
}

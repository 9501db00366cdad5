package standin

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
	"kube-queue.dev/kube-queue/test/require"
)

func clientOf(t *testing.T, server string) *kube.Client {
	t.Helper()
	client, err := kube.New(&rest.Config{Host: server})
	require.NoError(t, err)
	return client
}

func TestAPodIsPassedUntilItIsHandled(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{corev1.SchemeGroupVersion.WithResource("pods"): "PodList"})
	events := watch.NewFake()
	client.PrependWatchReactor("pods", kubetesting.DefaultWatchReactor(events, nil))
	version := func(uid, version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": "ns", "name": "pod", "uid": uid, "resourceVersion": version}}}
	}
	// Each event comes after handle got the previous one. The pod is deleted and recreated. The first deletion goes
	// unseen.
	next := []func(){
		func() { events.Modify(version("a", "2")) }, func() { events.Modify(version("b", "3")) }, nil,
		func() { events.Delete(version("b", "4")) }, nil,
	}
	want := []string{"a@1", "a@2", "a@2 deleted", "b@3", "b@4 deleted", "b@4 deleted"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go events.Add(version("a", "1"))
	var seen []string
	err := followPods(ctx, client, "", func(_ context.Context, pod *pod, deleted bool) error {
		text := pod.Metadata.UID + "@" + pod.Metadata.ResourceVersion
		if deleted {
			text += " deleted"
		}
		seen = append(seen, text)
		if len(seen) == len(want) {
			cancel()
		} else if event := next[len(seen)-1]; event != nil {
			go event()
		}
		if len(seen) == len(want)-1 { // the deletion, for the first time
			return errors.New("not now")
		}
		return nil
	})
	require.NoError(t, err)
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

package reconciler

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

const (
	// kueueGroup is the API group of Kueue.
	kueueGroup = "kueue.x-k8s.io"
	// kueueEvery is how often the API server is asked whether it serves Kueue.
	kueueEvery = 10 * time.Second
)

// kueue caches whether the API server serves Kueue. It is asked only while a job has the label of Kueue.
type kueue struct {
	groups discovery.ServerGroupsInterface
	// missing is the last answer. asked is when it was given, in nanoseconds.
	missing atomic.Bool
	asked   atomic.Int64
}

// isMissing returns the last answer; before the first one, Kueue counts as missing.
func (k *kueue) isMissing() bool { return k.asked.Load() == 0 || k.missing.Load() }

// ask reports whether Kueue is missing. It reports false if the API server does not answer.
func (k *kueue) ask(ctx context.Context, now time.Time) bool {
	if asked := k.asked.Load(); asked != 0 && now.Sub(time.Unix(0, asked)) < kueueEvery {
		return k.missing.Load()
	}
	groups, err := k.groups.ServerGroups()
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to discover whether Kueue is installed, retrying", "err", err)
		return false
	}
	k.missing.Store(!slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == kueueGroup }))
	k.asked.Store(now.UnixNano())
	return k.missing.Load()
}

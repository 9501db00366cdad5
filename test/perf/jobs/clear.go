package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/wire"
)

const (
	jobsPath  = "/apis/batch/v1/namespaces/" + Namespace + "/jobs"
	podsPath  = "/api/v1/namespaces/" + Namespace + "/pods"
	unitsPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/" + Namespace + "/queueunits"
	// The events of both API groups are the same objects.
	eventsPath = "/api/v1/namespaces/" + Namespace + "/events"
)

const (
	// clearTimeout is the timeout of all deletes.
	clearTimeout = 5 * time.Minute
	// every is how often the API server is asked whether something is done.
	every = 200 * time.Millisecond
)

// clear deletes the objects of a turn, and returns when they are gone.
func (b *Bench) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clearTimeout, fmt.Errorf("objects of the turn still exist %v after their deletion", clearTimeout))
	defer cancel()
	for _, path := range []string{jobsPath, podsPath, eventsPath} {
		if err := b.deleteAll(ctx, path); err != nil {
			return err
		}
	}
	// The garbage collector deletes the units.
	for _, path := range []string{jobsPath, podsPath, unitsPath} {
		if err := pace.Until(ctx, every, func(ctx context.Context) (bool, error) {
			left, err := b.left(ctx, path)
			return left == 0, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// atATime is how many objects one request deletes. A request for all would exceed the timeout of
// the API server.
const atATime = "500"

func (b *Bench) deleteAll(ctx context.Context, path string) error {
	options := []byte(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background","gracePeriodSeconds":0}`)
	for {
		if err := b.client.Do(ctx, wire.Request{Method: http.MethodDelete, Path: path, Query: "limit=" + atATime, Body: options}, nil); err != nil {
			return err
		}
		left, err := b.left(ctx, path)
		if err != nil || left == 0 {
			return err
		}
	}
}

// left returns the number of existing objects.
func (b *Bench) left(ctx context.Context, path string) (int, error) {
	var list struct {
		Metadata struct{ RemainingItemCount int }
		Items    []json.RawMessage
	}
	err := b.client.Do(ctx, wire.Request{Method: http.MethodGet, Path: path, Query: "limit=1"}, &list)
	return len(list.Items) + list.Metadata.RemainingItemCount, err
}

// policiesTimeout is how long deleted policies may stay in effect.
const policiesTimeout = time.Minute

// policies installs or removes kube-queue's admission policies, as the options require.
func (b *Bench) policies(ctx context.Context) error {
	if b.options.WithoutPolicies {
		return b.withoutPolicies(ctx)
	}
	if b.installed {
		return nil
	}
	b.installed = true
	return b.rig.Cluster.Install(ctx)
}

// withoutPolicies removes kube-queue's admission policies, because they would slow down jobs of
// other queues too. It returns when they are no longer in effect.
func (b *Bench) withoutPolicies(ctx context.Context) error {
	if !b.installed {
		return nil
	}
	if _, err := b.rig.Cluster.Kubectl(ctx, "delete", "--ignore-not-found", "-f", filepath.Join(b.rig.Cluster.Repository, "deploy", "policies")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, policiesTimeout, fmt.Errorf("jobs are still held %v after the policies were deleted", policiesTimeout))
	defer cancel()
	probe, err := Queue{Name: KubeQueue}.job("probe", 0)
	if err != nil {
		return err
	}
	probe = bytes.Replace(probe, []byte(`"suspend":true`), []byte(`"suspend":false`), 1)
	b.installed = false
	return pace.Until(ctx, every, func(ctx context.Context) (bool, error) {
		var created struct{ Spec struct{ Suspend bool } }
		err := b.client.Do(ctx, wire.Request{Method: http.MethodPost, Path: jobsPath, Query: "dryRun=All", Body: probe}, &created)
		return !created.Spec.Suspend, err
	})
}

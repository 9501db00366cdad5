package program

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Lead waits for the lease, runs work while it is held, and returns when work
// has. When ctx is done, work is told so and the lease is given up only after
// work has returned. When the lease is lost the process ends at once: whatever
// it still did would be done twice. Without --leader-elect, work runs right away.
func (e *Env) Lead(ctx context.Context, work func(ctx context.Context) error) error {
	work = e.showing(work)
	if !e.leaderElect {
		return work(ctx)
	}
	// The elector outlives ctx: it must keep the lease until work has returned.
	electorCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	lock, err := e.newLock()
	if err != nil {
		return err
	}
	started := make(chan struct{})
	elector, err := e.newElector(electorCtx, lock, func() { close(started) })
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electorCtx)
	}()
	select {
	case <-started:
	case <-ctx.Done():
		giveUp()
		<-ended
		return nil
	}
	err = work(ctx)
	giveUp()
	<-ended
	e.release(context.WithoutCancel(ctx), lock)
	return err
}

// showing has the metrics tell that this replica works, while it does.
func (e *Env) showing(work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		e.Metrics.Lead(true)
		defer e.Metrics.Lead(false)
		return work(ctx)
	}
}

func (e *Env) newLock() (resourcelock.Interface, error) {
	// A rate limit of its own, so that a burst of other writes never delays the lease.
	config := rest.CopyConfig(e.Config)
	config.QPS, config.Burst, config.RateLimiter = 10, 20, nil
	config.Timeout = writeTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
	}, nil
}

func (e *Env) newElector(ctx context.Context, lock resourcelock.Interface, onStarted func()) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          e.Name,
		Lock:          lock,
		LeaseDuration: e.lease.duration,
		RenewDeadline: e.lease.renew,
		RetryPeriod:   e.lease.retry,
		// The elector would try to release a lease that it failed to renew
		// before it says that it is lost: release is done here instead.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { onStarted() },
			OnNewLeader: func(identity string) {
				if identity != e.Identity { // there is nothing to be readier for
					e.MarkReady()
				}
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					e.lostLease(ctx)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the lease %s: %w", lock.Describe(), err)
	}
	return elector, nil
}

// release lets the next replica start now instead of when the lease runs out.
func (e *Env) release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err == nil && record.HolderIdentity != e.Identity {
		return
	}
	if err == nil {
		now := metav1.Now()
		err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The lease could not be released and runs out by itself", "lease", lock.Describe())
	}
}

func (e *Env) lostLease(ctx context.Context) {
	klog.FromContext(ctx).Error(errors.New("the lease was not renewed in time"), "The lease is lost, the program ends at once",
		"lease", klog.KRef(e.Namespace, e.Name))
	klog.Flush()
	e.exit(exitError)
}

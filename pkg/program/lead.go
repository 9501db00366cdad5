package program

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Lead waits for the lease, runs work while it is held, and returns when work
// has. When ctx is done, work is told so and the lease is given up only after
// work has returned. When the lease is lost the process ends at once: whatever
// it still did would be done twice. Without --leader-elect, work runs right away.
func (e *Env) Lead(ctx context.Context, work func(ctx context.Context) error) error {
	work = e.leading(work)
	if !e.leaderElect {
		return work(ctx)
	}
	e.term.begin(func(why error) { e.lostLease(ctx, why) })
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
	klog.FromContext(ctx).Info("Looking for the lease", "lease", klog.KRef(e.Namespace, e.Name), "identity", e.Identity)
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
		if elector.IsLeader() { // since a moment ago
			lock.release(context.WithoutCancel(ctx))
		}
		return nil
	}
	err = work(ctx)
	giveUp()
	<-ended
	lock.release(context.WithoutCancel(ctx))
	return err
}

// leading notes that this replica leads while the work goes on.
func (e *Env) leading(work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		e.health.Leads(true)
		defer e.health.Leads(false)
		return work(ctx)
	}
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
					e.health.StandsBy()
				}
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					_ = e.term.lose(errFrozen)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the lease %s: %w", lock.Describe(), err)
	}
	return elector, nil
}

// lostLease ends the process. Nothing leaves it any more; see term.
func (e *Env) lostLease(ctx context.Context, why error) {
	klog.FromContext(ctx).Error(why, "The lease is lost, the program ends at once", "lease", klog.KRef(e.Namespace, e.Name))
	klog.Flush()
	e.exit(exitError)
}

package lease

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Lead waits for the lease, runs work while it is held, and returns when work
// has. When ctx is done, work is reported so and the lease is given up only after
// work has returned. When the lease is lost the process ends at once: whatever
// it still did would be done twice. Without --leader-elect, work runs right away.
func (l *Lease) Lead(ctx context.Context, work func(ctx context.Context) error) error {
	work = l.leading(work)
	if !l.opts.leaderElect {
		return work(ctx)
	}
	l.term.begin(func(why error) { l.lostLease(ctx, why) })
	// The elector outlives ctx: it must keep the lease until work has returned.
	electorCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	lock, err := l.newLock()
	if err != nil {
		return err
	}
	started := make(chan struct{})
	elector, err := l.newElector(electorCtx, lock, func() { close(started) })
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Looking for the lease", "lease", klog.KRef(l.Namespace, l.Name), "identity", l.Identity)
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
func (l *Lease) leading(work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		l.Health.Leads(true)
		defer l.Health.Leads(false)
		return work(ctx)
	}
}

func (l *Lease) newElector(ctx context.Context, lock resourcelock.Interface, onStarted func()) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          l.Name,
		Lock:          lock,
		LeaseDuration: l.opts.lease.duration,
		RenewDeadline: l.opts.lease.renew,
		RetryPeriod:   l.opts.lease.retry,
		// The elector would try to release a lease that it failed to renew
		// before it says that it is lost: release is done here instead.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { onStarted() },
			OnNewLeader: func(identity string) {
				if identity != l.Identity { // there is nothing to be readier for
					l.Health.StandsBy()
				}
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					_ = l.term.lose(errFrozen)
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
func (l *Lease) lostLease(ctx context.Context, why error) {
	klog.FromContext(ctx).Error(why, "The lease is lost, the program ends at once", "lease", klog.KRef(l.Namespace, l.Name))
	klog.Flush()
	l.exit(exitLost)
}

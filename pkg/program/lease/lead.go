package lease

import (
	"context"
	"fmt"
	"math"
	"sync"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Lead waits for the lease, runs work while it holds the lease, and returns when work has returned. When ctx is done,
// the context of work is done too, and the lease is released only after work has returned. When the lease is lost, the
// process exits immediately, because a new leader would repeat everything that this one still does.
//
// Without --leader-elect, this process expects to be the only one: it is not ready while another one holds the lease.
// If it cannot renew the lease, it exits only if another process has taken it.
func (l *Lease) Lead(ctx context.Context, work func(ctx context.Context) error) error {
	term := l.term
	if !l.opts.leaderElect {
		term = newTerm(math.MaxInt64) // l.term would block writes when the lease was not renewed in time
	}
	term.begin(func(why error) { l.lostLease(ctx, why) })
	// The elector outlives ctx: it must hold the lease until work has returned.
	electorCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	lock, err := l.newLock(term)
	if err != nil {
		return err
	}
	started := make(chan struct{})
	elector, err := l.newElector(electorCtx, lock, sync.OnceFunc(func() { close(started) }))
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Waiting for the lease", "lease", klog.KRef(l.Namespace, l.Name), "identity", l.Identity)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for again := true; again; again = !l.opts.leaderElect && electorCtx.Err() == nil { // it could not renew the lease
			elector.Run(electorCtx)
		}
	}()
	select {
	case <-started:
	case <-ctx.Done():
		giveUp()
		<-ended
		if elector.IsLeader() { // acquired the lease in the meantime
			lock.release(context.WithoutCancel(ctx))
		}
		return nil
	}
	l.Health.Leads(true)
	err = work(ctx)
	l.Health.Leads(false)
	giveUp()
	<-ended
	lock.release(context.WithoutCancel(ctx))
	return err
}

func (l *Lease) newElector(ctx context.Context, lock resourcelock.Interface, onStarted func()) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          l.Name,
		Lock:          lock,
		LeaseDuration: l.opts.lease.duration,
		RenewDeadline: l.opts.lease.renew,
		RetryPeriod:   l.opts.lease.retry,
		// The elector would try to release a lease that it failed to renew before it
		// reports the loss. Lead releases the lease instead.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { onStarted() },
			OnNewLeader: func(identity string) {
				switch {
				case identity == l.Identity:
				case l.opts.leaderElect: // a standby has nothing to sync before it leads
					l.Health.Standby()
				default:
					klog.FromContext(ctx).Error(nil, "Another process holds the lease; with --leader-elect=false there must be only one, so this one waits until that has ended",
						"lease", klog.KRef(l.Namespace, l.Name), "holder", identity)
					l.Health.Held(identity)
				}
			},
			OnStoppedLeading: func() {
				if l.opts.leaderElect && ctx.Err() == nil {
					_ = l.term.lose(errFrozen)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the elector for the lease %s: %w", lock.Describe(), err)
	}
	return elector, nil
}

// lostLease exits the process. The term has already blocked all writes.
func (l *Lease) lostLease(ctx context.Context, why error) {
	klog.FromContext(ctx).Error(why, "The lease is lost; this process exits so that another replica can take over", "lease", klog.KRef(l.Namespace, l.Name))
	klog.Flush()
	l.exit(exitLost)
}

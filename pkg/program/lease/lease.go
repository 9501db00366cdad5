package lease

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaseLock is the lock that the elector uses. It updates the term, and skips renewals that are not due yet: the
// elector uses one period both to check whether the lease is free, which should be often, and to renew it.
type leaseLock struct {
	resourcelock.Interface
	term *term
}

func (l *Lease) newLock(term *term) (*leaseLock, error) {
	// The client has its own rate limit, so that a burst of other writes never delays the
	// lease.
	config := rest.CopyConfig(l.Config)
	config.QPS, config.Burst, config.RateLimiter = 10, 20, nil
	config.Timeout = writeTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for the lease: %w", err)
	}
	return &leaseLock{term: term, Interface: &resourcelock.LeaseLock{
		Labels:     l.Labels,
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity},
	}}, nil
}

// Get reads the lease. If another process holds it while this one believes that it does, this process was frozen and
// its term is over.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.term.holds() && record.HolderIdentity != l.Identity() && record.HolderIdentity != "" {
		return nil, nil, l.term.lose(fmt.Errorf("%w; the holder is %s", errTaken, record.HolderIdentity))
	}
	return record, raw, err
}

// Create creates the lease and acquires it.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.term.now()
	err := l.Interface.Create(ctx, record)
	return l.noted(sent, err)
}

// Update acquires, renews or releases the lease.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.Interface.Update(ctx, record)
	}
	if l.term.young(renewEvery) {
		return nil
	}
	sent := l.term.now()
	err := l.Interface.Update(ctx, record)
	return l.noted(sent, err)
}

// noted starts the term at the time when the request was sent, because other processes measure the lease from that time
// or later.
func (l *leaseLock) noted(sent instant, err error) error {
	if err == nil {
		l.term.renew(sent)
	}
	return err
}

// release lets the next replica start immediately instead of when the lease expires.
func (l *leaseLock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	l.term.end()
	record, _, err := l.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		return
	}
	if err == nil {
		now := metav1.Now()
		err = l.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot release the lease, it expires automatically", "lease", l.Describe())
	}
}

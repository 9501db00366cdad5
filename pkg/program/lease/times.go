package lease

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// times are the configurable times of the lease; deadline.go documents how they relate.
type times struct {
	duration, renew, retry time.Duration
}

// longestLease limits how long there is no leader after a crash.
const longestLease = time.Hour

func defaultTimes() times {
	return times{duration: leaseDuration, renew: renewDeadline, retry: retryPeriod}
}

// actFor returns how long a process acts as the leader after its last renewal.
func (t times) actFor() time.Duration { return renewEvery + t.retry + t.renew }

// Options are the settings of the lease.
type Options struct {
	leaderElect bool
	lease       times
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{leaderElect: true, lease: defaultTimes()} }

// LeaderElect reports whether a program works only while it holds the lease.
func (o *Options) LeaderElect() bool { return o.leaderElect }

// Declare adds the settings to the set.
func (o *Options) Declare(set *settings.Set) {
	set.Group("Leader election",
		settings.Setting{Var: &o.leaderElect, Flag: "leader-elect", Field: "leaderElection.leaderElect",
			Help: "Elect a leader, to run several replicas. If false, run only one replica: it is not ready while another process holds the lease, and does not exit when it cannot renew the lease."},
		settings.Setting{Var: &o.lease.duration, Flag: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration", Check: o.lease.checkDuration,
			Help: "Time after which another replica can take over a lease that is not renewed, in whole seconds. It must be longer than the sum of the renew deadline, the retry period and " + (renewEvery + writeTimeout).String() + " (for renewals and the last write)."},
		settings.Setting{Var: &o.lease.renew, Flag: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline", Check: settings.Above0(&o.lease.renew),
			Help: "How long the leader tries to renew its lease before it exits."},
		settings.Setting{Var: &o.lease.retry, Flag: "leader-elect-retry-period", Field: "leaderElection.retryPeriod", Check: settings.Above0(&o.lease.retry),
			Help: "Time between two checks of the lease. The leader renews it at most every " + renewEvery.String() + "."})
}

// Validate checks settings that depend on each other.
func (o *Options) Validate() error { return o.lease.validate() }

// checkDuration requires whole seconds, because the Lease object stores whole seconds: other replicas would take over
// a lease of 15.9 s after 15 s.
func (t *times) checkDuration() error {
	if t.duration <= 0 || t.duration%time.Second != 0 || t.duration > longestLease {
		return fmt.Errorf("must be in whole seconds, from 1s to %v, not %v", longestLease, t.duration)
	}
	return nil
}

// validate ensures that the last write of a former leader is over before the next leader starts. It first checks each
// time alone, because a sum can overflow.
func (t *times) validate() error {
	if t.renew >= t.duration || t.retry >= t.duration || t.actFor()+writeTimeout >= t.duration {
		return fmt.Errorf("leader election: the sum of --leader-elect-retry-period (%v), --leader-elect-renew-deadline (%v) and %v (for renewals and the last write) "+
			"must be less than --leader-elect-lease-duration (%v)", t.retry, t.renew, renewEvery+writeTimeout, t.duration)
	}
	// The elector adds a jitter of up to a fifth to the retry period, and at least one retry
	// must happen within the deadline.
	if t.renew <= t.retry+t.retry/5 {
		return fmt.Errorf("leader election: --leader-elect-renew-deadline (%v) must be greater than 1.2 times --leader-elect-retry-period (%v)", t.renew, t.retry)
	}
	return nil
}

package lease

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// times are those of the lease; deadline.go says by which law they go.
type times struct {
	duration, renew, retry time.Duration
}

// longestLease bounds how long nobody may lead after a leader has died.
const longestLease = time.Hour

func defaultTimes() times {
	return times{duration: leaseDuration, renew: renewDeadline, retry: retryPeriod}
}

// actFor is how long after its last renewal a process acts as the leader.
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
	set.Group("Leader election", func(fs *pflag.FlagSet) {
		fs.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "Work only while holding the lease, so that more than one replica may run.")
		fs.DurationVar(&o.lease.duration, "leader-elect-lease-duration", o.lease.duration, "For how long a lease that is not renewed is left to its holder; whole seconds. It must be longer than the renew deadline, the retry period and "+(renewEvery+writeTimeout).String()+" for renewals and the last write together.")
		fs.DurationVar(&o.lease.renew, "leader-elect-renew-deadline", o.lease.renew, "For how long the leader tries to renew its lease before it ends.")
		fs.DurationVar(&o.lease.retry, "leader-elect-retry-period", o.lease.retry, "Time between two looks at the lease; it is renewed at most every "+renewEvery.String()+".")
	},
		settings.Setting{Flag: "leader-elect", Field: "leaderElection.leaderElect"},
		settings.Setting{Flag: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration", Check: o.lease.checkDuration},
		settings.Setting{Flag: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline", Check: func() error { return above0(o.lease.renew) }},
		settings.Setting{Flag: "leader-elect-retry-period", Field: "leaderElection.retryPeriod", Check: func() error { return above0(o.lease.retry) }})
}

// Validate looks at what several settings come to together.
func (o *Options) Validate() error { return o.lease.validate() }

// checkDuration: the lease object holds whole seconds, so that others would take away
// one of 15.9 s after 15.
func (t *times) checkDuration() error {
	if t.duration <= 0 || t.duration%time.Second != 0 || t.duration > longestLease {
		return fmt.Errorf("must be whole seconds from 1s to %v, not %v", longestLease, t.duration)
	}
	return nil
}

func above0(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("must be above 0, not %v", d)
	}
	return nil
}

// validate keeps the law by which a write of a leader that was is over before the next
// one leads. Each time alone is looked at first: a sum may overflow.
func (t *times) validate() error {
	if t.renew >= t.duration || t.retry >= t.duration || t.actFor()+writeTimeout >= t.duration {
		return fmt.Errorf("leader election: the retry period (%v), the renew deadline (%v) and %v for renewals and the last write must together be shorter than the lease duration (%v): "+
			"--leader-elect-retry-period, --leader-elect-renew-deadline, --leader-elect-lease-duration", t.retry, t.renew, renewEvery+writeTimeout, t.duration)
	}
	// Tries are spread by a fifth, and one at least must be made in time.
	if t.renew <= t.retry+t.retry/5 {
		return fmt.Errorf("leader election: the renew deadline (%v) must be longer than the retry period (%v) and a fifth: "+
			"--leader-elect-renew-deadline, --leader-elect-retry-period", t.renew, t.retry)
	}
	return nil
}

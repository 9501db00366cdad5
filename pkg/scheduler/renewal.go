package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Only the owner of a hand-made unit knows when its work has ended. A forgotten unit would hold its quota forever, so
// the owner must renew it.

// Renewal is how long a hand-made unit holds quota. It must not be changed.
type Renewal struct {
	// Timeout is the time after the admission or the last renewal.
	Timeout time.Duration
	// At is when the owner last renewed the unit, by the owner's clock; zero if never. A time in the future does not
	// count. Otherwise, the unit would never have to be renewed again.
	At time.Time
	// NotBefore is the earliest time at which the unit loses its quota.
	NotBefore time.Time
}

// expiresAt returns when a unit loses its quota if it is not renewed; 0 if never.
func (u *unit) expiresAt(now time.Time) instant {
	r := u.Renewal
	if r == nil || u.dequeuedAt == 0 || u.Phase != Dequeued && u.Phase != Running {
		return 0
	}
	last := u.dequeuedAt
	if !r.At.IsZero() && !r.At.After(now) {
		last = max(last, instantOf(r.At))
	}
	return max(last.plus(r.Timeout), instantOf(r.NotBefore))
}

// isExpired reports whether the unit must end because it was not renewed.
func (u *unit) isExpired(now time.Time) bool {
	at := u.expiresAt(now)
	return at != 0 && at <= instantOf(now)
}

// expiry explains why the unit has ended.
func (u *unit) expiry() quota.Refusal {
	return quota.Refusal{Reason: wellknown.ReasonNotRenewed, Sentence: fmt.Sprintf(
		"the unit was created by hand, and its status.renewTime was not set for %v; its quota is free for others. Stop its work, or create another unit for it", u.Renewal.Timeout)}
}

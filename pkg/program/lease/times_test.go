package lease

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
)

func TestLeaseTimesLeaveRoomForTheLastWrite(t *testing.T) {
	defaults := defaultTimes()
	require.NoError(t, errors.Join(defaults.checkDuration(), defaults.validate()))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) time.Duration {
			return rapid.OneOf(
				rapid.Map(rapid.Int64Range(-1, 60), func(s int64) time.Duration { return time.Duration(s) * time.Second }),
				rapid.Map(rapid.Int64Range(0, 60), func(tenths int64) time.Duration { return time.Duration(tenths) * time.Second / 10 }),
				rapid.Just[time.Duration](math.MaxInt64)).Draw(t, name)
		}
		drawn := times{duration: draw("lease"), renew: draw("renew"), retry: draw("retry")}
		err := errors.Join(drawn.checkDuration(), settings.Above0(&drawn.renew)(), settings.Above0(&drawn.retry)(), drawn.validate())
		// The duration that other replicas use, and the time that writes may need, as numbers that cannot overflow.
		held := float64(int64(drawn.duration / time.Second))
		needed := renewEvery.Seconds() + drawn.renew.Seconds() + drawn.retry.Seconds() + writeTimeout.Seconds()
		switch {
		case err == nil && (drawn.renew <= 0 || drawn.retry <= 0 || held <= needed):
			t.Errorf("%+v is accepted", drawn)
		case err == nil:
			_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				LeaseDuration: drawn.duration, RenewDeadline: drawn.renew, RetryPeriod: drawn.retry,
				Lock:      &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}},
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			if err != nil {
				t.Errorf("%+v is accepted here and refused there: %v", drawn, err)
			}
		}
	})
}

func TestALeaseLastsWholeSecondsForTheObjectHoldsNoOthers(t *testing.T) {
	for duration, taken := range map[time.Duration]bool{
		15 * time.Second: true, time.Hour: true,
		0: false, -time.Second: false, 15900 * time.Millisecond: false, time.Second - 1: false, time.Hour + time.Second: false,
	} {
		if err := (&times{duration: duration}).checkDuration(); (err == nil) != taken {
			t.Errorf("%v: error is %v", duration, err)
		}
	}
}

package scheduler_test

import (
	"testing"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// stake counts the worlds in which a law is verified, those in which it is at stake, and the evictions in them.
type stake struct{ worlds, atStake, evictions int }

// judge returns the stake of a law. At its end, the test reports it, and fails unless the law was at stake in one of 100
// worlds: otherwise, it proves little.
func judge(t *testing.T, law string) *stake {
	t.Helper()
	s := &stake{}
	t.Cleanup(func() {
		t.Logf("%s: at stake in %d of %d worlds, with %d evictions", law, s.atStake, s.worlds, s.evictions)
		if !t.Failed() && 100*s.atStake < max(s.worlds, 1) {
			t.Errorf("%s: the test proves little", law)
		}
	})
	return s
}

// add counts a world with its evictions.
func (s *stake) add(isAtStake bool, evictions []scheduler.Write) {
	s.worlds++
	if isAtStake {
		s.atStake++
	}
	s.evictions += len(evictions)
}

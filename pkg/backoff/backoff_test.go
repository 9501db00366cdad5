package backoff

import (
	"math"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTheFirstStepsAreFreeAndTheOthersWaitTwiceAsLongEachTime(t *testing.T) {
	p := Policy{Free: 2, Initial: 10 * time.Second, Max: time.Minute, Quiet: time.Hour}
	var waits []time.Duration
	state, now := State{}, noon
	for range 7 {
		state = p.Step(state, now)
		waits = append(waits, state.Until.Sub(now))
		now = state.Until
	}
	want := []time.Duration{0, 0, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	if !slices.Equal(waits, want) {
		t.Errorf("the waits are %v, want %v", waits, want)
	}
}

func TestStepsAreForgottenWhenItHasBeenQuietAfterTheirWait(t *testing.T) {
	p := Policy{Free: 1, Initial: 10 * time.Second, Max: time.Minute, Quiet: time.Minute}
	twice := p.Step(p.Step(State{}, noon), noon) // waits for 10 s
	if got := p.Step(twice, noon.Add(69*time.Second)); got.Count != 3 {
		t.Errorf("the third step counts as number %d", got.Count)
	}
	again := p.Step(twice, noon.Add(70*time.Second))
	if again != (State{Count: 1, Until: noon.Add(70 * time.Second)}) {
		t.Errorf("after a quiet time the state is %+v", again)
	}
	p.Quiet = 0
	if got := p.Step(twice, noon.AddDate(1, 0, 0)); got.Count != 3 {
		t.Errorf("without a quiet time, the third step counts as number %d", got.Count)
	}
}

func TestTheCountDoesNotOverflow(t *testing.T) {
	p := Policy{Initial: time.Second, Max: time.Minute}
	if got := p.Step(State{Count: math.MaxInt32, Until: noon}, noon); got != (State{Count: math.MaxInt32, Until: noon.Add(time.Minute)}) {
		t.Errorf("the state is %+v", got)
	}
}

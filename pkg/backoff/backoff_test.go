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

func TestTheTimeOfATryThatFailsIsNotQuiet(t *testing.T) {
	p := Policy{Initial: time.Minute, Max: time.Hour, Quiet: 30 * time.Minute}
	state, now := State{}, noon
	for range 4 {
		began := now
		now = now.Add(time.Hour)
		state = p.Fail(state, began, now)
		now = state.Until
	}
	if state.Count != 4 {
		t.Errorf("after four tries the state is %+v", state)
	}
	if got := p.Fail(state, now.Add(30*time.Minute), now.Add(time.Hour)); got.Count != 1 {
		t.Errorf("a try that began after a quiet time counts as number %d", got.Count)
	}
}

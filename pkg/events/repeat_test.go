package events

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestAnEventThatIsRepeatedForHoursIsOneEventWithFewWrites(t *testing.T) {
	client, clk := fake.NewClientset(), clocktesting.NewFakeClock(noon)
	w, _ := run(t, client, clk, nil)
	for count := range repeats.Free { // the first ones are written immediately
		w.Repeat(about("job", "HeldAgain", "1"))
		require.Becomes(t, "written", func() bool { got := stored(t, client); return len(got) == 1 && got[0].Count == count+1 })
	}
	const times = 240
	for range times {
		w.Repeat(about("job", "HeldAgain", "1"))
		pass(t, w, clk, time.Minute, time.Minute)
	}
	pass(t, w, clk, repeats.Max, time.Minute)
	if got := stored(t, client); len(got) != 1 || got[0].Count != repeats.Free+times || !got[0].LastTimestamp.After(got[0].FirstTimestamp.Time) {
		t.Errorf("the events are %+v", got)
	}
	if all := sent(client, "create", "patch"); all < 20 || all > 40 { // every ten minutes
		t.Errorf("%d repetitions cost %d writes", times, all)
	}
	pass(t, w, clk, repeats.Max+repeats.Quiet, time.Minute)
	if left := entries(w); left != 0 {
		t.Errorf("after a quiet time %d events are remembered", left)
	}
}

func TestARestartContinuesTheCount(t *testing.T) {
	e := about("job", "HeldAgain", "1")
	client := fake.NewClientset(e.build(Source{Component: "test"}, metav1.NewTime(noon), 7))
	w, _ := run(t, client, clocktesting.NewFakeClock(noon.Add(time.Minute)), nil)
	e.Message = "again"
	w.Repeat(e)
	require.Becomes(t, "counted", func() bool { return stored(t, client)[0].Count == 8 })
	if got := stored(t, client)[0]; got.Message != "again" || got.Type != corev1.EventTypeNormal {
		t.Errorf("the event is %+v", got)
	}
}

func TestRepetitionsAreWrittenBeforeTheEnd(t *testing.T) {
	client, clk := fake.NewClientset(), clocktesting.NewFakeClock(noon)
	w, stop := run(t, client, clk, nil)
	const times = 20
	for range times {
		w.Repeat(about("job", "HeldAgain", "1"))
	}
	require.Becomes(t, "written once", func() bool { return len(stored(t, client)) == 1 })
	for range times {
		w.Repeat(about("job", "HeldAgain", "1"))
	}
	stop()
	if got := stored(t, client)[0].Count; got != 2*times {
		t.Errorf("the event has count %d, want %d", got, 2*times)
	}
}

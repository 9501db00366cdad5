package events

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAnEventThatIsRepeatedForHoursIsOneEventWithFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, _ := run(t, client, nil)
		for count := range repeats.Free { // the first ones are written immediately
			w.Repeat(about("job", "HeldAgain", "1"))
			synctest.Wait()
			if got := stored(t, client); len(got) != 1 || got[0].Count != count+1 {
				t.Errorf("after %d times, the events are %+v", count+1, got)
			}
		}
		const times = 240
		for range times {
			w.Repeat(about("job", "HeldAgain", "1"))
			pass(time.Minute)
		}
		pass(repeats.Max)
		if got := stored(t, client); len(got) != 1 || got[0].Count != repeats.Free+times || !got[0].LastTimestamp.After(got[0].FirstTimestamp.Time) {
			t.Errorf("the events are %+v", got)
		}
		if all := sent(client, "create", "patch"); all < 20 || all > 40 { // every ten minutes
			t.Errorf("%d repetitions cost %d writes", times, all)
		}
		pass(repeats.Max + repeats.Quiet)
		if left := entries(w); left != 0 {
			t.Errorf("after a quiet time %d events are remembered", left)
		}
	})
}

func TestARestartContinuesTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := about("job", "HeldAgain", "1")
		client := fake.NewClientset(e.build(Source{Component: "test"}, metav1.Now(), 7))
		pass(time.Minute)
		w, _ := run(t, client, nil)
		e.Message = "again"
		w.Repeat(e)
		synctest.Wait()
		if got := stored(t, client)[0]; got.Count != 8 || got.Message != "again" || got.Type != corev1.EventTypeNormal {
			t.Errorf("the event is %+v", got)
		}
	})
}

func TestRepetitionsAreWrittenBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, stop := run(t, client, nil)
		const times = 20
		for range times {
			w.Repeat(about("job", "HeldAgain", "1"))
		}
		synctest.Wait()
		if got := stored(t, client); len(got) != 1 {
			t.Errorf("the events are %+v", got)
		}
		for range times {
			w.Repeat(about("job", "HeldAgain", "1"))
		}
		stop()
		if got := stored(t, client)[0].Count; got != 2*times {
			t.Errorf("the event has count %d, want %d", got, 2*times)
		}
	})
}

package events

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

func about(name string, reason wellknown.EventReason, key string) Event {
	return Event{
		Object: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Type:   corev1.EventTypeNormal, Reason: reason, Message: "because", Key: key,
	}
}

// run starts a writer; the returned function ends it and waits. It also ends with the test.
func run(t *testing.T, client kubernetes.Interface, dropped func(string)) (*Writer, func()) {
	t.Helper()
	w := NewWriter(client.CoreV1(), Source{Component: "test", Instance: "one"}, clock.RealClock{}, dropped)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.While(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return w, stop
}

func stored(t *testing.T, client kubernetes.Interface) []corev1.Event {
	t.Helper()
	list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// sent returns how many requests with one of the verbs were sent.
func sent(client *fake.Clientset, verbs ...string) (n int) {
	for _, action := range client.Actions() {
		if slices.Contains(verbs, action.GetVerb()) {
			n++
		}
	}
	return n
}

func entries(w *Writer) int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.entries) }

func TestNoEventOfABurstIsLostAndNoneIsWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on a busy machine, the writes take longer than the end waits
		client := fake.NewClientset()
		w, stop := run(t, client, nil)
		const jobs = 500
		for i := range jobs {
			e := about(fmt.Sprint("job-", i), "Released", "1")
			w.Write(e)
			w.Write(e)
		}
		stop()
		if got := len(stored(t, client)); got != jobs {
			t.Errorf("%d events of %d were written", got, jobs)
		}
	})
}

func TestAnEventHasWhatDescribeShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, _ := run(t, client, nil)
		now := time.Now()
		w.Write(about("job", "Released", "1"))
		synctest.Wait()
		e := stored(t, client)[0]
		if e.InvolvedObject.UID != "uid-job" || e.Source.Component != "test" || e.ReportingController != "test" || e.ReportingInstance != "one" ||
			e.Count != 1 || !e.FirstTimestamp.Time.Equal(now) || !e.LastTimestamp.Time.Equal(now) || e.Type != corev1.EventTypeNormal {
			t.Errorf("the event is %+v", e)
		}
	})
}

func TestNames(t *testing.T) {
	base := about("job", "Queued", "1")
	again, otherKey, otherUID, long := base, base, base, base
	again.Message = "another"
	otherKey.Key = "2"
	otherUID.Object.UID = "another"
	long.Object.Name = strings.Repeat("a", 234) + "." + strings.Repeat("b", 18)
	if base.Name() != again.Name() || base.Name() == otherKey.Name() || base.Name() == otherUID.Name() {
		t.Errorf("names are %s, %s, %s, %s", base.Name(), again.Name(), otherKey.Name(), otherUID.Name())
	}
	for _, e := range []Event{base, long} {
		if errs := validation.IsDNS1123Subdomain(e.Name()); len(errs) > 0 {
			t.Errorf("%s: %v", e.Name(), errs)
		}
	}
}

func TestAKeptEventIsRenewedBeforeItIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, start := fake.NewClientset(), time.Now()
		w, _ := run(t, client, nil)
		e := about("job", "Queued", "1")
		w.Keep(e)
		synctest.Wait()
		e.Message = "because of something else"
		w.Keep(e)
		pass(renewEvery - time.Second)
		if got := stored(t, client)[0]; got.Count != 1 {
			t.Fatalf("it was renewed too early: %+v", got)
		}
		pass(2 * time.Second)
		if got := stored(t, client)[0]; got.Count != 2 || got.Message != e.Message || !got.LastTimestamp.After(start) || !got.FirstTimestamp.Time.Equal(start) {
			t.Errorf("the event is %+v", got)
		}
		w.Forget(e.Object.UID)
		pass(2 * renewEvery)
		if got := stored(t, client)[0]; got.Count != 2 {
			t.Errorf("it was renewed after it was no longer kept: %+v", got)
		}
	})
}

func TestAKeptEventIsWrittenAgainWhenItsRevisionChangesAndNotWhenItsMessageDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, stop := run(t, client, nil)
		e := about("job", "Queued", "1")
		said := func(message string, count int32) {
			t.Helper()
			synctest.Wait()
			if all := stored(t, client); len(all) != 1 || all[0].Message != message || all[0].Count != count || all[0].Type != e.Type {
				t.Errorf("want one event with count %d and the message %q, got %+v", count, message, all)
			}
		}
		w.Keep(e)
		said("because", 1)
		for i, next := range []struct{ revision, message string }{{"stopped", "stopped"}, {"", "used 3"}, {"max", "max is 4"}, {"max again", "max is 5"}} {
			e.Revision, e.Message, e.Type = next.revision, next.message, corev1.EventTypeWarning
			pass(time.Second)
			w.Keep(e)
			said(next.message, int32(i+2))
			if got := stored(t, client)[0]; !got.LastTimestamp.Time.Equal(time.Now()) {
				t.Errorf("%q is not the last event: %v", next.message, got.LastTimestamp)
			}
			e.Message = "other figures"
			w.Keep(e)
			e.Message = next.message
			w.Keep(e)
		}
		stop()
		// The next process reads from the event what it says.
		if got := sent(client, "patch"); got != 4 {
			t.Errorf("%d patches were sent for 4 revisions", got)
		}
		w, stop = run(t, client, nil)
		e.Message = "other figures"
		w.Keep(e)
		synctest.Wait()
		e.Revision, e.Message = "", "nobody has to do anything"
		w.Keep(e)
		said(e.Message, 6)
		stop()
		if got := sent(client, "patch"); got != 5 {
			t.Errorf("%d patches were sent when the next process has written one revision", got)
		}
		w, _ = run(t, client, nil)
		e.Revision, e.Message = "stopped", "stopped"
		w.Keep(e)
		said(e.Message, 7)
	})
}

func TestAnotherKeptEventTakesThePlaceOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, _ := run(t, client, nil)
		w.Keep(about("job", "Queued", "1"))
		w.Keep(about("job", "Queued", "1/NoQuota"))
		synctest.Wait()
		if written, kept := len(stored(t, client)), entries(w); written != 2 || kept != 1 {
			t.Errorf("%d events are written, want 2, and %d are kept, want 1", written, kept)
		}
	})
}

func TestARestartRenewsByTheAgeOfTheEvent(t *testing.T) {
	for age, after := range map[time.Duration]time.Duration{
		30 * time.Minute: 15 * time.Minute,
		-24 * time.Hour:  renewEvery, // by a clock that is ahead
	} {
		synctest.Test(t, func(t *testing.T) {
			e := about("job", "Queued", "1")
			written := e.build(Source{Component: "test"}, metav1.NewTime(time.Now().Add(-age)), 1)
			written.FirstTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) // it was renewed since
			client := fake.NewClientset(written)
			w, _ := run(t, client, nil)
			w.Keep(e)
			pass(after - time.Second)
			if count := stored(t, client)[0].Count; count != 1 || sent(client, "get") != 1 {
				t.Errorf("the event that is %v old was renewed too early: its count is %d, and it was read %d times", age, count, sent(client, "get"))
			}
			pass(2 * time.Second)
			if count := stored(t, client)[0].Count; count != 2 {
				t.Errorf("the event that was %v old was not renewed: its count is %d", age, count)
			}
		})
	}
}

func TestAnEventThatWasForgottenIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, _ := run(t, client, nil)
		e := about("job", "Queued", "1")
		w.Keep(e)
		synctest.Wait()
		require.NoError(t, client.CoreV1().Events("ns").Delete(t.Context(), e.Name(), metav1.DeleteOptions{}))
		pass(renewEvery)
		if got := len(stored(t, client)); got != 1 {
			t.Errorf("%d events are written, want 1", got)
		}
	})
}

func TestFailedWritesAreTriedAgainAndHopelessOnesAreDroppedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var tries atomic.Int32
		client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch name := action.(clienttesting.CreateAction).GetObject().(*corev1.Event).InvolvedObject.Name; {
			case name == "gone":
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
			case name == "going":
				err := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errors.New("the namespace is being terminated"))
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return true, nil, err
			case tries.Add(1) < 3:
				return true, nil, apierrors.NewInternalError(fmt.Errorf("not now"))
			default:
				return false, nil, nil
			}
		})
		var dropped []string
		w, stop := run(t, client, func(reason string) { dropped = append(dropped, reason) })
		for _, name := range []string{"gone", "going", "job"} {
			w.Write(about(name, "Released", "1"))
		}
		pass(3 * retryMin)
		if written, left := len(stored(t, client)), entries(w); written != 1 || left != 0 {
			t.Errorf("after three tries, %d events are written, want 1, and %d are left", written, left)
		}
		stop()
		if slices.Sort(dropped); !slices.Equal(dropped, []string{"Forbidden", "NotFound"}) || sent(client, "create") != 5 {
			t.Errorf("events were dropped because of %q, after %d requests", dropped, sent(client, "create"))
		}
	})
}

func TestTheEndDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(fmt.Errorf("never"))
		})
		w, stop := run(t, client, nil)
		w.Write(about("job", "Released", "1"))
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != flushFor {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWhatIsReportedLastIsWrittenToo(t *testing.T) {
	client := fake.NewClientset()
	w := NewWriter(client.CoreV1(), Source{Component: "test", Instance: "one"}, clock.RealClock{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	failed := errors.New("it ends badly")
	err := w.While(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		w.Write(about("a", "Released", "last"))
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error is %v", err)
	}
	if got := len(stored(t, client)); got != 1 {
		t.Errorf("%d events are written, want 1", got)
	}
}

func TestAnEventWhoseWriteFailsAtTheEndIsTriedAgain(t *testing.T) {
	client := fake.NewClientset()
	w := NewWriter(client.CoreV1(), Source{Component: "test", Instance: "one"}, clock.RealClock{}, nil)
	var failed atomic.Bool
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		for !w.queue.ShuttingDown() {
			goruntime.Gosched()
		}
		return !failed.Swap(true), nil, apierrors.NewInternalError(fmt.Errorf("not now"))
	})
	_ = w.While(t.Context(), func(context.Context) error {
		w.Write(about("job", "Released", "1"))
		return nil
	})
	if got := len(stored(t, client)); got != 1 {
		t.Errorf("%d events are written, want 1", got)
	}
}

func TestAnEventWhoseCountSomebodyHasSetToZeroIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := about("job", "Queued", "1")
		client := fake.NewClientset(e.build(Source{Component: "test"}, metav1.Now(), 0))
		w, _ := run(t, client, nil)
		w.Keep(e)
		synctest.Wait()
		if got := sent(client, "get"); got != 1 {
			t.Errorf("it was read %d times, want once", got)
		}
	})
}

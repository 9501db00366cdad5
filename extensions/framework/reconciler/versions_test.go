package reconciler

import (
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/test/require"
)

// twoVersions is a kind with an older version; its other methods are not called.
type twoVersions struct{ framework.Adapter }

func (twoVersions) Kind() framework.Kind {
	return framework.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "a.b", Version: "v1", Kind: "Thing"}, Resource: "things", OlderVersions: []string{"v1alpha1"}}
}

func (twoVersions) New() framework.Object { return &batchv1.Job{} }

// apiServer serves versions of a kind and records the requests.
type apiServer struct {
	clock *clocktesting.FakeClock
	jobs  versionedJobs

	mu      sync.Mutex
	version string
	fault   error
	asked   []string
}

// newAPIServer returns an API server that serves the older version. The kind was listed in that version.
func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{version: "v1alpha1", clock: clocktesting.NewFakeClock(noon)}
	config := listServer(t, `{"metadata": {"resourceVersion": "5"}, "items": []}`, func(r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	})
	jobs, err := newVersioned(config, twoVersions{}, s.serves, s.clock)
	require.NoError(t, err)
	s.jobs = jobs
	require.NoError(t, s.list(t))
	return s
}

func (s *apiServer) serves(framework.Kind) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, true, s.fault
}

func (s *apiServer) change(version string, fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.fault = version, fault
}

func (s *apiServer) list(t *testing.T) error {
	t.Helper()
	_, err := s.jobs.Each(t.Context(), "", metav1.ListOptions{}, func(framework.Object) error { return nil })
	return err
}

func (s *apiServer) watch(t *testing.T) error {
	t.Helper()
	w, err := s.jobs.Watch(t.Context(), "", metav1.ListOptions{})
	if err == nil {
		w.Stop()
	}
	return err
}

func (s *apiServer) expectAsked(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 || s.asked[len(s.asked)-1] != want {
		t.Errorf("the API server was asked %q, want %q last", s.asked, want)
	}
}

func TestABetterVersionIsTakenAsSoonAsItIsServed(t *testing.T) {
	s := newAPIServer(t)
	require.NoError(t, s.watch(t))
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things")

	s.change("v1", nil)
	if err := s.watch(t); !apierrors.IsResourceExpired(err) {
		t.Errorf("what was listed in another version is watched on: %v", err)
	}
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things")
	require.NoError(t, s.list(t))
	require.NoError(t, s.watch(t))
	s.expectAsked(t, "GET /apis/a.b/v1/things")
}

// The watch continues until a better version is served, however long the list takes.
func TestAWatchEndsWhenThereIsABetterVersion(t *testing.T) {
	s := newAPIServer(t)
	w, err := s.jobs.Watch(t.Context(), "", metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	look := func(version string, fault error, patience time.Duration) (ended bool) {
		t.Helper()
		s.change(version, fault)
		for deadline := time.Now().Add(time.Minute); !s.clock.HasWaiters(); {
			if time.Now().After(deadline) {
				t.Fatal("nobody looks again")
			}
			runtime.Gosched()
		}
		s.clock.Step(recheckInterval)
		select {
		case _, open := <-w.ResultChan():
			return !open
		case <-time.After(patience):
			return false
		}
	}
	const moment = 50 * time.Millisecond
	if look("v1alpha1", nil, moment) || look("v1", errors.New("timeout"), moment) {
		t.Error("the watch ended though nothing better is known")
	}
	if !look("v1", nil, time.Minute) {
		t.Error("the watch goes on in the older version")
	}
}

func TestAListGoesOnInTheVersionThatItBeganIn(t *testing.T) {
	s := newAPIServer(t)
	s.change("v1", nil)
	_, err := s.jobs.Each(t.Context(), "", metav1.ListOptions{Continue: "more"}, func(framework.Object) error { return nil })
	require.NoError(t, err)
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things")
	if err := s.watch(t); !apierrors.IsResourceExpired(err) {
		t.Errorf("what was listed in another version is watched on: %v", err)
	}
}

func TestAPatchGoesThroughTheBestVersion(t *testing.T) {
	s := newAPIServer(t)
	s.change("v1", nil)
	_, err := s.jobs.Patch(t.Context(), types.MergePatchType, "n", "a", []byte(`{}`))
	require.NoError(t, err)
	s.expectAsked(t, "PATCH /apis/a.b/v1/namespaces/n/things/a")
}

func TestNotToKnowForAMomentWhatIsServedIsNoCauseToListAgain(t *testing.T) {
	s := newAPIServer(t)
	s.change("v1alpha1", errors.New("timeout"))
	if err := s.watch(t); err != nil {
		t.Errorf("the watch gave up: %v", err)
	}
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things")
	if err := s.list(t); err == nil {
		t.Error("it was listed in a version that nobody knows to be served")
	}
	if _, err := s.jobs.Patch(t.Context(), types.MergePatchType, "n", "a", []byte(`{}`)); err == nil {
		t.Error("a job was patched in a version that may not be the best")
	}
}

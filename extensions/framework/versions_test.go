package framework

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// twoVersions is a kind with an older version; nothing else of it is asked for.
type twoVersions struct{ Adapter }

func (twoVersions) Kind() Kind {
	return Kind{GroupVersionKind: schema.GroupVersionKind{Group: "a.b", Version: "v1", Kind: "Thing"}, Resource: "things", OlderVersions: []string{"v1alpha1"}}
}

func (twoVersions) New() Object { return &batchv1.Job{} }

// apiServer serves a version of things, and notes what it is asked.
type apiServer struct {
	version string
	fault   error
	asked   []string
	jobs    versionedJobs
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{version: "v1alpha1"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, fmt.Sprintf("%s %s %ss", r.Method, r.URL.Path, r.URL.Query().Get("timeoutSeconds")))
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, `{"metadata": {"resourceVersion": "5"}, "items": []}`)
		}
	}))
	t.Cleanup(server.Close)
	jobs, err := newVersioned(&rest.Config{Host: server.URL}, twoVersions{}, func(Kind) (string, bool, error) { return s.version, true, s.fault })
	if err != nil {
		t.Fatal(err)
	}
	s.jobs = jobs
	return s
}

func (s *apiServer) watch(t *testing.T, opts metav1.ListOptions) error {
	t.Helper()
	w, err := s.jobs.Watch(t.Context(), "", opts)
	if err == nil {
		w.Stop()
	}
	return err
}

func (s *apiServer) expectAsked(t *testing.T, want string) {
	t.Helper()
	if len(s.asked) == 0 || s.asked[len(s.asked)-1] != want {
		t.Errorf("the API server was asked %q, want %q last", s.asked, want)
	}
}

func TestABetterVersionIsTakenAsSoonAsItIsServed(t *testing.T) {
	for _, first := range []string{"List", "Watch"} {
		t.Run("after a "+first, func(t *testing.T) {
			s := newAPIServer(t)
			list := func() error {
				if first == "Watch" {
					return s.watch(t, metav1.ListOptions{SendInitialEvents: new(true)})
				}
				_, err := s.jobs.List(t.Context(), "", metav1.ListOptions{})
				return err
			}
			if err := list(); err != nil {
				t.Fatal(err)
			}
			if err := s.watch(t, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			s.expectAsked(t, "GET /apis/a.b/v1alpha1/things 15s")

			s.version = "v1"
			asked := len(s.asked)
			if err := s.watch(t, metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
				t.Errorf("what was listed in another version is watched on: %v", err)
			}
			if len(s.asked) != asked {
				t.Errorf("the API server was asked %q", s.asked[asked:])
			}
			if err := list(); err != nil {
				t.Fatal(err)
			}
			if err := s.watch(t, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			s.expectAsked(t, "GET /apis/a.b/v1/things s")
		})
	}
}

func TestAListThatIsWatchedIsNotCutOffInItsMiddle(t *testing.T) {
	s := newAPIServer(t)
	if err := s.watch(t, metav1.ListOptions{SendInitialEvents: new(true)}); err != nil {
		t.Fatal(err)
	}
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things 120s")
}

func TestAPatchGoesThroughTheBestVersion(t *testing.T) {
	s := newAPIServer(t)
	if _, err := s.jobs.List(t.Context(), "", metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	s.version = "v1"
	if _, err := s.jobs.Patch(t.Context(), "n", "a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	s.expectAsked(t, "PATCH /apis/a.b/v1/namespaces/n/things/a s")
}

func TestNotToKnowForAMomentWhatIsServedIsNoCauseToListAgain(t *testing.T) {
	s := newAPIServer(t)
	if _, err := s.jobs.List(t.Context(), "", metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	s.fault = errors.New("timeout")
	if err := s.watch(t, metav1.ListOptions{}); err != nil {
		t.Errorf("the watch gave up: %v", err)
	}
	s.expectAsked(t, "GET /apis/a.b/v1alpha1/things 15s")
	if _, err := s.jobs.List(t.Context(), "", metav1.ListOptions{}); err == nil {
		t.Error("it was listed in a version that nobody knows to be served")
	}
	if _, err := s.jobs.Patch(t.Context(), "n", "a", []byte(`{}`)); err == nil {
		t.Error("a job was patched in a version that may not be the best")
	}
}

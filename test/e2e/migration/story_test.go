package migration

import (
	"context"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// story submits converted jobs, each in its own namespace.
type story struct {
	t    *testing.T
	main *harness.Env
	// manifests has the manifests by job name.
	manifests map[string]string
	envs      map[string]*harness.Env // by namespace
	spaces    map[string]string       // namespaces of jobs
}

// newStory applies the objects, and waits until the tree is in force. It deletes all of them at the end of the test.
func newStory(t *testing.T, main string, manifests map[string]string, objects string) *story {
	t.Helper()
	s := &story{t: t, main: suite.Env(t, main), manifests: manifests, envs: map[string]*harness.Env{}, spaces: map[string]string{}}
	s.envs[main] = s.main
	for name, manifest := range manifests {
		_, after, _ := strings.Cut(manifest, "\n  namespace: ")
		namespace, _, _ := strings.Cut(after, "\n")
		s.spaces[name] = namespace
		if s.envs[namespace] == nil {
			s.envs[namespace] = suite.Part(t, namespace)
		}
	}
	t.Cleanup(func() {
		if out, err := suite.KubectlWith(context.Background(), objects, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err, out)
		}
	})
	s.main.ApplyAsIs(objects)
	return s
}

func (s *story) in(name string) *harness.Env {
	s.t.Helper()
	env := s.envs[s.spaces[name]]
	if env == nil {
		s.t.Fatalf("there is no job %s", name)
	}
	return env
}

// submit applies jobs one by one, each once its predecessor has a unit, to fix their order.
func (s *story) submit(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.in(name).ApplyAsIs(s.manifests[name])
		s.in(name).WaitForUnit("Job", name)
	}
}

// starts waits until the jobs are admitted. finish then shows that they also run.
func (s *story) starts(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.in(name).WaitForPhase("Job", name, "Dequeued", "Running")
	}
}

// waits waits until a job waits for the reason with a message that contains the text.
func (s *story) waits(name string, reason wellknown.Reason, text string) {
	s.t.Helper()
	if unit := s.in(name).WaitForReason("Job", name, reason); !strings.Contains(unit.Status.Message, text) {
		s.t.Errorf("%s waits with %q, want %q", name, unit.Status.Message, text)
	}
}

// waitsAgain waits until an evicted job is queued again.
func (s *story) waitsAgain(name string) {
	s.t.Helper()
	s.in(name).WaitForPhase("Job", name, "Enqueued")
}

// neverReleased checks that the jobs have never been released.
func (s *story) neverReleased(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if unit := s.in(name).Unit("Job", name); unit == nil || unit.Status.Attempts != 0 {
			s.t.Errorf("%s was released: %v", name, unit)
		}
	}
}

// finish ends jobs.
func (s *story) finish(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.in(name).Finish(harness.Jobs, name)
		s.in(name).WaitForPhase("Job", name, "Succeeded")
	}
}

// usesQuota checks which node a job was admitted by.
func (s *story) usesQuota(name, path string) {
	s.t.Helper()
	if unit := s.in(name).Unit("Job", name); unit.Status.Quota != path {
		s.t.Errorf("%s uses quota %q, want %q", name, unit.Status.Quota, path)
	}
}

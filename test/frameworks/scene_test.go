package frameworks

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// scene is shared by the frameworks of a test: one cluster, and so one quota tree at a time.
type scene struct {
	suite *harness.Suite
	// whole is the Env of the complete test.
	whole *harness.Env
	// reported is where frameworks wait until all stories have ended.
	reported sync.WaitGroup
	// usersTree replaces the quota tree of the stories with that of test/acceptance.
	usersTree func() error
}

// runStories runs all frameworks that -run selects, in parallel in one cluster.
func runStories(t *testing.T, frameworks ...framework) {
	var here scene
	var selected []framework
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			selected = append(selected, f)
			t.Parallel() // it continues after the caller has set the scene
			if here.suite == nil {
				t.Fatal("there is no cluster")
			}
			here.runStories(t, f)
		})
	}
	if len(selected) > 0 {
		here.set(t, selected)
	}
}

// set starts the cluster, and applies a tree where each specimen has its own namespace with quota for one job.
func (s *scene) set(t *testing.T, frameworks []framework) {
	var operators []string
	extensions := []string{"job"}
	var groups []string
	for _, f := range frameworks {
		if f.operator != "" {
			operators = append(operators, f.operator)
		}
		for _, s := range f.specimens {
			extensions = append(extensions, s.extension)
			groups = append(groups, fmt.Sprintf("{name: %s, namespaces: [%s], max: %s}", s.title(), s.title(), s.total))
		}
	}
	slices.Sort(extensions)
	s.reported.Add(len(frameworks))
	suite := harness.ForTest(t, clustertest.Options{Operators: operators, NodeCPU: "100", NodeMemory: "400Gi", PodRunTime: 3 * time.Second})
	// Its cleanup runs the audit checker.
	s.whole = suite.Env(t, "default")
	suite.Both(t, strings.Join(slices.Compact(extensions), ","))
	s.whole.TreeOf(groups...)
	s.usersTree = sync.OnceValue(func() error {
		_, err := suite.Kubectl(t.Context(), "apply", "-f", suite.Acceptance("quota-tree.yaml"))
		return err
	})
	s.suite = suite
}

// runStories runs one framework. A part that fails must still arrive at the barriers, so that the others do not wait
// for it.
func (s *scene) runStories(t *testing.T, f framework) {
	names := make([]string, len(f.rows))
	t.Run("held", func(t *testing.T) {
		for i, r := range f.rows {
			t.Run(r.file, func(t *testing.T) { names[i] = r.hold(t, r.in(t, s)) })
		}
	})
	t.Run("examples", func(t *testing.T) {
		for _, specimen := range f.specimens {
			if specimen.test != nil { // a CronJob has no example
				continue
			}
			t.Run(specimen.title(), func(t *testing.T) {
				t.Parallel()
				s.holdExample(t, specimen)
			})
		}
	})
	lived := t.Run("lives", func(t *testing.T) {
		for _, specimen := range f.specimens {
			t.Run(specimen.title(), func(t *testing.T) {
				t.Parallel()
				reported := &story{specimen: specimen, Env: s.suite.Part(t, specimen.title()), t: t}
				if specimen.fenced {
					reported.Manage()
					defer reported.expectNoRefusal()
				}
				if specimen.test != nil {
					specimen.test(reported)
				} else {
					reported.tale()
				}
			})
		}
	})
	if lived {
		t.Run("judged", func(t *testing.T) { s.judge(t, f) })
	}
	s.reported.Done()
	s.reported.Wait()
	t.Run("released", func(t *testing.T) {
		harness.Must(t, s.usersTree())
		for i, r := range f.rows {
			t.Run(r.file, func(t *testing.T) {
				t.Parallel()
				r.release(t, r.in(t, s), names[i])
			})
		}
	})
}

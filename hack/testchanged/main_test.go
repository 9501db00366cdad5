package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

// aRepository is the output of go list for a small repository.
const aRepository = `
kube-queue.dev/kube-queue/pkg/resources;fmt
kube-queue.dev/kube-queue/pkg/queue;fmt;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/pkg/queue.test;kube-queue.dev/kube-queue/pkg/queue [kube-queue.dev/kube-queue/pkg/queue.test];kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/pkg/queue [kube-queue.dev/kube-queue/pkg/queue.test];kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/pkg/scheduler;kube-queue.dev/kube-queue/pkg/queue;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/pkg/scheduler.test;kube-queue.dev/kube-queue/pkg/scheduler;kube-queue.dev/kube-queue/pkg/queue;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/pkg/plugin;fmt
kube-queue.dev/kube-queue/extensions/rayjob;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/extensions/rayjob.test;kube-queue.dev/kube-queue/extensions/rayjob;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/cmd/kube-queue-controller;kube-queue.dev/kube-queue/pkg/scheduler;kube-queue.dev/kube-queue/pkg/queue;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/cmd/job-extensions;kube-queue.dev/kube-queue/extensions/rayjob;kube-queue.dev/kube-queue/pkg/resources
kube-queue.dev/kube-queue/cmd/kubectl-kube_queue;kube-queue.dev/kube-queue/pkg/plugin
kube-queue.dev/kube-queue/cmd/kube-queue-simulator;fmt
kube-queue.dev/kube-queue/examples;embed
kube-queue.dev/kube-queue/test/docs.test;kube-queue.dev/kube-queue/examples
kube-queue.dev/kube-queue/test/e2e/ray;fmt
kube-queue.dev/kube-queue/test/e2e/ray.test;fmt
`

func TestWhatAChangeCanBreakIsSelected(t *testing.T) {
	g := parse(strings.TrimSpace(aRepository))
	unit := []string{"pkg/queue", "pkg/scheduler", "pkg/plugin", "extensions/rayjob", "test/docs"}
	reads := func(folder string) []string { return map[string][]string{"test/docs": {"docs"}}[folder] }
	controller, extensions := "./test/integration/controller", "./test/integration/jobextensions"
	for name, test := range map[string]struct {
		files, broken, steps []string
	}{
		"a package, with what imports it and the program": {
			[]string{"pkg/queue/heap.go"},
			[]string{"pkg/queue: changed", "pkg/scheduler: imports pkg/queue"},
			[]string{controller, "./test/e2e"},
		},
		"a file in a package that is not code": {
			[]string{"examples/job.yaml"}, []string{"test/docs: imports examples"}, nil,
		},
		"testdata": {
			[]string{"pkg/scheduler/testdata/a/b.txt"}, []string{"pkg/scheduler: changed"}, []string{controller, "./test/e2e"},
		},
		"a test alone": {
			[]string{"pkg/queue/heap_test.go"}, []string{"pkg/queue: changed"}, nil,
		},
		"a test with a cluster": {
			[]string{"test/e2e/ray/a_test.go"}, nil, []string{"./test/e2e/ray"},
		},
		"a kind, by the life of its jobs": {
			[]string{"extensions/rayjob/rayjob.go"}, []string{"extensions/rayjob: changed"}, []string{"./test/frameworks"},
		},
		"what both programs import": {
			[]string{"pkg/resources/list.go"},
			[]string{"extensions/rayjob: imports pkg/resources", "pkg/queue: imports pkg/resources", "pkg/scheduler: imports pkg/resources"},
			[]string{controller, "./test/e2e", extensions},
		},
		"a package without tests, with the program": {
			[]string{"pkg/plugin/list.go"}, nil, []string{"./test/integration/plugin"},
		},
		"a manifest": {
			[]string{"deploy/rbac/role.yaml"}, nil, []string{"./test/integration/admission"},
		},
		"a page": {
			[]string{"docs/README.md"}, []string{"test/docs: reads docs/README.md"}, nil,
		},
		"a module below": {
			[]string{"test/alerts/rules_test.go", "test/alerts/doc.go"}, nil, []string{"-C"},
		},
		"the modules that are imported": {
			[]string{"go.sum"},
			[]string{"extensions/rayjob: imports go.mod", "pkg/queue: imports go.mod", "pkg/scheduler: imports go.mod", "test/docs: imports go.mod"},
			[]string{controller, "./test/e2e", extensions, "./test/integration/plugin", "./test/traces"},
		},
		"nothing": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := g.changeOf(test.files)
			var broken, steps []string
			folders, why := g.broken(c, unit, reads)
			for _, folder := range folders {
				broken = append(broken, folder+": "+why[folder])
			}
			if !slices.Equal(broken, test.broken) {
				t.Errorf("broken are %q, want %q", broken, test.broken)
			}
			for _, s := range g.steps(c, unit) {
				steps = append(steps, strings.Fields(s.args)[0])
			}
			if !slices.Equal(steps, test.steps) {
				t.Errorf("steps are %q, want %q", steps, test.steps)
			}
		})
	}
}

func TestStepsRunWhileTheBudgetLasts(t *testing.T) {
	late, passes, fails, too := step{"./late", 3600}, step{"-C ../.. ./test/testmode", 1}, step{"./missing", 1}, step{"./gone", 1}
	err := runSteps(t.Context(), []step{late, passes, fails, too}, time.Now().Add(10*time.Minute))
	if text := fmt.Sprint(err); !strings.Contains(text, fails.args) || !strings.Contains(text, too.args) ||
		strings.Contains(text, passes.args) || strings.Contains(text, late.args) {
		t.Errorf("the error is %v, want those of %q and %q", err, fails.args, too.args)
	}
}

// A step that matches no test would pass.
func TestEachStepHasItsTests(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t `)
	for _, r := range rules {
		for _, s := range r.steps {
			folder, run, _ := strings.Cut(strings.TrimPrefix(s.args, "-C "), " -run ")
			folder, _, _ = strings.Cut(folder, " ")
			tests, operator, _ := strings.Cut(strings.Trim(run, "'"), "/")
			pattern, named, text := regexp.MustCompile(tests), map[string]bool{}, ""
			for _, m := range function.FindAllStringSubmatch(textOf(t, folder), -1) {
				if pattern.MatchString(m[1]) {
					named[m[1]] = true
				}
			}
			if want := 1 + strings.Count(tests, "|"); run != "" && len(named) != want {
				t.Errorf("step %q names %q, want %d tests of %s", s.args, slices.Sorted(maps.Keys(named)), want, folder)
			}
			if operator = strings.Trim(operator, "^$"); operator != "" {
				text = textOf(t, "test/localcluster/internal/cluster") + textOf(t, "test/frameworks")
				require.Says(t, "the code of the clusters", text, `"`+operator+`"`)
			}
		}
	}
}

func TestEachKindHasAStep(t *testing.T) {
	folders, err := os.ReadDir("../../extensions")
	require.NoError(t, err)
	shared := []string{"framework", "hold", "registry"} // a step of job-extensions
	for _, folder := range folders {
		file := path.Join("extensions", folder.Name(), "kind.go")
		if folder.IsDir() && !slices.Contains(shared, folder.Name()) &&
			!slices.ContainsFunc(rules, func(r rule) bool { return r.names(file) }) {
			t.Errorf("extensions/%s has no step in rules", folder.Name())
		}
	}
}

// textOf returns the Go files of a folder of the repository.
func textOf(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(path.Join("../..", folder))
	require.NoError(t, err)
	var text strings.Builder
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".go") {
			file, err := os.ReadFile(path.Join("../..", folder, entry.Name()))
			require.NoError(t, err)
			text.Write(file)
		}
	}
	return text.String()
}

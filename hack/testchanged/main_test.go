package main

import (
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
kube-queue.dev/kube-queue/test/clustertest;fmt
kube-queue.dev/kube-queue/test/harness;kube-queue.dev/kube-queue/test/clustertest
kube-queue.dev/kube-queue/test/e2e/ray.test;kube-queue.dev/kube-queue/test/harness;kube-queue.dev/kube-queue/test/clustertest
kube-queue.dev/kube-queue/test/integration/plugin.test;kube-queue.dev/kube-queue/test/clustertest
`

func TestWhatAChangeCanBreakIsSelected(t *testing.T) {
	g := parse(strings.TrimSpace(aRepository))
	unit := map[string]bool{"pkg/queue": true, "pkg/scheduler": true, "extensions/rayjob": true, "test/docs": true}
	require.NoError(t, g.use(unit))
	g["test/docs"].reads = []string{"docs"}
	controller, extensions := "./test/integration/controller", "./test/integration/jobextensions"
	for name, test := range map[string]struct {
		files, broken, steps []string
	}{
		"a package, with what imports it and the program": {
			[]string{"pkg/queue/heap.go"},
			[]string{"pkg/queue: changed", "pkg/scheduler: imports pkg/queue", "test/e2e/ray: imports pkg/queue"},
			[]string{controller, "./test/e2e"},
		},
		"a file in a package that is not code": {
			[]string{"examples/job.yaml"}, []string{"test/docs: imports examples"}, nil,
		},
		"testdata": {
			[]string{"pkg/scheduler/testdata/a/b.txt"},
			[]string{"pkg/scheduler: changed", "test/e2e/ray: imports pkg/scheduler"}, []string{controller, "./test/e2e"},
		},
		"a test alone": {
			[]string{"pkg/queue/heap_test.go"}, []string{"pkg/queue: changed"}, nil,
		},
		"a test with a cluster": {
			[]string{"test/e2e/ray/a_test.go"}, []string{"test/e2e/ray: changed"}, []string{"./test/e2e/ray"},
		},
		"a kind, by the life of its jobs": {
			[]string{"extensions/rayjob/rayjob.go"},
			[]string{"extensions/rayjob: changed", "test/e2e/ray: imports extensions/rayjob"}, []string{"./test/frameworks"},
		},
		"what both programs import": {
			[]string{"pkg/resources/list.go"},
			[]string{"extensions/rayjob: imports pkg/resources", "pkg/queue: imports pkg/resources",
				"pkg/scheduler: imports pkg/resources", "test/e2e/ray: imports pkg/resources"},
			[]string{controller, "./test/e2e", extensions},
		},
		"the plugin, with the cluster in which it runs": {
			[]string{"pkg/plugin/list.go"}, []string{"test/integration/plugin: imports pkg/plugin"}, []string{"./test/integration/plugin"},
		},
		"a manifest": {
			[]string{"deploy/rbac/role.yaml"},
			[]string{"test/e2e/ray: reads deploy/rbac/role.yaml", "test/integration/plugin: reads deploy/rbac/role.yaml"},
			[]string{"./test/integration/admission"},
		},
		"a page": {
			[]string{"docs/README.md"}, []string{"test/docs: reads docs/README.md"}, nil,
		},
		"a module below": {
			[]string{"test/alerts/rules_test.go", "test/alerts/doc.go"}, nil, []string{"-C"},
		},
		"the modules that are imported": {
			[]string{"go.sum"},
			[]string{"extensions/rayjob: imports go.mod", "pkg/queue: imports go.mod", "pkg/scheduler: imports go.mod",
				"test/docs: imports go.mod", "test/e2e/ray: imports go.mod", "test/integration/plugin: imports go.mod"},
			[]string{controller, "./test/e2e", extensions, "./test/integration/plugin", "./test/traces"},
		},
		"nothing": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := g.changeOf(test.files)
			var broken, steps []string
			folders, why := g.broken(c)
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
	passes, fails, late := step{"-C ../.. ./test/testmode", 1}, step{"./missing", 1}, step{"./late", 3600}
	ran, err := runSteps(t.Context(), []step{late, passes, fails}, time.Now().Add(10*time.Minute))
	if !ran[passes.args] || !ran[fails.args] || ran[late.args] {
		t.Errorf("the steps %v ran, want those that end before the deadline", ran)
	}
	if err == nil || !strings.Contains(err.Error(), fails.args) || strings.Contains(err.Error(), passes.args) {
		t.Errorf("the error is %v, want that of %q", err, fails.args)
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

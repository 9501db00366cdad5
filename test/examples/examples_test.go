package examples

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var update = flag.Bool("update", false, "write testdata/outcomes.txt instead of comparing it")

const (
	// patience is the maximum time until all examples of a phase have an outcome.
	patience = 2 * time.Minute
	// submitters is the number of examples that are created in parallel.
	submitters = 8
	// mpiOperator has an MPIJob with the same name as that of training-operator.
	mpiOperator = "mpi-operator"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	options := clustertest.Options{Nodes: 1}
	for _, source := range Sources() {
		if source.Operator != mpiOperator {
			options.CRDs = append(options.CRDs, source.Operator)
		}
	}
	harness.Main(m, options, func(s *harness.Suite) { suite = s })
}

// No job is released, because there is no quota and no controller.
func TestEveryExampleIsQueuedOrReportsWhyNot(t *testing.T) {
	whole := suite.Env(t, "default")
	suite.Program(t, harness.Extensions, "--enabled-extensions="+strings.Join(registry.NamesOf(registry.All()), ",")).Start()

	var all, first, second []*Report
	for _, source := range Sources() {
		module, err := suite.OperatorModule(t.Context(), source.Operator)
		harness.Must(t, err)
		collection, err := Read(source, module)
		harness.Must(t, err)
		report := &Report{Collection: collection}
		all = append(all, report)
		if source.Operator == mpiOperator {
			second = append(second, report)
		} else {
			first = append(first, report)
		}
	}
	enqueue(t, whole, first)
	_, err := suite.Kubectl(t.Context(), "delete", "crd", "mpijobs.kubeflow.org")
	harness.Must(t, err)
	harness.Must(t, suite.InstallCRDs(t.Context(), mpiOperator))
	enqueue(t, whole, second)
	expectDifferencesOfExamples(t, all)
	compareList(t, List(all))
}

// enqueue submits all examples and waits until the outcome of each is known.
func enqueue(t *testing.T, whole *harness.Env, reports []*Report) {
	t.Helper()
	for _, report := range reports {
		submitAll(t, whole, report)
	}
	harness.Eventually(t, patience, "every example has a unit or a message", func() (bool, string) {
		units, err := Units(t.Context(), whole)
		harness.Must(t, err)
		warnings, err := Warnings(t.Context(), whole)
		harness.Must(t, err)
		var silent []string
		for _, report := range reports {
			for i := range report.Outcomes {
				outcome, known := OutcomeOf(report.Outcomes[i].Submitted, units, warnings)
				if !known {
					silent = append(silent, report.Operator+" "+outcome.File)
				}
				report.Outcomes[i] = outcome
			}
		}
		return len(silent) == 0, fmt.Sprintf("%d are silent: %s", len(silent), strings.Join(silent, ", "))
	})
}

// submitAll creates all examples of a source.
func submitAll(t *testing.T, whole *harness.Env, report *Report) {
	t.Helper()
	namespaces := place(whole, report)
	report.Outcomes = make([]Outcome, len(report.Examples))
	next := make(chan int)
	failures := make(chan error, len(report.Examples))
	var working sync.WaitGroup
	for range submitters {
		working.Go(func() {
			for i := range next {
				submitted, err := Submit(t.Context(), whole, &report.Examples[i], namespaces[i])
				report.Outcomes[i].Submitted = submitted
				failures <- err
			}
		})
	}
	for i := range report.Examples {
		next <- i
	}
	close(next)
	working.Wait()
	close(failures)
	for err := range failures {
		harness.Must(t, err)
	}
}

// place returns a namespace for each example. Examples with equal names get different namespaces,
// so that each keeps its name.
func place(whole *harness.Env, report *Report) []string {
	namespaces := make([]string, len(report.Examples))
	times, most := map[string]int{}, 0
	for i := range report.Examples {
		example := &report.Examples[i]
		name := example.Kind.Kind + " " + example.name()
		times[name]++
		namespaces[i] = fmt.Sprintf("%s-%d", report.Operator, times[name])
		if times[name] > most {
			most = times[name]
			whole.EnsureNamespace(namespaces[i])
		}
	}
	return namespaces
}

// expectDifferencesOfExamples finds known differences of examples that no longer exist or are not created.
func expectDifferencesOfExamples(t *testing.T, reports []*Report) {
	t.Helper()
	unknown := differences()
	for _, report := range reports {
		for i := range report.Outcomes {
			if report.Outcomes[i].Unit != nil {
				delete(unknown, report.Operator+" "+report.Outcomes[i].File)
			}
		}
	}
	for name := range unknown {
		t.Errorf("differences.go contains %q, which is not a created example: remove it", name)
	}
}

func compareList(t *testing.T, list []byte) {
	t.Helper()
	file := filepath.Join(suite.Repository, "test", "examples", "testdata", "outcomes.txt")
	if *update {
		harness.Must(t, os.WriteFile(file, list, 0o644))
		return
	}
	have, err := os.ReadFile(file)
	harness.Must(t, err)
	if bytes.Equal(have, list) {
		return
	}
	was, is := strings.Split(string(have), "\n"), strings.Split(string(list), "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("testdata/outcomes.txt is out of date; run go test ./test/examples -update and check the changes from line %d on:\n have %s\n want %s",
				i+1, line(was, i), line(is, i))
		}
	}
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "(end of file)"
	}
	return lines[i]
}

package frameworks

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// framework is an operator, the kinds that it runs, and users' manifests of these kinds.
type framework struct {
	name string
	// operator is its name in localcluster. It is empty for native kinds, which the control plane
	// runs.
	operator  string
	specimens []specimen
	rows      []row
}

func TestFrameworks(t *testing.T) {
	together, _ := clustertest.SideBySide(operators(t))
	runStories(t, append(frameworksOf(t, together), native(t))...)
}

// TestMPIOperator has its own cluster, because its MPIJob and that of training-operator have the
// same CRD.
func TestMPIOperator(t *testing.T) {
	_, instead := clustertest.SideBySide(operators(t))
	runStories(t, frameworksOf(t, instead)...)
}

// lives returns the specimens with all their stories: each has the default story, and that of preemption in a managed
// namespace. make test has the readiness story only for the Job, because the same code counts the pods of all kinds.
func lives(specimens []specimen) []specimen {
	all := slices.Concat(specimens, preempted(specimens))
	for _, s := range ready(specimens) {
		if !testing.Short() || s.kind == "Job" {
			all = append(all, s)
		}
	}
	return all
}

func operators(t *testing.T) []clustertest.Operator {
	t.Helper()
	all, err := clustertest.Operators(t.Context())
	harness.Must(t, err)
	return all
}

func frameworksOf(t *testing.T, operators []clustertest.Operator) []framework {
	t.Helper()
	var all []framework
	for _, operator := range operators {
		f := framework{
			name: operator.Name, operator: operator.Name, rows: rowsOf(operator.Name),
			specimens: lives(specimens(t, func(s kinds.Sample) bool { return operator.Runs(s.Kind) })),
		}
		for _, own := range []specimen{autoscaled, halfDone} {
			if slices.ContainsFunc(f.specimens, func(s specimen) bool { return s.kind == own.kind }) {
				f.specimens = append(f.specimens, own)
			}
		}
		all = append(all, f)
	}
	return all
}

func native(t *testing.T) framework {
	t.Helper()
	own := specimens(t, func(s kinds.Sample) bool { return s.Native })
	return framework{name: "kubernetes", specimens: lives(append(own, cronJob))}
}

func specimens(t *testing.T, which func(kinds.Sample) bool) []specimen {
	t.Helper()
	samples, err := kinds.All()
	harness.Must(t, err)
	var all []specimen
	for _, sample := range samples {
		if which(sample) {
			all = append(all, specimenOf(t, sample))
		}
	}
	return all
}

package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// step is a package or some of its tests, with a cluster or long builds.
type step struct {
	// args are the arguments of go test, as for a shell.
	args string
	// seconds is how long it takes on 2 cores with all tools built.
	seconds int
}

// rule names the steps for a change of files whose paths begin with one of paths, or of packages that a program
// imports. Extensions and the plugin have their own rules, in addition to those of the programs.
type rule struct {
	paths, program string
	steps          []step
}

// story is the life of a job with both programs.
var story = step{"./test/e2e -run '^TestAPairOfTFJobsRunsOneAfterTheOther$'", 60}

// unknown is the time of a package that no rule names, in seconds.
const unknown = 150

// rules are in the order in which their steps run.
var rules = []rule{
	{paths: "extensions/ray", steps: operator("kuberay")},
	{paths: "extensions/job/", steps: operator("kubernetes")},
	{paths: "extensions/jobset/", steps: operator("jobset")},
	{paths: "extensions/trainjob/", steps: operator("trainer")},
	{paths: "extensions/sparkapplication/", steps: operator("spark-operator")},
	{paths: "extensions/workflow/", steps: operator("argo-workflows")},
	{paths: "extensions/mpijob/", steps: []step{{"./test/frameworks -run '^TestMPIOperator$'", 90}}},
	{paths: "extensions/tfjob/ extensions/pytorchjob/ extensions/xgboostjob/ extensions/paddlejob/ extensions/jaxjob/ " +
		"extensions/mpijob/ extensions/kubeflow/", steps: operator("training-operator")},
	{paths: "extensions/pod/", steps: []step{{"./test/e2e/pods", 100}}},
	{paths: "extensions/provisioning/", steps: []step{{"./test/integration/provisioning", 60}}},
	{paths: "charts/ hack/deploy-values.yaml hack/helm/", steps: []step{{"./test/chart", 30}}},
	{paths: "charts/ hack/deploy-values.yaml deploy/", steps: []step{{"./test/integration/admission", 150}}},
	{paths: "hack/images/", steps: []step{{"-C hack/images ./...", 120}}},
	{paths: "test/alerts/ charts/kube-queue/files/alerts.yaml charts/kube-queue/files/dashboards/", steps: []step{{"-C test/alerts ./...", 60}}},
	{paths: "test/localcluster/", steps: []step{{"./test/localcluster/cmd/localcluster ./test/localcluster/internal/...", 180}}},
	{paths: "test/localcluster/ test/clustertest/ test/harness/ test/acceptance/", steps: []step{story}},
	{program: "cmd/kube-queue-controller", steps: []step{{"./test/integration/controller", 100}, story}},
	{program: "cmd/job-extensions", steps: []step{{"./test/integration/jobextensions -run " +
		"'^Test(ARestartContinuesEvictions|UnsuspendedByHandWhileQueued|AJobCostsFiveSixOrEightWrites|ARestartFindsEverythingAndRepeatsNothing)$'", 60}}},
	{program: "cmd/kubectl-kube_queue", steps: []step{{"./test/integration/plugin", 60}}},
	{program: "cmd/kube-queue-simulator", steps: []step{{"./test/traces", 30}}},
}

// operator returns the life of a job of each kind of an operator.
func operator(name string) []step {
	return []step{{"./test/frameworks -run '^TestFrameworks$/^" + name + "$'", 90}}
}

// names reports whether the rule names a file. A changed test does not affect other packages.
func (r rule) names(file string) bool {
	return !strings.HasSuffix(file, "_test.go") &&
		slices.ContainsFunc(strings.Fields(r.paths), func(p string) bool { return strings.HasPrefix(file, p) })
}

// steps returns the steps for a change: the changed packages that have no unit tests, then those of
// the rules.
func (g graph) steps(c change, unit []string) []step {
	var steps []step
	for _, folder := range slices.Sorted(maps.Keys(c.tested)) {
		if g[folder+".test"] != nil && !slices.Contains(unit, folder) {
			steps = append(steps, step{"./" + folder, unknown})
		}
	}
	named := func(folder string) bool {
		return slices.ContainsFunc(rules, func(r rule) bool { return r.names(path.Join(folder, "x.go")) })
	}
	for _, r := range rules {
		fits := slices.ContainsFunc(c.files, r.names)
		if r.program != "" {
			fits = slices.ContainsFunc(append(g[r.program], r.program), func(f string) bool { return c.built[f] && !named(f) })
		}
		for _, s := range r.steps {
			whole, _, _ := strings.Cut(s.args, " ")
			if fits && !slices.ContainsFunc(steps, func(o step) bool { return o.args == s.args || o.args == whole }) {
				steps = append(steps, s)
			}
		}
	}
	return steps
}

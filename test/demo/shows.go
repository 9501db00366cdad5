package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
)

// show defines what differs between the demos.
type show struct {
	// command is the make target.
	command string
	// started describes what is being started; note is an additional remark.
	started, note string
	// operators are the operators to run; none: those of all kinds.
	operators []string
	// extensions are the kinds to enable; empty: the default.
	extensions string
	// podRunTime is the run time of the simulated pods. It overrides their commands, which
	// sleep longer in the manifests than is useful for a demo.
	podRunTime time.Duration
	// applied describes the manifests.
	applied string
	// manifests are files or folders of the repository. The lists are applied one after the
	// other.
	manifests [][]string
	// check validates the story, in addition to the success of each job.
	check func(story) error
	// verify validates the lives of the jobs in the audit log.
	verify func([]audit.Life) error
	// costs reports whether a table with the costs of each job is printed at the end.
	costs bool
	// shown summarises at the end what was shown; kinds and example are what to inspect.
	shown, kinds, example string
}

// pair is the demo of two jobs and a quota with room for one.
func pair() show {
	return show{
		command:    "demo",
		started:    "a control plane with simulated nodes and the training-operator",
		operators:  []string{"training-operator"},
		podRunTime: 8 * time.Second,
		applied:    "a quota of 4 cpu and two TFJobs that request 3 cpu each",
		manifests:  [][]string{{"test/acceptance/quota-tree.yaml"}, {"test/acceptance/tfjob-pair.yaml"}},
		check:      story.oneAtATime,
		verify:     inTurn,
		shown:      "one job ran while the other one waited for quota, then the other one ran.",
		kinds:      "tfjob",
		example:    "tfjob job2",
	}
}

// all is the demo of one job of each kind in one quota.
func all() show {
	var extensions, manifests, ending []string
	for _, k := range kinds {
		extensions = append(extensions, k.extension)
		manifests = append(manifests, path.Join("examples", k.extension+".yaml"))
		if !k.endless {
			ending = append(ending, strings.ToLower(k.Kind))
		}
	}
	slices.Sort(ending)
	return show{
		command: "demo-all",
		started: "a control plane with simulated nodes and the operators of all kinds of job",
		note: "MPIJob: mpi-operator (v2beta1) runs, and training-operator runs without its MPIJob (v1). " +
			"Both are versions of the same CRD, and a cluster can have only one of them.",
		extensions: strings.Join(extensions, ","),
		podRunTime: 4 * time.Second,
		applied:    "a quota of 5 cpu and 10Gi of memory, and one job of each kind that requests 1 to 2.5 cpu",
		manifests:  [][]string{{"test/demo/manifests/quota.yaml", "test/demo/manifests/spark.yaml"}, manifests},
		check:      story.someWaited,
		verify:     heldFirst,
		costs:      true,
		shown:      fmt.Sprintf("jobs of %d kinds shared one quota, and no job had a pod before its release.", len(kinds)),
		kinds:      strings.Join(ending, ","),
		example:    "rayjob ray-resources",
	}
}

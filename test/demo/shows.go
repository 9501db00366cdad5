package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
)

// show is what is different between the demos.
type show struct {
	// command runs it.
	command string
	// started says what is being started, note what is worth knowing of it.
	started, note string
	// operators that run along; none: those of all kinds.
	operators []string
	// extensions are the kinds to enable; empty: those that are by default.
	extensions string
	// podRunTime is how long the simulated pods run, whatever their commands say: the
	// manifests are those of real users, and sleep longer than anybody wants to watch.
	podRunTime time.Duration
	// applied says what the manifests are, of files or folders in the repository.
	applied string
	// manifests are applied together, one list after the other.
	manifests [][]string
	// check judges what was seen, beside that each job has ended well.
	check func(story) error
	// judge judges what the audit log reports the jobs.
	judge func([]audit.Life) error
	// costs: a table of what each job has cost is printed in the end.
	costs bool
	// told says in the end what was shown, kinds and example what to look at.
	told, kinds, example string
}

// pair is a quota for one of two jobs.
func pair() show {
	return show{
		command:    "demo",
		started:    "a control plane with simulated nodes and the training-operator",
		operators:  []string{"training-operator"},
		podRunTime: 8 * time.Second,
		applied:    "a quota of 4 cpu and two TFJobs of 3 cpu each",
		manifests:  [][]string{{"test/acceptance/quota-tree.yaml"}, {"test/acceptance/tfjob-pair.yaml"}},
		check:      story.oneAtATime,
		judge:      inTurn,
		told:       "one ran, the other waited, then it ran.",
		kinds:      "tfjob",
		example:    "tfjob job2",
	}
}

// all is one job of each kind in one quota.
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
		started: "a control plane with simulated nodes and the operators of all frameworks",
		note: "mpi-operator has the MPIJobs (v2beta1), and training-operator runs without its own (v1): " +
			"the two are versions of one definition that do not go together.",
		extensions: strings.Join(extensions, ","),
		podRunTime: 4 * time.Second,
		applied:    "a quota of 5 cpu and 10Gi, and a job of each framework of 1 to 2.5 cpu",
		manifests:  [][]string{{"test/demo/manifests/quota.yaml", "test/demo/manifests/spark.yaml"}, manifests},
		check:      story.someWaited,
		judge:      heldFirst,
		costs:      true,
		told:       fmt.Sprintf("%d kinds of job took turns in one quota, and none had a pod before it was released.", len(kinds)),
		kinds:      strings.Join(ending, ","),
		example:    "rayjob ray-resources",
	}
}

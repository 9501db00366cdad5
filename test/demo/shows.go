package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// show is the demo of one job of each kind in one quota.
type show struct {
	// started describes what is being started; note is an additional remark.
	started, note string
	// extensions are the kinds to enable.
	extensions string
	// podRunTime is the run time of the simulated pods. It overrides their commands, which
	// sleep longer in the manifests than is useful for a demo.
	podRunTime time.Duration
	// applied describes the manifests.
	applied string
	// manifests are files or folders of the repository. The lists are applied one after the
	// other.
	manifests [][]string
	// shown summarises at the end what was shown; kinds and example are what to inspect.
	shown, kinds, example string
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
		started: "a control plane with simulated nodes and the operators of all kinds of job",
		note: "MPIJob: mpi-operator (v2beta1) runs, and training-operator runs without its MPIJob (v1). " +
			"Both are versions of the same CRD, and a cluster can have only one of them.",
		extensions: strings.Join(extensions, ","),
		podRunTime: 4 * time.Second,
		applied:    "a quota of 5 cpu and 10Gi of memory, and one job of each kind that requests 1 to 2.5 cpu",
		manifests:  [][]string{{"test/demo/manifests/quota.yaml", "test/demo/manifests/spark.yaml"}, manifests},
		shown:      fmt.Sprintf("jobs of %d kinds shared one quota, and no job had a pod before its release.", len(kinds)),
		kinds:      strings.Join(ending, ","),
		example:    "rayjob ray-resources",
	}
}

// Package examples queues the examples in the modules of the operators, each with the mark and no other change. Each
// must have a unit, or a message that explains why it has none. The outcomes are in testdata/outcomes.txt, which this
// package writes and its test compares:
//
//	go test ./test/examples -update
//
// Package pods, below this one, releases the examples while the operators run, and compares the
// requests of their units with those of their pods.
//
// An Example is a document of a queued kind. A Source is a set of folders of an operator's module.
// An Outcome is the result of submitting an example. Documents of other kinds are left out.
package examples

// Source is a set of folders of an operator's module.
type Source struct {
	// Operator is the name of the operator in localcluster.
	Operator string
	// Folders of the module that contain examples.
	Folders []string
	// Markdown includes YAML blocks in Markdown files.
	Markdown bool
	// Summary counts the examples that have the same outcome.
	Summary bool
}

// Sources returns the operators whose modules contain examples that can be applied unchanged.
// The examples of Trainer name runtimes that must be installed separately.
func Sources() []Source {
	return []Source{
		{Operator: "training-operator", Folders: []string{"examples"}},
		{Operator: "mpi-operator", Folders: []string{"examples"}},
		{Operator: "spark-operator", Folders: []string{"config/samples", "examples"}},
		{Operator: "kuberay", Folders: []string{"config/samples"}},
		// The only sample of JobSet is empty. Its enhancement proposals have examples, some of which are sketches.
		{Operator: "jobset", Folders: []string{"config/samples", "keps"}, Markdown: true},
		{Operator: "argo-workflows", Folders: []string{"examples"}, Summary: true},
	}
}

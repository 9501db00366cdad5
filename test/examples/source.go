// Package examples has every operator's own examples queued: the manifests that its
// module ships, each with the opt-in mark and nothing else changed. Each must have a
// unit, or a message that says why not; what became of each stands in
// docs/reference/operator-examples.md, which this package writes and its test compares:
//
//	go test ./test/examples -update
//
// Package pods, below this one, releases them, with the operators running, and
// compares what their units ask for with what their pods do.
//
// Words. An Example is a document of a kind that is queued. A Source is where an
// operator's module has some. An Outcome is what became of an example once it was
// submitted. Documents of other kinds are only counted.
package examples

// Source is a folder of an operator's module.
type Source struct {
	// Operator is localcluster's name of it.
	Operator string
	// Folders of the module that have examples.
	Folders []string
	// Markdown: blocks of YAML in texts are examples too.
	Markdown bool
	// Summary: most of the examples fare alike, so only the others are listed.
	Summary bool
	// About says on the page what there is to know of the examples.
	About string
}

// aboutJobSet: hardly any of them would be found without the Markdown.
const aboutJobSet = "The one sample is empty. The others stand in the proposals by which JobSet's features\ncame, and some of these are sketches that no cluster was meant to take."

// Sources are the operators' whose modules have examples that apply as they are. Those of
// Trainer name runtimes that have to be installed beside it.
func Sources() []Source {
	return []Source{
		{Operator: "training-operator", Folders: []string{"examples"}},
		{Operator: "mpi-operator", Folders: []string{"examples"}},
		{Operator: "spark-operator", Folders: []string{"config/samples", "examples"}},
		{Operator: "kuberay", Folders: []string{"config/samples"}},
		{Operator: "jobset", Folders: []string{"config/samples", "keps"}, Markdown: true, About: aboutJobSet},
		{Operator: "argo-workflows", Folders: []string{"examples"}, Summary: true},
	}
}

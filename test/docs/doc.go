// Package docs keeps the commands of README.md and of the documentation true.
//
// Terms. A page is a Markdown file that users read. A command is something that a page tells users to run: a command
// in a block ```sh or ```console, or text in backquotes that is a complete command. The output of a command is what a
// block ```console shows below it.
//
// The package test/docs/cluster runs the commands of the pages in ClusterPages on a real cluster and compares their
// output. For a command in a block, the page must show the whole output, or parts of it with [...] for what is
// omitted. With -v, the test prints the output of each command. Any other command must be in the file executed.yaml,
// which names what executes it, or a test of this package fails.
package docs

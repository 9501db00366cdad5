// Package docs keeps the commands of README.md and of the documentation true.
//
// Terms. A page is a Markdown file that users read. A command is what a page shows to be run: a
// command of a block ```sh or ```console, or text in backquotes that is a complete command. The
// output of a command is what a block ```console shows below it.
//
// The package test/docs/cluster runs the commands of the pages of ClusterPages on a real cluster
// and compares their output. Of a command in a block, the page must show all that it prints, or a part
// with [...] for what is left out. With -v, the test prints what each command has printed. A test of this package fails if any other command is not in the file
// executed.yaml, which names what executes it.
package docs

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/pkg/files"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
)

// errInvalid ends the program after the faults were printed.
var errInvalid = errors.New("invalid")

func checkCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check quota trees before applying them",
		Long: `Checks the ElasticQuotaTrees in the files as kube-queue-controller does, and prints each error and
each warning with the path of the node. A FILE is a YAML or JSON file with any number of documents,
a directory with .yaml, .yml and .json files, or - for standard input. Objects of other kinds are
skipped. It does not connect to a cluster, so it cannot warn about namespaces and resources that the
cluster does not have.

A field that a node does not have is an error, because kubectl apply refuses it.

The exit status is 0 if all trees are valid, 1 if a tree is invalid or a document cannot be read,
and 2 if the command line is wrong, a file does not exist, or no tree is found.`,
		Example: `  kube-queue-simulator check tree.yaml
  kube-queue-simulator check clusters/
  kubectl -n kube-system get elasticquotatree -o yaml | kube-queue-simulator check -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no file is given; name the files with the trees to check, or - for the standard input")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c := &treeChecker{stdin: stdin, out: stdout}
			return c.check(args)
		},
	}
}

// treeChecker checks the trees of files.
type treeChecker struct {
	stdin          io.Reader
	out            io.Writer
	trees, invalid int
	// unreadable is the number of documents that cannot be read.
	unreadable int
}

func (c *treeChecker) check(args []string) error {
	for _, arg := range args {
		names, err := files.Expand(arg, "the quota trees")
		if err != nil {
			return usageError{err}
		}
		for _, name := range names {
			if err := c.file(name); err != nil {
				return usageError{err}
			}
		}
	}
	switch {
	case c.invalid > 0 || c.unreadable > 0:
		if c.invalid > 0 {
			fmt.Fprintf(c.out, "%d of %d trees invalid\n", c.invalid, c.trees)
		}
		if c.unreadable > 0 {
			fmt.Fprintf(c.out, "%d of the documents cannot be read\n", c.unreadable)
		}
		return errInvalid
	case c.trees == 0:
		return usageError{errors.New("no ElasticQuotaTree (scheduling.sigs.k8s.io/v1beta1) was found in the files")}
	}
	return nil
}

// file checks the trees of a file and prints the findings.
func (c *treeChecker) file(name string) error {
	from, name, err := files.Open(name, "the quota tree", c.stdin)
	if err != nil {
		return err
	}
	defer from.Close()
	trees, faults := quotatree.Check(from)
	for _, fault := range faults {
		c.unreadable++
		fmt.Fprintf(c.out, "%s: error: %s\n", name, fault)
	}
	for _, tree := range trees {
		c.trees++
		verdict := "valid"
		if len(tree.Errors) > 0 {
			c.invalid++
			verdict = "invalid"
		}
		fmt.Fprintf(c.out, "%s: %s is %s\n", name, tree.Tree, verdict)
		for _, text := range tree.Errors {
			fmt.Fprintf(c.out, "  error: %s\n", text)
		}
		for _, text := range tree.Warnings {
			fmt.Fprintf(c.out, "  warning: %s\n", text)
		}
	}
	if len(trees) > 1 {
		fmt.Fprintf(c.out, "  warning: %s has %d trees, and a cluster uses only the oldest tree in namespace kube-system\n", name, len(trees))
	}
	return nil
}

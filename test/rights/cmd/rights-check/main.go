// Command rights-check compares the rights of the programs with those that they used in the
// clusters of tests. The folder contains the lists written by the tests.
package main

import (
	"fmt"
	"os"

	"kube-queue.dev/kube-queue/test/rights"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: rights-check FOLDER-OF-LISTS FOLDER-OF-MANIFESTS...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(lists string, manifests ...string) error {
	granted, err := rights.Granted(manifests...)
	if err != nil {
		return err
	}
	used, clusters, err := rights.Collected(lists)
	if err != nil {
		return err
	}
	if clusters == 0 {
		return fmt.Errorf("%s has no list: no cluster was run with %s=%s", lists, rights.Folder, lists)
	}
	if d := rights.Compare(granted, used); len(d.Unused)+len(d.Uncovered) > 0 {
		return fmt.Errorf("the rights in %v are not those that the programs used in %d clusters:\n%v", manifests, clusters, d)
	}
	fmt.Printf("the %d rights that are granted are those that were used in %d clusters\n", len(granted), clusters)
	return nil
}

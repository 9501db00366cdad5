// Messages writes docs/reference/messages.md: the catalogue of all messages that users read,
// found by static analysis. It is run by update-codegen.sh.
//
// It builds the SSA form of the product's packages, finds the sinks (see sinks.go: where the
// message of a status or an event is set, and what is printed before a program exits with an
// error) and follows the values that reach them backwards, through calls, fields, lists and
// text functions, to their constants and formats. The answers of
// admission policies come from the rendered manifests.
//
// What cannot be followed is an error: a message that the catalogue cannot list is one that
// nobody reviews. The error names the place and what to do.
//
// Following is by field, not by object: a text that is stored in a field reaches all places
// that read that field. Of calls, the last few are remembered, so that a function such as
// lifecycle.Shorten does not mix the texts of all its callers.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// product are the packages whose messages are listed.
var product = []string{"./cmd/...", "./pkg/...", "./extensions/...", "./apis/..."}

// rendered are the folders of manifests with rules that refuse requests.
var rendered = []string{"deploy/policies", "deploy/crds"}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: messages ROOT FILE")
		os.Exit(2)
	}
	text, err := generate(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "messages: %v\n", err)
		os.Exit(1)
	}
}

// generate returns the page for the repository at root.
func generate(root string) (string, error) {
	p, err := load(root, product...)
	if err != nil {
		return "", err
	}
	policies, err := answers(root, rendered...)
	if err != nil {
		return "", err
	}
	c, problems, err := catalog(findSinks(newFlow(p), p.module), policies)
	if err != nil {
		return "", err
	}
	if len(problems) > 0 {
		return "", report(problems)
	}
	return page(c), nil
}

// report lists all problems.
func report(problems []problem) error {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return errors.New("messages that cannot be catalogued:\n  " + strings.Join(lines, "\n  "))
}

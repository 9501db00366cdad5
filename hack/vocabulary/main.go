// Vocabulary checks that the texts of this repository use one word for one thing. The glossary,
// docs/reference/glossary.md, lists the words that are not used, and what to write instead.
// hack/verify.sh runs it.
//
// It reads all text files that git tracks or would add, and prints a line FILE:LINE: "WORD": use
// REPLACEMENT for each word that it finds. Go identifiers are split where their case changes. A
// line that has to use such a word, for example because it quotes another project, contains
// vocabulary:ignore.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// glossaryFile is relative to the root of the repository.
const glossaryFile = "docs/reference/glossary.md"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vocabulary ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	found, err := run(os.Args[1], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "vocabulary: %v\n", err)
		os.Exit(1)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "vocabulary: %d words to replace; the glossary is %s\n", found, glossaryFile)
		os.Exit(1)
	}
}

// run prints all findings to out and returns their number.
func run(root string, out io.Writer) (int, error) {
	text, err := os.ReadFile(filepath.Join(root, glossaryFile))
	if err != nil {
		return 0, err
	}
	rules, err := parseGlossary(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", glossaryFile, err)
	}
	files, err := textFiles(root)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return 0, err
		}
		if generated(file, text) {
			continue
		}
		for _, f := range rules.check(string(text)) {
			total++
			if _, err := fmt.Fprintf(out, "%s:%d: %q: use %s\n", file, f.line, f.words, f.use); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// textFiles returns the files to check, by their paths below root.
func textFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s with git: %w", root, err)
	}
	var files []string
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if !checked(file) {
			continue
		}
		// A file that is deleted, but not yet from the index.
		if _, err := os.Lstat(filepath.Join(root, file)); os.IsNotExist(err) {
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

// checked reports whether a file holds text of our own, by its path.
func checked(file string) bool {
	for _, own := range notChecked {
		if file == own || strings.HasSuffix(own, "/") && strings.HasPrefix(file, own) {
			return false
		}
	}
	for part := range strings.SplitSeq(file, "/") {
		if part == "testdata" {
			return false
		}
	}
	switch filepath.Ext(file) {
	case ".go", ".md", ".yaml", ".yml", ".tpl", ".txt", ".sh", ".json":
		return true
	}
	return filepath.Base(file) == "Makefile"
}

// notChecked are the glossary itself, and folders (with a slash at the end) of files that are
// generated from others that are checked, or written by others.
var notChecked = []string{
	glossaryFile,
	"hack/vocabulary/vocabulary_test.go", // plants such words
	"pkg/generated/",
	"deploy/",
	"charts/kube-queue/files/crds/",
}

// generated reports whether a Go file is written by a generator.
func generated(file string, text []byte) bool {
	if filepath.Ext(file) != ".go" {
		return false
	}
	head, _, _ := bytes.Cut(text, []byte("\npackage "))
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT.")) {
			return true
		}
	}
	return false
}

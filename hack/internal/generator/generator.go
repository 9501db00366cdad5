// Package generator has what the generators in hack/ share: their command line, the way they change files, and
// Markdown tables. A generator changes only its own part of a file, and running it again changes nothing.
package generator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Main runs a generator, which has one argument.
func Main(argument string, generate func(argument string) error) {
	program := filepath.Base(os.Args[0])
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s %s\n", program, argument)
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

// Edit returns the new text of a file. The text of a missing file is empty.
type Edit func(text string) (string, error)

// Whole replaces everything.
func Whole(text string) Edit {
	return func(string) (string, error) { return text, nil }
}

// Between replaces the text between two marks, and keeps the marks.
func Between(begin, end, text string) Edit {
	return func(page string) (string, error) {
		head, rest, opened := strings.Cut(page, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !opened || !closed {
			return "", fmt.Errorf("the marks %q and %q are missing or not in this order", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		return head + begin + text + end + tail, nil
	}
}

// Rewrite applies edits to a file, and creates it if it is missing.
func Rewrite(path string, edits ...Edit) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text := string(content)
	for _, edit := range edits {
		if text, err = edit(text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// Table returns a Markdown table.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// Codes formats names as code.
func Codes(names []string, between string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`"+between+"`") + "`"
}

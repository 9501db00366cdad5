// Package files finds and opens the manifests that a command line names.
package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// StandardInput is the file name that means the standard input.
const StandardInput = "-"

// Expand returns the files that an argument names: all .yaml, .yml and .json files in a folder and below, in the order
// of their names, or the file itself. what names them in errors, such as "the objects".
func Expand(arg, what string) ([]string, error) {
	if arg == StandardInput {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	var names []string
	err = filepath.WalkDir(arg, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	return names, nil
}

// Open opens a file, or returns the standard input. shown is its name in messages.
func Open(name, what string, stdin io.Reader) (file io.ReadCloser, shown string, err error) {
	if name == StandardInput {
		return io.NopCloser(stdin), "standard input", nil
	}
	opened, err := os.Open(name)
	if err != nil {
		return nil, name, fmt.Errorf("reading %s: %w", what, err)
	}
	return opened, name, nil
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LiveHeap returns how much memory the objects of the program use that are still referenced, in bytes.
// It runs the garbage collector. The rig must have Profiling.
func (p *Program) LiveHeap(ctx context.Context) (bytes int64, err error) {
	folder, err := os.MkdirTemp("", "kube-queue-heap-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "heap")
	for range 2 { // what has a finalizer or a weak pointer is collected one time later
		if err := p.profile(ctx, "heap?gc=1&debug=1", file); err != nil {
			return 0, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return readHeap(p.Name, string(text))
}

func readHeap(name, text string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "# HeapAlloc = "); is {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("profile of %s: it contains no HeapAlloc", name)
}

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// findSource finds the folder that holds components/: the one given, else where
// this program was compiled from, else in or above the current directory.
func findSource(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	// With -trimpath the file's name is no path; then it is not found.
	if _, file, _, known := runtime.Caller(0); known {
		if dir := filepath.Join(filepath.Dir(file), "..", ".."); isSource(dir) {
			return dir, nil
		}
	}
	current, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := current; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "test", "localcluster")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the components' modules are not in or above %s: run this in kube-queue's work tree, or give --source", current)
		}
	}
}

func isSource(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "components", "controlplane", "go.mod"))
	return err == nil && filepath.IsAbs(dir)
}

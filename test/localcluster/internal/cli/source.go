package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// findSource returns the folder that contains components/: the given one, else the source
// folder of this program, else in or above the current directory.
func findSource(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	// With -trimpath, the name of the file is not a path, so the folder is not found here.
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
			return "", fmt.Errorf("no components/ found in or above %s; run this command in a clone of kube-queue, or set --source", current)
		}
	}
}

func isSource(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "components", "controlplane", "go.mod"))
	return err == nil && filepath.IsAbs(dir)
}

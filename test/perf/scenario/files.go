package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

//go:embed files
var files embed.FS

// folder contains the built-in scenarios of one measurement.
type folder string

const (
	unitFiles folder = "files/units"
	jobFiles  folder = "files/jobs"
)

func (f folder) names() []string {
	found, _ := fs.Glob(files, string(f)+"/*.yaml") // the pattern is valid
	names := make([]string, 0, len(found))
	for _, file := range found {
		names = append(names, nameOf(file))
	}
	return names
}

// load reads the scenario with this name, or the file with this path. file is its name in errors.
func (f folder) load(nameOrPath string) (file string, data []byte, err error) {
	if strings.ContainsAny(nameOrPath, "/.") {
		if data, err = os.ReadFile(nameOrPath); err != nil {
			return "", nil, fmt.Errorf("scenario: %w", err)
		}
		return nameOrPath, data, nil
	}
	file = nameOrPath + ".yaml"
	data, err = files.ReadFile(path.Join(string(f), file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("unknown scenario %q; known scenarios: %s; or set the path of a file, for example ./%s", nameOrPath, strings.Join(f.names(), ", "), file)
	}
	return file, data, err
}

func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

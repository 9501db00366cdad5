package scenario

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed files
var files embed.FS

// folder contains the built-in scenarios of one measurement.
type folder string

const (
	unitFiles folder = "files/units"
	jobFiles  folder = "files/jobs"
)

// Names returns the names of the built-in scenarios, and JobsNames those of batch Jobs.
func Names() []string     { return unitFiles.names() }
func JobsNames() []string { return jobFiles.names() }

func (f folder) names() []string {
	found, _ := fs.Glob(files, string(f)+"/*.yaml") // the pattern is valid
	names := make([]string, 0, len(found))
	for _, file := range found {
		names = append(names, nameOf(file))
	}
	return names
}

func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

// load reads the scenario with this name, or the file with this path. file is its name in errors.
func (f folder) load(nameOrPath string) (file string, data []byte, err error) {
	if strings.ContainsAny(nameOrPath, "/.") {
		data, err = os.ReadFile(nameOrPath)
		return nameOrPath, data, err
	}
	file = nameOrPath + ".yaml"
	data, err = files.ReadFile(path.Join(string(f), file))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("unknown scenario %q; known scenarios: %s; or set the path of a file, for example ./%s", nameOrPath, strings.Join(f.names(), ", "), file)
	}
	return file, data, err
}

// JobsFlags reads a scenario of batch Jobs: values of these flags of the command jobs.
func JobsFlags(nameOrPath string, flags ...string) (map[string]string, error) {
	file, data, err := jobFiles.load(nameOrPath)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := yaml.UnmarshalStrict(data, &fields); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	delete(fields, "about")
	values := map[string]string{}
	for name, value := range fields {
		if !slices.Contains(flags, name) {
			return nil, fmt.Errorf("scenario %s: unknown field %q; known fields: about, %s", file, name, strings.Join(flags, ", "))
		}
		values[name] = strings.Trim(string(value), `"`)
	}
	return values, nil
}

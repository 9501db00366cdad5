package jobs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed files/*.yaml
var files embed.FS

// Scenario is what is created, as a file says it. What is left out is as without the
// file.
type Scenario struct {
	About string `json:"about"`
	// Jobs, Rate and Room are as in Options.
	Jobs int     `json:"jobs"`
	Rate float64 `json:"rate"`
	Room int     `json:"room"`
	// RunTime is a Go duration, as 1s.
	RunTime string `json:"runTime"`
}

// Scenarios are the names of those that come with the tool.
func Scenarios() []string {
	found, _ := fs.Glob(files, "files/*.yaml") // the pattern is a good one
	var names []string
	for _, file := range found {
		names = append(names, strings.TrimSuffix(path.Base(file), ".yaml"))
	}
	return names
}

// LoadScenario reads the scenario of that name, or the file at that path, into the
// options.
func LoadScenario(name string, options *Options) error {
	data, err := files.ReadFile("files/" + name + ".yaml")
	if err != nil {
		data, err = os.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("scenario %q: there is no such file; known are %s", name, strings.Join(Scenarios(), ", "))
	}
	if err != nil {
		return fmt.Errorf("scenario %q: %w", name, err)
	}
	var s Scenario
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return fmt.Errorf("scenario %q: %w", name, err)
	}
	return s.into(name, options)
}

func (s *Scenario) into(name string, options *Options) error {
	switch {
	case s.Jobs < 0:
		return fmt.Errorf("scenario %q: jobs: %d: must not be negative", name, s.Jobs)
	case s.Rate < 0:
		return fmt.Errorf("scenario %q: rate: %v: must not be negative", name, s.Rate)
	case s.Room < 0:
		return fmt.Errorf("scenario %q: room: %d: must not be negative; without room there is room for all", name, s.Room)
	}
	if s.RunTime != "" {
		runTime, err := time.ParseDuration(s.RunTime)
		if err != nil || runTime < 0 {
			return fmt.Errorf("scenario %q: runTime: %q: must be a duration such as 1s", name, s.RunTime)
		}
		options.RunTime = runTime
	}
	if s.Jobs > 0 {
		options.Jobs = s.Jobs
	}
	options.Rate, options.Room = s.Rate, s.Room
	return nil
}

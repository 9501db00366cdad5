package scenario

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Jobs says which batch Jobs are created on a whole cluster, as a file says it. What is
// left out is as without the file.
type Jobs struct {
	About string `json:"about"`
	// Jobs is how many are created, Rate how many of them in a second, Room how many may
	// run at once.
	Jobs int     `json:"jobs"`
	Rate float64 `json:"rate"`
	Room int     `json:"room"`
	// RunTime is how long each pod runs.
	RunTime *Duration `json:"runTime"`
}

// JobsNames are those of the scenarios of batch Jobs that come with the tool.
func JobsNames() []string { return jobFiles.names() }

// LoadJobs is the scenario of batch Jobs of that name, or in the file of that path.
func LoadJobs(nameOrPath string) (*Jobs, error) {
	file, data, err := jobFiles.load(nameOrPath)
	if err != nil {
		return nil, err
	}
	s := &Jobs{}
	if err := errors.Join(yaml.UnmarshalStrict(data, s), s.check()); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	return s, nil
}

func (s *Jobs) check() error {
	switch {
	case s.Jobs < 0:
		return fmt.Errorf("jobs: %d: must not be negative", s.Jobs)
	case s.Rate < 0:
		return fmt.Errorf("rate: %v: must not be negative", s.Rate)
	case s.Room < 0:
		return fmt.Errorf("room: %d: must not be negative; without room there is room for all", s.Room)
	case s.RunTime == nil:
		return nil
	}
	if err := s.RunTime.check("runTime"); err != nil {
		return err
	}
	if s.RunTime.Duration < 0 {
		return fmt.Errorf("runTime: %v: must not be negative", s.RunTime.Duration)
	}
	return nil
}

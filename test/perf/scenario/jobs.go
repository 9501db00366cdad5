package scenario

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Jobs is a scenario file of batch Jobs on a complete cluster. Missing fields have the defaults of
// the flags.
type Jobs struct {
	About string `json:"about"`
	// Jobs is the number of jobs, Rate how many are created per second, Room how many may run at
	// the same time.
	Jobs int     `json:"jobs"`
	Rate float64 `json:"rate"`
	Room int     `json:"room"`
	// RunTime is how long each pod runs.
	RunTime *Duration `json:"runTime"`
}

// JobsNames returns the names of the built-in scenarios of batch Jobs.
func JobsNames() []string { return jobFiles.names() }

// LoadJobs reads the scenario of batch Jobs with this name, or the file with this path.
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
		return fmt.Errorf("room: %d: must not be negative; omit it to let all jobs run", s.Room)
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

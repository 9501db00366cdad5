package settings

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Read sets all values that the command line, the environment (entries NAME=VALUE) and the
// configuration file contain.
func (s *Set) Read(args, environ []string) error {
	if err := s.Fault(); err != nil {
		return fmt.Errorf("settings of %s: %w", s.program, err)
	}
	given, err := s.parse(args)
	if err != nil || s.version {
		return err
	}
	if s.file != "" {
		if err := s.readFile(); err != nil {
			return err
		}
	}
	if err := s.readEnv(environ); err != nil {
		return err
	}
	for _, g := range given {
		if err := g.setting.give("--"+g.setting.Flag, g.text); err != nil {
			return err
		}
	}
	return nil
}

// given is a setting on the command line and its value.
type given struct {
	setting *Setting
	text    string
}

// parse reads the command line and sets only the flags without a field. The other flags are
// set last, after the file, whose path is itself a flag.
func (s *Set) parse(args []string) ([]given, error) {
	var all []given
	err := s.flags.ParseAll(args, func(flag *pflag.Flag, text string) error {
		if setting := s.Lookup(flag.Name); setting != nil {
			all = append(all, given{setting, text})
			return nil
		}
		if err := flag.Value.Set(text); err != nil {
			return fmt.Errorf("--%s: %w", flag.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: only flags are accepted", s.flags.Arg(0))
	}
	return all, nil
}

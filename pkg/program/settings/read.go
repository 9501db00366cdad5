package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Read sets all values that the command line, the environment (entries NAME=VALUE) and the
// configuration file contain.
func (s *Set) Read(args, environ []string) error {
	if err := s.Fault(); err != nil {
		return fmt.Errorf("settings of %s: %w", s.program, err)
	}
	giveFlags, err := s.parse(args)
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
	for _, give := range giveFlags {
		if err := give(); err != nil {
			return err
		}
	}
	return nil
}

// parse reads the command line and sets only the flags without a field. It returns a function that sets the other
// flags. They are set last, after the file, whose path is itself a flag.
func (s *Set) parse(args []string) (giveFlags []func() error, err error) {
	err = s.flags.ParseAll(args, func(flag *pflag.Flag, text string) error {
		if setting := s.Lookup(flag.Name); setting != nil {
			giveFlags = append(giveFlags, func() error { return setting.give("--"+setting.Flag, text) })
			return nil
		}
		if err := flag.Value.Set(text); err != nil {
			return fmt.Errorf("--%s: %w", flag.Name, err)
		}
		return nil
	})
	if err == nil && s.flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: only flags are accepted", s.flags.Arg(0))
	}
	return giveFlags, err
}

func (s *Set) readEnv(environ []string) error {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	for _, setting := range s.All() {
		set := slices.DeleteFunc(slices.Clone(setting.Env), func(name string) bool { return values[name] == "" })
		if len(set) == 0 {
			continue
		}
		text := values[set[0]]
		if setting.FromEnv != nil {
			var err error
			if text, err = setting.FromEnv(func(name string) string { return values[name] }); err != nil {
				return err
			}
		}
		if err := setting.give("environment variable "+strings.Join(set, " and "), text); err != nil {
			return err
		}
	}
	s.findIneffective(environ)
	return nil
}

// PassOver declares an environment variable that users may expect to have an effect, and why it has none.
func (s *Set) PassOver(name, why string) { s.passedOver[name] = why }

// Ineffective returns the environment variables that seem to be meant for the program but
// have no effect, each with the reason.
func (s *Set) Ineffective() []string { return s.ineffective }

// findIneffective finds variables that are declared with PassOver, and those whose names
// differ from a known name only in upper and lower case.
func (s *Set) findIneffective(environ []string) {
	var known []string
	for _, setting := range s.All() {
		known = append(known, setting.Env...)
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if why, passedOver := s.passedOver[name]; passedOver {
			s.ineffective = append(s.ineffective, name+": "+why)
		}
		for _, other := range known {
			if name != other && strings.EqualFold(name, other) {
				s.ineffective = append(s.ineffective, fmt.Sprintf("%s: names are case-sensitive, use %s", name, other))
			}
		}
	}
	slices.Sort(s.ineffective)
}

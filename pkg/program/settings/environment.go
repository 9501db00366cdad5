package settings

import (
	"fmt"
	"slices"
	"strings"
)

// variable is an environment variable without effect.
type variable struct{ name, why string }

// PassOver declares an environment variable that a user may expect to have an effect, and
// why it has none.
func (s *Set) PassOver(name, why string) {
	s.passedOver = append(s.passedOver, variable{name, why})
}

// Ineffective returns the environment variables that seem to be meant for the program but
// have no effect, each with the reason.
func (s *Set) Ineffective() []string { return s.ineffective }

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

// findIneffective finds variables that are declared with PassOver, and those whose names
// differ from a known name only in upper and lower case.
func (s *Set) findIneffective(environ []string) {
	var known []string
	for _, setting := range s.All() {
		known = append(known, setting.Env...)
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		for _, other := range s.passedOver {
			if name == other.name {
				s.ineffective = append(s.ineffective, fmt.Sprintf("%s: %s", name, other.why))
			}
		}
		for _, other := range known {
			if name != other && strings.EqualFold(name, other) {
				s.ineffective = append(s.ineffective, fmt.Sprintf("%s: names are case-sensitive, use %s", name, other))
			}
		}
	}
	slices.Sort(s.ineffective)
}

func mention(env []string) string {
	if len(env) == 1 {
		return "Environment variable: " + env[0] + "."
	}
	return "Environment variables: " + strings.Join(env, ", ") + "."
}

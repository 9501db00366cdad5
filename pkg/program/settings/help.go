package settings

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Flags returns all flags.
func (s *Set) Flags() *pflag.FlagSet { return s.flags }

// Help prints all flags under their headings.
func (s *Set) Help(out io.Writer) {
	fmt.Fprintf(out, "Usage:\n  %s [flags]\n", s.program)
	cliflag.PrintSections(out, s.help, 100)
	fmt.Fprintf(out, `
A flag takes precedence over an environment variable, which takes precedence over the
configuration file, which takes precedence over the default. The file has a field for
each flag except --%s and --%s; see docs/reference/settings.md.
`, flagFile, flagVersion)
}

// InForce returns all settings for the log: the values by field, and the origins of the
// values that were given.
func (s *Set) InForce() (values map[string]any, from map[string]string) {
	values, from = map[string]any{}, map[string]string{}
	for _, setting := range s.All() {
		values[setting.Field] = setting.Value()
		if setting.origin != "" {
			from[setting.Field] = setting.origin
		}
	}
	return values, from
}

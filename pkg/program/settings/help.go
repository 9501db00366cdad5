package settings

import (
	"fmt"
	"io"

	cliflag "k8s.io/component-base/cli/flag"
)

// Help prints all flags under their headings.
func (s *Set) Help(out io.Writer) {
	fmt.Fprintf(out, "Usage:\n  %s [flags]\n", s.program)
	cliflag.PrintSections(out, s.help, 100)
	fmt.Fprintf(out, `
A flag goes before an environment variable, that before the configuration file, and
that before the default. The file has a field for each flag but --%s and --%s;
docs/reference/settings.md lists them.
`, flagFile, flagVersion)
}

// InForce is all settings for the log: the value of each by its field, and where those
// that were given were given.
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

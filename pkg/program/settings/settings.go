package settings

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Setting is one setting of a program.
type Setting struct {
	// Var points to the value, which is initially the default: a string, a boolean, a number, a duration, or a
	// pflag.Value. It can be the *pflag.Flag of a library; only its help is replaced.
	Var any
	// Flag is the name of its flag, and Help describes it.
	Flag, Help string
	// Field is its path in the configuration file, separated by dots.
	Field string
	// Form is the syntax of the field. By default, it is a number, a boolean or a string, depending on Var.
	Form Form
	// Env are environment variables that set it. An empty variable is ignored.
	Env []string
	// FromEnv converts the values of the variables to the syntax of the flag; its errors
	// name the variable. If nil, there is one variable and its value is used unchanged.
	FromEnv func(lookup func(name string) string) (string, error)
	// Check validates the value that was just set. It can be nil.
	Check func() error
	// Reset clears the value, for a flag that appends to its value. It can be nil.
	Reset func()

	flag   *pflag.Flag
	origin string
}

// Default returns the default in the syntax of the flag.
func (s *Setting) Default() string { return s.flag.DefValue }

// Text returns the value in force in the syntax of the flag.
func (s *Setting) Text() string { return s.flag.Value.String() }

// Value returns the value in force in the syntax of the configuration file.
func (s *Setting) Value() any { return s.Form.toFile(s.Text()) }

// Origin returns where the value was given, for example "--workers"; it is empty for a
// default.
func (s *Setting) Origin() string { return s.origin }

// define defines the flag in the set of its group.
func (s *Setting) define(fs *pflag.FlagSet) {
	help := s.Help
	if len(s.Env) == 1 {
		help += " Environment variable: " + s.Env[0] + "."
	} else if len(s.Env) > 1 {
		help += " Environment variables: " + strings.Join(s.Env, ", ") + "."
	}
	switch v := s.Var.(type) {
	case *string:
		fs.StringVar(v, s.Flag, *v, help)
	case *bool:
		fs.BoolVar(v, s.Flag, *v, help)
	case *int:
		fs.IntVar(v, s.Flag, *v, help)
	case *float32:
		fs.Float32Var(v, s.Flag, *v, help)
	case *time.Duration:
		fs.DurationVar(v, s.Flag, *v, help)
	case *pflag.Flag:
		v.Usage = help
		fs.AddFlag(v)
	case pflag.Value:
		fs.Var(v, s.Flag, help)
	}
	if s.flag = fs.Lookup(s.Flag); s.flag != nil && s.Form.toFlag == nil {
		s.Form = byType(s.flag)
	}
}

// give sets a value from the given origin.
func (s *Setting) give(origin, text string) error {
	if s.Reset != nil && s.origin != origin {
		s.Reset()
	}
	s.origin = origin
	err := s.flag.Value.Set(text)
	if number, is := errors.AsType[*strconv.NumError](err); is { // its own text names Go functions
		err = fmt.Errorf("%q is not a valid %s: %w", number.Num, s.flag.Value.Type(), number.Err)
	}
	if err == nil && s.Check != nil {
		err = s.Check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return nil
}

// Above0 checks that a number or a duration is greater than 0.
func Above0[N int | time.Duration](value *N) func() error {
	return func() error {
		if *value <= 0 {
			return fmt.Errorf("must be greater than 0, not %v", *value)
		}
		return nil
	}
}

// Group is a set of related settings.
type Group struct {
	Heading  string
	Settings []*Setting
}

// Set holds all settings of a program.
type Set struct {
	program, kind string
	groups        []*Group
	help          cliflag.NamedFlagSets
	flags         *pflag.FlagSet
	faults        []error
	passedOver    map[string]string // why variables have no effect, by name
	ineffective   []string

	file    string
	version bool
}

// Flags without a field in the file: one names the file, the other only prints the version.
const (
	flagFile    = "config"
	flagVersion = "version"
)

// New returns a set for a program; kind is the kind of its configuration file. Its flags neither print nor exit: the
// program does both.
func New(program, kind string) *Set {
	s := &Set{program: program, kind: kind, flags: pflag.NewFlagSet(program, pflag.ContinueOnError), passedOver: map[string]string{}}
	s.help.NormalizeNameFunc = cliflag.WordSepNormalizeFunc
	s.flags.SetOutput(io.Discard)
	s.flags.Usage = func() {}
	s.flags.SortFlags = false
	s.flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	s.Group("General")
	general := s.help.FlagSet("General")
	general.StringVar(&s.file, flagFile, "", "Path of a configuration file in YAML or JSON, of kind "+kind+" in "+APIVersion+".")
	general.BoolVar(&s.version, flagVersion, false, "Print the version and exit.")
	s.flags.AddFlagSet(general)
	return s
}

// Group adds settings under a heading, which can already have some.
func (s *Set) Group(heading string, settings ...Setting) {
	i := slices.IndexFunc(s.groups, func(group *Group) bool { return group.Heading == heading })
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, &Group{Heading: heading})
	}
	for _, setting := range settings {
		setting.define(s.help.FlagSet(heading))
		switch {
		case setting.flag == nil:
			s.faults = append(s.faults, fmt.Errorf("the setting with field %q has no flag, or a value of an unknown type", setting.Field))
		case setting.Field == "":
			s.faults = append(s.faults, fmt.Errorf("the flag --%s has no field in the configuration file", setting.Flag))
		case s.byField(setting.Field) != nil:
			s.faults = append(s.faults, fmt.Errorf("the flag --%s has field %q, which another has", setting.Flag, setting.Field))
		default:
			s.flags.AddFlag(setting.flag)
			s.groups[i].Settings = append(s.groups[i].Settings, &setting)
		}
	}
}

// Groups returns the groups of settings in the order in which they were added.
func (s *Set) Groups() []*Group { return s.groups }

// All returns all settings in the order in which they were added.
func (s *Set) All() []*Setting {
	var all []*Setting
	for _, group := range s.groups {
		all = append(all, group.Settings...)
	}
	return all
}

// Lookup returns the setting of a flag; nil if there is none.
func (s *Set) Lookup(flag string) *Setting {
	return s.find(func(setting *Setting) bool { return setting.Flag == flag })
}

func (s *Set) byField(field string) *Setting {
	return s.find(func(setting *Setting) bool { return setting.Field == field })
}

func (s *Set) find(is func(*Setting) bool) *Setting {
	all := s.All()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// Program returns the name of the program.
func (s *Set) Program() string { return s.program }

// Kind returns the kind of the configuration file.
func (s *Set) Kind() string { return s.kind }

// File returns the path of the configuration file; empty if there is none.
func (s *Set) File() string { return s.file }

// Version reports whether the version was requested. If so, nothing else was read.
func (s *Set) Version() bool { return s.version }

// Fault returns the errors in the declaration of the settings.
func (s *Set) Fault() error { return errors.Join(s.faults...) }

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

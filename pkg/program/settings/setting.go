package settings

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Setting is one setting of a program.
type Setting struct {
	// Flag is the name of its flag, which defines type, default and meaning.
	Flag string
	// Field is its path in the configuration file, separated by dots.
	Field string
	// Form is the syntax of the field.
	Form Form
	// Env are environment variables that set it. An empty variable is ignored.
	Env []string
	// FromEnv converts the values of the variables to the syntax of the flag; its errors
	// name the variable. If nil, there is one variable and its value is used unchanged.
	FromEnv func(lookup func(name string) string) (string, error)
	// Check validates the value that was just set. It may be nil.
	Check func() error
	// Reset clears the value, for a flag that appends to its value. It may be nil.
	Reset func()

	meaning string
	flag    *pflag.Flag
	origin  string
}

// Meaning returns the help of the setting.
func (s *Setting) Meaning() string { return s.meaning }

// Default returns the default in the syntax of the flag.
func (s *Setting) Default() string { return s.flag.DefValue }

// Text returns the value in force in the syntax of the flag.
func (s *Setting) Text() string { return s.flag.Value.String() }

// Value returns the value in force in the syntax of the configuration file.
func (s *Setting) Value() any { return s.Form.value(s.flag, s.Text()) }

// Origin returns where the value was given, for example "--workers"; it is empty for a
// default.
func (s *Setting) Origin() string { return s.origin }

// give sets a value from the given origin.
func (s *Setting) give(origin, text string) error {
	if s.Reset != nil && s.origin != origin {
		s.Reset()
	}
	s.origin = origin
	err := s.flag.Value.Set(text)
	var number *strconv.NumError
	if errors.As(err, &number) { // its own text names functions of Go
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

// Group is a set of related settings.
type Group struct {
	Heading  string
	Settings []*Setting
}

// Set is all settings of a program.
type Set struct {
	program, kind string
	groups        []*Group
	help          cliflag.NamedFlagSets
	flags         *pflag.FlagSet
	faults        []error
	passedOver    []variable
	ineffective   []string

	file    string
	version bool
}

// Flags without a field in the file: one names the file, the other only prints the version.
const (
	flagFile    = "config"
	flagVersion = "version"
)

// New returns a set for a program; kind is the kind of its configuration file.
func New(program, kind string) *Set {
	s := &Set{program: program, kind: kind, flags: newFlagSet(program)}
	s.group("General")
	general := s.section("General")
	general.StringVar(&s.file, flagFile, "", "Path of a configuration file in YAML or JSON, of kind "+kind+" in "+APIVersion+".")
	general.BoolVar(&s.version, flagVersion, false, "Print the version and exit.")
	s.flags.AddFlagSet(general)
	return s
}

// newFlagSet returns a flag set that neither prints nor exits: the program does both.
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	return fs
}

func (s *Set) section(heading string) *pflag.FlagSet {
	s.help.NormalizeNameFunc = cliflag.WordSepNormalizeFunc
	fs := s.help.FlagSet(heading)
	fs.SortFlags = false
	return fs
}

// Group adds the flags that add defines. settings describes the setting of each flag.
func (s *Set) Group(heading string, add func(*pflag.FlagSet), settings ...Setting) {
	fs := newFlagSet(heading)
	add(fs)
	group := s.group(heading)
	for _, setting := range settings {
		setting.flag = fs.Lookup(setting.Flag)
		if setting.flag == nil || setting.Field == "" || s.byField(setting.Field) != nil {
			s.faults = append(s.faults, fmt.Errorf("the setting with flag %q and field %q has no flag, no field, or one that another has", setting.Flag, setting.Field))
			continue
		}
		setting.meaning = setting.flag.Usage
		if len(setting.Env) > 0 {
			setting.flag.Usage += " " + mention(setting.Env)
		}
		group.Settings = append(group.Settings, &setting)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(group.Settings, func(setting *Setting) bool { return setting.flag == f }) {
			s.faults = append(s.faults, fmt.Errorf("the flag --%s has no field in the configuration file", f.Name))
		}
	})
	s.section(heading).AddFlagSet(fs)
	s.flags.AddFlagSet(fs)
}

func (s *Set) group(heading string) *Group {
	for _, group := range s.groups {
		if group.Heading == heading {
			return group
		}
	}
	group := &Group{Heading: heading}
	s.groups = append(s.groups, group)
	return group
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
	for _, setting := range s.All() {
		if is(setting) {
			return setting
		}
	}
	return nil
}

// Program returns the name of the program.
func (s *Set) Program() string { return s.program }

// Kind returns the kind of the configuration file.
func (s *Set) Kind() string { return s.kind }

// File returns the path of the configuration file; empty if there is none.
func (s *Set) File() string { return s.file }

// Version reports whether the version was requested; then nothing else was read.
func (s *Set) Version() bool { return s.version }

// Fault returns the errors in the declaration of the settings.
func (s *Set) Fault() error { return errors.Join(s.faults...) }

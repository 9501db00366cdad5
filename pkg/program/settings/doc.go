// Package settings reads the settings of a program from its command line, its environment
// and its configuration file, and reports the origin of each value.
//
// Terms. A setting has a flag, a field of the configuration file, and sometimes environment
// variables. A group is a set of related settings: they share a heading in --help, and
// usually a section of the file. A form is how a field is written.
//
//	set := settings.New("job-extensions", "JobExtensionsConfiguration")
//	set.Group("Work", settings.Setting{Var: &o.workers, Flag: "workers", Field: "workers", Check: settings.Above0(&o.workers),
//		Help: "Maximum number of concurrent reconciles."})
//	err := set.Read(os.Args[1:], os.Environ())
//
// Invariants. A flag takes precedence over an environment variable, which takes precedence over the file, which takes
// precedence over the default. Every given value is checked, even if another one overrides it, and errors name the
// origin of the value. Every flag except --config and --version has a field, and every field has a flag: Read fails for
// a program that declares them otherwise. A value of the file is converted to the syntax of its flag and set like the
// flag, so that the same code parses and checks both. The file has no Go types, because they would be a second list of
// the fields.
package settings

// Package settings reads what a program is reported by its command line, its
// environment and its configuration file, and reports where each value came from.
//
// Words. A setting is one thing that can be set: by a flag, by a field of the
// configuration file, and some by environment variables too. A group is settings
// that belong together: they stand under one heading of --help, and mostly in one
// section of the file.
//
//	set := settings.New("job-extensions", "JobExtensionsConfiguration")
//	set.Group("Work", func(fs *pflag.FlagSet) {
//		fs.IntVar(&o.workers, "workers", 8, "Jobs that are worked on at the same time.")
//	}, settings.Setting{Flag: "workers", Field: "workers", Check: o.checkWorkers})
//	err := set.Read(os.Args[1:], os.Environ())
//
// Invariants. A flag goes before an environment variable, that before the file, that
// before the default. Each value that is given is checked, also one that another goes
// before, and what is wrong is reported with the place where it was given. Every flag but
// --config and --version has a field and every field a flag: Read fails for a program
// that declares them otherwise.
package settings

// Package options has the settings of job-extensions.
package options

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Name of the program.
const Name = "job-extensions"

// Options of job-extensions.
type Options struct {
	Workers int
	// Adapters of the kinds that are enabled.
	Adapters []framework.Adapter

	enabled string
}

// New has the defaults.
func New() *Options {
	return &Options{enabled: registry.Default, Workers: 8}
}

// Program with these options; its environment and what it runs are left to main.
func (o *Options) Program() program.Program {
	return program.Program{Name: Name, Kind: "JobExtensionsConfiguration", Settings: o.declare, Validate: o.checkEnabled, InForce: o.inForce}
}

func (o *Options) declare(set *settings.Set) {
	set.Group("Jobs", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.enabled, "enabled-extensions", o.enabled,
			"Kinds of job that are queued, parted by commas; empty for none. Known are "+strings.Join(registry.Names(), ", ")+".")
		fs.IntVar(&o.Workers, "workers", o.Workers, "Jobs of one kind that are worked on at the same time.")
	},
		settings.Setting{Flag: "enabled-extensions", Field: "enabledExtensions", Form: settings.List, Check: o.checkEnabled},
		settings.Setting{Flag: "workers", Field: "workers", Check: o.checkWorkers})
	for _, name := range [...]string{"QueueGroupPlugin", "StrictPriority", "StrictConsistency"} {
		set.PassOver(name, "kube-queue-controller reads it; this is "+Name)
	}
}

// checkEnabled is asked once more for the default, which nobody has given.
func (o *Options) checkEnabled() error {
	adapters, err := registry.Parse(o.enabled)
	if err != nil {
		return err
	}
	o.Adapters = adapters
	return nil
}

func (o *Options) checkWorkers() error {
	if o.Workers < 1 {
		return fmt.Errorf("must be above 0, not %d", o.Workers)
	}
	return nil
}

func (o *Options) inForce() []any {
	names := []string{}
	for _, adapter := range o.Adapters {
		names = append(names, adapter.Kind().Name)
	}
	return []any{"enabledExtensions", names, "workers", o.Workers}
}

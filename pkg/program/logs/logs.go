// Package logs declares the logging settings that every Kubernetes program has, and applies
// them.
package logs

import (
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	// The json format registers itself with the logging options.
	_ "k8s.io/component-base/logs/json/register"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Init starts periodic flushing of the log and resets all logging settings, so call it
// before the settings are declared. flush writes the rest of the log.
func Init() (flush func()) {
	logs.InitLogs()
	return logs.FlushLogs
}

// Options are the settings of the logs.
type Options struct {
	logging *logsapi.LoggingConfiguration
}

// NewOptions returns the defaults.
func NewOptions() Options { return Options{logging: logsapi.NewLoggingConfiguration()} }

// Declare adds the settings to the set, which rejects flags of the library that are not listed here.
func (o *Options) Declare(set *settings.Set) {
	const ifAlpha = " Requires the feature LoggingAlphaOptions."
	library := pflag.NewFlagSet("", pflag.ContinueOnError)
	logsapi.AddFlags(o.logging, library)
	group := []settings.Setting{
		{Flag: "logging-format", Field: "logging.format", Help: "Format of the log: text or json."},
		{Flag: "v", Field: "logging.verbosity", Help: "Verbosity of the log. Errors are logged at any verbosity."},
		{Flag: "vmodule", Field: "logging.vmodule", Form: settings.Patterns(), Reset: func() { o.logging.VModule = nil },
			Help: "Verbosity of individual source files, for example file=N,pattern*=N. Only for format text."},
		{Flag: "log-flush-frequency", Field: "logging.flushFrequency", Help: "Maximum time between log flushes."},
		{Flag: "log-text-split-stream", Field: "logging.options.text.splitStream",
			Help: "With format text, write errors to stderr and everything else to stdout." + ifAlpha},
		{Flag: "log-text-info-buffer-size", Field: "logging.options.text.infoBufferSize", Form: settings.Amount(),
			Help: "With format text and split streams, size of the buffer for stdout in bytes, for example 512 or 64Ki." + ifAlpha},
		{Flag: "log-json-split-stream", Field: "logging.options.json.splitStream",
			Help: "With format json, write errors to stderr and everything else to stdout." + ifAlpha},
		{Flag: "log-json-info-buffer-size", Field: "logging.options.json.infoBufferSize", Form: settings.Amount(),
			Help: "With format json and split streams, size of the buffer for stdout in bytes, for example 512 or 64Ki." + ifAlpha},
	}
	library.VisitAll(func(flag *pflag.Flag) {
		i := slices.IndexFunc(group, func(setting settings.Setting) bool { return setting.Flag == flag.Name })
		if i < 0 {
			i, group = len(group), append(group, settings.Setting{Flag: flag.Name})
		}
		group[i].Var = flag
	})
	set.Group("Logs", group...)
}

// Apply validates the settings and applies them.
func (o *Options) Apply(gate featuregate.FeatureGate) error {
	return logsapi.ValidateAndApplyAsField(o.logging, gate, field.NewPath("logging"))
}

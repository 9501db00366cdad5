// Package logs declares the logging settings that every Kubernetes program has, and applies
// them.
package logs

import (
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

// Declare adds the settings to the set.
func (o *Options) Declare(set *settings.Set) {
	set.Group("Logs", func(fs *pflag.FlagSet) {
		logsapi.AddFlags(o.logging, fs)
		fs.VisitAll(func(f *pflag.Flag) { f.Usage = meaning(f.Name) })
	},
		settings.Setting{Flag: "logging-format", Field: "logging.format"},
		settings.Setting{Flag: "v", Field: "logging.verbosity"},
		settings.Setting{Flag: "vmodule", Field: "logging.vmodule", Form: settings.Patterns, Reset: func() { o.logging.VModule = nil }},
		settings.Setting{Flag: "log-flush-frequency", Field: "logging.flushFrequency"},
		settings.Setting{Flag: "log-text-split-stream", Field: "logging.options.text.splitStream"},
		settings.Setting{Flag: "log-text-info-buffer-size", Field: "logging.options.text.infoBufferSize", Form: settings.Amount},
		settings.Setting{Flag: "log-json-split-stream", Field: "logging.options.json.splitStream"},
		settings.Setting{Flag: "log-json-info-buffer-size", Field: "logging.options.json.infoBufferSize", Form: settings.Amount})
}

// Apply validates the settings and applies them.
func (o *Options) Apply(gate featuregate.FeatureGate) error {
	return logsapi.ValidateAndApplyAsField(o.logging, gate, field.NewPath("logging"))
}

// meaning returns the help of a logging flag, or an empty text for an unknown flag.
func meaning(name string) string {
	const ifAlpha = " Requires the feature LoggingAlphaOptions."
	switch name {
	case "logging-format":
		return "Format of the log: text or json."
	case "v":
		return "Verbosity of the log. Errors are logged at any verbosity."
	case "vmodule":
		return "Verbosity of individual source files, for example file=N,pattern*=N. Only for format text."
	case "log-flush-frequency":
		return "Maximum time between log flushes."
	case "log-text-split-stream":
		return "With format text, write errors to stderr and everything else to stdout." + ifAlpha
	case "log-json-split-stream":
		return "With format json, write errors to stderr and everything else to stdout." + ifAlpha
	case "log-text-info-buffer-size":
		return "With format text and split streams, size of the buffer for stdout in bytes, for example 512 or 64Ki." + ifAlpha
	case "log-json-info-buffer-size":
		return "With format json and split streams, size of the buffer for stdout in bytes, for example 512 or 64Ki." + ifAlpha
	}
	return ""
}

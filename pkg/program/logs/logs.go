// Package logs is how a program logs: the settings that every Kubernetes program has for
// it, and putting them in force.
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

// Init has what is logged written from time to time, and sets back what settings of the
// logs had set: it comes before they are declared. flush writes what still waits.
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

// Apply checks the settings and puts them in force.
func (o *Options) Apply(gate featuregate.FeatureGate) error {
	return logsapi.ValidateAndApplyAsField(o.logging, gate, field.NewPath("logging"))
}

// meaning says what a flag of the logs means; empty for one that is new to us.
func meaning(name string) string {
	const ifAlpha = " Needs the feature LoggingAlphaOptions."
	switch name {
	case "logging-format":
		return "Format of the log: text or json."
	case "v":
		return "Verbosity of the log; errors are reported at any."
	case "vmodule":
		return "Verbosity of single source files, as file=N,pattern*=N; with format text only."
	case "log-flush-frequency":
		return "Longest time that a line may wait to be written."
	case "log-text-split-stream":
		return "With format text, write errors to stderr and all else to stdout." + ifAlpha
	case "log-json-split-stream":
		return "With format json, write errors to stderr and all else to stdout." + ifAlpha
	case "log-text-info-buffer-size":
		return "With format text and split streams, bytes that may wait to be written to stdout, as 512 or 64Ki." + ifAlpha
	case "log-json-info-buffer-size":
		return "With format json and split streams, bytes that may wait to be written to stdout, as 512 or 64Ki." + ifAlpha
	}
	return ""
}

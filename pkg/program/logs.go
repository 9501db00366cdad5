package program

import (
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	// The json format registers itself with the logging options.
	_ "k8s.io/component-base/logs/json/register"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// declareLogs adds the settings that every Kubernetes program has for its logs.
func (o *options) declareLogs(set *settings.Set) {
	set.Group("Logs", func(fs *pflag.FlagSet) {
		logsapi.AddFlags(o.logging, fs)
		fs.VisitAll(func(f *pflag.Flag) { f.Usage = meaningOfLogFlag(f.Name) })
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

// meaningOfLogFlag says what a flag of the logs means; empty for one that is new to us.
func meaningOfLogFlag(name string) string {
	const ifAlpha = " Needs the feature LoggingAlphaOptions."
	switch name {
	case "logging-format":
		return "Format of the log: text or json."
	case "v":
		return "Verbosity of the log; errors are told at any."
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

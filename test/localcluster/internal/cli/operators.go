package cli

import (
	"context"
	"encoding/json"
)

func operatorsCommand() command {
	return command{
		name:    "operators",
		summary: "list the operators with the files of their CRDs, as JSON",
		help: `
Lists for each operator the component whose module pins its version, the module of the
operator, and the files of that module with its CRDs. Operators are omitted if the version of
Kubernetes does not accept their CRDs.`,
		flags: (*invocation).kubernetesFlag,
		run: func(_ context.Context, i *invocation) error {
			config, err := i.validConfig()
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(i.world.Out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(config.Accepted())
		},
	}
}

package cli

import (
	"context"
	"encoding/json"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func operatorsCommand() command {
	return command{
		name:    "operators",
		summary: "list the operators with the files of their CRDs, as JSON",
		help: `
Lists for each operator the component whose module pins its version, the module of the
operator, and the files of that module with its CRDs.`,
		run: func(_ context.Context, i *invocation) error {
			encoder := json.NewEncoder(i.world.Out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(cluster.Operators())
		},
	}
}

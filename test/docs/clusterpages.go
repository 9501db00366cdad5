package docs

import (
	"path"
	"slices"
	"strings"
)

// ClusterPages are patterns of the pages whose commands test/docs/cluster runs.
var ClusterPages = []string{
	"README.md", "examples/README.md", "docs/tasks/*.md", "docs/concepts/*.md", "docs/reference/*.md",
	"docs/operations/configuration.md", "docs/operations/high-availability.md", "docs/operations/monitor.md", "docs/operations/support.md",
}

// otherClusters are commands on these pages for a different cluster: a cluster has either MPIJob v2beta1 or v1, and
// only one with kube-queue in pods has the Deployments.
var otherClusters = []string{
	"kubectl apply -n research -f examples/mpiv1.yaml", "kubectl get -n research mpijob",
	"kubectl -n kube-queue rollout status deployment kube-queue-controller",
	"kubectl -n kube-queue rollout status deployment job-extensions",
	"kubectl apply --server-side -f install.yaml",
}

// InCluster reports whether test/docs/cluster runs a command. On these pages, it runs the simulator, and kubectl
// unless the command opens an editor or serves pages until it is stopped.
func InCluster(command Command) bool {
	if slices.Contains(otherClusters, command.Text) {
		return false
	}
	for _, pattern := range ClusterPages {
		if match, err := path.Match(pattern, command.Page); match && err == nil {
			program, _, _ := strings.Cut(command.Text, " ")
			stays := strings.Contains(command.Text, " edit ") || strings.HasPrefix(command.Text, "kubectl kube-queue web")
			return program == "kubectl" && !stays || path.Base(program) == "kube-queue-simulator"
		}
	}
	return false
}

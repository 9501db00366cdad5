package cli

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// kubernetesVariable is the environment variable with the Kubernetes version of clusters that do not set one. Tests
// that start clusters pass it on.
const kubernetesVariable = "KUBE_QUEUE_KUBERNETES"

// invocation is a command with its flags and arguments.
type invocation struct {
	world Surroundings
	// began: the command line is valid.
	began bool

	args []string
	// folder is the data folder.
	folder cluster.Folder

	data     string
	config   cluster.Config
	fresh    bool
	output   string
	name     string
	readyURL string
}

func newInvocation(world Surroundings) *invocation {
	i := &invocation{world: world, config: cluster.DefaultConfig()}
	i.config.Kubernetes = cmp.Or(os.Getenv(kubernetesVariable), i.config.Kubernetes)
	return i
}

// command completes a command: what it runs, and its flags.
func (i *invocation) command(c *cobra.Command, run func(context.Context, *invocation) error, flags ...func(*cobra.Command)) *cobra.Command {
	c.Long = strings.TrimSpace(c.Long)
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return run(c.Context(), i) }
	for _, add := range flags {
		add(c)
	}
	return c
}

// dataFlag has a default that is relative to the current directory.
func (i *invocation) dataFlag(c *cobra.Command) {
	c.Flags().StringVar(&i.data, "data", ".cluster/default", "`DIR` with the data of the cluster")
}

func (i *invocation) kubernetesFlag(c *cobra.Command) {
	c.Flags().StringVar(&i.config.Kubernetes, "kubernetes", i.config.Kubernetes,
		"`VERSION` of Kubernetes: "+strings.Join(cluster.KubernetesVersions(), ", ")+"; the default can be set in "+kubernetesVariable)
}

func (i *invocation) nameFlag(c *cobra.Command) {
	c.Flags().StringVar(&i.name, "name", "", "`NAME` of the program")
	_ = c.MarkFlagRequired("name") // the flag exists
}

func (i *invocation) clusterFlags(command *cobra.Command) {
	i.dataFlag(command)
	i.kubernetesFlag(command)
	flags, c := command.Flags(), &i.config
	flags.StringSliceVar(&c.FeatureGates, "feature-gates", nil, "`NAME=true|false` of feature gates of Kubernetes, separated by commas")
	flags.StringSliceVar(&c.APIs, "runtime-config", nil, "`API=true|false` of APIs that Kubernetes serves, separated by commas, such as scheduling.k8s.io/v1beta1=true")
	flags.IntVar(&c.Nodes, "nodes", c.Nodes, "`NUMBER` of simulated nodes")
	flags.StringVar(&c.NodeCPU, "node-cpu", c.NodeCPU, "`QUANTITY` of cpu on each node, all allocatable")
	flags.StringVar(&c.NodeMemory, "node-memory", c.NodeMemory, "`QUANTITY` of memory on each node, all allocatable")
	flags.IntVar(&c.NodeGPUs, "node-gpus", c.NodeGPUs, "`NUMBER` of nvidia.com/gpu on each node")
	flags.StringSliceVar(&c.Operators, "operators", nil, "`NAMES` of operators to run, separated by commas: "+strings.Join(cluster.OperatorNames(), ", "))
	flags.BoolVar(&c.OnlyAPI, "only-api", false, "run only etcd and kube-apiserver: no controllers, no scheduler, no nodes")
	flags.BoolVar(&c.TypeCheck, "type-check", false, "check the types of the expressions of admission policies, and write warnings into their status")
	flags.DurationVar(&c.PodRunTime, "pod-run-time", c.PodRunTime, "`DURATION` after which pods end that do not set their own run time")
	flags.StringVar(&c.AuditLevel, "audit-level", c.AuditLevel, "`LEVEL` of the audit log: "+strings.Join(cluster.AuditLevels, " or "))
	flags.StringSliceVar(&c.AuditObjects, "audit-objects", nil, "`RESOURCES`, such as jobs.batch,pods, whose objects are logged even at --audit-level=Metadata")
	flags.BoolVar(&i.fresh, "fresh", false, "replace a running cluster in the data folder")
}

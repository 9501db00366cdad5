package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// kubernetesVariable is the environment variable with the version of Kubernetes of clusters that do not
// set one. Tests that start clusters pass it on.
const kubernetesVariable = "KUBE_QUEUE_KUBERNETES"

// invocation is a command with its flags and arguments.
type invocation struct {
	command command
	world   Surroundings
	set     *flag.FlagSet

	// positional are the arguments other than flags, rest those after "--".
	positional, rest []string
	// folder is the data folder.
	folder cluster.Folder

	data     string
	config   cluster.Config
	fresh    bool
	output   string
	name     string
	readyURL string
}

func newInvocation(c command, world Surroundings) *invocation {
	i := &invocation{command: c, world: world, set: flag.NewFlagSet(c.name, flag.ContinueOnError), config: cluster.DefaultConfig()}
	i.config.Kubernetes = cmp.Or(os.Getenv(kubernetesVariable), i.config.Kubernetes)
	i.set.SetOutput(io.Discard)
	i.set.Usage = func() {}
	c.flags(i)
	return i
}

// parse parses flags and other arguments in any order, and checks them. It reports whether it printed the
// help instead.
func (i *invocation) parse(args []string) (help bool, err error) {
	for {
		err := i.set.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			i.printHelp()
			return true, nil
		}
		if err != nil {
			return false, usagef("%s: %v; known flags: %s", i.command.name, err, strings.Join(i.flagNames(), ", "))
		}
		left := i.set.Args()
		if taken := len(args) - len(left); taken > 0 && args[taken-1] == "--" {
			i.rest = left
			break
		}
		if len(left) == 0 {
			break
		}
		i.positional = append(i.positional, left[0])
		args = left[1:]
	}
	if i.command.args == "" && len(i.positional)+len(i.rest) > 0 {
		return false, usagef("%s: unexpected argument %q", i.command.name, append(i.positional, i.rest...)[0])
	}
	if i.set.Lookup("kubernetes") != nil {
		if err := i.config.Validate(); err != nil {
			return false, usagef("%s: %v", i.command.name, err)
		}
	}
	i.folder, err = cluster.OpenFolder(i.data)
	return false, err
}

func (i *invocation) flagNames() []string {
	var names []string
	i.set.VisitAll(func(f *flag.Flag) { names = append(names, dashed(f.Name)) })
	return names
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func (i *invocation) printHelp() {
	c := i.command
	head := strings.TrimSpace("Usage: localcluster " + c.name + " [flags] " + c.args)
	fmt.Fprintf(i.world.Out, "%s\n\n%s\n\n%s\n\nFlags:\n", c.summary, head, strings.TrimSpace(c.help))
	i.set.VisitAll(func(f *flag.Flag) {
		kind, usage := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(i.world.Out, "  %-30s %s\n", strings.TrimSpace(dashed(f.Name)+" "+kind), usage)
	})
}

// dataFlag has a default that is relative to the current directory.
func (i *invocation) dataFlag() {
	i.set.StringVar(&i.data, "data", ".cluster/default", "`DIR` with the data of the cluster")
}

func (i *invocation) kubernetesFlag() {
	i.set.StringVar(&i.config.Kubernetes, "kubernetes", i.config.Kubernetes, "`VERSION` of Kubernetes: "+strings.Join(cluster.KubernetesVersions(), ", ")+"; the default can be set in "+kubernetesVariable)
}

func (i *invocation) versionFlags() {
	i.dataFlag()
	i.kubernetesFlag()
}

func (i *invocation) programFlags() {
	i.dataFlag()
	i.set.StringVar(&i.name, "name", "", "`NAME` of the program")
}

func (i *invocation) clusterFlags() {
	i.versionFlags()
	c := &i.config
	i.set.Func("feature-gates", "`NAME=true|false` of feature gates of Kubernetes, separated by commas", list(&c.FeatureGates))
	i.set.Func("runtime-config", "`API=true|false` of APIs that Kubernetes serves, separated by commas, such as scheduling.k8s.io/v1beta1=true", list(&c.APIs))
	i.set.IntVar(&c.Nodes, "nodes", c.Nodes, "`NUMBER` of simulated nodes")
	i.set.StringVar(&c.NodeCPU, "node-cpu", c.NodeCPU, "`QUANTITY` of cpu on each node, all allocatable")
	i.set.StringVar(&c.NodeMemory, "node-memory", c.NodeMemory, "`QUANTITY` of memory on each node, all allocatable")
	i.set.IntVar(&c.NodeGPUs, "node-gpus", c.NodeGPUs, "`NUMBER` of nvidia.com/gpu on each node")
	i.set.Func("operators", "`NAMES` of operators to run, separated by commas: "+strings.Join(cluster.OperatorNames(), ", "), list(&c.Operators))
	i.set.BoolVar(&c.OnlyAPI, "only-api", false, "run only etcd and kube-apiserver: no controllers, no scheduler, no nodes")
	i.set.BoolVar(&c.TypeCheck, "type-check", false, "check the types of the expressions of admission policies, and write warnings into their status")
	i.set.DurationVar(&c.PodRunTime, "pod-run-time", c.PodRunTime, "`DURATION` after which pods end that do not set their own run time")
	i.set.StringVar(&c.AuditLevel, "audit-level", c.AuditLevel, "`LEVEL` of the audit log: "+strings.Join(cluster.AuditLevels, " or "))
	i.set.Func("audit-objects", "`RESOURCES`, such as jobs.batch,pods, whose objects are logged even at --audit-level=Metadata", list(&c.AuditObjects))
	i.set.BoolVar(&i.fresh, "fresh", false, "replace a running cluster in the data folder")
}

// list sets a flag with comma-separated names; it can be repeated.
func list(names *[]string) func(value string) error {
	return func(value string) error {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				*names = append(*names, name)
			}
		}
		return nil
	}
}

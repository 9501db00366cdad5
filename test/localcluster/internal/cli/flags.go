package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// defaultData is relative to the current directory.
const defaultData = ".cluster/default"

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

	data       string
	source     string
	config     cluster.Config
	fresh      bool
	missing    bool
	components []string
	output     string
	name       string
	readyURL   string
	env        []string
}

func newInvocation(c command, world Surroundings) *invocation {
	i := &invocation{command: c, world: world, set: flag.NewFlagSet(c.name, flag.ContinueOnError), config: cluster.DefaultConfig()}
	i.config.Kubernetes = cmp.Or(world.Getenv(kubernetesVariable), i.config.Kubernetes)
	i.set.SetOutput(io.Discard)
	i.set.Usage = func() {}
	if c.flags != nil {
		c.flags(i)
	}
	return i
}

// parse parses flags and other arguments in any order. It reports whether help was requested.
func (i *invocation) parse(args []string) (help bool, err error) {
	for {
		err := i.set.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return true, nil
		}
		if err != nil {
			return false, usagef("%s: %s; known flags: %s", i.command.name, withDashes(err), strings.Join(i.flagNames(), ", "))
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
	return false, nil
}

// withDashes writes flags with two dashes; package flag writes one.
func withDashes(err error) string {
	text := strings.Replace(err.Error(), "not defined: -", "not defined: --", 1)
	text = strings.Replace(text, "for flag -", "for flag --", 1)
	return strings.Replace(text, "---", "--", 1)
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

func (i *invocation) printHelp(w io.Writer) {
	args := ""
	if i.command.args != "" {
		args = " " + i.command.args
	}
	fmt.Fprintf(w, "%s\n\nUsage: localcluster %s [flags]%s\n\n%s\n\nFlags:\n", i.command.summary, i.command.name, args, strings.TrimSpace(i.command.help))
	i.set.VisitAll(func(f *flag.Flag) {
		kind, usage := flag.UnquoteUsage(f)
		head := dashed(f.Name)
		if kind != "" {
			head += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  %-30s %s\n", head, usage)
	})
}

func (i *invocation) dataFlag() {
	i.set.StringVar(&i.data, "data", defaultData, "`DIR` with the data of the cluster")
}

func (i *invocation) sourceFlag() {
	i.set.StringVar(&i.source, "source", "", "`DIR` that contains components/; found automatically within a clone")
}

func (i *invocation) kubernetesFlag() {
	i.set.StringVar(&i.config.Kubernetes, "kubernetes", i.config.Kubernetes, "`VERSION` of Kubernetes: "+strings.Join(cluster.KubernetesVersions(), ", ")+"; the default can be set in "+kubernetesVariable)
}

func (i *invocation) clusterFlags() {
	i.dataFlag()
	i.sourceFlag()
	c := &i.config
	i.kubernetesFlag()
	i.set.Var(list{&c.FeatureGates}, "feature-gates", "`NAME=true|false` of feature gates of Kubernetes, separated by commas")
	i.set.Var(list{&c.APIs}, "runtime-config", "`API=true|false` of APIs that Kubernetes serves, separated by commas, such as scheduling.k8s.io/v1beta1=true")
	i.set.IntVar(&c.Nodes, "nodes", c.Nodes, "`NUMBER` of simulated nodes")
	i.set.StringVar(&c.NodeCPU, "node-cpu", c.NodeCPU, "`QUANTITY` of cpu on each node, all allocatable")
	i.set.StringVar(&c.NodeMemory, "node-memory", c.NodeMemory, "`QUANTITY` of memory on each node, all allocatable")
	i.set.IntVar(&c.NodeGPUs, "node-gpus", c.NodeGPUs, "`NUMBER` of nvidia.com/gpu on each node")
	i.set.Var(list{&c.Operators}, "operators", "`NAMES` of operators to run, separated by commas: "+strings.Join(cluster.OperatorNames(), ", "))
	i.set.BoolVar(&c.OnlyAPI, "only-api", false, "run only etcd and kube-apiserver: no controllers, no scheduler, no nodes")
	i.set.BoolVar(&c.TypeCheck, "type-check", false, "check the types of the expressions of admission policies, and write warnings into their status")
	i.set.DurationVar(&c.PodRunTime, "pod-run-time", c.PodRunTime, "`DURATION` after which pods end that do not set their own run time")
	i.set.StringVar(&c.AuditLevel, "audit-level", c.AuditLevel, "`LEVEL` of the audit log: "+strings.Join(cluster.AuditLevels, " or "))
	i.set.Var(list{&c.AuditObjects}, "audit-objects", "`RESOURCES`, such as jobs.batch,pods, whose objects are logged even at --audit-level=Metadata")
	i.set.BoolVar(&i.fresh, "fresh", false, "replace a running cluster in the data folder")
}

// folder returns the data folder.
func (i *invocation) folder() (cluster.Folder, error) { return cluster.OpenFolder(i.data) }

// validConfig returns the configuration, or an error if it is invalid.
func (i *invocation) validConfig() (cluster.Config, error) {
	if err := i.config.Validate(); err != nil {
		return i.config, usagef("%s: %v", i.command.name, err)
	}
	return i.config, nil
}

// list is a flag with comma-separated names; it can be repeated.
type list struct{ names *[]string }

func (l list) String() string {
	if l.names == nil {
		return ""
	}
	return strings.Join(*l.names, ",")
}

func (l list) Set(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*l.names = append(*l.names, name)
		}
	}
	return nil
}

// pairs is a flag with NAME=VALUE; it can be repeated.
type pairs struct{ entries *[]string }

func (p pairs) String() string { return "" }

func (p pairs) Set(value string) error {
	if name, _, found := strings.Cut(value, "="); !found || name == "" {
		return errors.New("must be NAME=VALUE")
	}
	*p.entries = append(*p.entries, value)
	return nil
}

// seconds formats a duration.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Truncate(time.Second).String()
}

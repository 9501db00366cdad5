package command

import (
	_ "embed"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// kubectlCompletion is the script that kubectl runs to complete the arguments of the plugin.
//
//go:embed kubectl_complete-kube_queue
var kubectlCompletion string

// addCompletion adds the kubectl completion to cobra's completion command, and completions for the flags of kubectl.
func (s *shell) addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "Print scripts that complete commands in a shell"
			cmd.AddCommand(&cobra.Command{
				Use:   "kubectl",
				Short: "Print the script that kubectl runs to complete kubectl kube-queue",
				Long: `Prints a script. Write it to a file kubectl_complete-kube_queue in a folder of PATH and make it executable:
kubectl then completes the commands, flags and names of kubectl kube-queue in every shell in which it
completes its own.`,
				Args: noArgs,
				RunE: func(*cobra.Command, []string) error {
					_, err := io.WriteString(s.Streams.Out, kubectlCompletion)
					return err
				},
			})
		}
	}
	_ = root.RegisterFlagCompletionFunc("namespace", s.complete(func(c *cluster, cmd *cobra.Command) []string { return c.Namespaces(cmd.Context()) }))
	_ = root.RegisterFlagCompletionFunc("queue-namespace", s.complete(func(c *cluster, cmd *cobra.Command) []string { return c.Namespaces(cmd.Context()) }))
	_ = root.RegisterFlagCompletionFunc("context", s.completeConfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Contexts) }))
	_ = root.RegisterFlagCompletionFunc("cluster", s.completeConfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) }))
	_ = root.RegisterFlagCompletionFunc("user", s.completeConfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) }))
}

// completion completes an argument or the value of a flag.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete completes with names from the cluster, or with none if they cannot be read.
func (s *shell) complete(names func(*cluster, *cobra.Command) []string) completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := s.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(c, cmd), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeConfig completes with names in the kubeconfig.
func (s *shell) completeConfig(names func(clientcmdapi.Config) iter.Seq[string]) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := s.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Collect(names(config)), cobra.ShellCompDirectiveNoFileComp
	}
}

func (s *shell) completeQueues(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.complete(func(c *cluster, cmd *cobra.Command) []string { return c.QueueNames(cmd.Context()) })(cmd, args, word)
}

func (s *shell) completeQuotas(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.complete(func(c *cluster, cmd *cobra.Command) []string { return c.QuotaPaths(cmd.Context()) })(cmd, args, word)
}

// isPlain reports whether a name is safe in a shell. A unit can have anything as the name of its job, and some shells
// expand completions.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._/", r)
	})
}

// completeJobs completes jobs with "job/train" or, if that does not start with the word, with the name of the job or
// of the unit. It reads the first page of units.
func (s *shell) completeJobs(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.complete(func(c *cluster, cmd *cobra.Command) []string {
		var names []string
		_ = c.Pages(cmd.Context(), c.Namespace, metav1.ListOptions{}, func(page *units.Page) bool {
			for i := range page.Items {
				u := &page.Items[i]
				if u.Phase().Ended() {
					continue
				}
				for _, name := range []string{u.Job(), u.JobName(), u.Metadata.Name} {
					if !strings.HasPrefix(name, word) || !isPlain(name) {
						continue
					}
					if !u.Spec.Growth || !slices.Contains(names, name) { // a job can have several units for growth
						names = append(names, name)
					}
					break
				}
			}
			return false
		})
		return names
	})(cmd, args, word)
}

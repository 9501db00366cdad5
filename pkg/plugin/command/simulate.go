package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/files"
	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
)

// simulateName is the name of the command simulate, which has its own exit statuses.
const simulateName = "simulate"

func (s *shell) simulate() *cobra.Command {
	return s.ofFiles(&cobra.Command{
		Use:   simulateName + " -f FILE",
		Short: "Show what would start and what would wait with another quota tree or more jobs",
		Long: `Shows what would start immediately, and what would wait and why, if you applied the quota tree or the jobs in
the files now. All jobs in the cluster are included. Nothing is applied. The plugin makes the same decisions
as kube-queue-controller with its default settings.

A FILE is a YAML or JSON file with any number of documents, or - for standard input. It can contain one
ElasticQuotaTree, QueueUnits, and jobs of all kinds whose manifest determines their pods. You need
permission to list QueueUnits in all namespaces, Queues and ElasticQuotaTrees.

In the simulation, evicted jobs stop immediately. Admission checks and nodes are not simulated. The plugin
does not know the settings of job-extensions, so it counts no devices of ResourceClaims and no types of
devices.

The exit status is 0 if the tree is valid and each job in the files would start immediately; 1 if the tree
is invalid, a job would wait, or running jobs would exceed a limit; 2 after an error.`,
		Example: `  kubectl kube-queue simulate -f tree.yaml
  kubectl kube-queue simulate -f tree.yaml -f job.yaml -n research
  kustomize build . | kubectl kube-queue simulate -f -`,
	}, "a quota tree or jobs", "the tree or the jobs", (*cluster).trySimulation)
}

// trySimulation writes the answer and decides the exit status.
func (c *cluster) trySimulation(ctx context.Context, o *output, q *access.Question) error {
	simulation, err := q.Simulate(ctx)
	if err != nil {
		return err
	}
	if o.isTable() {
		err = render.Simulation(c.Streams.Out, simulation, q.Tree != nil, c.view(o))
	} else {
		err = c.writeData(o, simulation)
	}
	if err != nil {
		return err
	}
	waits := slices.ContainsFunc(simulation.Jobs, func(job objects.SimulatedJob) bool { return !job.Starts })
	if waits || len(simulation.Faults) > 0 || len(simulation.OverLimits) > 0 {
		return verdict(exitNegative)
	}
	return nil
}

// writeData writes an answer that is not an API object.
func (c *cluster) writeData(o *output, answer any) error {
	data, err := json.MarshalIndent(answer, "", "    ")
	if err == nil && o.format == formatYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Streams.Out, strings.TrimSuffix(string(data), "\n"))
	return err
}

// ofFiles completes a command that reads files. content describes the files in the help, and wanted describes what is
// missing if no file is given.
func (s *shell) ofFiles(cmd *cobra.Command, content, wanted string, do func(*cluster, context.Context, *output, *access.Question) error) *cobra.Command {
	o := &output{}
	var names []string
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if len(names) == 0 {
			return usageError{fmt.Errorf("no file is given; name the files with %s with --filename, or - for the standard input", wanted)}
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		q := c.NewQuestion(cmd.Context())
		for _, name := range names {
			if err := c.readFile(q, name); err != nil {
				return err
			}
		}
		return do(c, cmd.Context(), o, q)
	}
	cmd.Flags().StringSliceVarP(&names, "filename", "f", nil, "`FILE` with "+content+"; - for the standard input.")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	o.add(cmd, formatTable, formatJSON, formatYAML)
	return cmd
}

// readFile adds the contents of a file to the question.
func (c *cluster) readFile(q *access.Question, file string) error {
	from, file, err := files.Open(file, "the files", c.Streams.In)
	if err != nil {
		return err
	}
	defer from.Close()
	return q.Read(file, from)
}

func (s *shell) advise() *cobra.Command {
	return s.ofFiles(&cobra.Command{
		Use:   "advise -f FILE",
		Short: "Estimate when a job would start before you submit it",
		Long: `Estimates when each job in the files would start if it alone were submitted now. If a job would start with
fewer of its pods, a second row shows when it would start with all of them. Nothing is submitted.

A FILE has the format that simulate accepts, but no quota tree. kube-queue-controller answers if you can
list QueueUnits in the namespaces of the jobs. The estimates do not include jobs that are submitted later,
admission checks, and the start of pods. The plugin does not know the settings of job-extensions, so it
counts no devices of ResourceClaims and no types of devices.`,
		Example: `  kubectl kube-queue advise -f job.yaml
  kustomize build . | kubectl kube-queue advise -f -`,
	}, "jobs", "the jobs", (*cluster).giveAdvice)
}

func (c *cluster) giveAdvice(ctx context.Context, o *output, q *access.Question) error {
	advice, err := q.Advise(ctx)
	if err != nil {
		return err
	}
	if o.isTable() {
		return render.Advice(c.Streams.Out, advice, c.view(o))
	}
	return c.writeData(o, advice)
}

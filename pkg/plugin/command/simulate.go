package command

import (
	"context"
	"encoding/json"
	"errors"
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

// simulateName is the name of the command, whose exit status differs from those of others.
const simulateName = "simulate"

func (s *shell) simulate() *cobra.Command {
	o := &output{}
	var files []string
	cmd := &cobra.Command{
		Use:   simulateName + " -f FILE",
		Short: "Show what would start and what would wait with another quota tree or more jobs",
		Long: `Shows what would start immediately, and what would wait and why, if you applied the quota tree or the jobs in
the files now. All jobs in the cluster are included. Nothing is applied. The plugin makes the same decisions
as kube-queue-controller with its default settings.

A FILE is a YAML or JSON file with any number of documents, or - for standard input. It can contain one
ElasticQuotaTree, QueueUnits, and jobs of all kinds whose manifest determines their pods. You need
permission to list QueueUnits in all namespaces, Queues and ElasticQuotaTrees.

In the simulation, evicted jobs stop immediately. Admission checks and nodes are not simulated.

The exit status is 0 if the tree is valid and each job in the files would start immediately; 1 if the tree
is invalid, a job would wait, or running jobs would exceed a limit; 2 after an error.`,
		Example: `  kubectl kube-queue simulate -f tree.yaml
  kubectl kube-queue simulate -f tree.yaml -f job.yaml -n research
  kustomize build . | kubectl kube-queue simulate -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if len(files) == 0 {
				return usageError{errors.New("no file is given; name the files with the tree or the jobs with --filename, or - for the standard input")}
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return c.simulateFiles(cmd.Context(), o, files)
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "`FILE` with a quota tree or jobs; - for the standard input.")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	o.add(cmd, formatTable, formatJSON, formatYAML)
	return cmd
}

func (c *cluster) simulateFiles(ctx context.Context, o *output, files []string) error {
	q := c.NewQuestion(ctx)
	for _, file := range files {
		if err := c.readFile(q, file); err != nil {
			return err
		}
	}
	simulation, err := q.Simulate(ctx)
	if err != nil {
		return err
	}
	return c.conclude(o, q, simulation)
}

// conclude writes the answer and decides the exit status.
func (c *cluster) conclude(o *output, q *access.Question, simulation *objects.Simulation) error {
	if err := c.writeSimulation(o, q, simulation); err != nil {
		return err
	}
	waits := slices.ContainsFunc(simulation.Jobs, func(job objects.SimulatedJob) bool { return !job.Starts })
	if waits || len(simulation.Faults) > 0 || len(simulation.OverLimits) > 0 {
		return verdict(exitNegative)
	}
	return nil
}

func (c *cluster) writeSimulation(o *output, q *access.Question, simulation *objects.Simulation) error {
	if o.isTable() {
		return render.Simulation(c.Streams.Out, simulation, q.Tree != nil, c.view(o))
	}
	data, err := json.MarshalIndent(simulation, "", "    ")
	if err == nil && o.format == formatYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Streams.Out, strings.TrimSuffix(string(data), "\n"))
	return err
}

// readFile adds what a file contains.
func (c *cluster) readFile(q *access.Question, file string) error {
	from, file, err := files.Open(file, "the files", c.Streams.In)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := q.Read(from); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

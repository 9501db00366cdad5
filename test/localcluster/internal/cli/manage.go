package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func (i *invocation) manageCommands() []*cobra.Command {
	return []*cobra.Command{
		i.command(&cobra.Command{
			Use:   "down",
			Short: "stop a cluster",
			Long: `
Returns when all processes of the cluster have ended. Logs and data stay in the folder
until the next start. It is no error if no cluster is running.`,
		}, down, i.dataFlag),
		i.command(&cobra.Command{
			Use:   "status",
			Short: "show the state of the parts of a cluster",
			Long: `
The exit status is 0 if all parts are ready, else 1. For a part that crashed, the end of
its log is shown.`,
		}, showStatus, i.dataFlag, func(c *cobra.Command) {
			c.Flags().StringVarP(&i.output, "output", "o", "", "output `FORMAT`: json, or empty for a table")
		}),
		i.command(&cobra.Command{
			Use:   "logs NAME",
			Short: "print the log of a part",
			Long:  `NAME is a part or a program listed by status, or supervisor.`,
			Args:  cobra.ExactArgs(1),
		}, logs, i.dataFlag),
		i.command(&cobra.Command{
			Use:   "operators",
			Short: "list the operators with the files of their CRDs, as JSON",
			Long: `
Lists for each operator the component whose module pins its version, the module of the
operator, and the files of that module with its CRDs. Operators are omitted if the version of
Kubernetes does not accept their CRDs.`,
		}, func(_ context.Context, i *invocation) error { return i.printJSON(i.config.Accepted()) }, i.kubernetesFlag),
		i.command(&cobra.Command{
			Use:   "route NAMESPACE/SERVICE:PORT=ADDRESS...",
			Short: "route a Service to a program on this machine",
			Long: `
The API server connects to a Service at the address of its route. PORT is the number of
the Service's port, ADDRESS is HOST:PORT. A Service without a route leads to its ready
endpoints.`,
			Args: cobra.MinimumNArgs(1),
		}, route, i.dataFlag),
		i.command(&cobra.Command{
			Use:   "upgrade",
			Short: "upgrade a cluster to a newer version of Kubernetes",
			Long: `
Stops the control plane and starts that of another version on the same data. The folder,
ports, certificates, kubeconfigs and routes stay valid. Operators, programs and simulated
nodes keep running and connect again.`,
		}, upgrade, i.dataFlag, i.kubernetesFlag),
		i.group("apiserver", "start and stop a second API server",
			i.command(&cobra.Command{
				Use:   "start",
				Short: "start a second API server",
				Long: `
The second API server serves the same data as the first one, and can have another version,
as while the API servers of a cluster are upgraded one after another. The command prints
the path of a kubeconfig for it.`,
			}, startSecond, i.dataFlag, i.kubernetesFlag),
			i.command(&cobra.Command{
				Use:   "stop",
				Short: "stop the second API server",
				Long:  `The first API server is not affected.`,
			}, func(ctx context.Context, i *invocation) error { return i.folder.StopSecond(ctx) }, i.dataFlag),
		),
		i.group("program", "start and stop programs together with a cluster",
			i.command(&cobra.Command{
				Use:   "start --name NAME -- COMMAND ARGS...",
				Short: "start a program together with a cluster",
				Long: `
The program runs in the current directory, with the environment of the cluster and with
KUBECONFIG set to the kubeconfig of the administrator. When the cluster stops, it stops
first. If it crashes, the cluster keeps running and status shows the crash. A program
that has ended can be started again under the same name.`,
				Args: cobra.MinimumNArgs(1),
			}, startProgram, i.dataFlag, i.nameFlag, func(c *cobra.Command) {
				c.Flags().StringVar(&i.readyURL, "ready-url", "", "`URL` that answers 200 when the program is ready; unset: ready immediately")
			}),
			i.command(&cobra.Command{
				Use:   "stop --name NAME",
				Short: "stop a program",
				Long:  "Sends SIGTERM, and SIGKILL if the program does not end in time.",
			}, func(ctx context.Context, i *invocation) error { return i.folder.StopProgram(ctx, i.name) }, i.dataFlag, i.nameFlag),
		),
	}
}

// group is a command with commands below it.
func (i *invocation) group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}

func route(ctx context.Context, i *invocation) error {
	routes := cluster.Routes{}
	for _, text := range i.args {
		if err := routes.ParseRoute(text); err != nil {
			return usagef("route: %w", err)
		}
	}
	return i.folder.Route(ctx, routes)
}

func upgrade(ctx context.Context, i *invocation) error {
	version, err := i.version(ctx)
	if err != nil {
		return err
	}
	return i.folder.Upgrade(ctx, version)
}

func startSecond(ctx context.Context, i *invocation) error {
	version, err := i.version(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := i.folder.StartSecond(ctx, version)
	if err == nil {
		fmt.Fprintln(i.world.Out, kubeconfig)
	}
	return err
}

func down(ctx context.Context, i *invocation) error {
	stopped, err := i.folder.Stop(ctx)
	if err != nil {
		return err
	}
	if stopped {
		i.say("stopped the cluster in %s", i.folder)
	} else {
		i.say("no cluster runs in %s", i.folder)
	}
	return nil
}

func (i *invocation) printJSON(value any) error {
	encoder := json.NewEncoder(i.world.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func showStatus(_ context.Context, i *invocation) error {
	if i.output != "" && i.output != "json" {
		return usagef("status: unknown output format -o %q; known formats: json", i.output)
	}
	status, err := i.folder.Status()
	if err != nil {
		return err
	}
	if i.output == "json" {
		err = i.printJSON(status)
	} else {
		err = printStatus(i.world.Out, status)
	}
	if err == nil && !status.AllReady() {
		return errQuiet
	}
	return err
}

func printStatus(w io.Writer, status *cluster.Status) error {
	fmt.Fprintf(w, "The cluster in %s is %s.", status.Data, status.Phase)
	if status.Detail != "" {
		fmt.Fprintf(w, " (%s)", status.Detail)
	}
	fmt.Fprint(w, "\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tSTATE\tPID\tLOG")
	for _, p := range status.Parts {
		pid := "-"
		if p.State == cluster.StateReady || p.State == cluster.StateStarting {
			pid = fmt.Sprint(p.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, p.State, pid, p.Log)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range status.Parts {
		if p.State == cluster.StateCrashed {
			fmt.Fprintf(w, "\n%s crashed: %s; the end of its log:\n%s\n", p.Name, p.Exit, p.LogEnd)
		}
	}
	if status.Failure != "" {
		headline, _, _ := strings.Cut(status.Failure, "\n")
		fmt.Fprintf(w, "\nThe cluster failed: %s\n", headline)
	}
	return nil
}

func logs(_ context.Context, i *invocation) error {
	name := i.args[0]
	log, err := os.Open(i.folder.Log(filepath.Base(name)))
	if errors.Is(err, os.ErrNotExist) {
		known := []string{"supervisor"}
		paths, _ := filepath.Glob(filepath.Join(i.folder.Logs(), "*.log"))
		for _, path := range paths {
			known = append(known, strings.TrimSuffix(filepath.Base(path), ".log"))
		}
		return fmt.Errorf("no log of %q; known logs: %s", name, strings.Join(known, ", "))
	}
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(i.world.Out, log)
	return err
}

func startProgram(ctx context.Context, i *invocation) error {
	path, err := exec.LookPath(i.args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return fmt.Errorf("program %s: %w", i.name, err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return i.folder.StartProgram(ctx, cluster.Program{Name: i.name, ReadyURL: i.readyURL, Path: path, Args: i.args[1:], Dir: dir})
}

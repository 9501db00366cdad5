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

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func manageCommands() []command {
	return []command{
		{
			name:    "down",
			summary: "stop a cluster",
			help: `
Returns when all processes of the cluster have ended. Logs and data stay in the folder
until the next start. It is no error if no cluster is running.`,
			flags: (*invocation).dataFlag,
			run:   down,
		},
		{
			name:    "status",
			summary: "show the state of the parts of a cluster",
			help: `
The exit status is 0 if all parts are ready, else 1. For a part that crashed, the end of
its log is shown.`,
			flags: func(i *invocation) {
				i.dataFlag()
				i.set.StringVar(&i.output, "o", "", "output `FORMAT`: json, or empty for a table")
			},
			run: showStatus,
		},
		{
			name:    "logs",
			args:    "NAME",
			summary: "print the log of a part",
			help:    `NAME is a part or a program listed by status, or supervisor.`,
			flags:   (*invocation).dataFlag,
			run:     logs,
		},
		{
			name:    "operators",
			summary: "list the operators with the files of their CRDs, as JSON",
			help: `
Lists for each operator the component whose module pins its version, the module of the
operator, and the files of that module with its CRDs. Operators are omitted if the version of
Kubernetes does not accept their CRDs.`,
			flags: (*invocation).kubernetesFlag,
			run:   func(_ context.Context, i *invocation) error { return i.printJSON(i.config.Accepted()) },
		},
		{
			name:    "route",
			args:    "NAMESPACE/SERVICE:PORT=ADDRESS...",
			summary: "route a Service to a program on this machine",
			help: `
The API server connects to a Service at the address of its route. PORT is the number of
the Service's port, ADDRESS is HOST:PORT. A Service without a route leads to its ready
endpoints.`,
			flags: (*invocation).dataFlag,
			run: func(ctx context.Context, i *invocation) error {
				if len(i.positional) == 0 {
					return usagef("route: no route is given")
				}
				routes := cluster.Routes{}
				for _, text := range i.positional {
					if err := routes.ParseRoute(text); err != nil {
						return usagef("route: %v", err)
					}
				}
				return i.folder.Route(ctx, routes)
			},
		},
		{
			name:    "upgrade",
			summary: "upgrade a cluster to a newer version of Kubernetes",
			help: `
Stops the control plane and starts that of another version on the same data. The folder,
ports, certificates, kubeconfigs and routes stay valid. Operators, programs and simulated
nodes keep running and connect again.`,
			flags: (*invocation).versionFlags,
			run: func(ctx context.Context, i *invocation) error {
				version, err := i.version(ctx)
				if err != nil {
					return err
				}
				return i.folder.Upgrade(ctx, version)
			},
		},
		{
			name:    "apiserver start",
			summary: "start a second API server",
			help: `
The second API server serves the same data as the first one, and can have another version,
as while the API servers of a cluster are upgraded one after another. The command prints
the path of a kubeconfig for it.`,
			flags: (*invocation).versionFlags,
			run: func(ctx context.Context, i *invocation) error {
				version, err := i.version(ctx)
				if err != nil {
					return err
				}
				kubeconfig, err := i.folder.StartSecond(ctx, version)
				if err == nil {
					fmt.Fprintln(i.world.Out, kubeconfig)
				}
				return err
			},
		},
		{
			name:    "apiserver stop",
			summary: "stop the second API server",
			help:    `The first API server is not affected.`,
			flags:   (*invocation).dataFlag,
			run:     func(ctx context.Context, i *invocation) error { return i.folder.StopSecond(ctx) },
		},
		{
			name:    "program start",
			args:    "-- COMMAND ARGS...",
			summary: "start a program together with a cluster",
			help: `
The program runs in the current directory, with the environment of the cluster and with
KUBECONFIG set to the kubeconfig of the administrator. When the cluster stops, it stops
first. If it crashes, the cluster keeps running and status shows the crash. A program
that has ended can be started again under the same name.`,
			flags: func(i *invocation) {
				i.programFlags()
				i.set.StringVar(&i.readyURL, "ready-url", "", "`URL` that answers 200 when the program is ready; unset: ready immediately")
			},
			run: startProgram,
		},
		{
			name:    "program stop",
			summary: "stop a program",
			help:    "Sends SIGTERM, and SIGKILL if the program does not end in time.",
			flags:   (*invocation).programFlags,
			run: func(ctx context.Context, i *invocation) error {
				if i.name == "" {
					return usagef("program stop: --name is required")
				}
				return i.folder.StopProgram(ctx, i.name)
			},
		},
	}
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
	if len(i.positional) != 1 {
		return usagef("logs: exactly one NAME is required")
	}
	name := i.positional[0]
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
	if i.name == "" || len(i.rest) == 0 {
		return usagef("program start: --name is required, and the command after --")
	}
	path, err := exec.LookPath(i.rest[0])
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
	return i.folder.StartProgram(ctx, cluster.Program{Name: i.name, ReadyURL: i.readyURL, Path: path, Args: i.rest[1:], Dir: dir})
}

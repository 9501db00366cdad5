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

func downCommand() command {
	return command{
		name:    "down",
		summary: "stop a cluster",
		help: `
Returns when all processes of the cluster have ended. Logs and data stay in the folder
until the next start. It is no error if no cluster is running.`,
		flags: (*invocation).dataFlag,
		run: func(ctx context.Context, i *invocation) error {
			folder, err := i.folder()
			if err != nil {
				return err
			}
			stopped, err := folder.Stop(ctx)
			if err != nil {
				return err
			}
			if stopped {
				i.say("stopped the cluster in " + string(folder))
			} else {
				i.say("no cluster runs in " + string(folder))
			}
			return nil
		},
	}
}

func statusCommand() command {
	return command{
		name:    "status",
		summary: "show the state of the parts of a cluster",
		help: `
The exit status is 0 if all parts are ready, else 1. For a part that crashed, the end of
its log is shown.`,
		flags: func(i *invocation) {
			i.dataFlag()
			i.set.StringVar(&i.output, "o", "", "output `FORMAT`: json, or empty for a table")
		},
		run: func(ctx context.Context, i *invocation) error {
			if i.output != "" && i.output != "json" {
				return usagef("status: unknown output format -o %q; known formats: json", i.output)
			}
			folder, err := i.folder()
			if err != nil {
				return err
			}
			status, err := folder.Status(ctx)
			if err != nil {
				return err
			}
			if i.output == "json" {
				encoder := json.NewEncoder(i.world.Out)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(status)
			} else {
				err = printStatus(i.world.Out, status)
			}
			if err == nil && !status.AllReady() {
				return errQuiet
			}
			return err
		},
	}
}

func printStatus(w io.Writer, status *cluster.Status) error {
	fmt.Fprintf(w, "The cluster in %s is %s.", status.Data, status.Phase)
	if status.Detail != "" {
		fmt.Fprintf(w, " (%s)", status.Detail)
	}
	fmt.Fprint(w, "\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tSTATE\tPID\tUPTIME\tMEMORY\tLOG")
	for _, p := range status.Parts {
		pid, uptime, memory := "-", "-", "-"
		if p.State == cluster.StateReady || p.State == cluster.StateStarting {
			pid, uptime = fmt.Sprint(p.PID), seconds(p.Uptime)
			memory = fmt.Sprintf("%d MiB", p.MemoryBytes>>20)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, p.State, pid, uptime, memory, p.Log)
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

func logsCommand() command {
	return command{
		name:    "logs",
		args:    "NAME",
		summary: "print the log of a part",
		help:    `NAME is a part or a program listed by status, or supervisor.`,
		flags:   (*invocation).dataFlag,
		run: func(ctx context.Context, i *invocation) error {
			if len(i.positional) != 1 {
				return usagef("logs: exactly one NAME is required")
			}
			folder, err := i.folder()
			if err != nil {
				return err
			}
			name := i.positional[0]
			log, err := os.Open(folder.Log(filepath.Base(name)))
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("no log of %q; known logs: %s", name, strings.Join(logNames(folder), ", "))
			}
			if err != nil {
				return err
			}
			defer log.Close()
			_, err = io.Copy(i.world.Out, log)
			return err
		},
	}
}

func logNames(folder cluster.Folder) []string {
	names := []string{"supervisor"}
	paths, _ := filepath.Glob(filepath.Join(folder.Logs(), "*.log"))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".log"))
	}
	return names
}

func programStartCommand() command {
	return command{
		name:    "program start",
		args:    "-- COMMAND ARGS...",
		summary: "start a program together with a cluster",
		help: `
The program runs in the current directory, with the environment of the cluster and with
KUBECONFIG set to the kubeconfig of the administrator. When the cluster stops, it stops
first. If it crashes, the cluster keeps running and status shows the crash. A program
that has ended can be started again under the same name.`,
		flags: func(i *invocation) {
			i.dataFlag()
			i.nameFlag()
			i.set.StringVar(&i.readyURL, "ready-url", "", "`URL` that answers 200 when the program is ready; unset: ready immediately")
			i.set.Var(pairs{&i.env}, "env", "`NAME=VALUE` of an environment variable; can be repeated")
		},
		run: func(ctx context.Context, i *invocation) error {
			if len(i.rest) == 0 {
				return usagef("program start: the command is required after --")
			}
			folder, err := i.programFolder()
			if err != nil {
				return err
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
			return folder.StartProgram(ctx, cluster.Program{
				Name: i.name, ReadyURL: i.readyURL, Env: i.env,
				Path: path, Args: i.rest[1:], Dir: dir,
			})
		},
	}
}

func programStopCommand() command {
	return programEndCommand("stop", "stop a program", "Sends SIGTERM, and SIGKILL if the program does not end in time.", cluster.Folder.StopProgram)
}

func programKillCommand() command {
	return programEndCommand("kill", "kill a program with SIGKILL", "Simulates a crash: the program cannot react.", cluster.Folder.KillProgram)
}

func programEndCommand(verb, summary, help string, end func(cluster.Folder, context.Context, string) error) command {
	return command{
		name:    "program " + verb,
		summary: summary,
		help:    help,
		flags: func(i *invocation) {
			i.dataFlag()
			i.nameFlag()
		},
		run: func(ctx context.Context, i *invocation) error {
			folder, err := i.programFolder()
			if err != nil {
				return err
			}
			return end(folder, ctx, i.name)
		},
	}
}

func (i *invocation) nameFlag() {
	i.set.StringVar(&i.name, "name", "", "`NAME` of the program")
}

func (i *invocation) programFolder() (cluster.Folder, error) {
	if i.name == "" {
		return "", usagef("%s: --name is required", i.command.name)
	}
	return i.folder()
}
